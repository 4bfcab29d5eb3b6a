//! The coupling of the class functions through the likelihood of the targets.

mod softmax;

pub use softmax::Softmax;

use crate::data::row_major;
use crate::error::Result;
use crate::parallel::max_abs;
use ndarray::{Array2, ArrayView2, ArrayViewMut2};

/// Value, first and second derivative of a function of one variable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Along {
    /// The value.
    pub value: f64,
    /// The first derivative.
    pub slope: f64,
    /// The second derivative.
    pub curvature: f64,
}

/// Σ_i w_i ℓ_i(u_i), a function of the class functions u at the training points (n × C, row-major). Where it is not
/// convex, its curvature W is a positive semidefinite matrix that is at least the second derivative.
pub trait Likelihood: std::fmt::Debug + Send + Sync {
    /// What is kept of a point u in order to multiply with the curvature W there.
    type Curvature: Send + Sync;

    /// Number of points n.
    fn points(&self) -> usize;

    /// Number of class functions C.
    fn classes(&self) -> usize;

    /// Room for the curvature, made once and used again.
    fn new_curvature(&self) -> Self::Curvature;

    /// Returns the value at u and writes the gradient g and the curvature there.
    fn evaluate(
        &self,
        u: ArrayView2<'_, f64>,
        g: ArrayViewMut2<'_, f64>,
        curvature: &mut Self::Curvature,
    ) -> Result<f64>;

    /// out = W B.
    fn apply_curvature(
        &self,
        curvature: &Self::Curvature,
        out: ArrayViewMut2<'_, f64>,
        b: ArrayView2<'_, f64>,
    ) -> Result<()>;

    /// max |W B|; `scratch` may be overwritten.
    fn max_curved(
        &self,
        curvature: &Self::Curvature,
        b: ArrayView2<'_, f64>,
        mut scratch: ArrayViewMut2<'_, f64>,
    ) -> Result<f64> {
        self.apply_curvature(curvature, scratch.view_mut(), b)?;
        Ok(max_abs(row_major("W B", &scratch.view())?))
    }

    /// The function λ ↦ Σ_i w_i ℓ_i(u_i + λ d_i) at `step`.
    fn along(&self, u: ArrayView2<'_, f64>, direction: ArrayView2<'_, f64>, step: f64) -> Result<Along>;

    /// D (n × C) where W_i = D_i − D_i 1 1ᵀ D_i / Σ_c D_ic, as for softmax; `None` for other likelihoods. The exact
    /// solver needs it.
    fn diagonal_part(&self, curvature: &Self::Curvature) -> Option<Array2<f64>>;

    /// Σ_i weights_ij D_i, over the points, for D as in [`Likelihood::diagonal_part`], one row for every column j.
    fn pooled_diagonal(&self, curvature: &Self::Curvature, weights: ArrayView2<'_, f64>) -> Option<Array2<f64>>;
}
