//! The coupling of the class functions through the likelihood of the targets.

mod softmax;

pub use softmax::Softmax;

use crate::data::{row_major, row_major_mut};
use crate::error::Result;
use crate::parallel::{axpy_both, dot, max_abs, update, xpby};
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

/// What is known of a pair (α, u) besides g and W.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct There {
    /// Σ_i w_i ℓ_i(u_i).
    pub loss: f64,
    /// max|α + g|.
    pub residual: f64,
    /// ⟨α, u⟩.
    pub product: f64,
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

    /// Moves a pair (α, u) along a step (s, K̃s) times a length, and writes r = −(α + g) and the curvature at the new u; where
    /// there is no step, at u. What is here takes several passes over all arrays.
    fn move_along(
        &self,
        [mut alpha, mut u]: [ArrayViewMut2<'_, f64>; 2],
        step: Option<(f64, [ArrayView2<'_, f64>; 2])>,
        mut r: ArrayViewMut2<'_, f64>,
        curvature: &mut Self::Curvature,
    ) -> Result<There> {
        if let Some((length, [s, image])) = &step {
            let to = [row_major_mut("α", &mut alpha)?, row_major_mut("u", &mut u)?];
            axpy_both(to, [*length; 2], [row_major("s", s)?, row_major("K̃s", image)?]);
        }
        // g is written where r is wanted.
        let loss = self.evaluate(u.view(), r.view_mut(), curvature)?;
        let (alpha, u, r) = (alpha.view(), u.view(), row_major_mut("r", &mut r)?);
        let (alpha, u) = (row_major("α", &alpha)?, row_major("u", &u)?);
        update(r, [alpha], |r, [alpha]| r.iter_mut().zip(alpha).for_each(|(r, alpha)| *r = -(alpha + *r)));
        Ok(There { loss, residual: max_abs(r), product: dot(alpha, u) })
    }

    /// out = W B.
    fn apply_curvature(
        &self,
        curvature: &Self::Curvature,
        out: ArrayViewMut2<'_, f64>,
        b: ArrayView2<'_, f64>,
    ) -> Result<()>;

    /// The next direction of conjugate gradients: q ← r + W r̃ + b q and p̃ ← r̃ + b p̃, where r̃ is the image of r under K̃.
    /// Returns ⟨p̃, q⟩. What is here takes several passes over all arrays, and memory for one more.
    fn next_direction(
        &self,
        curvature: &Self::Curvature,
        [r, r_image]: [ArrayView2<'_, f64>; 2],
        b: f64,
        [mut q, mut p_image]: [ArrayViewMut2<'_, f64>; 2],
    ) -> Result<f64> {
        let mut curved = Array2::zeros(r.raw_dim());
        self.apply_curvature(curvature, curved.view_mut(), r_image)?;
        curved += &r;
        xpby(row_major_mut("q", &mut q)?, row_major("r + W K̃r", &curved.view())?, b);
        xpby(row_major_mut("K̃p", &mut p_image)?, row_major("K̃r", &r_image)?, b);
        Ok(dot(row_major("K̃p", &p_image.view())?, row_major("q", &q.view())?))
    }

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
