//! The Gaussian kernel, also called RBF or squared exponential.

use super::{Profile, Stationary, Widths};
use crate::data::Inputs;
use crate::error::Result;
use crate::simd;
use ndarray::ArrayView1;

/// M = exp(−ρ/2), seed 000 eq. 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gaussian;

impl Profile for Gaussian {
    const NAME: &'static str = "rbf";

    fn values(&self, rho: &mut [f64]) {
        simd::exp(rho, -0.5);
    }

    fn slopes(&self, rho: &mut [f64]) {
        simd::exp(rho, -0.5);
        rho.iter_mut().for_each(|slope| *slope *= -0.5);
    }
}

/// The Gaussian kernel M = exp(−(w/2D) ‖x − x'‖²), D the number of inputs.
pub type Rbf = Stationary<Gaussian>;

impl Rbf {
    /// One inverse width w for all inputs.
    pub fn isotropic(inverse_width: f64) -> Result<Self> {
        Self::new(Gaussian, Widths::Shared(inverse_width))
    }

    /// One inverse width for every input.
    pub fn per_input(inverse_widths: Vec<f64>) -> Result<Self> {
        Self::new(Gaussian, Widths::PerInput(inverse_widths))
    }

    /// An inverse width that suits the scale of the inputs: two over their mean variance.
    pub fn automatic(x: &Inputs, weights: Option<ArrayView1<'_, f64>>) -> Result<Self> {
        Self::isotropic(super::stationary::automatic_inverse_width(x, weights))
    }
}
