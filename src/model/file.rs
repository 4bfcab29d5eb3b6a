//! Models as files.
//!
//! A file is safetensors: arrays by name, and metadata of one entry, `nuptse`, a text in JSON with `kind` ("model"), `version`
//! (of the format), `checksum` (XXH3 of all of it) and `header`. In format 1 the header has
//!
//! - `inputs`: `{"kind": "dense" | "sparse", "rows": n, "columns": d}`,
//! - `scaling`: `null`, `"unit-norm"` or `"standardise"`,
//! - `kernels`: for each its `name`, `per_input`, and the numbers of its `parameters`, `columns` and `groups` (`null`: none),
//! - `nodes`: of the tree, with its root; 0 where the classes are flat; `classes` and `functions`: how many there are,
//! - `notes`: a text of the program that wrote it,
//!
//! and the arrays are `alpha` (n × C), `intercepts` (C), `intercept_variance` (1), `variances` and `kernel_of_function` (one
//! entry a function), `x` (n × d) or `x.lengths`, `x.columns`, `x.values` (entries of every row, their columns and values),
//! `mean` and `factor` (d) of the scaling, `parents` (one entry a node, the root its own) and `leaves` (C), and for every
//! kernel `kernel k parameters`, `kernel k columns` and `kernel k groups`. Numbers that matter are in arrays, to the bit.

use super::{Model, ModelSpec};
use crate::archive::{Archive, error};
use crate::data::{CsrRows, Inputs, Scaling};
use crate::error::{Error, FileProblem, Result};
use crate::kernel::{Block, Covariance, KernelDescription, Parameter};
use crate::prior::{Flat, Mixing, Tree};
use ndarray::{Array1, Array2};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

const KIND: &str = "model";
const VERSION: u32 = 1;

type Outcome<T> = std::result::Result<T, FileProblem>;

/// A model as it was kept: with the scaling of its inputs, and a text of the program that kept it.
#[derive(Debug, Clone)]
pub struct SavedModel {
    /// The model.
    pub model: Model,
    /// How inputs are scaled before the model sees them.
    pub scaling: Scaling,
    /// Anything, e.g. the labels of the classes.
    pub notes: String,
}

impl Model {
    /// Writes a file, whole: whatever happens, there is either what was there before, or all of this. `notes` is any text.
    pub fn save(&self, path: &Path, scaling: &Scaling, notes: &str) -> Result<()> {
        let archive = archive(self, scaling, notes).map_err(|problem| error(path, problem))?;
        archive.save(path, KIND, VERSION)
    }

    /// The bytes of the file.
    pub fn to_bytes(&self, scaling: &Scaling, notes: &str) -> Result<Vec<u8>> {
        let written = archive(self, scaling, notes)
            .and_then(|archive| archive.to_bytes(KIND, VERSION).map_err(|reason| FileProblem::NotWritten { reason }));
        written.map_err(|problem| error(Path::new(IN_MEMORY), problem))
    }
}

impl SavedModel {
    /// Reads a file. Nothing in it is executed, and what is damaged, too new or not ours is refused, each with its reason.
    pub fn load(path: &Path) -> Result<Self> {
        let (archive, _) = Archive::load(path, KIND, VERSION)?;
        Self::from_archive(archive).map_err(|problem| error(path, problem))
    }

