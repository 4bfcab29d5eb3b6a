//! The seam between Newton's method and the ways of solving its linear systems.

use super::iterate::slice_mut;
use crate::context::Context;
use crate::data::row_major;
use crate::error::Result;
use crate::likelihood::Likelihood;
use crate::parallel::{axpy_both, copy};
use crate::prior::JointPrior;
use crate::workspace::Workspace;
use ndarray::Array2;

/// Where Newton's method stands.
#[derive(Debug)]
pub struct NewtonPoint<'a, L: Likelihood> {
    /// K̃.
    pub prior: &'a JointPrior,
    /// The likelihood.
    pub likelihood: &'a L,
    /// Its second derivative W here.
    pub curvature: &'a L::Curvature,
    /// r = −(α + g), the right-hand side.
    pub r: &'a Array2<f64>,
    /// K̃r.
    pub r_image: &'a Array2<f64>,
    /// The relative accuracy η that suffices, in the norm of K̃.
    pub forcing: f64,
    /// Steps that the inner iteration may take.
    pub max_steps: usize,
}

/// A step s with its image K̃s, which makes the line search free of products.
#[derive(Debug, Clone)]
pub struct Step {
    /// s.
    pub s: Array2<f64>,
    /// K̃s.
    pub image: Array2<f64>,
}

impl Step {
    /// Room for a step, made once per fit.
    #[must_use]
    pub fn zeros(points: usize, classes: usize) -> Self {
        Self { s: Array2::zeros((points, classes)), image: Array2::zeros((points, classes)) }
    }

    /// Adds `length` times s, whose image is given.
    pub(crate) fn add(&mut self, length: f64, s: &Array2<f64>, image: &Array2<f64>) -> Result<()> {
        let to = [slice_mut(&mut self.s)?, slice_mut(&mut self.image)?];
        axpy_both(to, [length; 2], [row_major("s", &s.view())?, row_major("K̃s", &image.view())?]);
        Ok(())
    }

    /// Becomes the step s with the given image.
    pub(crate) fn take(&mut self, s: &Array2<f64>, image: &Array2<f64>) -> Result<()> {
        copy(slice_mut(&mut self.s)?, row_major("s", &s.view())?);
        copy(slice_mut(&mut self.image)?, row_major("K̃s", &image.view())?);
        Ok(())
    }
}

/// What computing a direction took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DirectionInfo {
    /// Products with K̃.
    pub products: usize,
    /// Steps of the inner iteration; 0 for an exact solution.
    pub steps: usize,
    /// Rank of the preconditioner; 0 for none.
    pub rank: usize,
}

/// Solves (I + W K̃) s = r, exactly or to the accuracy asked for.
pub trait NewtonDirection<L: Likelihood> {
    /// Its name, for the user.
    fn name(&self) -> &'static str;

    /// Writes s and K̃s to `step`.
    fn solve(
        &mut self,
        context: &Context,
        work: &mut Workspace,
        point: &NewtonPoint<'_, L>,
        step: &mut Step,
    ) -> Result<DirectionInfo>;
}
