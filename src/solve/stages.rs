//! Fits by two solvers: one for those that start anywhere, and one for those that start near their end.

use super::{LowRankPrior, Solution, SolveParams, Solver, minimise};
use crate::context::Context;
use crate::error::Result;
use crate::likelihood::Likelihood;
use crate::prior::JointPrior;
use ndarray::ArrayView2;
use std::sync::Arc;

/// A stretch so short is not worth the start of the other solver: the last fit to patents with a tree, to 3·10⁻⁴, took L-BFGS
/// 107 products, and 166 with Newton's method from 10⁻³ on.
const SHORT_STRETCH: f64 = 0.1;

/// The two solvers.
pub(crate) struct Stages<'a> {
    context: &'a Context,
    far: Solver,
    near: Solver,
    approximation: Option<&'a Arc<LowRankPrior>>,
}

impl<'a> Stages<'a> {
    /// The solver that was `asked` for, and what it is for fits that have `far` to go. Where the choice is left to us and that
    /// is L-BFGS, fits that start near their end are Newton's: there few steps of conjugate gradients make a Newton step, and
    /// a few of these the fit, while L-BFGS has to find out about the curvature again. On patents with a tree, evaluations on
    /// 2580 points took 3 to 20 s in place of 4 to 50.
    pub(crate) fn new(
        context: &'a Context,
        asked: Solver,
        far: Solver,
        approximation: Option<&'a Arc<LowRankPrior>>,
    ) -> Self {
        let near = if asked == Solver::Auto && far == Solver::Lbfgs { Solver::NewtonCg } else { far };
        Self { context, far, near, approximation }
    }

    /// Whether a fit with far to go is the work of both solvers, where `asked` is the accuracy of every fit.
    pub(crate) fn take_turns(&self, tol: f64, asked: f64) -> bool {
        self.far != self.near && tol < SHORT_STRETCH * asked
    }

    /// A fit with far to go; the stretch from the accuracy `asked` of every fit to a finer one is left to the other solver.
    pub(crate) fn far_to_go<L: Likelihood>(
        &self,
        problem: (&JointPrior, &L),
        from: Option<ArrayView2<'_, f64>>,
        params: &SolveParams,
        asked: f64,
    ) -> Result<Solution> {
        if !self.take_turns(params.tol, asked) {
            return self.minimise(problem, from, self.far, params);
        }
        let found = self.minimise(problem, from, self.far, &SolveParams { tol: asked, ..*params })?;
        self.go_on(problem, &found, self.near, params)
    }

    /// A fit that starts near its end; one that gets stuck is relieved by the other solver.
    pub(crate) fn near_its_end<L: Likelihood>(
        &self,
        problem: (&JointPrior, &L),
        from: Option<ArrayView2<'_, f64>>,
        params: &SolveParams,
    ) -> Result<Solution> {
        let found = self.minimise(problem, from, self.near, params)?;
        let stuck = !found.info.converged && self.far != self.near;
        if stuck { self.go_on(problem, &found, self.far, params) } else { Ok(found) }
    }

    /// Carries a fit on to a finer accuracy.
    pub(crate) fn refine<L: Likelihood>(
        &self,
        problem: (&JointPrior, &L),
        found: &Solution,
        params: &SolveParams,
    ) -> Result<Solution> {
        self.minimise(problem, Some(found.alpha.view()), self.near, params)
    }

    /// Carries a fit on by a solver; what it took before counts too.
    fn go_on<L: Likelihood>(
        &self,
        problem: (&JointPrior, &L),
        found: &Solution,
        solver: Solver,
        params: &SolveParams,
    ) -> Result<Solution> {
        let mut next = self.minimise(problem, Some(found.alpha.view()), solver, params)?;
        next.info.add_before(&found.info);
        Ok(next)
    }

    fn minimise<L: Likelihood>(
        &self,
        (prior, likelihood): (&JointPrior, &L),
        from: Option<ArrayView2<'_, f64>>,
        solver: Solver,
        params: &SolveParams,
    ) -> Result<Solution> {
        minimise(self.context, prior, likelihood, from, solver, params, self.approximation.cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solvers_take_turns_where_the_choice_is_left_to_us_and_the_stretch_is_long() {
        let context = Context::new(Some(1)).unwrap();
        let turns = |asked, far, tol| Stages::new(&context, asked, far, None).take_turns(tol, 1e-3);
        assert!(turns(Solver::Auto, Solver::Lbfgs, 1e-6));
        assert!(!turns(Solver::Auto, Solver::Lbfgs, 5e-4));
        assert!(!turns(Solver::Auto, Solver::NewtonCg, 1e-6));
        assert!(!turns(Solver::Lbfgs, Solver::Lbfgs, 1e-6));
    }
}
