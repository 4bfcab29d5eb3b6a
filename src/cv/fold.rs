//! One fold: the fit without its points, their likelihood, and what the gradient needs.

use super::CvOptions;
use crate::context::Context;
use crate::data::Targets;
use crate::error::Result;
use crate::likelihood::{Likelihood, Softmax};
use crate::prior::JointPrior;
use crate::solve::{
    ExactDirection, LinearSystem, LowRankPrior, NewtonDirection, NewtonPoint, Solution, Solver, Step, minimise,
    solve_systems,
};
use crate::workspace::Workspace;
use ndarray::{Array1, Array2, ArrayView2};
use std::sync::Arc;

/// So often is a fit carried on that is not accurate enough for the gradient.
pub(super) const MOST_REFINEMENTS: usize = 6;
/// Rounding allows no smaller max|α + g|.
pub(super) const FINEST: f64 = 1e-11;
/// The relative accuracy of adjoint systems is never worse.
const WORST_ADJOINT: f64 = 0.1;

/// What one fold gives.
#[derive(Debug)]
pub(super) struct FoldResult {
    /// E: α on the points kept, 0 on those held out.
    pub e: Array2<f64>,
    /// F, where it was asked for.
    pub f: Option<Array2<f64>>,
    /// Its part of Ψ.
    pub value: f64,
    pub products: usize,
    pub converged: bool,
}

/// The likelihoods of the points kept and of those held out; each has no weight where the other has.
pub(super) fn parts(targets: &Targets, is_held_out: impl Fn(usize) -> bool) -> Result<(Softmax, Softmax)> {
    let part = |held_out: bool| {
        let weight = |row: usize| if is_held_out(row) == held_out { targets.weight(row) } else { 0.0 };
        let weights: Array1<f64> = (0..targets.points()).map(weight).collect();
        targets.clone().with_weights(weights).map(Softmax::new)
    };
    Ok((part(false)?, part(true)?))
}

/// A fold worked on in place: points held out have no weight, so that α is zero there, and u = K̃α holds their predictions.
pub(super) fn in_place(
    context: &Context,
    prior: &JointPrior,
    (kept, held_out): (&Softmax, &Softmax),
    start: Option<ArrayView2<'_, f64>>,
    approximation: Option<&Arc<LowRankPrior>>,
    options: &CvOptions,
    wants_gradient: bool,
) -> Result<FoldResult> {
    let (solver, mut params) = options.solver(context, prior);
    let mut work = Workspace::default();
    let mut found = minimise(context, prior, kept, start, solver, &params, approximation.cloned())?;
    let mut products = found.info.products;
    let mut refinements = 0;
    loop {
        let (value, g) = loss_and_gradient(held_out, &found.u)?;
        let converged = found.info.converged;
        if !wants_gradient {
            return Ok(FoldResult { e: found.alpha, f: None, value, products, converged });
        }
        let mut image = Array2::zeros(g.raw_dim());
        prior.apply(context, &mut work, image.view_mut(), g.view())?;
        let system = AdjointSystem { prior, kept, found: &found, image: image.view(), limit: options.accuracy * value };
        let adjoint = system.solve(context, &mut work, solver, approximation, options)?;
        products += 1 + adjoint.products;
        let needed = adjoint.refinement((&g * &image).sum(), image.view(), options.accuracy * value);
        if refinements == MOST_REFINEMENTS || !converged || needed >= 1.0 || params.tol <= FINEST {
            let value = adjoint.corrected(value, image.view(), converged);
            let f = Some(g - &adjoint.step.s);
            return Ok(FoldResult { e: found.alpha, f, value, products, converged: converged && adjoint.converged });
        }
        params.tol = (params.tol * needed).max(FINEST);
        found = minimise(context, prior, kept, Some(found.alpha.view()), solver, &params, approximation.cloned())?;
        products += found.info.products;
        refinements += 1;
    }
}

/// The value and the gradient of a likelihood at u.
pub(super) fn loss_and_gradient(likelihood: &Softmax, u: &Array2<f64>) -> Result<(f64, Array2<f64>)> {
    let mut g = Array2::zeros(u.raw_dim());
    let value = likelihood.evaluate(u.view(), g.view_mut(), &mut likelihood.new_curvature())?;
    Ok((value, g))
}

/// (I + W_J K̃_J) x = W_J K̃_{J,I} g_I.
pub(super) struct AdjointSystem<'a> {
    pub prior: &'a JointPrior,
    pub kept: &'a Softmax,
    pub found: &'a Solution,
    /// K̃ g_I on the points of `kept`.
    pub image: ArrayView2<'a, f64>,
    /// What the gradient may be off by.
    pub limit: f64,
}

/// x with its image.
pub(super) struct Adjoint {
    pub step: Step,
    /// r = −(α + g) on the points kept, what the fit has left, and its norm in K̃.
    r: Array2<f64>,
    r_norm: f64,
    pub products: usize,
    pub converged: bool,
}

