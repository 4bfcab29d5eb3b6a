//! Python arguments as values of the crate.

use crate::cv::FoldMethod;
use crate::data::{CsrRows, Inputs, Targets};
use crate::kernel::Precision;
use crate::model::{Loss, Solver};
use crate::prior::{Flat, Mixing, Tree};
use crate::solve::PreconditionerUse;
use crate::{Error, Result};
use ndarray::{Array2, ArrayView2};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use std::sync::Arc;

/// X as it comes: dense rows, or (offsets, columns, values, number of columns) of sparse ones.
#[derive(FromPyObject)]
pub(super) enum InputsArgument<'py> {
    Double(PyReadonlyArray2<'py, f64>),
    Single(PyReadonlyArray2<'py, f32>),
    Sparse((PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i32>, PyReadonlyArray1<'py, f64>, usize)),
}

impl InputsArgument<'_> {
    /// Copies the array, once: Python may change it while we work.
    pub(super) fn copy(&self) -> Result<Inputs> {
        let entries = match self {
            Self::Double(x) => x.as_array().len(),
            Self::Single(x) => x.as_array().len(),
            Self::Sparse((_, _, values, _)) => 2 * values.as_array().len(),
        };
        crate::memory::check("a copy of the inputs", (entries * size_of::<f64>()) as u64)?;
        match self {
            Self::Double(x) => Inputs::dense(copied(x.as_array(), |&value| value)),
            Self::Single(x) => Inputs::dense(copied(x.as_array(), |&value| f64::from(value))),
            Self::Sparse((offsets, indices, values, columns)) => {
                let invalid = |_| Error::InvalidSparse { row: 0, reason: "an offset or a column index is negative" };
                let offsets: std::result::Result<_, _> =
                    offsets.as_array().iter().map(|&x| usize::try_from(x)).collect();
                let indices: std::result::Result<_, _> = indices.as_array().iter().map(|&x| u32::try_from(x)).collect();
                let values = values.as_array().to_vec();
                Inputs::sparse(CsrRows::new(offsets.map_err(invalid)?, indices.map_err(invalid)?, values, *columns)?)
            }
        }
    }
}

/// A row-major copy of an array in any memory order.
pub(super) fn copied<T>(array: ArrayView2<'_, T>, convert: impl Fn(&T) -> f64) -> Array2<f64> {
    let mut copy = Array2::zeros(array.raw_dim());
    copy.zip_mut_with(&array, |copy, value| *copy = convert(value));
    copy
}

/// y as it comes: labels from 0, distributions, or the number of a set of classes with the sets.
#[derive(FromPyObject)]
pub(super) enum TargetsArgument<'py> {
    Labels(PyReadonlyArray1<'py, i64>),
    Distributions(PyReadonlyArray2<'py, f64>),
    Sets((PyReadonlyArray1<'py, i64>, Vec<Vec<usize>>)),
}

impl TargetsArgument<'_> {
    pub(super) fn copy(&self, classes: usize, weights: Option<&PyReadonlyArray1<'_, f64>>) -> Result<Targets> {
        let targets = match self {
            Self::Labels(labels) => Targets::from_labels(&numbers(labels), classes)?,
            Self::Sets((of_point, sets)) => Targets::from_sets(&numbers(of_point), sets, classes)?,
            Self::Distributions(y) => Targets::from_distributions(copied(y.as_array(), |&value| value))?,
        };
        match weights {
            Some(weights) => targets.with_weights(weights.as_array().to_owned()),
            None => Ok(targets),
        }
    }
}

/// Labels as numbers; a negative one becomes one that is too large, and is refused as such.
pub(super) fn numbers(labels: &PyReadonlyArray1<'_, i64>) -> Vec<usize> {
    labels.as_array().iter().map(|&label| usize::try_from(label).unwrap_or(usize::MAX)).collect()
}

pub(super) fn solver(name: &str) -> Result<Solver> {
    match name {
        "auto" => Ok(Solver::Auto),
        "newton-cg" => Ok(Solver::NewtonCg),
        "newton-cg-symmetric" => Ok(Solver::NewtonCgSymmetric),
        "lbfgs" => Ok(Solver::Lbfgs),
        "exact" => Ok(Solver::Exact),
        _ => Err(unknown("solver", name, "'auto', 'newton-cg', 'newton-cg-symmetric', 'lbfgs', 'exact'")),
    }
}

pub(super) fn precision(name: &str) -> Result<Precision> {
    match name {
        "double" => Ok(Precision::Double),
        "single" => Ok(Precision::Single),
        _ => Err(unknown("precision", name, "'double', 'single'")),
    }
}

fn unknown(what: &'static str, found: &str, known: &'static str) -> Error {
    Error::UnknownName { what, found: found.to_owned(), known }
}

pub(super) fn preconditioner(name: &str) -> Result<PreconditionerUse> {
    match name {
        "auto" => Ok(PreconditionerUse::Auto),
        "on" => Ok(PreconditionerUse::On),
        "off" => Ok(PreconditionerUse::Off),
        _ => Err(unknown("preconditioner", name, "'auto', 'on', 'off'")),
    }
}

/// The parent of every node, -1 for the root, and the node of every class.
pub(super) type TreeArgument = (Vec<i64>, Vec<usize>);

/// The class structure: a tree, or flat.
pub(super) fn mixing(argument: Option<&TreeArgument>, classes: usize) -> Result<Arc<dyn Mixing>> {
    Ok(match argument {
        Some(argument) => Arc::new(tree(argument)?),
        None => Arc::new(Flat::new(classes)),
    })
}

pub(super) fn tree((parents, leaves): &TreeArgument) -> Result<Tree> {
    let parents: Vec<Option<usize>> = parents.iter().map(|parent| usize::try_from(*parent).ok()).collect();
    Tree::new(&parents, leaves)
}

pub(super) fn fold_method(name: &str) -> Result<FoldMethod> {
    match name {
        "auto" => Ok(FoldMethod::Auto),
        "batched" => Ok(FoldMethod::Batched),
        "shuffled" => Ok(FoldMethod::Shuffled),
        _ => Err(unknown("fold_method", name, "'auto', 'batched', 'shuffled'")),
    }
}

pub(super) fn loss(name: &str) -> Result<Loss> {
    let known = [Loss::ZeroOne, Loss::Taxonomic, Loss::Parent];
    let found = known.into_iter().find(|loss| loss.name() == name);
    found.ok_or_else(|| unknown("loss", name, "'zero_one', 'taxonomic', 'parent'"))
}
