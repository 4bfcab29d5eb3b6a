//! One fold: the fit without its points, their likelihood, and what the gradient needs.

use super::CvOptions;
use super::adjoint::{Adjoint, FitResidual};
use crate::context::Context;
use crate::data::Targets;
use crate::error::Result;
use crate::likelihood::{Likelihood, Softmax};
use crate::prior::JointPrior;
use crate::solve::{LowRankPrior, Solution, Solver, Stages};
use crate::workspace::Workspace;
use ndarray::{Array1, Array2, ArrayView2};
use std::sync::Arc;

/// So often is a fit carried on that is not accurate enough for the gradient.
const MOST_REFINEMENTS: usize = 6;
/// Rounding allows no smaller max|α + g|.
pub(super) const FINEST: f64 = 1e-11;
/// ‖F‖ is at most ‖g_I‖, in the norm of K̃, and often about this share of it. Fits are judged by that before the adjoint
/// system is solved, which would have to be solved again.
const LIKELY_SHARE: f64 = 0.3;

/// A fit is not asked at once for more than this share of what it is asked for by itself, whatever was needed before.
const MOST_AT_ONCE: f64 = 0.02;

/// How accurate the fit of a fold had to be, for the next one to be so at once: to carry a fit on takes more products than to
/// let it run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// max|α + g| that would have been enough for an accuracy of one.
    pub enough: f64,
    /// ‖F‖ as a share of ‖g_I‖, in the norm of K̃.
    pub share: f64,
}

/// Where the work on a fold starts: what the last evaluation left, on all points.
#[derive(Debug, Clone, PartialEq)]
pub struct FoldState {
    /// α, zero on the points held out.
    pub alpha: Array2<f64>,
    /// The solution of the adjoint system, zero on the points held out.
    pub adjoint: Option<Array2<f64>>,
    /// How accurate the fit had to be.
    pub pace: Option<Pace>,
}

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
    pub pace: Option<Pace>,
}

/// A fold as the fit sees it: some points that it is made of, and some that are held out.
pub(super) trait FoldParts {
    /// K̃ over the points of the fit.
    fn prior(&self) -> &JointPrior;

    /// Their likelihood.
    fn kept(&self) -> &Softmax;

    /// What a fit says of the points held out; with their influence on the others where that is wanted.
    fn hold_out(
        &mut self,
        context: &Context,
        work: &mut Workspace,
        found: &Solution,
        wants_influence: bool,
    ) -> Result<HeldOut>;
}

/// The points held out.
pub(super) struct HeldOut {
    /// Their part of Ψ.
    pub value: f64,
    /// Its gradient g_I.
    pub g: Array2<f64>,
    /// K̃ g_I on the points of the fit, and ⟨g_I, K̃ g_I⟩.
    pub influence: Option<(Array2<f64>, f64)>,
    pub products: usize,
}

/// A fit with its adjoint system, on the points of the fit.
pub(super) struct Worked {
    pub alpha: Array2<f64>,
    /// g_I, and the solution of the adjoint system, where they were asked for.
    pub derivative: Option<(Array2<f64>, Array2<f64>)>,
    pub value: f64,
    pub products: usize,
    pub converged: bool,
    pub pace: Option<Pace>,
}

/// Where a fit starts, and its adjoint system.
#[derive(Default)]
pub(super) struct FoldStart<'a> {
    pub alpha: Option<ArrayView2<'a, f64>>,
    pub adjoint: Option<ArrayView2<'a, f64>>,
    pub pace: Option<Pace>,
}

