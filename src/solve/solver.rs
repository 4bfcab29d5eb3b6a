//! Which solver is taken, and the one way to all of them.

use super::{ExactDirection, LowRankPrior, PreconditionedCg, Solution, SolveParams, SymmetrisedCg, lbfgs, newton};
use crate::context::Context;
use crate::error::Result;
use crate::likelihood::Likelihood;
use crate::prior::JointPrior;
use ndarray::ArrayView2;
use std::sync::Arc;

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

/// Arrays of n × C doubles that L-BFGS has beside its pairs, and those of a pair, which are in single precision.
const LBFGS_ARRAYS: usize = 9;
const ARRAYS_OF_PAIR: usize = 2;
/// With one pair L-BFGS loses what it has over Newton's method.
const FEWEST_PAIRS: usize = 2;

impl Solver {
    /// The solver for a prior, how many pairs it keeps, and why.
    pub(crate) fn choose(self, context: &Context, prior: &JointPrior, pairs: usize) -> (Self, usize, &'static str) {
        match self {
            Self::Auto if prior.classes() < MANY_CLASSES => (Self::NewtonCg, pairs, "few classes"),
            Self::Auto => {
                let fits = |pairs: usize| {
                    let width =
                        (LBFGS_ARRAYS + ARRAYS_OF_PAIR * pairs) * prior.classes() + 2 * prior.mixing().functions();
                    context.has_room((prior.points() * width * size_of::<f64>()) as u64)
                };
                match (FEWEST_PAIRS.min(pairs)..=pairs).rev().find(|&pairs| fits(pairs)) {
                    Some(kept) if kept == pairs => (Self::Lbfgs, pairs, "many classes"),
                    Some(kept) => (Self::Lbfgs, kept, "many classes, with as many pairs as memory allows"),
                    None => (Self::NewtonCg, pairs, "many classes, but no memory for the pairs of L-BFGS"),
                }
            }
            named => (named, pairs, "asked for"),
        }
    }
}

/// Minimises Φ with the given solver, from α = 0 or a previous α. Newton's method may be given an approximation of the
/// prior that was made before.
pub(crate) fn minimise<L: Likelihood>(
    context: &Context,
    prior: &JointPrior,
    likelihood: &L,
    start: Option<ArrayView2<'_, f64>>,
    solver: Solver,
    params: &SolveParams,
    approximation: Option<Arc<LowRankPrior>>,
) -> Result<Solution> {
    match solver {
        Solver::Auto | Solver::NewtonCg => {
            let (points, classes) = (likelihood.points(), likelihood.classes());
            let mut direction =
                PreconditionedCg::new(points, classes, params.preconditioner).with_low_rank_prior(approximation);
            newton(context, prior, likelihood, start, &mut direction, params)
        }
        Solver::NewtonCgSymmetric => {
            let mut direction = SymmetrisedCg::new(likelihood.points(), likelihood.classes());
            newton(context, prior, likelihood, start, &mut direction, params)
        }
        Solver::Lbfgs => lbfgs(context, prior, likelihood, start, params),
        Solver::Exact => {
            let mut direction = ExactDirection::new(context, prior)?;
            newton(context, prior, likelihood, start, &mut direction, params)
        }
    }
}
