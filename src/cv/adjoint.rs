//! The adjoint system of a fold, (I + W_J K̃_J) x = W_J K̃_{J,I} g_I, and what a fit that is not at its end changes.

use super::CvOptions;
use crate::context::Context;
use crate::error::Result;
use crate::likelihood::{Likelihood, Softmax};
use crate::prior::JointPrior;
use crate::solve::{
    ExactDirection, LinearSystem, LowRankPrior, NewtonDirection, NewtonPoint, Solution, Solver, Step, solve_systems,
};
use crate::workspace::Workspace;
use ndarray::{Array2, ArrayView2};
use std::sync::Arc;

/// The relative accuracy of a system that starts from zero is never worse.
const WORST_ACCURACY: f64 = 0.1;

/// What a fit has left.
pub(super) struct FitResidual {
    /// r = −(α + g) on the points of the fit.
    r: Array2<f64>,
    /// Its norm in K̃, and that of α.
    pub norm: f64,
    alpha_norm: f64,
    /// W.
    curvature: Vec<f64>,
}

impl FitResidual {
    /// Takes one product.
    pub(super) fn new(
        context: &Context,
        work: &mut Workspace,
        prior: &JointPrior,
        kept: &Softmax,
        found: &Solution,
    ) -> Result<Self> {
        let mut curvature = kept.new_curvature();
        let mut g = Array2::zeros(found.u.raw_dim());
        kept.evaluate(found.u.view(), g.view_mut(), &mut curvature)?;
        let r = -(g + &found.alpha);
        let mut image = Array2::zeros(r.raw_dim());
        prior.apply(context, work, image.view_mut(), r.view())?;
        let norm = (&r * &image).sum().max(0.0).sqrt();
        let alpha_norm = (&found.alpha * &found.u).sum().max(0.0).sqrt();
        Ok(Self { r, norm, alpha_norm, curvature })
    }

    /// The adjoint system there; `image` is K̃ g_I on the points of the fit, `limit` what the gradient may be off by.
    pub(super) fn system<'a>(
        &'a self,
        prior: &'a JointPrior,
        kept: &'a Softmax,
        image: ArrayView2<'a, f64>,
        limit: f64,
    ) -> AdjointSystem<'a> {
        // What is left of b, ρ, changes dΨ by ⟨α, (dK̃) (I + W K̃)⁻¹ ρ⟩, for variances at most ‖α‖ ‖ρ‖ in the norm of K̃.
        AdjointSystem { prior, kept, curvature: &self.curvature, image, most_left: limit / self.alpha_norm }
    }
}

/// The system.
pub(super) struct AdjointSystem<'a> {
    prior: &'a JointPrior,
    kept: &'a Softmax,
    curvature: &'a Vec<f64>,
    image: ArrayView2<'a, f64>,
    /// What may be left of the right-hand side, in the norm of K̃.
    most_left: f64,
}

/// x with its image.
pub(super) struct Adjoint {
    pub step: Step,
    pub products: usize,
    pub converged: bool,
}

impl AdjointSystem<'_> {
    /// Solves it, from a solution at a fit or hyperparameters close by where there is one.
    pub(super) fn solve(
        &self,
        context: &Context,
        work: &mut Workspace,
        solver: Solver,
        approximation: Option<&Arc<LowRankPrior>>,
        options: &CvOptions,
        start: Option<Adjoint>,
    ) -> Result<Adjoint> {
        let Self { prior, kept, curvature, .. } = *self;
        let mut b = Array2::zeros(self.image.raw_dim());
        kept.apply_curvature(curvature, b.view_mut(), self.image)?;
        if solver == Solver::Exact {
            let (step, products) = exact(context, work, prior, kept, curvature, &b)?;
            return Ok(Adjoint { step, products, converged: true });
        }
        let start = start.map(|start| start.step);
        if let Some(Step { s, image }) = &start {
            // What the start leaves of b.
            let mut curved = Array2::zeros(b.raw_dim());
            kept.apply_curvature(curvature, curved.view_mut(), image.view())?;
            b -= s;
            b -= &curved;
        }
        let system = LinearSystem {
            likelihood: kept,
            curvature,
            b: b.view(),
            accuracy: if start.is_some() { 1.0 } else { WORST_ACCURACY },
            most_left: self.most_left,
        };
        let most = options.fit.solve.max_inner_steps;
        let approximation = approximation.map(AsRef::as_ref);
        let solved = solve_systems(context, work, prior, std::slice::from_ref(&system), approximation, most)?;
        let none = || (Step::zeros(b.nrows(), b.ncols()), 0, true);
        let (mut step, steps, converged) =
            solved.into_iter().next().map_or_else(none, |(step, info)| (step, info.steps, info.converged));
        if let Some(start) = start {
            step.s += &start.s;
            step.image += &start.image;
        }
        Ok(Adjoint { step, products: 1 + steps, converged })
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
    /// A solution at other hyperparameters, with its image at these; takes one product.
    pub(super) fn from_before(
        context: &Context,
        work: &mut Workspace,
        prior: &JointPrior,
        x: ArrayView2<'_, f64>,
    ) -> Result<Self> {
        let mut step = Step { s: x.to_owned(), image: Array2::zeros(x.raw_dim()) };
        prior.apply(context, work, step.image.view_mut(), step.s.view())?;
        Ok(Self { step, products: 1, converged: false })
    }

    /// ‖F‖ in the norm of K̃; `of_held_out` is ⟨g_I, K̃ g_I⟩.
    ///
    /// α is off by (I + W K̃)⁻¹ r, which changes dΨ by ⟨(I + W K̃)⁻¹ r, (dK̃) F⟩, for variances at most ‖r‖ ‖F‖; what F is
    /// off by is of the same size. F is (I + W K̃)⁻¹ g_I with W zero on the points held out, so ‖F‖ is at most ‖g_I‖.
    pub(super) fn f_norm(&self, of_held_out: f64, image: ArrayView2<'_, f64>) -> f64 {
        let Step { s, image: s_image } = &self.step;
        (of_held_out - 2.0 * (&image * s).sum() + (s * s_image).sum()).max(0.0).sqrt()
    }

    /// Ψ of the fold, with what it changes by when the fit is carried to its end, to first order: ⟨K̃F, r⟩ on the points
    /// kept. Far from the end the first order says nothing, and Ψ stays as it is.
    ///
    /// The end lies at (I + W K̃)⁻¹ r from α, and the derivative of Ψ there is K̃_{J,I} g_I, so this is
    /// ⟨(I + K̃W)⁻¹ K̃_{J,I} g_I, r⟩, of which the left side is K̃_{J,I} g_I − K̃x. It makes Ψ accurate to second order in
    /// what the fit has left, at no product; r is zero on the points held out.
    pub(super) fn corrected(
        &self,
        value: f64,
        image: ArrayView2<'_, f64>,
        residual: &FitResidual,
        converged: bool,
    ) -> f64 {
        let change = ((&image - &self.step.image) * &residual.r).sum();
        if converged && change.abs() <= 0.5 * value { value + change } else { value }
    }
}
