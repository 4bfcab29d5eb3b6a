//! Python arguments as values of the crate.

use crate::data::{CsrRows, Inputs, Targets};
use crate::kernel::{Covariance, Linear, Precision, Precomputed, Rbf, Widths};
use crate::model::Solver;
use crate::prior::{Flat, Mixing, Tree};
use crate::solve::PreconditionerUse;
use crate::{Error, Result};
use ndarray::{Array2, ArrayView1, ArrayView2};
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

/// y as it comes: labels from 0, or distributions.
#[derive(FromPyObject)]
pub(super) enum TargetsArgument<'py> {
    Labels(PyReadonlyArray1<'py, i64>),
    Distributions(PyReadonlyArray2<'py, f64>),
}

impl TargetsArgument<'_> {
    pub(super) fn copy(&self, classes: usize, weights: Option<&PyReadonlyArray1<'_, f64>>) -> Result<Targets> {
        let targets = match self {
            Self::Labels(labels) => {
                // A negative label becomes one that is too large, and is refused as such.
                let labels: Vec<usize> =
                    labels.as_array().iter().map(|&label| usize::try_from(label).unwrap_or(usize::MAX)).collect();
                Targets::from_labels(&labels, classes)?
            }
            Self::Distributions(y) => Targets::from_distributions(copied(y.as_array(), |&value| value))?,
        };
        match weights {
            Some(weights) => targets.with_weights(weights.as_array().to_owned()),
            None => Ok(targets),
        }
    }
}

/// (name, parameters or None for automatic ones, one for every input).
pub(super) type KernelArgument = (String, Option<Vec<f64>>, bool);

/// The covariance function that is meant; x and the weights settle what is automatic.
pub(super) fn covariance(
    (name, parameters, per_input): &KernelArgument,
    x: &Inputs,
    weights: Option<ArrayView1<'_, f64>>,
) -> Result<Arc<dyn Covariance>> {
    match name.as_str() {
        "linear" => Ok(Arc::new(Linear)),
        "precomputed" => Ok(Arc::new(Precomputed)),
        "rbf" => {
            let widths = match parameters {
                None => Rbf::automatic(x, weights)?.widths().clone(),
                Some(values) if values.len() == 1 => Widths::Shared(values[0]),
                Some(values) => Widths::PerInput(values.clone()),
            };
            Ok(Arc::new(match widths {
                Widths::Shared(width) if *per_input => Rbf::per_input(vec![width; x.columns()])?,
                Widths::Shared(width) => Rbf::isotropic(width)?,
                Widths::PerInput(widths) => Rbf::per_input(widths)?,
            }))
        }
        _ => Err(unknown("kernel", name, "'rbf', 'linear', 'precomputed'")),
    }
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
pub(super) fn mixing(tree: Option<&TreeArgument>, classes: usize) -> Result<Arc<dyn Mixing>> {
    let Some((parents, leaves)) = tree else { return Ok(Arc::new(Flat::new(classes))) };
    let parents: Vec<Option<usize>> = parents.iter().map(|parent| usize::try_from(*parent).ok()).collect();
    Ok(Arc::new(Tree::new(&parents, leaves)?))
}
