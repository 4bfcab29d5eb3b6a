//! Fitting, and fitted models, as Python sees them.

use super::convert::{InputsArgument, TargetsArgument, TreeArgument, loss, mixing, precision, preconditioner, solver};
use super::door::{Settings, enter};
use super::learning::{LearningArgument, learned_dict};
use crate::data::{Inputs, Scaling, Targets};
use crate::kernel::{Block, Covariance, KernelDescription};
use crate::model::{FitInfo, FitOptions, Model, ModelSpec, SavedModel};
use crate::prior::Mixing;
use crate::solve::SolveParams;
use crate::{Context, Result};
use ndarray::{Array2, ArrayView1};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::PathBuf;
use std::sync::Arc;

/// A fitted model: the training points, scaled, with their coefficients.
#[pyclass(frozen, weakref, module = "nuptse._core")]
#[derive(Debug)]
pub(super) struct FittedModel {
    pub(super) model: Model,
    pub(super) scaling: Scaling,
}

/// The options of a fit, as keywords.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct OptionsArgument {
    solver: String,
    tol: f64,
    precision: String,
    max_steps: usize,
    max_cg_steps: usize,
    max_products: usize,
    pairs: usize,
    preconditioner: String,
}

/// What is fitted to what, as a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct ProblemArgument<'py> {
    x: InputsArgument<'py>,
    targets: TargetsArgument<'py>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    classes: usize,
    tree: Option<TreeArgument>,
    kernels: Vec<KernelDescription>,
    blocks: Vec<(usize, Option<f64>)>,
    intercept_variance: f64,
    scale: bool,
}

/// The same as values of the crate.
pub(super) struct Problem {
    pub x: Inputs,
    pub targets: Targets,
    pub spec: ModelSpec,
    pub scaling: Scaling,
}

/// Copies of what may be changed in Python while we work.
pub(super) struct Copied {
    x: Inputs,
    targets: Targets,
    tree: Option<TreeArgument>,
    kernels: Vec<KernelDescription>,
    blocks: Vec<(usize, Option<f64>)>,
    intercept_variance: f64,
    scale: bool,
}

impl ProblemArgument<'_> {
    pub(super) fn copy(self) -> Result<Copied> {
        Ok(Copied {
            x: self.x.copy()?,
            targets: self.targets.copy(self.classes, self.weights.as_ref())?,
            tree: self.tree,
            kernels: self.kernels,
            blocks: self.blocks,
            intercept_variance: self.intercept_variance,
            scale: self.scale,
        })
    }
}

impl Copied {
    /// Scales the inputs and makes the model.
    pub(super) fn prepare(self) -> Result<Problem> {
        let Self { x, targets, tree, kernels, blocks, intercept_variance, scale } = self;
        let scaling = if scale { Scaling::automatic(&x, targets.weights()) } else { Scaling::None };
        let x = scaling.apply(x)?;
        let mixing = mixing(tree.as_ref(), targets.classes())?;
        let spec = model_spec(&kernels, blocks, mixing, intercept_variance, &x, targets.weights())?;
        Ok(Problem { x, targets, spec, scaling })
    }
}

impl OptionsArgument {
    pub(super) fn fit_options(&self) -> Result<FitOptions> {
        Ok(FitOptions {
            solver: solver(&self.solver)?,
            precision: precision(&self.precision)?,
            solve: SolveParams {
                tol: self.tol,
                max_steps: self.max_steps,
                max_inner_steps: self.max_cg_steps,
                max_products: self.max_products,
                pairs: self.pairs,
                preconditioner: preconditioner(&self.preconditioner)?,
                ..SolveParams::default()
            },
        })
    }
}

/// Fits a model, after learning its hyperparameters if asked to. Returns it, a dict that says how the fit went, and one that
/// says what was learned.
#[pyfunction]
#[pyo3(signature = (problem, start, options, learning, n_threads, memory_limit, listener))]
#[allow(clippy::too_many_arguments)] // called from one place, by position
pub(super) fn fit<'py>(
    py: Python<'py>,
    problem: ProblemArgument<'py>,
    start: Option<PyReadonlyArray2<'py, f64>>,
    options: OptionsArgument,
    learning: Option<LearningArgument<'py>>,
    n_threads: Option<usize>,
    memory_limit: Option<u64>,
    listener: Option<Py<PyAny>>,
) -> PyResult<(FittedModel, Bound<'py, PyDict>, Option<Bound<'py, PyDict>>)> {
    let options = options.fit_options()?;
    let problem = problem.copy()?;
    let start = start.map(|start| start.as_array().to_owned());
    let learning = learning.map(|learning| learning.copy(options)).transpose()?;
    let keeps = learning.as_ref().is_some_and(|learning| learning.options.keep_on_interrupt);
    let settings = Settings { threads: n_threads, memory_limit, listener, keep_on_interrupt: keeps };
    let (model, scaling, info, learned) = enter(py, &settings, |context| {
        let Problem { x, targets, spec, scaling } = problem.prepare()?;
        let Some(learning) = learning else {
            let start = start.as_ref().map(|start| start.view());
            let (model, info) = spec.fit_from(context, &x, targets, start, &options)?;
            return Ok((model, scaling, info, None));
        };
        let learned = learning.run(context, &spec, &x, &targets)?;
        if learned.interrupted {
            context.interrupt().clear();
        }
        let (model, info) = learned.fit(context, &x, targets, &options)?;
        // All of it is in the model now. A file that will not go away is no reason to lose that.
        if let Some(path) = &learning.options.checkpoint {
            let _ = std::fs::remove_file(path);
        }
        Ok((model, scaling, info, Some(learned)))
    })?;
    let learned = learned.map(|learned| learned_dict(py, &learned)).transpose()?;
    Ok((FittedModel { model, scaling }, info_dict(py, &info)?, learned))
}

