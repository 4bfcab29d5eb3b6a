//! Newton's method for Φ (seed 000, Algorithm 3), over any prior, likelihood and way of solving its systems.

use super::iterate::{Iterate, Next};
use super::line_search::line_search;
use super::{NewtonDirection, NewtonPoint, Solution, SolveParams, Step};
use crate::context::Context;
use crate::error::Result;
use crate::likelihood::Likelihood;
use crate::prior::JointPrior;
use ndarray::ArrayView2;

/// Newton steps without progress after which there is none to be had. Where W is not that of the likelihood but above it, as with
/// sets of classes, steps gain little and max|α + g| goes up and down.
const PATIENCE: usize = 20;

/// Minimises Φ from α = 0, or from a previous α.
pub fn newton<L: Likelihood>(
    context: &Context,
    prior: &JointPrior,
    likelihood: &L,
    start: Option<ArrayView2<'_, f64>>,
    direction: &mut impl NewtonDirection<L>,
    params: &SolveParams,
) -> Result<Solution> {
    let mut iterate = Iterate::begin(context, prior, likelihood, start, params, (direction.name(), PATIENCE))?;
    let mut step = Step::zeros(likelihood.points(), likelihood.classes());
    let mut forcing = Forcing::new(params);
    while let Next::Step = iterate.next(context)? {
        iterate.multiply_residual(context)?;
        let (settled, change) = iterate.settle(&mut step)?;
        if settled {
            continue;
        }
        let point = NewtonPoint {
            prior,
            likelihood,
            curvature: &iterate.curvature,
            r: &iterate.r,
            r_image: &iterate.r_image,
            forcing: forcing.next(iterate.squared_norm()?, iterate.info.residual.min(change)),
            max_steps: params.max_inner_steps.min(params.max_products.saturating_sub(iterate.info.products + 1)),
        };
        let found = direction.solve(context, &mut iterate.work, &point, &mut step)?;
        iterate.info.inner_steps += found.steps;
        iterate.info.products += found.products;
        iterate.info.preconditioner_rank = found.rank;
        let length = line_search(likelihood, &iterate.u, &step, &iterate.course(&step)?)?.step;
        iterate.advance(&step, length)?;
    }
    iterate.info.newton_steps = iterate.info.steps;
    Ok(iterate.finish())
}

/// The accuracy of the next system, after Eisenstat and Walker: as good as the last step was successful.
struct Forcing {
    first: f64,
    tol: f64,
    /// ‖r‖² of the last system.
    before: Option<f64>,
}

impl Forcing {
    const SMALLEST: f64 = 1e-1;

    fn new(params: &SolveParams) -> Self {
        Self { first: params.first_forcing, tol: params.tol, before: None }
    }

    /// η for a right-hand side with ‖r‖² = `norm`; `residual` is what has to come down to tol.
    fn next(&mut self, norm: f64, residual: f64) -> f64 {
        let wanted = self.before.map_or(self.first, |before| norm / before);
        self.before = Some(norm);
        // Not more accurate than the goal of the whole fit warrants.
        wanted.max(0.1 * self.tol / residual).clamp(Self::SMALLEST.min(self.first), self.first)
    }
}
