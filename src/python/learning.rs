//! The cross-validation criterion, and learning by it, as Python sees them.

use super::convert::{fold_method, numbers};
use super::door::{Settings, enter};
use super::model::{NamedValues, OptionsArgument, Problem, ProblemArgument, parameters};
use crate::cv::{CrossValidation, CvOptions, Folds, gradient};
use crate::data::{Inputs, Targets};
use crate::learn::{LearnOptions, Learned, ParameterLayout, learn};
use crate::model::{FitOptions, ModelSpec};
use crate::{Context, Result};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

/// The number of folds and a seed, or the fold of every point.
#[derive(FromPyObject)]
pub(super) enum FoldsArgument<'py> {
    Count((usize, u64)),
    Assignment(PyReadonlyArray1<'py, i64>),
}

/// How hyperparameters are learned, as a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct LearningArgument<'py> {
    folds: FoldsArgument<'py>,
    fold_method: String,
    /// The group of every function, whose variances are one.
    variance_groups: Vec<usize>,
    learn_intercept: bool,
    max_evaluations: usize,
    tolerance: f64,
    /// (lower, upper) of every logarithm; empty for the usual ones.
    bounds: Vec<(f64, f64)>,
    /// (mean, standard deviation) of every logarithm; empty for none.
    priors: Vec<(f64, f64)>,
    keep_on_interrupt: bool,
    checkpoint: Option<PathBuf>,
}

/// The same as values of the crate.
pub(super) struct Learning {
    folds: FoldsChoice,
    variance_groups: Vec<usize>,
    learn_intercept: bool,
    pub options: LearnOptions,
}

enum FoldsChoice {
    Stratified(usize, u64),
    Given(Vec<usize>),
}

impl LearningArgument<'_> {
    pub(super) fn copy(self, fit: FitOptions) -> Result<Learning> {
        let folds = match &self.folds {
            FoldsArgument::Count((count, seed)) => FoldsChoice::Stratified(*count, *seed),
            FoldsArgument::Assignment(of_point) => FoldsChoice::Given(numbers(of_point)),
        };
        let options = LearnOptions {
            cv: CvOptions {
                fit,
                method: fold_method(&self.fold_method)?,
                accuracy: fit.solve.tol.min(CvOptions::default().accuracy),
            },
            max_evaluations: self.max_evaluations,
            tolerance: self.tolerance,
            bounds: self.bounds,
            prior: self.priors,
            keep_on_interrupt: self.keep_on_interrupt,
            checkpoint: self.checkpoint,
            ..LearnOptions::default()
        };
        let (variance_groups, learn_intercept) = (self.variance_groups, self.learn_intercept);
        Ok(Learning { folds, variance_groups, learn_intercept, options })
    }
}

impl Learning {
    fn cross_validation(&self, targets: &Targets) -> Result<CrossValidation> {
        let folds = match &self.folds {
            FoldsChoice::Stratified(count, seed) => Folds::stratified(targets, *count, *seed)?,
            FoldsChoice::Given(of_point) => Folds::from_assignment(of_point.clone())?,
        };
        CrossValidation::new(targets.clone(), folds)
    }

    fn layout(&self, spec: &ModelSpec) -> Result<ParameterLayout> {
        ParameterLayout::new(spec, self.variance_groups.clone(), self.learn_intercept)
    }

    pub(super) fn run(&self, context: &Context, spec: &ModelSpec, x: &Inputs, targets: &Targets) -> Result<Learned> {
        let mut cv = self.cross_validation(targets)?;
        learn(context, spec, &self.layout(spec)?, x, &mut cv, &self.options)
    }
}

/// What was learned, by name.
pub(super) fn learned_dict<'py>(py: Python<'py>, learned: &Learned) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("value", learned.value)?;
    dict.set_item("converged", learned.converged)?;
    dict.set_item("interrupted", learned.interrupted)?;
    dict.set_item("checkpoint_problem", learned.checkpoint_problem.as_ref().map(ToString::to_string))?;
    let rows = learned.history.iter().map(|one| {
        let row = PyDict::new(py);
        row.set_item("logarithms", &one.logarithms)?;
        row.set_item("value", one.value)?;
        row.set_item("gradient", &one.gradient)?;
        row.set_item("products", one.products)?;
        row.set_item("converged", one.converged)?;
        row.set_item("kernel_seconds", one.kernel_time.as_secs_f64())?;
        row.set_item("fold_seconds", one.fold_time.as_secs_f64())?;
        row.set_item("gradient_seconds", one.gradient_time.as_secs_f64())?;
        row.set_item("seconds", one.at.as_secs_f64())?;
        Ok(row)
    });
    dict.set_item("history", rows.collect::<PyResult<Vec<_>>>()?)?;
    Ok(dict)
}

/// What [`cv_criterion`] returns.
type CriterionAnswer<'py> = (f64, Option<Vec<f64>>, Vec<NamedValues>, Vec<f64>, Bound<'py, PyDict>);

/// Ψ, its gradient if asked for, the shape parameters and variances it is taken at, and how it went.
#[pyfunction]
#[pyo3(signature = (problem, options, learning, with_gradient, n_threads, memory_limit))]
pub(super) fn cv_criterion<'py>(
    py: Python<'py>,
    problem: ProblemArgument<'py>,
    options: OptionsArgument,
    learning: LearningArgument<'py>,
    with_gradient: bool,
    n_threads: Option<usize>,
    memory_limit: Option<u64>,
) -> PyResult<CriterionAnswer<'py>> {
    let options = options.fit_options()?;
    let problem = problem.copy()?;
    let learning = learning.copy(options)?;
    let settings = Settings { threads: n_threads, memory_limit, ..Settings::default() };
    let (found, gradient, spec, seconds) = enter(py, &settings, |context| {
        let Problem { x, targets, spec, .. } = problem.prepare()?;
        let (mut cv, layout) = (learning.cross_validation(&targets)?, learning.layout(&spec)?);
        let mut prior = spec.prior_for_folds(context, &x, options.precision, cv.folds().count())?;
        let found = cv.evaluate(context, &mut prior, &learning.options.cv, with_gradient)?;
        let begun = std::time::Instant::now();
        let of_all = found.f.as_ref().map(|f| gradient(context, &prior, &found.e, f)).transpose()?;
        let gradient = of_all.map(|of_all| layout.gradient(&of_all));
        Ok((found, gradient, spec, begun.elapsed()))
    })?;
    let info = PyDict::new(py);
    info.set_item("products", found.info.products)?;
    info.set_item("converged", found.info.converged)?;
    info.set_item("fold_method", format!("{:?}", found.info.method).to_lowercase())?;
    info.set_item("fold_seconds", found.info.time.as_secs_f64())?;
    info.set_item("gradient_seconds", seconds.as_secs_f64())?;
    let variances = spec.blocks.iter().map(|block| block.variance).collect();
    Ok((found.value, gradient, parameters(&spec), variances, info))
}