/// What the functions of a linear kernel vary by when its variance is left to us.
const AUTOMATIC_VARIANCE: f64 = 5.0;

/// The variance that makes functions vary by [`AUTOMATIC_VARIANCE`], whatever the scale of the inputs.
fn automatic_variance(covariance: &dyn Covariance, x: &Inputs, weights: Option<ArrayView1<'_, f64>>) -> Result<f64> {
    let mean = covariance.mean_variance(x, weights)?;
    Ok(if mean > 0.0 && mean.is_finite() { AUTOMATIC_VARIANCE / mean } else { AUTOMATIC_VARIANCE })
}

/// The shape parameters of every kernel and the variance of every function, before anything is learned.
#[pyfunction]
pub(super) fn hyperparameters(problem: ProblemArgument<'_>) -> PyResult<(Vec<NamedValues>, Vec<f64>)> {
    let Problem { spec, .. } = problem.copy()?.prepare()?;
    Ok((parameters(&spec), spec.blocks.iter().map(|block| block.variance).collect()))
}

/// Parameters as (name, value).
pub(super) type NamedValues = Vec<(String, f64)>;

/// The shape parameters of every kernel.
pub(super) fn parameters(spec: &ModelSpec) -> Vec<NamedValues> {
    let of_one = |p: crate::kernel::Parameter| (p.name, p.value);
    spec.covariances.iter().map(|covariance| covariance.parameters().into_iter().map(of_one).collect()).collect()
}

/// How a fit went, by name.
fn info_dict<'py>(py: Python<'py>, info: &FitInfo) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("solver", info.solve.solver)?;
    dict.set_item("converged", info.solve.converged)?;
    dict.set_item("tol", info.tol)?;
    dict.set_item("reason", info.reason)?;
    dict.set_item("steps", info.solve.steps)?;
    dict.set_item("newton_steps", info.solve.newton_steps)?;
    dict.set_item("cg_steps", info.solve.inner_steps)?;
    dict.set_item("products", info.solve.products)?;
    dict.set_item("objective", info.solve.objective)?;
    dict.set_item("residual", info.solve.residual)?;
    dict.set_item("preconditioner_rank", info.solve.preconditioner_rank)?;
    dict.set_item("kernel_matrices", &info.representations)?;
    dict.set_item("kernel_seconds", info.kernel_time.as_secs_f64())?;
    dict.set_item("mixing_seconds", info.solve.mixing_time.as_secs_f64())?;
    dict.set_item("seconds", info.total_time.as_secs_f64())?;
    let trace = info.solve.trace.iter().map(|point| {
        let entry = PyDict::new(py);
        entry.set_item("seconds", (info.kernel_time + point.time).as_secs_f64())?;
        entry.set_item("products", point.products)?;
        entry.set_item("objective", point.objective)?;
        entry.set_item("residual", point.residual)?;
        Ok(entry)
    });
    dict.set_item("trace", trace.collect::<PyResult<Vec<_>>>()?)?;
    Ok(dict)
}

#[pymethods]
impl FittedModel {
    /// α, one row a training point, one column a class.
    #[getter]
    fn alpha<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<f64>> {
        self.model.alpha().to_pyarray(py)
    }

