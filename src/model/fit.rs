//! Fitting a model at fixed hyperparameters.

use super::{Model, ModelSpec};
use crate::context::Context;
use crate::data::{Inputs, Targets, check_shape};
use crate::error::Result;
use crate::kernel::Precision;
use crate::likelihood::Softmax;
use crate::solve::{SolveInfo, SolveParams, Solver, Stages};
use ndarray::ArrayView2;
use std::time::{Duration, Instant};

/// Options of a fit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FitOptions {
    /// The solver.
    pub solver: Solver,
    /// When it stops, and how it goes about its steps.
    pub solve: SolveParams,
    /// How stored kernel matrices are kept.
    pub precision: Precision,
}

/// How a fit went.
#[derive(Debug, Clone, PartialEq)]
pub struct FitInfo {
    /// The iteration.
    pub solve: SolveInfo,
    /// What max|α + g| was to become.
    pub tol: f64,
    /// Why this solver was taken.
    pub reason: &'static str,
    /// How every kernel matrix is kept.
    pub representations: Vec<&'static str>,
    /// Making the kernel matrices.
    pub kernel_time: Duration,
    /// All of it.
    pub total_time: Duration,
}

impl FitInfo {
    /// Adds what a fit took that this one started from.
    pub(crate) fn add_before(&mut self, before: &Self) {
        self.solve.add_before(&before.solve);
        self.kernel_time += before.kernel_time;
        self.total_time += before.total_time;
    }
}

/// Why a fit is the work of two solvers.
const TWO_SOLVERS: &str = "many classes: lbfgs as far as tol, then newton-cg";

impl ModelSpec {
    /// Fits the model to inputs and targets.
    pub fn fit(
        &self,
        context: &Context,
        x: &Inputs,
        targets: Targets,
        options: &FitOptions,
    ) -> Result<(Model, FitInfo)> {
        self.fit_from(context, x, targets, None, options)
    }

    /// Fits the model, starting from a previous α (n × C): the closer it is, the less there is to do.
    pub fn fit_from(
        &self,
        context: &Context,
        x: &Inputs,
        targets: Targets,
        start: Option<ArrayView2<'_, f64>>,
        options: &FitOptions,
    ) -> Result<(Model, FitInfo)> {
        self.fit_further(context, x, targets, start, None, options)
    }

    /// Fits the model, and carries the fit on to a finer accuracy where one is given.
    pub(crate) fn fit_further(
        &self,
        context: &Context,
        x: &Inputs,
        targets: Targets,
        start: Option<ArrayView2<'_, f64>>,
        finer: Option<f64>,
        options: &FitOptions,
    ) -> Result<(Model, FitInfo)> {
        options.solve.check()?;
        check_shape("the number of targets must be that of the rows of X", x.rows(), targets.points())?;
        check_shape(
            "the number of classes of the targets must be that of the model",
            self.mixing.classes(),
            targets.classes(),
        )?;
        let begun = Instant::now();
        context.install(|| {
            let for_matrices = context.set_aside("the arrays of the fit", self.vector_bytes(x.rows()))?;
            let prior = self.prior(&for_matrices, x, options.precision)?;
            let kernel_time = begun.elapsed();
            let left = context.after_taking(prior.stored_bytes());
            let (solver, pairs, reason) = options.solver.choose(&left, &prior, options.solve.pairs);
            let params =
                SolveParams { pairs, tol: finer.unwrap_or(f64::INFINITY).min(options.solve.tol), ..options.solve };
            let (stages, likelihood) = (Stages::new(context, options.solver, solver, None), Softmax::new(targets));
            let asked = options.solve.tol;
            let found = stages.far_to_go((&prior, &likelihood), start, &params, asked)?;
            let reason = if stages.take_turns(params.tol, asked) { TWO_SOLVERS } else { reason };
            let intercepts = prior.intercepts(found.alpha.view());
            let model = Model::new(self.clone(), x.clone(), found.alpha, intercepts)?;
            let representations = prior.blocks().matrices().iter().map(|matrix| matrix.representation()).collect();
            let (tol, total_time) = (params.tol, begun.elapsed());
            Ok((model, FitInfo { solve: found.info, tol, reason, representations, kernel_time, total_time }))
        })
    }
}
