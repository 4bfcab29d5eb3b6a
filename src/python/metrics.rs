//! Decisions from probabilities, and scores of predictions.

use super::convert::{TreeArgument, copied, loss, numbers, tree};
use super::door::{Settings, enter};
use crate::{Context, metrics, model};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

type Labels<'py> = PyReadonlyArray1<'py, i64>;
type Weights<'py> = Option<PyReadonlyArray1<'py, f64>>;
type Floats<'py> = Bound<'py, PyArray1<f64>>;

/// The number of the class with the smallest expected loss, for every row of probabilities.
#[pyfunction]
pub(super) fn decide<'py>(
    py: Python<'py>,
    tree: TreeArgument,
    probabilities: PyReadonlyArray2<'py, f64>,
    loss: &str,
) -> PyResult<Bound<'py, PyArray1<usize>>> {
    let (tree, loss) = (self::tree(&tree)?, self::loss(loss)?);
    let probabilities = copied(probabilities.as_array(), |&p| p);
    let decide = |context: &Context| context.install(|| model::decide(&tree, probabilities.view(), loss));
    Ok(enter(py, &Settings::default(), decide)?.into_pyarray(py))
}

fn values(weights: &Weights<'_>) -> Option<Vec<f64>> {
    weights.as_ref().map(|weights| weights.as_array().to_vec())
}

#[pyfunction]
pub(super) fn accuracy(truth: Labels<'_>, predicted: Labels<'_>, weights: Weights<'_>) -> PyResult<f64> {
    Ok(metrics::accuracy(&numbers(&truth), &numbers(&predicted), values(&weights).as_deref())?)
}

#[pyfunction]
pub(super) fn reciprocal_rank(
    truth: Labels<'_>,
    probabilities: PyReadonlyArray2<'_, f64>,
    weights: Weights<'_>,
) -> PyResult<f64> {
    Ok(metrics::reciprocal_rank(&numbers(&truth), probabilities.as_array(), values(&weights).as_deref())?)
}

#[pyfunction]
pub(super) fn log_loss(
    truth: Labels<'_>,
    probabilities: PyReadonlyArray2<'_, f64>,
    weights: Weights<'_>,
) -> PyResult<f64> {
    Ok(metrics::log_loss(&numbers(&truth), probabilities.as_array(), values(&weights).as_deref())?)
}

#[pyfunction]
pub(super) fn taxonomic_loss(
    tree: TreeArgument,
    truth: Labels<'_>,
    predicted: Labels<'_>,
    weights: Weights<'_>,
) -> PyResult<f64> {
    let tree = self::tree(&tree)?;
    Ok(metrics::taxonomic_loss(&tree, &numbers(&truth), &numbers(&predicted), values(&weights).as_deref())?)
}

#[pyfunction]
pub(super) fn parent_accuracy(
    tree: TreeArgument,
    truth: Labels<'_>,
    predicted: Labels<'_>,
    weights: Weights<'_>,
) -> PyResult<f64> {
    let tree = self::tree(&tree)?;
    Ok(metrics::parent_accuracy(&tree, &numbers(&truth), &numbers(&predicted), values(&weights).as_deref())?)
}

/// The shares answered, and the errors.
#[pyfunction]
pub(super) fn reject_curve<'py>(
    py: Python<'py>,
    correct: PyReadonlyArray1<'py, bool>,
    confidence: PyReadonlyArray1<'py, f64>,
    weights: Weights<'py>,
) -> PyResult<(Floats<'py>, Floats<'py>)> {
    let (correct, confidence) = (correct.as_array().to_vec(), confidence.as_array().to_vec());
    let curve = metrics::reject_curve(&correct, &confidence, values(&weights).as_deref())?;
    Ok((curve.answered.into_pyarray(py), curve.error.into_pyarray(py)))
}

/// Edges, confidence, accuracy and weight of the bins, and the calibration error.
#[pyfunction]
pub(super) fn reliability<'py>(
    py: Python<'py>,
    correct: PyReadonlyArray1<'py, bool>,
    confidence: PyReadonlyArray1<'py, f64>,
    bins: usize,
    weights: Weights<'py>,
) -> PyResult<(Floats<'py>, Floats<'py>, Floats<'py>, Floats<'py>, f64)> {
    let (correct, confidence) = (correct.as_array().to_vec(), confidence.as_array().to_vec());
    let found = metrics::reliability(&correct, &confidence, bins, values(&weights).as_deref())?;
    let [edges, sure, right, weight] =
        [found.edges, found.confidence, found.accuracy, found.weight].map(|values| values.into_pyarray(py));
    Ok((edges, sure, right, weight, found.error))
}
