//! Conjugate gradients for (I + W K̃) s = r in the inner product ⟨a, b⟩_K = ⟨a, K̃b⟩.
//!
//! I + W K̃ is self-adjoint in it, with eigenvalues of at least 1. Unlike the symmetrised system of seed 000 (eq. 6) this
//! one needs no D^{-½}, hence no safeguards for tiny probabilities; every iterate is a descent direction, and since every
//! vector travels with its image under K̃, K̃s is there at the end.
//!
//! Where a product is cheap, passes over these long vectors are what takes time, so there are as few as can be. In place of
//! a direction p the iteration carries q = (I + W K̃) p, which takes r and K̃r to the next one as p would, and s is found
//! from K̃s at the end: what has been taken off the right-hand side is s + W K̃s.

use super::iterate::{inner, slice_mut};
use super::systems::{Iteration, Run, run_systems};
use super::{DirectionInfo, NewtonDirection, NewtonPoint, Step, SystemInfo};
use crate::context::Context;
use crate::data::row_major;
use crate::error::Result;
use crate::likelihood::Likelihood;
use crate::parallel::{axpy_both, copy, update};
use crate::workspace::Workspace;
use ndarray::{Array2, ArrayView2};

/// One iteration with its vectors, which are allocated once. The product of every step is left to the caller, who may have
/// several systems to multiply for.
#[derive(Debug)]
pub struct ConjugateGradients {
    /// What is left of the right-hand side, and its image.
    pub(super) r: Array2<f64>,
    pub(super) r_image: Array2<f64>,
    /// The direction p under I + W K̃, and under K̃.
    q: Array2<f64>,
    p_image: Array2<f64>,
    /// ‖r‖² in the norm of K̃, and as a share of the one before it.
    rho: f64,
    ratio: f64,
    goal: f64,
    steps: usize,
}

impl ConjugateGradients {
    /// A solver for n points and C classes.
    #[must_use]
    pub fn new(points: usize, classes: usize) -> Self {
        let zeros = || Array2::zeros((points, classes));
        let (rho, ratio, goal, steps) = (0.0, 0.0, 0.0, 0);
        Self { r: zeros(), r_image: zeros(), q: zeros(), p_image: zeros(), rho, ratio, goal, steps }
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
        step.image.fill(0.0);
        self.q.fill(0.0);
        self.p_image.fill(0.0);
        self.rho = inner(&self.r, &self.r_image)?;
        self.ratio = 0.0;
        self.goal = (accuracy * accuracy * self.rho).min(most_left * most_left);
        self.steps = 0;
        Ok(())
    }

    /// Goes along the next direction; `false` if there is nothing left to gain. After `true`, K̃r is to be computed.
    pub(super) fn advance<L: Likelihood>(
        &mut self,
        likelihood: &L,
        curvature: &L::Curvature,
        step: &mut Step,
    ) -> Result<bool> {
        if self.rho.is_nan() || self.is_done() {
            return Ok(false);
        }
        let from = [self.r.view(), self.r_image.view()];
        let direction = [self.q.view_mut(), self.p_image.view_mut()];
        let energy = likelihood.next_direction(curvature, from, self.ratio, direction)?;
        // Rounding has eaten the direction: what has been gained so far is kept.
        if energy.is_nan() || energy <= 0.0 {
            return Ok(false);
        }
        let length = self.rho / energy;
        let to = [slice_mut(&mut step.image)?, slice_mut(&mut self.r)?];
        let along = [self.p_image.view(), self.q.view()];
        axpy_both(to, [length, -length], [row_major("K̃p", &along[0])?, row_major("q", &along[1])?]);
        self.steps += 1;
        Ok(true)
    }

    /// Takes note of what is left, once K̃r is there.
    pub(super) fn turn(&mut self) -> Result<()> {
        let next = inner(&self.r, &self.r_image)?;
        self.ratio = next / self.rho;
        self.rho = next;
        Ok(())
    }

    /// Writes s, the solution so far for the right-hand side b: s = b − r − W K̃s.
    pub(super) fn finish<L: Likelihood>(
        &self,
        likelihood: &L,
        curvature: &L::Curvature,
        b: &ArrayView2<'_, f64>,
        step: &mut Step,
    ) -> Result<()> {
        likelihood.apply_curvature(curvature, step.s.view_mut(), step.image.view())?;
        let r = self.r.view();
        update(slice_mut(&mut step.s)?, [row_major("b", b)?, row_major("r", &r)?], |s, [b, r]| {
            s.iter_mut().zip(b.iter().zip(r)).for_each(|(s, (b, r))| *s = b - r - *s);
        });
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
        self.finish(point.likelihood, point.curvature, &point.r.view(), step)?;
        Ok(DirectionInfo { products: self.steps, steps: self.steps, rank: 0 })
    }
}
