//! Exact line search on the pair (α, u): along s and K̃s an evaluation costs O(nC) and no product (seed 000, 6.1.2).

use super::Step;
use crate::data::row_major;
use crate::error::Result;
use crate::likelihood::{Along, Likelihood};
use crate::parallel::dots;
use ndarray::Array2;

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

/// What is known of Φ along (α + λ s, u + λ K̃s) from inner products: its quadratic part, and how it begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Course {
    /// Φ at λ = 0.
    pub objective: f64,
    /// ½⟨α, u⟩.
    pub penalty: f64,
    /// ⟨α, K̃s⟩.
    pub linear: f64,
    /// ⟨s, K̃s⟩.
    pub quadratic: f64,
    /// ⟨r, K̃s⟩: as fast Φ falls at λ = 0.
    pub descent: f64,
}

impl Course {
    /// Of a step from α, where r = −(α + g) and Φ has the given value and penalty.
    pub(crate) fn new(
        (objective, penalty): (f64, f64),
        alpha: &Array2<f64>,
        r: &Array2<f64>,
        step: &Step,
    ) -> Result<Self> {
        let views = [alpha, &step.s, r, &step.image].map(|array| array.view());
        let [alpha, s, r, image] = &views;
        let with = [row_major("α", alpha)?, row_major("s", s)?, row_major("r", r)?];
        let [linear, quadratic, descent] = dots(with, row_major("K̃s", image)?);
        Ok(Self { objective, penalty, linear, quadratic, descent })
    }

    fn at<L: Likelihood>(&self, likelihood: &L, u: &Array2<f64>, image: &Array2<f64>, step: f64) -> Result<Along> {
        let along = likelihood.along(u.view(), image.view(), step)?;
        Ok(Along {
            value: along.value + self.penalty + step * (self.linear + 0.5 * step * self.quadratic),
            slope: along.slope + self.linear + step * self.quadratic,
            curvature: along.curvature + self.quadratic,
        })
    }
}

/// Finds λ near a minimum of Φ along the step, where Φ is not above its value at λ = 0. Newton's full step λ = 1 is tried
/// first and nearly always taken.
pub(crate) fn line_search<L: Likelihood>(
    likelihood: &L,
    u: &Array2<f64>,
    step: &Step,
    course: &Course,
) -> Result<LineInfo> {
    let objective = course.objective;
    let (mut low, mut high) = (0.0, f64::INFINITY);
    let mut lambda = 1.0;
    for evaluations in 1..=MAX_EVALUATIONS {
        let here = course.at(likelihood, u, &step.image, lambda)?;
        // Close to the minimum the slope is all rounding; a full step is what Newton's method wants there.
        let noise = 1e-14 * here.value.abs() * f64::EPSILON.sqrt();
        let above = here.value > objective + ROUNDING * objective.abs();
        if !above && here.slope.abs() <= SLOPE_SHARE * course.descent.abs() + noise {
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