    /// The intercept of every class. For linear kernels it is what the class function is where all inputs, as they come,
    /// are zero: standardising moves that point.
    #[getter]
    fn intercepts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        match &self.scaling {
            Scaling::Standardise { mean, .. } if self.model.is_linear() => {
                let origin = Inputs::dense(Array2::zeros((1, mean.len())))?;
                let work = |context: &Context| self.model.decision_function(context, &self.scaling.apply(origin)?);
                Ok(enter(py, &Settings::default(), work)?.row(0).to_pyarray(py))
            }
            _ => Ok(self.model.intercepts().to_pyarray(py)),
        }
    }

    /// The shape parameters of every kernel, as (name, value).
    #[getter]
    fn parameters(&self) -> Vec<NamedValues> {
        parameters(self.model.spec())
    }

    /// The variance of every function.
    #[getter]
    fn variances(&self) -> Vec<f64> {
        self.model.spec().blocks.iter().map(|block| block.variance).collect()
    }

    /// The variance of the intercepts.
    #[getter]
    fn intercept_variance(&self) -> f64 {
        self.model.spec().intercept_variance
    }

    /// The class functions at other points.
    fn decision_function<'py>(
        &self,
        py: Python<'py>,
        x: InputsArgument<'py>,
        n_threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        self.at(py, &x, n_threads, Model::decision_function)
    }

    /// Logarithms of the class probabilities at other points.
    fn predict_log_proba<'py>(
        &self,
        py: Python<'py>,
        x: InputsArgument<'py>,
        n_threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        self.at(py, &x, n_threads, Model::predict_log_proba)
    }

    /// The mass of every node of the tree at other points.
    fn node_proba<'py>(
        &self,
        py: Python<'py>,
        x: InputsArgument<'py>,
        n_threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        self.at(py, &x, n_threads, Model::node_proba)
    }

    /// For other points the number of the class with the smallest expected loss.
    fn decide<'py>(
        &self,
        py: Python<'py>,
        x: InputsArgument<'py>,
        loss: &str,
        n_threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray1<usize>>> {
        let loss = self::loss(loss)?;
        let x = x.copy()?;
        let settings = Settings { threads: n_threads, ..Settings::default() };
        let decide = |context: &Context| self.model.decide(context, &self.scaling.apply(x)?, loss);
        Ok(enter(py, &settings, decide)?.into_pyarray(py))
    }

    /// The bytes of a model file, with a text of the caller in it.
    fn to_bytes<'py>(&self, py: Python<'py>, notes: &str) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = enter(py, &Settings::default(), |_| self.model.to_bytes(&self.scaling, notes))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Writes a model file, whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf, notes: &str) -> PyResult<()> {
        enter(py, &Settings::default(), |_| self.model.save(&path, &self.scaling, notes))
    }

    /// For pickle and copy: the bytes of a model file.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let restore = py.import("nuptse._core")?.getattr("restore")?;
        Ok((restore, (self.to_bytes(py, "")?,)))
    }
}

impl FittedModel {
    /// What a method of the model says of other points, which are scaled as those of the training.
    fn at<'py>(
        &self,
        py: Python<'py>,
        x: &InputsArgument<'py>,
        threads: Option<usize>,
        method: impl Fn(&Model, &Context, &Inputs) -> Result<Array2<f64>> + Send + Sync,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let x = x.copy()?;
        let settings = Settings { threads, ..Settings::default() };
        let values = enter(py, &settings, |context| method(&self.model, context, &self.scaling.apply(x)?))?;
        Ok(values.into_pyarray(py))
    }
}

/// The model that the bytes of a file hold.
#[pyfunction]
pub(super) fn restore(py: Python<'_>, content: &[u8]) -> PyResult<FittedModel> {
    let SavedModel { model, scaling, .. } = enter(py, &Settings::default(), |_| SavedModel::from_bytes(content))?;
    Ok(FittedModel { model, scaling })
}

/// The model that a file holds, and the text in it.
#[pyfunction]
pub(super) fn load(py: Python<'_>, path: PathBuf) -> PyResult<(FittedModel, String)> {
    let SavedModel { model, scaling, notes } = enter(py, &Settings::default(), |_| SavedModel::load(&path))?;
    Ok((FittedModel { model, scaling }, notes))
}

/// A model of the given parts.
fn model_spec(
    kernels: &[KernelDescription],
    blocks: Vec<(usize, Option<f64>)>,
    mixing: Arc<dyn Mixing>,
    intercept_variance: f64,
    x: &Inputs,
    weights: Option<ArrayView1<'_, f64>>,
) -> Result<ModelSpec> {
    let covariances: Vec<_> = kernels.iter().map(|kernel| kernel.covariance(x, weights)).collect::<Result<_>>()?;
    let mut automatic = vec![None; covariances.len()];
    let mut block = |(matrix, variance): (usize, Option<f64>)| {
        let variance = match (variance, covariances.get(matrix), automatic.get(matrix).copied().flatten()) {
            (Some(given), ..) | (None, _, Some(given)) => given,
            (None, Some(covariance), None) => {
                let found = automatic_variance(covariance.as_ref(), x, weights)?;
                automatic[matrix] = Some(found);
                found
            }
            (None, None, None) => AUTOMATIC_VARIANCE,
        };
        Ok(Block { matrix, variance })
    };
    let blocks = blocks.into_iter().map(&mut block).collect::<Result<_>>()?;
    Ok(ModelSpec { covariances, blocks, mixing, intercept_variance })
}
