//! The pair (α, u) that every solver moves, what follows from it, and when it is good enough.

use super::line_search::{Course, line_search};
use super::{Solution, SolveInfo, SolveParams, Step, TracePoint};
use crate::context::{Context, Progress};
use crate::data::{check_shape, row_major};
use crate::error::{Error, Result};
use crate::likelihood::Likelihood;
use crate::parallel::{dot, max_abs};
use crate::prior::JointPrior;
use crate::workspace::Workspace;
use ndarray::{Array2, ArrayView2, Axis};
use std::time::{Duration, Instant};

/// α ← −g ends the fit when it is to leave no more than this share of tol.
const SETTLED: f64 = 0.5;

/// Relative to Φ, what counts as progress; gains of several steps are taken together, so rounding does not count for long.
const LEAST_GAIN: f64 = 1e-14;
/// The same of max|α + g|: what is left of it.
const LEAST_SHARE: f64 = 0.9;

/// What a solver does next.
pub(crate) enum Next {
    /// Another step.
    Step,
    /// Nothing: the result is there.
    Stop,
}

/// The pair (α, u = K̃α) and what follows from it.
pub(crate) struct Iterate<'a, L: Likelihood> {
    pub prior: &'a JointPrior,
    pub likelihood: &'a L,
    pub params: &'a SolveParams,
    pub alpha: Array2<f64>,
    pub u: Array2<f64>,
    /// r = −(α + g).
    pub r: Array2<f64>,
    /// K̃r.
    pub r_image: Array2<f64>,
    pub curvature: L::Curvature,
    pub work: Workspace,
    pub info: SolveInfo,
    /// ½⟨α, u⟩.
    penalty: f64,
    /// Whether u is K̃α itself rather than a sum of images.
    fresh: bool,
    watch: ProgressWatch,
    begun: Instant,
}