    /// The model that the bytes of a file hold.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let read = Archive::from_bytes(bytes, KIND, VERSION).and_then(|(archive, _)| Self::from_archive(archive));
        read.map_err(|problem| error(Path::new(IN_MEMORY), problem))
    }

    fn from_archive(mut archive: Archive) -> Outcome<Self> {
        let header = std::mem::take(&mut archive.header);
        let text = |value: &Value, name: &str| match value.get(name) {
            Some(Value::String(text)) => Ok(text.clone()),
            _ => Err(senseless(name)),
        };
        let inputs = header.get("inputs").ok_or_else(|| senseless("inputs"))?;
        let (rows, columns) = (size(inputs, "rows")?, size(inputs, "columns")?);
        let (classes, functions) = (size(&header, "classes")?, size(&header, "functions")?);
        let alpha = finite("alpha", archive.take("alpha", &[rows, classes])?)?;
        let alpha = Array2::from_shape_vec((rows, classes), alpha).map_err(|_| senseless("alpha"))?;
        let intercepts = Array1::from(finite("intercepts", archive.take("intercepts", &[classes])?)?);
        let train = match text(inputs, "kind")?.as_str() {
            "dense" => {
                let x = Array2::from_shape_vec((rows, columns), archive.take("x", &[rows, columns])?);
                Inputs::dense(x.map_err(|_| senseless("x"))?)
            }
            "sparse" => sparse_rows(&mut archive, rows, columns)?,
            _ => return Err(senseless("inputs")),
        };
        let train = train.map_err(|reason| corrupt(&reason))?;
        let scaling = match header.get("scaling") {
            Some(Value::Null) => Scaling::None,
            Some(Value::String(name)) if name == "unit-norm" => Scaling::UnitNorm,
            Some(Value::String(name)) if name == "standardise" => {
                let mut of_columns = |name: &str| -> Outcome<Vec<f64>> {
                    let shape = archive.arrays.get(name).map_or(0, |array| array.shape.iter().product());
                    finite(name, archive.take(name, &[shape])?)
                };
                let (mean, factor) = (of_columns("mean")?, of_columns("factor")?);
                if mean.len() != factor.len() {
                    return Err(senseless("scaling"));
                }
                Scaling::Standardise { mean, factor }
            }
            _ => return Err(senseless("scaling")),
        };
        let covariances = kernels(&header, &mut archive, &train)?;
        let variances = archive.take("variances", &[functions])?;
        let matrices = archive.take_whole("kernel_of_function", &[functions])?;
        let blocks = variances.into_iter().zip(matrices).map(|(variance, matrix)| {
            Parameter::check("variance", variance).map_err(|reason| corrupt(&reason))?;
            let matrix = matrix as usize;
            if matrix < covariances.len() {
                Ok(Block { matrix, variance })
            } else {
                Err(senseless("kernel_of_function"))
            }
        });
        let blocks = blocks.collect::<Outcome<Vec<_>>>()?;
        let mixing = mixing(&mut archive, size(&header, "nodes")?, classes)?;
        let intercept_variance = archive.take("intercept_variance", &[1])?[0];
        if !intercept_variance.is_finite() || intercept_variance < 0.0 {
            return Err(senseless("intercept_variance"));
        }
        let spec = ModelSpec { covariances, blocks, mixing, intercept_variance };
        let model = Model::new(spec, train, alpha, intercepts).map_err(|reason| corrupt(&reason))?;
        Ok(Self { model, scaling, notes: text(&header, "notes")? })
    }
}

