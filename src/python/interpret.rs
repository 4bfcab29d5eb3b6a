//! What fitted models say in terms of their inputs and training points, as Python sees it.

use super::convert::{InputsArgument, copied};
use super::door::{Settings, enter};
use super::model::FittedModel;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray2, ToPyArray};
use pyo3::prelude::*;

/// Whether all functions are weighted sums of the inputs, and a constant.
#[pyfunction]
pub(super) fn is_linear(model: &FittedModel) -> bool {
    model.model.is_linear()
}

/// The weight of every input, as it comes, in the function of every class, one row an input.
#[pyfunction]
pub(super) fn class_weights<'py>(
    py: Python<'py>,
    model: &FittedModel,
    n_threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let weights = enter(py, &Settings { threads: n_threads, ..Settings::default() }, |context| {
        let mut weights = model.model.class_weights(context)?;
        model.scaling.unscale_weights(&mut weights)?;
        Ok(weights)
    })?;
    Ok(weights.into_pyarray(py))
}

/// The weight of every scaled input in every independent function, one row an input.
#[pyfunction]
pub(super) fn function_weights<'py>(
    py: Python<'py>,
    model: &FittedModel,
    n_threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let settings = Settings { threads: n_threads, ..Settings::default() };
    Ok(enter(py, &settings, |context| model.model.function_weights(context))?.into_pyarray(py))
}

/// What every training point adds to the class functions, weighted by the directions, at other points; and what is there
/// without any.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub(super) fn contributions<'py>(
    py: Python<'py>,
    model: &FittedModel,
    x: InputsArgument<'py>,
    directions: PyReadonlyArray2<'py, f64>,
    n_threads: Option<usize>,
) -> PyResult<(Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<f64>>)> {
    let (x, directions) = (x.copy()?, copied(directions.as_array(), |&value| value));
    let settings = Settings { threads: n_threads, ..Settings::default() };
    let (of_points, constant) = enter(py, &settings, |context| {
        let of_points = model.model.contributions(context, &model.scaling.apply(x)?, directions.view())?;
        Ok((of_points, directions.dot(model.model.intercepts())))
    })?;
    Ok((of_points.into_pyarray(py), constant.to_pyarray(py)))
}