impl<'a, L: Likelihood> Iterate<'a, L> {
    /// Starts from α = 0, or from a previous α; gives up after `patience` steps without progress.
    pub(crate) fn begin(
        context: &Context,
        prior: &'a JointPrior,
        likelihood: &'a L,
        start: Option<ArrayView2<'_, f64>>,
        params: &'a SolveParams,
        (solver, patience): (&'static str, usize),
    ) -> Result<Self> {
        params.check()?;
        let shape = (likelihood.points(), likelihood.classes());
        check_shape("the number of targets must be that of the rows of X", prior.points(), shape.0)?;
        check_shape("the number of classes of the targets must be that of the prior", prior.classes(), shape.1)?;
        let mut alpha = Array2::zeros(shape);
        if let Some(start) = start {
            check_shape("the rows of the starting α must be the points", shape.0, start.nrows())?;
            check_shape("the columns of the starting α must be the classes", shape.1, start.ncols())?;
            alpha.assign(&start);
        }
        let mut iterate = Self {
            prior,
            likelihood,
            params,
            alpha,
            u: Array2::zeros(shape),
            r: Array2::zeros(shape),
            r_image: Array2::zeros(shape),
            curvature: likelihood.new_curvature(),
            work: Workspace::default(),
            penalty: 0.0,
            fresh: false,
            watch: ProgressWatch::new(patience),
            begun: Instant::now(),
            info: SolveInfo {
                solver,
                converged: false,
                steps: 0,
                newton_steps: 0,
                inner_steps: 0,
                products: 0,
                objective: 0.0,
                residual: 0.0,
                preconditioner_rank: 0,
                mixing_time: Duration::ZERO,
                trace: Vec::new(),
            },
        };
        iterate.refresh(context)?;
        if start.is_some() {
            iterate.scale_start()?;
        }
        iterate.evaluate()?;
        Ok(iterate)
    }

    /// Multiplies a previous α by what makes Φ lowest along it, at no product: where hyperparameters have changed much since,
    /// it would be a worse start than zero.
    fn scale_start(&mut self) -> Result<()> {
        let (step, zero) = (Step { s: self.alpha.clone(), image: self.u.clone() }, Array2::zeros(self.u.raw_dim()));
        let objective = self.likelihood.evaluate(zero.view(), self.r.view_mut(), &mut self.curvature)?;
        self.r.mapv_inplace(|g| -g);
        let course = Course::new((objective, 0.0), &zero, &self.r, &step)?;
        let descends = course.descent > 0.0;
        let length = if descends { line_search(self.likelihood, &zero, &step, &course)?.step } else { 0.0 };
        self.alpha.mapv_inplace(|a| length * a);
        self.u.mapv_inplace(|u| length * u);
        Ok(())
    }

    /// Decides whether to go on; before it claims convergence, u = K̃α is computed afresh.
    pub(crate) fn next(&mut self, context: &Context) -> Result<Next> {
        self.report(context);
        // One product is kept back for u.
        let mut exhausted = self.info.steps >= self.params.max_steps
            || self.info.products + 1 >= self.params.max_products
            || self.watch.stalled(self.info.objective, self.info.residual);
        loop {
            let good = self.info.residual <= self.params.tol;
            if !good && !exhausted {
                return Ok(Next::Step);
            }
            if self.fresh {
                self.info.converged = good;
                return Ok(Next::Stop);
            }
            // Images carried along drift by rounding: no claim without a fresh u.
            self.refresh(context)?;
            self.evaluate()?;
            exhausted |= self.watch.refreshed(self.info.residual);
        }
    }

    /// Whether u is K̃α itself rather than a sum of images.
    pub(crate) fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// The result, once [`Iterate::next`] has said stop.
    pub(crate) fn finish(mut self) -> Solution {
        self.info.mixing_time = self.work.mixing_time();
        Solution { alpha: self.alpha, u: self.u, info: self.info }
    }

    fn report(&mut self, context: &Context) {
        let point = TracePoint {
            time: self.begun.elapsed(),
            products: self.info.products,
            objective: self.info.objective,
            residual: self.info.residual,
        };
        self.info.trace.push(point);
        context.report(Progress::Step {
            step: self.info.steps,
            products: point.products,
            objective: point.objective,
            residual: point.residual,
        });
    }

    /// Computes K̃r.
    pub(crate) fn multiply_residual(&mut self, context: &Context) -> Result<()> {
        self.prior.apply(context, &mut self.work, self.r_image.view_mut(), self.r.view())?;
        self.info.products += 1;
        Ok(())
    }

    /// ‖r‖² in the norm of K̃.
    pub(crate) fn squared_norm(&self) -> Result<f64> {
        Ok(inner(&self.r, &self.r_image)?.max(0.0))
    }

    /// Takes the step α ← −g, u ← u + K̃r if that is going to end the fit, and tells max|α + g| after it.
    ///
    /// That step removes what is left of r where K̃ vanishes, or nearly so. The norm of K̃, and so every solver here, does
    /// not see that part, but max|α + g| does; and K̃r has to be computed anyway.
    pub(crate) fn settle(&mut self, scratch: &mut Step) -> Result<(bool, f64)> {
        // After the step, α + g changes by W K̃r to first order.
        let change = self.likelihood.max_curved(&self.curvature, self.r_image.view(), scratch.s.view_mut())?;
        let limit = SETTLED * self.params.tol;
        let settles = change <= limit && change * self.growth()? <= limit && self.watch.may_settle(self.info.steps);
        if settles {
            scratch.take(&self.r, &self.r_image)?;
            self.advance(scratch, 1.0)?;
        }
        Ok((settles, change))
    }

    /// How much larger W may become on the way from u to u + K̃r. Where all probabilities are next to 0 or 1, W is next to
    /// nothing and yet far from what it is a long step away.
    fn growth(&self) -> Result<f64> {
        Ok((2.0 * max_abs(row_major("K̃r", &self.r_image.view())?)).exp())
    }

    /// What is known of Φ along a step.
    pub(crate) fn course(&self, step: &Step) -> Result<Course> {
        Course::new((self.info.objective, self.penalty), &self.alpha, &self.r, step)
    }

    /// The same from the inner products of α, s and r with K̃s.
    pub(crate) fn course_of(&self, [linear, quadratic, descent]: [f64; 3]) -> Course {
        Course { objective: self.info.objective, penalty: self.penalty, linear, quadratic, descent }
    }

    /// Goes along a step; all that follows from the pair is known then.
    pub(crate) fn advance(&mut self, step: &Step, length: f64) -> Result<()> {
        self.fresh = false;
        self.info.steps += 1;
        self.move_along(Some((length, [step.s.view(), step.image.view()])))
    }

    /// Makes the rows of α sum to zero, as those of −g do, and computes u = K̃α.
    fn refresh(&mut self, context: &Context) -> Result<()> {
        for mut row in self.alpha.axis_iter_mut(Axis(0)) {
            let mean = row.sum() / row.len() as f64;
            row.mapv_inplace(|a| a - mean);
        }
        if self.alpha.iter().all(|a| *a == 0.0) {
            self.u.fill(0.0);
        } else {
            let exact = context.with_rough_products(false);
            self.prior.apply(&exact, &mut self.work, self.u.view_mut(), self.alpha.view())?;
            self.info.products += 1;
        }
        self.fresh = true;
        Ok(())
    }

    /// g, W, r, Φ and max|α + g| at u.
    fn evaluate(&mut self) -> Result<()> {
        self.move_along(None)
    }

    fn move_along(&mut self, step: Option<(f64, [ArrayView2<'_, f64>; 2])>) -> Result<()> {
        let pair = [self.alpha.view_mut(), self.u.view_mut()];
        let there = self.likelihood.move_along(pair, step, self.r.view_mut(), &mut self.curvature)?;
        self.info.residual = there.residual;
        self.penalty = 0.5 * there.product;
        self.info.objective = there.loss + self.penalty;
        if self.info.objective.is_finite() && self.info.residual.is_finite() {
            return Ok(());
        }
        let variance = self.prior.blocks().blocks().iter().map(|block| block.variance).fold(0.0, f64::max);
        Err(Error::NotFinite { steps: self.info.steps, variance })
    }
}

/// ⟨a, b⟩.
pub(crate) fn inner(a: &Array2<f64>, b: &Array2<f64>) -> Result<f64> {
    Ok(dot(row_major("a vector", &a.view())?, row_major("a vector", &b.view())?))
}

/// The entries of a vector.
pub(crate) fn slice_mut(array: &mut Array2<f64>) -> Result<&mut [f64]> {
    array.as_slice_mut().ok_or(Error::NotRowMajor { what: "a vector" })
}

/// Notices when nothing gets better any more.
struct ProgressWatch {
    /// Steps without progress after which the iteration gives up: rounding is all that is left.
    patience: usize,
    /// Φ and max|α + g| when they last got better.
    objective: f64,
    residual: f64,
    /// Steps since then.
    since: usize,
    /// The step at which α ← −g was tried last.
    settled: Option<usize>,
    /// max|α + g| when u was last computed afresh.
    fresh: Option<f64>,
}

impl ProgressWatch {
    fn new(patience: usize) -> Self {
        Self { patience, objective: f64::MAX, residual: f64::MAX, since: 0, settled: None, fresh: None }
    }

    /// Whether neither Φ nor max|α + g| has improved for a while.
    fn stalled(&mut self, objective: f64, residual: f64) -> bool {
        // What little steps gain adds up: each is compared with the last that gained enough. Neither bound ever goes up
        // again, so a fit that goes back and forth comes to an end.
        let lower = objective < self.objective - LEAST_GAIN * self.objective.abs();
        let nearer = residual < LEAST_SHARE * self.residual;
        if lower {
            self.objective = objective;
        }
        if nearer {
            self.residual = residual;
        }
        self.since = if lower || nearer { 0 } else { self.since + 1 };
        self.since > self.patience
    }

    /// Starts to count anew, as what was seen before was not quite true; tells whether that leads nowhere any more.
    fn refreshed(&mut self, residual: f64) -> bool {
        let hopeless = self.fresh.is_some_and(|last| residual > LEAST_SHARE * last);
        *self = Self { fresh: Some(residual), settled: self.settled, ..Self::new(self.patience) };
        hopeless
    }

    /// Whether α ← −g may be tried now: not twice in a row, or it could go on for ever.
    fn may_settle(&mut self, step: usize) -> bool {
        let allowed = self.settled.is_none_or(|last| last + 1 < step);
        if allowed {
            self.settled = Some(step);
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The step at which a fit is given up that goes through these (Φ, max|α + g|).
    fn given_up(course: impl Iterator<Item = (f64, f64)>) -> Option<usize> {
        let mut watch = ProgressWatch::new(8);
        course.take(1000).position(|(objective, residual)| watch.stalled(objective, residual))
    }

    #[test]
    fn little_steps_are_progress() {
        // Neither the objective nor the residual moves by enough in a single step.
        assert_eq!(given_up((0..).map(|step| (50.0, 0.97_f64.powi(step)))), None);
        assert_eq!(given_up((0..).map(|step| (50.0 - 1e-13 * f64::from(step), 1.0))), None);
    }

    #[test]
    fn going_back_and_forth_is_none() {
        assert_eq!(given_up(std::iter::repeat((50.0, 1e-3))), Some(9));
        let ends = [(50.0, 1.0), (50.1, 0.5)];
        assert_eq!(given_up(ends.into_iter().cycle()), Some(10));
    }
}