/// What the file of a model holds.
fn archive(model: &Model, scaling: &Scaling, notes: &str) -> Outcome<Archive> {
    let spec = model.spec();
    let (rows, columns) = (model.train().rows(), model.train().columns());
    let kernels: Vec<_> = spec.covariances.iter().map(|one| KernelDescription::of(one.as_ref())).collect();
    let tree = spec.mixing.tree().map(Tree::description);
    let described = kernels.iter().map(|kernel| {
        json!({
            "name": kernel.name,
            "per_input": kernel.per_input,
            "parameters": kernel.parameters.as_ref().map(Vec::len),
            "columns": kernel.columns.as_ref().map(Vec::len),
            "groups": kernel.groups.as_ref().map(Vec::len),
        })
    });
    let kind_of_scaling = match scaling {
        Scaling::None => Value::Null,
        Scaling::UnitNorm => json!("unit-norm"),
        Scaling::Standardise { .. } => json!("standardise"),
    };
    let sparse = matches!(model.train(), Inputs::Sparse(_));
    let mut archive = Archive::new(json!({
        "inputs": {"kind": if sparse { "sparse" } else { "dense" }, "rows": rows, "columns": columns},
        "scaling": kind_of_scaling,
        "kernels": described.collect::<Vec<_>>(),
        "nodes": tree.as_ref().map_or(0, |(parents, _)| parents.len()),
        "classes": spec.mixing.classes(),
        "functions": spec.mixing.functions(),
        "notes": notes,
    }));
    archive.insert("alpha", &[rows, spec.mixing.classes()], model.alpha().iter().copied().collect::<Vec<f64>>());
    archive.insert("intercepts", &[model.intercepts().len()], model.intercepts().to_vec());
    archive.insert("intercept_variance", &[1], vec![spec.intercept_variance]);
    let functions = spec.blocks.len();
    archive.insert("variances", &[functions], spec.blocks.iter().map(|one| one.variance).collect::<Vec<f64>>());
    archive.insert("kernel_of_function", &[functions], whole(spec.blocks.iter().map(|one| one.matrix))?);
    match model.train() {
        Inputs::Dense(x) => archive.insert("x", &[rows, columns], x.iter().copied().collect::<Vec<f64>>()),
        Inputs::Sparse(x) => {
            let (offsets, indices, values) = x.parts();
            archive.insert("x.lengths", &[rows], whole(offsets.windows(2).map(|pair| pair[1] - pair[0]))?);
            archive.insert("x.columns", &[indices.len()], indices.to_vec());
            archive.insert("x.values", &[values.len()], values.to_vec());
        }
    }
    if let Scaling::Standardise { mean, factor } = scaling {
        archive.insert("mean", &[mean.len()], mean.clone());
        archive.insert("factor", &[factor.len()], factor.clone());
    }
    if let Some((parents, leaves)) = tree {
        let own = parents.iter().enumerate().map(|(node, parent)| parent.unwrap_or(node));
        archive.insert("parents", &[parents.len()], whole(own)?);
        archive.insert("leaves", &[leaves.len()], whole(leaves.into_iter())?);
    }
    for (k, kernel) in kernels.into_iter().enumerate() {
        let name = |part: &str| format!("kernel {k} {part}");
        if let Some(values) = kernel.parameters {
            archive.insert(name("parameters"), &[values.len()], values);
        }
        for (part, values) in [("columns", kernel.columns), ("groups", kernel.groups)] {
            if let Some(values) = values {
                archive.insert(name(part), &[values.len()], whole(values.into_iter())?);
            }
        }
    }
    Ok(archive)
}

/// What stands for the path where there is none.
const IN_MEMORY: &str = "the model in memory";

fn corrupt(error: &Error) -> FileProblem {
    let reason = error.to_string();
    match error {
        Error::MemoryLimit { .. } => FileProblem::TooLarge { reason },
        _ => FileProblem::Corrupt { reason },
    }
}

fn senseless(what: &str) -> FileProblem {
    FileProblem::Corrupt { reason: format!("its {what} make no sense") }
}

/// A number of things in the header.
fn size(value: &Value, name: &str) -> Outcome<usize> {
    value.get(name).and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok()).ok_or_else(|| senseless(name))
}

fn finite(name: &str, values: Vec<f64>) -> Outcome<Vec<f64>> {
    if values.iter().all(|value| value.is_finite()) { Ok(values) } else { Err(senseless(name)) }
}

fn whole(values: impl Iterator<Item = usize>) -> Outcome<Vec<u32>> {
    let large = |_| FileProblem::NotWritten { reason: "a number does not fit into 32 bits".to_owned() };
    values.map(|value| u32::try_from(value).map_err(large)).collect()
}

fn sizes(values: Vec<u32>) -> Vec<usize> {
    values.into_iter().map(|value| value as usize).collect()
}

