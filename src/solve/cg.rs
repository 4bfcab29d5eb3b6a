//! Conjugate gradients for (I + W K̃) s = r in the inner product ⟨a, b⟩_K = ⟨a, K̃b⟩.
//!
//! I + W K̃ is self-adjoint in it, with eigenvalues of at least 1. Unlike the symmetrised system of seed 000 (eq. 6) this
//! one needs no D^{-½}, hence no safeguards for tiny probabilities; every iterate is a descent direction, and since every
//! vector travels with its image under K̃, K̃s is there at the end.

use super::iterate::{inner, slice_mut};
use super::systems::{Iteration, Run, run_systems};
use super::{DirectionInfo, NewtonDirection, NewtonPoint, Step, SystemInfo};
use crate::context::Context;
use crate::data::row_major;
use crate::error::Result;
use crate::likelihood::Likelihood;
use crate::parallel::{axpy, copy, xpby};
use crate::workspace::Workspace;
use ndarray::Array2;

/// One iteration with its vectors, which are allocated once. The product of every step is left to the caller, who may have
/// several systems to multiply for.
#[derive(Debug)]
pub struct ConjugateGradients {
    /// What is left of the right-hand side, and its image.
    pub(super) r: Array2<f64>,
    pub(super) r_image: Array2<f64>,
    p: Array2<f64>,
    p_image: Array2<f64>,
    q: Array2<f64>,
    rho: f64,
    goal: f64,
    steps: usize,
}

impl ConjugateGradients {
    /// A solver for n points and C classes.
    #[must_use]
    pub fn new(points: usize, classes: usize) -> Self {
        let zeros = || Array2::zeros((points, classes));
        Self { r: zeros(), r_image: zeros(), p: zeros(), p_image: zeros(), q: zeros(), rho: 0.0, goal: 0.0, steps: 0 }
    }

    /// Whether the accuracy has been reached.
    pub(super) fn is_done(&self) -> bool {
        self.rho <= self.goal
    }

    /// How it went.
    pub(super) fn info(&self) -> SystemInfo {
        SystemInfo { steps: self.steps, converged: self.is_done(), residual: self.rho.max(0.0).sqrt() }
    }

    /// Starts from zero, with the right-hand side and its image in `r` and `r_image`, to a relative accuracy η, and until no
    /// more than `most_left` is left of the right-hand side.
    pub(super) fn begin(&mut self, accuracy: f64, most_left: f64, step: &mut Step) -> Result<()> {
        step.s.fill(0.0);
        step.image.fill(0.0);
        self.p.assign(&self.r);
        self.p_image.assign(&self.r_image);
        self.rho = inner(&self.r, &self.r_image)?;
        self.goal = (accuracy * accuracy * self.rho).min(most_left * most_left);
        self.steps = 0;
        Ok(())
    }

    /// Goes along the current direction; `false` if there is nothing left to gain. After `true`, K̃r is to be computed.
    pub(super) fn advance<L: Likelihood>(
        &mut self,
        likelihood: &L,
        curvature: &L::Curvature,
        step: &mut Step,
    ) -> Result<bool> {
        if self.rho.is_nan() || self.is_done() {
            return Ok(false);
        }
        likelihood.apply_curvature(curvature, self.q.view_mut(), self.p_image.view())?;
        axpy(slice_mut(&mut self.q)?, 1.0, row_major("p", &self.p.view())?);
        let energy = inner(&self.p_image, &self.q)?;
        // Rounding has eaten the direction: what has been gained so far is kept.
        if energy.is_nan() || energy <= 0.0 {
            return Ok(false);
        }
        let length = self.rho / energy;
        step.add(length, &self.p, &self.p_image)?;
        axpy(slice_mut(&mut self.r)?, -length, row_major("q", &self.q.view())?);
        self.steps += 1;
        Ok(true)
    }

    /// Takes the next direction, once K̃r is there.
    pub(super) fn turn(&mut self) -> Result<()> {
        let next = inner(&self.r, &self.r_image)?;
        let ratio = next / self.rho;
        self.rho = next;
        if next > 0.0 {
            xpby(slice_mut(&mut self.p)?, row_major("r", &self.r.view())?, ratio);
            xpby(slice_mut(&mut self.p_image)?, row_major("K̃r", &self.r_image.view())?, ratio);
        }
        Ok(())
    }
}

impl<L: Likelihood> NewtonDirection<L> for ConjugateGradients {
    fn name(&self) -> &'static str {
        "newton-cg"
    }

    fn solve(
        &mut self,
        context: &Context,
        work: &mut Workspace,
        point: &NewtonPoint<'_, L>,
        step: &mut Step,
    ) -> Result<DirectionInfo> {
        copy(slice_mut(&mut self.r)?, row_major("r", &point.r.view())?);
        copy(slice_mut(&mut self.r_image)?, row_major("K̃r", &point.r_image.view())?);
        self.begin(point.forcing, f64::INFINITY, step)?;
        let run = Run::new(point.likelihood, point.curvature, step, Iteration::Plain(self));
        run_systems(context, work, point.prior, &mut [run], point.max_steps)?;
        Ok(DirectionInfo { products: self.steps, steps: self.steps, rank: 0 })
    }
}
