//! Fitting a model at fixed hyperparameters.

use super::{Model, ModelSpec};
use crate::context::Context;
use crate::data::{Inputs, Targets, check_shape};
use crate::error::Result;
use crate::kernel::Precision;
use crate::likelihood::{Likelihood, Softmax};
use crate::prior::JointPrior;
use crate::solve::{ExactDirection, PreconditionedCg, Solution, SolveInfo, SolveParams, SymmetrisedCg, lbfgs, newton};
use std::time::{Duration, Instant};

/// How the linear systems of Newton's method are solved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Solver {
    /// Conjugate gradients in the inner product of the kernel: products only, any size.
    #[default]
    NewtonCg,
    /// The symmetrised systems of seed 000, with its diagonal preconditioner: the reference.
    NewtonCgSymmetric,
    /// L-BFGS in the space of functions: products only, any size; best for many classes.
    Lbfgs,
    /// Cholesky factors: O(Cn³), flat classes; for checking, and for small data.
    Exact,
}

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
    /// How every kernel matrix is kept.
    pub representations: Vec<&'static str>,
    /// Making the kernel matrices.
    pub kernel_time: Duration,
    /// All of it.
    pub total_time: Duration,
}

impl ModelSpec {
    /// Fits the model to inputs and targets.
    pub fn fit(
        &self,
        context: &Context,
        x: &Inputs,
        targets: Targets,
        options: &FitOptions,
    ) -> Result<(Model, FitInfo)> {
        options.solve.check()?;
        check_shape("the number of targets must be that of the rows of X", x.rows(), targets.points())?;
        check_shape(
            "the number of classes of the targets must be that of the model",
            self.mixing.classes(),
            targets.classes(),
        )?;
        let start = Instant::now();
        context.install(|| {
            let prior = self.prior(context, x, options.precision)?;
            let kernel_time = start.elapsed();
            let found = minimise(context, &prior, &Softmax::new(targets), options)?;
            let intercepts = prior.intercepts(found.alpha.view());
            let model = Model::new(self.clone(), x.clone(), found.alpha, intercepts)?;
            let representations = prior.blocks().matrices().iter().map(|matrix| matrix.representation()).collect();
            Ok((model, FitInfo { solve: found.info, representations, kernel_time, total_time: start.elapsed() }))
        })
    }
}

/// Minimises Φ with the solver asked for.
fn minimise<L: Likelihood>(
    context: &Context,
    prior: &JointPrior,
    likelihood: &L,
    options: &FitOptions,
) -> Result<Solution> {
    match options.solver {
        Solver::NewtonCg => {
            let (points, classes) = (likelihood.points(), likelihood.classes());
            let mut direction = PreconditionedCg::new(points, classes, options.solve.preconditioner);
            newton(context, prior, likelihood, None, &mut direction, &options.solve)
        }
        Solver::NewtonCgSymmetric => {
            let mut direction = SymmetrisedCg::new(likelihood.points(), likelihood.classes());
            newton(context, prior, likelihood, None, &mut direction, &options.solve)
        }
        Solver::Lbfgs => lbfgs(context, prior, likelihood, None, &options.solve),
        Solver::Exact => {
            let mut direction = ExactDirection::new(context, prior)?;
            newton(context, prior, likelihood, None, &mut direction, &options.solve)
        }
    }
}