fn sparse_rows(archive: &mut Archive, rows: usize, columns: usize) -> Outcome<Result<Inputs>> {
    let lengths = archive.take_whole("x.lengths", &[rows])?;
    let entries = lengths.iter().map(|&length| u64::from(length)).sum::<u64>();
    let entries = usize::try_from(entries).map_err(|_| senseless("x.lengths"))?;
    let indices = archive.take_whole("x.columns", &[entries])?;
    let values = archive.take("x.values", &[entries])?;
    let mut offsets = Vec::with_capacity(rows + 1);
    offsets.push(0);
    let mut end = 0;
    for length in lengths {
        end += length as usize;
        offsets.push(end);
    }
    Ok(CsrRows::new(offsets, indices, values, columns).and_then(Inputs::sparse))
}

fn kernels(header: &Value, archive: &mut Archive, x: &Inputs) -> Outcome<Vec<Arc<dyn Covariance>>> {
    let list = header.get("kernels").and_then(Value::as_array).ok_or_else(|| senseless("kernels"))?;
    let mut covariances = Vec::new();
    for (k, one) in list.iter().enumerate() {
        let (Some(Value::String(name)), Some(&Value::Bool(per_input))) = (one.get("name"), one.get("per_input")) else {
            return Err(senseless("kernels"));
        };
        let count = |part: &str| match one.get(part) {
            Some(Value::Null) => Ok(None),
            _ => size(one, part).map(Some),
        };
        let array = |part: &str| format!("kernel {k} {part}");
        let parameters = match count("parameters")? {
            Some(count) => Some(archive.take(&array("parameters"), &[count])?),
            None => return Err(senseless("kernels")), // nothing is automatic any more
        };
        let mut numbers = |part: &str| match count(part)? {
            Some(count) => archive.take_whole(&array(part), &[count]).map(sizes).map(Some),
            None => Ok(None),
        };
        let (columns, groups) = (numbers("columns")?, numbers("groups")?);
        let kernel = KernelDescription { name: name.clone(), parameters, per_input, columns, groups };
        covariances.push(kernel.covariance(x, None).map_err(|reason| corrupt(&reason))?);
    }
    Ok(covariances)
}