/// Works on a fold: fits, and carries the fit on until the gradient is accurate enough.
pub(super) fn work_on(
    context: &Context,
    parts: &mut impl FoldParts,
    start: FoldStart<'_>,
    approximation: Option<&Arc<LowRankPrior>>,
    options: &CvOptions,
    wants_gradient: bool,
) -> Result<Worked> {
    let (solver, mut params) = options.solver(context, parts.prior());
    let asked = params.tol;
    if let Some(Pace { enough, .. }) = start.pace.filter(|_| wants_gradient) {
        params.tol = asked.min((0.5 * enough * options.accuracy).max(MOST_AT_ONCE * asked));
    }
    let likely_share = start.pace.map_or(LIKELY_SHARE, |pace| pace.share);
    let mut work = Workspace::default();
    let fits = Stages::new(context, options.fit.solver, solver, approximation);
    // An adjoint solution is that of a fit to the same points, at hyperparameters close by.
    let mut found = if start.adjoint.is_none() {
        fits.far_to_go((parts.prior(), parts.kept()), start.alpha, &params, asked)?
    } else {
        fits.near_its_end((parts.prior(), parts.kept()), start.alpha, &params)?
    };
    let mut products = found.info.products;
    let mut adjoint = match start.adjoint {
        Some(x) if wants_gradient && solver != Solver::Exact => {
            let before = Adjoint::from_before(context, &mut work, parts.prior(), x)?;
            products += before.products;
            Some(before)
        }
        _ => None,
    };
    let mut refinements = 0;
    loop {
        let converged = found.info.converged;
        let held_out = parts.hold_out(context, &mut work, &found, wants_gradient)?;
        products += held_out.products;
        let HeldOut { value, g, influence, .. } = held_out;
        let Some((image, of_held_out)) = influence else {
            return Ok(Worked { alpha: found.alpha, derivative: None, value, products, converged, pace: None });
        };
        let limit = options.accuracy * value;
        let residual = FitResidual::new(context, &mut work, parts.prior(), parts.kept(), &found)?;
        products += 1;
        let may_refine = refinements < MOST_REFINEMENTS && converged && params.tol > FINEST;
        let mut share = limit / (residual.norm * likely_share * of_held_out.max(0.0).sqrt());
        if !may_refine || share >= 1.0 || share.is_nan() {
            let system = residual.system(parts.prior(), parts.kept(), image.view(), limit);
            let solved = system.solve(context, &mut work, solver, approximation, options, adjoint.take())?;
            products += solved.products;
            let f_norm = solved.f_norm(of_held_out, image.view());
            share = limit / (residual.norm * f_norm);
            if !may_refine || share >= 1.0 || share.is_nan() {
                let value = solved.corrected(value, image.view(), &residual, converged);
                let converged = converged && solved.converged;
                let derivative = Some((g, solved.step.s));
                let enough = found.info.residual * share / options.accuracy;
                let pace = Pace { enough, share: f_norm / of_held_out.max(0.0).sqrt() };
                let told = converged && solver != Solver::Exact && pace.enough.is_finite() && pace.share.is_finite();
                let pace = told.then_some(pace);
                return Ok(Worked { alpha: found.alpha, derivative, value, products, converged, pace });
            }
            adjoint = Some(solved);
        }
        params.tol = (params.tol * (0.5 * share).max(1e-3)).max(FINEST);
        found = fits.refine((parts.prior(), parts.kept()), &found, &params)?;
        products += found.info.products;
        refinements += 1;
    }
}

/// The likelihoods of the points kept and of those held out; each has no weight where the other has.
fn parts(targets: &Targets, is_held_out: impl Fn(usize) -> bool) -> Result<(Softmax, Softmax)> {
    let part = |held_out: bool| {
        let weight = |row: usize| if is_held_out(row) == held_out { targets.weight(row) } else { 0.0 };
        let weights: Array1<f64> = (0..targets.points()).map(weight).collect();
        targets.clone().with_weights(weights).map(Softmax::new)
    };
    Ok((part(false)?, part(true)?))
}

/// The value and the gradient of a likelihood at u.
pub(super) fn loss_and_gradient(likelihood: &Softmax, u: &Array2<f64>) -> Result<(f64, Array2<f64>)> {
    let mut g = Array2::zeros(u.raw_dim());
    let value = likelihood.evaluate(u.view(), g.view_mut(), &mut likelihood.new_curvature())?;
    Ok((value, g))
}

/// A fold worked on in place: points held out have no weight, so that α is zero there, and u = K̃α holds their predictions.
struct InPlace<'a> {
    prior: &'a JointPrior,
    kept: Softmax,
    held_out: Softmax,
}

impl FoldParts for InPlace<'_> {
    fn prior(&self) -> &JointPrior {
        self.prior
    }

    fn kept(&self) -> &Softmax {
        &self.kept
    }

    fn hold_out(
        &mut self,
        context: &Context,
        work: &mut Workspace,
        found: &Solution,
        wants_influence: bool,
    ) -> Result<HeldOut> {
        let (value, g) = loss_and_gradient(&self.held_out, &found.u)?;
        if !wants_influence {
            return Ok(HeldOut { value, g, influence: None, products: 0 });
        }
        let mut image = Array2::zeros(g.raw_dim());
        // As u, this is a product from which all others start.
        self.prior.apply(&context.with_rough_products(false), work, image.view_mut(), g.view())?;
        let of_held_out = (&g * &image).sum();
        Ok(HeldOut { value, g, influence: Some((image, of_held_out)), products: 1 })
    }
}

/// Works on the fold of the points for which `is_held_out` says so, in place.
pub(super) fn in_place(
    context: &Context,
    prior: &JointPrior,
    (targets, is_held_out): (&Targets, impl Fn(usize) -> bool),
    state: Option<&FoldState>,
    approximation: Option<&Arc<LowRankPrior>>,
    options: &CvOptions,
    wants_gradient: bool,
) -> Result<FoldResult> {
    let (kept, held_out) = parts(targets, is_held_out)?;
    let start = FoldStart {
        alpha: state.map(|state| state.alpha.view()),
        adjoint: state.and_then(|state| state.adjoint.as_ref()).map(|x| x.view()),
        pace: state.and_then(|state| state.pace),
    };
    let mut fold = InPlace { prior, kept, held_out };
    let worked = work_on(context, &mut fold, start, approximation, options, wants_gradient)?;
    Ok(FoldResult {
        e: worked.alpha,
        f: worked.derivative.map(|(g, x)| g - x),
        value: worked.value,
        products: worked.products,
        converged: worked.converged,
        pace: worked.pace,
    })
}
