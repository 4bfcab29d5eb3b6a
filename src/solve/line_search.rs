//! Exact line search on the pair (α, u): along s and K̃s an evaluation costs O(nC) and no product (seed 000, 6.1.2).

use super::Step;
use super::iterate::inner;
use crate::error::Result;
use crate::likelihood::{Along, Likelihood};
use ndarray::{Array2, ArrayView2};

/// The slope is small enough when it has fallen to this share of the one at the start.
const SLOPE_SHARE: f64 = 0.1;
const MAX_EVALUATIONS: usize = 30;
/// Relative to Φ, what its sum over all points may lose to rounding.
const ROUNDING: f64 = 1e-13;

/// Result of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LineInfo {
    /// The step length λ.
    pub step: f64,
    /// Evaluations of the likelihood.
    pub evaluations: usize,
}

/// Φ along (α + λ s, u + λ K̃s): the quadratic part is known from three inner products.
struct Line<'a, L> {
    likelihood: &'a L,
    u: ArrayView2<'a, f64>,
    image: ArrayView2<'a, f64>,
    /// ½⟨α, u⟩, ⟨α, K̃s⟩, ⟨s, K̃s⟩.
    penalty: [f64; 3],
}

impl<L: Likelihood> Line<'_, L> {
    fn at(&self, step: f64) -> Result<Along> {
        let [constant, linear, quadratic] = self.penalty;
        let along = self.likelihood.along(self.u, self.image, step)?;
        Ok(Along {
            value: along.value + constant + step * (linear + 0.5 * step * quadratic),
            slope: along.slope + linear + step * quadratic,
            curvature: along.curvature + quadratic,
        })
    }
}

/// Finds λ near a minimum of Φ along the step, where Φ is not above `objective`, its value at λ = 0. Newton's full step
/// λ = 1 is tried first and nearly always taken.
pub(crate) fn line_search<L: Likelihood>(
    likelihood: &L,
    objective: f64,
    alpha: &Array2<f64>,
    u: &Array2<f64>,
    r: &Array2<f64>,
    step: &Step,
) -> Result<LineInfo> {
    let penalty = [0.5 * inner(alpha, u)?, inner(alpha, &step.image)?, inner(&step.s, &step.image)?];
    let line = Line { likelihood, u: u.view(), image: step.image.view(), penalty };
    // Φ' at λ = 0 is ⟨α + g, K̃s⟩ = −⟨r, K̃s⟩.
    let start = -inner(r, &step.image)?;
    let (mut low, mut high) = (0.0, f64::INFINITY);
    let mut lambda = 1.0;
    for evaluations in 1..=MAX_EVALUATIONS {
        let here = line.at(lambda)?;
        // Close to the minimum the slope is all rounding; a full step is what Newton's method wants there.
        let noise = 1e-14 * here.value.abs() * f64::EPSILON.sqrt();
        let above = here.value > objective + ROUNDING * objective.abs();
        if !above && here.slope.abs() <= SLOPE_SHARE * start.abs() + noise {
            return Ok(LineInfo { step: lambda, evaluations });
        }
        if above || here.slope > 0.0 {
            high = lambda;
        } else {
            low = lambda;
        }
        // There is a minimum between low and high. Newton on Φ', kept strictly inside; beyond a hump it leads astray.
        let newton = if above && here.slope < 0.0 { f64::NAN } else { lambda - here.slope / here.curvature };
        let (inside_low, inside_high) = if high.is_finite() {
            (low + 0.1 * (high - low), high - 0.1 * (high - low))
        } else {
            (1.1 * low, 4.0 * low)
        };
        lambda =
            if newton.is_finite() { newton.clamp(inside_low, inside_high) } else { 0.5 * (inside_low + inside_high) };
    }
    Ok(LineInfo { step: lambda, evaluations: MAX_EVALUATIONS })
}