fn mixing(archive: &mut Archive, nodes: usize, classes: usize) -> Outcome<Arc<dyn Mixing>> {
    if nodes == 0 {
        return Ok(Arc::new(Flat::new(classes)));
    }
    let parents = sizes(archive.take_whole("parents", &[nodes])?);
    let parents: Vec<_> =
        parents.into_iter().enumerate().map(|(node, parent)| (parent != node).then_some(parent)).collect();
    let leaves = sizes(archive.take_whole("leaves", &[classes])?);
    Ok(Arc::new(Tree::new(&parents, &leaves).map_err(|reason| corrupt(&reason))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;
    use crate::archive::Values;
    use crate::data::Targets;
    use crate::kernel::{Linear, OnColumns, Rbf, WeightedLinear};
    use crate::model::FitOptions;
    use ndarray::Array2;
    use proptest::prelude::*;
    use proptest::sample::Index;

    /// A small model with something of everything.
    fn example(sparse: bool) -> Archive {
        let rows = Array2::from_shape_fn((9, 3), |(i, j)| ((i * 7 + j * 3) % 5) as f64);
        let x = if sparse {
            let entries = rows.indexed_iter().filter(|(_, value)| **value != 0.0);
            let (mut lengths, mut columns, mut values) = ([0; 9], Vec::new(), Vec::new());
            for ((row, column), value) in entries {
                lengths[row] += 1;
                columns.push(u32::try_from(column).unwrap());
                values.push(*value);
            }
            let mut offsets = vec![0];
            lengths.iter().for_each(|length| offsets.push(offsets[offsets.len() - 1] + length));
            Inputs::sparse(CsrRows::new(offsets, columns, values, 3).unwrap()).unwrap()
        } else {
            Inputs::dense(rows).unwrap()
        };
        let covariances: Vec<Arc<dyn Covariance>> = vec![
            Arc::new(Rbf::per_input(vec![0.1, 0.2, 0.3]).unwrap()),
            Arc::new(OnColumns::new(vec![2, 0], Arc::new(Linear))),
            Arc::new(WeightedLinear::new(vec![0, 1, 1], vec![0.7, 1.3]).unwrap()),
        ];
        let tree = Tree::new(&[Some(3), Some(3), Some(4), Some(4), None], &[2, 0, 1]).unwrap();
        let blocks = (0..4).map(|p| Block { matrix: p % 3, variance: 1.0 }).collect();
        let spec = ModelSpec { covariances, blocks, mixing: Arc::new(tree), intercept_variance: 1.0 };
        let targets = Targets::from_labels(&[0, 1, 2, 0, 1, 2, 0, 1, 2], 3).unwrap();
        let (model, _) = spec.fit(&Context::new(Some(1)).unwrap(), &x, targets, &FitOptions::default()).unwrap();
        let scaling = Scaling::Standardise { mean: vec![0.0; 3], factor: vec![1.0; 3] };
        archive(&model, &scaling, "notes").unwrap()
    }

    /// Every number and text of a header, to be changed.
    fn leaves(value: &mut Value) -> Vec<&mut Value> {
        match value {
            Value::Object(map) => map.values_mut().flat_map(leaves).collect(),
            Value::Array(list) => list.iter_mut().flat_map(leaves).collect(),
            leaf => vec![leaf],
        }
    }

    fn some_value() -> impl Strategy<Value = Value> {
        prop_oneof![
            prop::sample::select(vec![0_u64, 1, 2, 3, 9, 1 << 31, 1 << 32, 1 << 60, u64::MAX]).prop_map(Value::from),
            prop::sample::select(vec!["dense", "sparse", "linear", "rbf", "precomputed", "unit-norm", "x"])
                .prop_map(Value::from),
            prop::sample::select(vec![Value::Null, Value::Bool(true), json!([]), json!({}), json!(-1), json!(0.5)]),
        ]
    }

    proptest! {
        /// What somebody writes who knows the format, and gets the checksum right.
        #[test]
        fn a_file_with_bad_intentions_does_no_harm(
            sparse in any::<bool>(),
            in_header in prop::collection::vec((any::<Index>(), some_value()), 0..3),
            in_arrays in prop::collection::vec((any::<Index>(), any::<Index>(), any::<f64>(), any::<u32>()), 0..3),
            shapes in prop::collection::vec((any::<Index>(), prop::collection::vec(0_usize..20, 0..3)), 0..2),
        ) {
            let mut file = example(sparse);
            for (place, value) in in_header {
                let mut leaves = leaves(&mut file.header);
                if !leaves.is_empty() {
                    let place = place.index(leaves.len());
                    *leaves[place] = value;
                }
            }
            for (array, place, double, whole) in in_arrays {
                let array = array.index(file.arrays.len());
                match file.arrays.values_mut().nth(array).map(|array| &mut array.values) {
                    Some(Values::Double(values)) if !values.is_empty() => {
                        let place = place.index(values.len());
                        values[place] = double;
                    }
                    Some(Values::Whole(values)) if !values.is_empty() => {
                        let place = place.index(values.len());
                        values[place] = whole;
                    }
                    _ => {}
                }
            }
            for (array, shape) in shapes {
                let array = array.index(file.arrays.len());
                if let Some(array) = file.arrays.values_mut().nth(array) {
                    let length = shape.iter().product();
                    match &mut array.values {
                        Values::Double(values) => values.resize(length, 1.0),
                        Values::Whole(values) => values.resize(length, 1),
                    }
                    array.shape = shape;
                }
            }
            let bytes = file.to_bytes(KIND, VERSION).unwrap();
            if let Ok(found) = SavedModel::from_bytes(&bytes) {
                let x = found.model.train().clone();
                if let Ok(x) = found.scaling.apply(x) {
                    let _ = found.model.predict_proba(&Context::new(Some(1)).unwrap(), &x);
                }
                prop_assert!(found.model.to_bytes(&found.scaling, &found.notes).is_ok());
            }
        }
    }
}
