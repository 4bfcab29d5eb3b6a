//! Conjugate gradients for (I + W K̃) s = r in the inner product ⟨a, b⟩_K = ⟨a, K̃b⟩.
//!
//! I + W K̃ is self-adjoint in it, with eigenvalues of at least 1. Unlike the symmetrised system of seed 000 (eq. 6) this
//! one needs no D^{-½}, hence no safeguards for tiny probabilities; every iterate is a descent direction, and since every
//! vector travels with its image under K̃, K̃s is there at the end.

use super::iterate::inner;
use super::{DirectionInfo, NewtonDirection, NewtonPoint, Step};
use crate::context::Context;
use crate::data::{row_major, row_major_mut};
use crate::error::Result;
use crate::likelihood::Likelihood;
use crate::parallel::{axpy, xpby};
use crate::workspace::Workspace;
use ndarray::Array2;

/// The solver with its vectors, which are allocated once.
#[derive(Debug)]
pub struct ConjugateGradients {
    r: Array2<f64>,
    r_image: Array2<f64>,
    p: Array2<f64>,
    p_image: Array2<f64>,
    q: Array2<f64>,
}

impl ConjugateGradients {
    /// A solver for n points and C classes.
    #[must_use]
    pub fn new(points: usize, classes: usize) -> Self {
        let zeros = || Array2::zeros((points, classes));
        Self { r: zeros(), r_image: zeros(), p: zeros(), p_image: zeros(), q: zeros() }
    }

    /// out = a + W b.
    fn system<L: Likelihood>(
        point: &NewtonPoint<'_, L>,
        out: &mut Array2<f64>,
        a: &[f64],
        b: &Array2<f64>,
    ) -> Result<()> {
        point.likelihood.apply_curvature(point.curvature, out.view_mut(), b.view())?;
        axpy(row_major_mut("q", &mut out.view_mut())?, 1.0, a);
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
        let Self { r, r_image, p, p_image, q } = self;
        step.s.fill(0.0);
        step.image.fill(0.0);
        r.assign(point.r);
        r_image.assign(point.r_image);
        let (mut s, mut image) = (step.s.view_mut(), step.image.view_mut());
        let (s, image) = (row_major_mut("s", &mut s)?, row_major_mut("K̃s", &mut image)?);
        p.assign(r);
        p_image.assign(r_image);
        let mut rho = inner(r, r_image)?;
        let goal = point.forcing * point.forcing * rho;
        let mut steps = 0;
        while steps < point.max_steps && rho > goal {
            Self::system(point, q, row_major("p", &p.view())?, p_image)?;
            let energy = inner(p_image, q)?;
            // Rounding has eaten the direction: what has been gained so far is kept.
            if energy.is_nan() || energy <= 0.0 {
                break;
            }
            let length = rho / energy;
            axpy(s, length, row_major("p", &p.view())?);
            axpy(image, length, row_major("K̃p", &p_image.view())?);
            axpy(row_major_mut("r", &mut r.view_mut())?, -length, row_major("q", &q.view())?);
            point.prior.apply(context, work, r_image.view_mut(), r.view())?;
            steps += 1;
            let next = inner(r, r_image)?;
            if next.is_nan() || next <= 0.0 {
                break;
            }
            let ratio = next / rho;
            xpby(row_major_mut("p", &mut p.view_mut())?, row_major("r", &r.view())?, ratio);
            xpby(row_major_mut("K̃p", &mut p_image.view_mut())?, row_major("K̃r", &r_image.view())?, ratio);
            rho = next;
        }
        Ok(DirectionInfo { products: steps, steps, rank: 0 })
    }
}
