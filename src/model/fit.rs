//! Fitting a model at fixed hyperparameters.

use super::{Model, ModelSpec};
use crate::context::Context;
use crate::data::{Inputs, Targets, check_shape};
use crate::error::Result;
use crate::kernel::Precision;
use crate::likelihood::{Likelihood, Softmax};
use crate::prior::JointPrior;
use crate::solve::{ExactDirection, PreconditionedCg, Solution, SolveInfo, SolveParams, SymmetrisedCg, lbfgs, newton};
use ndarray::ArrayView2;
use std::time::{Duration, Instant};

/// How Φ is minimised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Solver {
    /// What was measured to be best for such data.
    #[default]
    Auto,
    /// Newton's method with conjugate gradients in the inner product of the kernel, preconditioned where that pays:
    /// products only, any size.
    NewtonCg,
    /// The symmetrised systems of seed 000, with its diagonal preconditioner: the reference.
    NewtonCgSymmetric,
    /// L-BFGS in the space of functions: products only, any size; best for many classes.
    Lbfgs,
    /// Cholesky factors: O(Cn³), flat classes; for checking, and for small data.
    Exact,
}

/// From so many classes on L-BFGS is taken: a preconditioner that couples them all would be too large, and the curvature
/// of the few directions that matter is known to the first metric of L-BFGS. Measured with `make bench-fit`.
const MANY_CLASSES: usize = 16;

impl Solver {
    /// The solver for a prior, and why.
    fn choose(self, prior: &JointPrior) -> (Self, &'static str) {
        match self {
            Self::Auto if prior.classes() >= MANY_CLASSES => (Self::Lbfgs, "many classes"),
            Self::Auto => (Self::NewtonCg, "few classes"),
            named => (named, "asked for"),
        }
    }
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
    /// Why this solver was taken.
    pub reason: &'static str,
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
        options.solve.check()?;
        check_shape("the number of targets must be that of the rows of X", x.rows(), targets.points())?;
        check_shape(
            "the number of classes of the targets must be that of the model",
            self.mixing.classes(),
            targets.classes(),
        )?;
        let begun = Instant::now();
        context.install(|| {
            let prior = self.prior(context, x, options.precision)?;
            let kernel_time = begun.elapsed();
            let (solver, reason) = options.solver.choose(&prior);
            let found = minimise(context, &prior, &Softmax::new(targets), start, solver, options)?;
            let intercepts = prior.intercepts(found.alpha.view());
            let model = Model::new(self.clone(), x.clone(), found.alpha, intercepts)?;
            let representations = prior.blocks().matrices().iter().map(|matrix| matrix.representation()).collect();
            Ok((
                model,
                FitInfo { solve: found.info, reason, representations, kernel_time, total_time: begun.elapsed() },
            ))
        })
    }
}

/// Minimises Φ with the solver asked for.
fn minimise<L: Likelihood>(
    context: &Context,
    prior: &JointPrior,
    likelihood: &L,
    start: Option<ArrayView2<'_, f64>>,
    solver: Solver,
    options: &FitOptions,
) -> Result<Solution> {
    match solver {
        Solver::Auto | Solver::NewtonCg => {
            let (points, classes) = (likelihood.points(), likelihood.classes());
            let mut direction = PreconditionedCg::new(points, classes, options.solve.preconditioner);
            newton(context, prior, likelihood, start, &mut direction, &options.solve)
        }
        Solver::NewtonCgSymmetric => {
            let mut direction = SymmetrisedCg::new(likelihood.points(), likelihood.classes());
            newton(context, prior, likelihood, start, &mut direction, &options.solve)
        }
        Solver::Lbfgs => lbfgs(context, prior, likelihood, start, &options.solve),
        Solver::Exact => {
            let mut direction = ExactDirection::new(context, prior)?;
            newton(context, prior, likelihood, start, &mut direction, &options.solve)
        }
    }
}