impl AdjointSystem<'_> {
    pub(super) fn solve(
        &self,
        context: &Context,
        work: &mut Workspace,
        solver: Solver,
        approximation: Option<&Arc<LowRankPrior>>,
        options: &CvOptions,
    ) -> Result<Adjoint> {
        let Self { prior, kept, found, .. } = *self;
        let mut curvature = kept.new_curvature();
        let mut g = Array2::zeros(found.u.raw_dim());
        kept.evaluate(found.u.view(), g.view_mut(), &mut curvature)?;
        let r = -(g + &found.alpha);
        let mut b = Array2::zeros(r.raw_dim());
        prior.apply(context, work, b.view_mut(), r.view())?;
        let r_norm = (&r * &b).sum().max(0.0).sqrt();
        kept.apply_curvature(&curvature, b.view_mut(), self.image)?;
        if solver == Solver::Exact {
            let (step, products) = exact(context, work, prior, kept, &curvature, &b)?;
            return Ok(Adjoint { step, r, r_norm, products: 1 + products, converged: true });
        }
        // What is left of b, ρ, changes dΨ by ⟨α, (dK̃) (I + W K̃)⁻¹ ρ⟩, for variances at most ‖α‖ ‖ρ‖ in the norm of K̃.
        let alpha_norm = (&found.alpha * &found.u).sum().max(0.0).sqrt();
        let system = LinearSystem {
            likelihood: kept,
            curvature: &curvature,
            b: b.view(),
            accuracy: WORST_ADJOINT,
            most_left: self.limit / alpha_norm,
        };
        let most = options.fit.solve.max_inner_steps;
        let approximation = approximation.map(AsRef::as_ref);
        let solved = solve_systems(context, work, prior, std::slice::from_ref(&system), approximation, most)?;
        let none = || (Step::zeros(b.nrows(), b.ncols()), 0, true);
        let (step, steps, converged) =
            solved.into_iter().next().map_or_else(none, |(step, info)| (step, info.steps, info.converged));
        Ok(Adjoint { step, r, r_norm, products: 2 + steps, converged })
    }
}

/// x by Cholesky factors, and the products that it took.
fn exact(
    context: &Context,
    work: &mut Workspace,
    prior: &JointPrior,
    kept: &Softmax,
    curvature: &Vec<f64>,
    b: &Array2<f64>,
) -> Result<(Step, usize)> {
    let mut image = Array2::zeros(b.raw_dim());
    prior.apply(context, work, image.view_mut(), b.view())?;
    let mut step = Step::zeros(b.nrows(), b.ncols());
    let point = NewtonPoint { prior, likelihood: kept, curvature, r: b, r_image: &image, forcing: 0.0, max_steps: 1 };
    let info = ExactDirection::new(context, prior)?.solve(context, work, &point, &mut step)?;
    Ok((step, 1 + info.products))
}

impl Adjoint {
    /// What the residual of the fit is to be multiplied by, so that the gradient is off by no more than `limit`; 1 or more
    /// where it is small enough.
    ///
    /// α is off by (I + W K̃)⁻¹ r, which changes dΨ by ⟨(I + W K̃)⁻¹ r, (dK̃) F⟩, for variances at most ‖r‖ ‖F‖ in the
    /// norm of K̃; what F is off by is of the same size. `of_held_out` is ⟨g_I, K̃ g_I⟩.
    pub(super) fn refinement(&self, of_held_out: f64, image: ArrayView2<'_, f64>, limit: f64) -> f64 {
        let Step { s, image: s_image } = &self.step;
        let f_norm = (of_held_out - 2.0 * (&image * s).sum() + (s * s_image).sum()).max(0.0).sqrt();
        let share = limit / (self.r_norm * f_norm);
        if share >= 1.0 || share.is_nan() { 1.0 } else { (0.5 * share).max(1e-3) }
    }

    /// Ψ of the fold, with what it changes by when the fit is carried to its end, to first order: ⟨K̃F, r⟩ on the points
    /// kept. Far from the end the first order says nothing, and Ψ stays as it is.
    ///
    /// The end lies at (I + W K̃)⁻¹ r from α, and the derivative of Ψ there is K̃_{J,I} g_I, so this is
    /// ⟨(I + K̃W)⁻¹ K̃_{J,I} g_I, r⟩, of which the left side is K̃_{J,I} g_I − K̃x. It makes Ψ accurate to second order in
    /// what the fit has left, at no product; r is zero on the points held out.
    pub(super) fn corrected(&self, value: f64, image: ArrayView2<'_, f64>, converged: bool) -> f64 {
        let change = ((&image - &self.step.image) * &self.r).sum();
        if converged && change.abs() <= 0.5 * value { value + change } else { value }
    }
}
