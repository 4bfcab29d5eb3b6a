//! Newton directions by conjugate gradients, preconditioned where that pays.

use super::low_rank_cg::{Curved, LowRankCg};
use super::low_rank_prior::SETUP_PRODUCTS;
use super::systems::{Iteration, Run, run_systems};
use super::{ConjugateGradients, DirectionInfo, LowRankPrior, NewtonDirection, NewtonPoint, PreconditionerUse, Step};
use crate::context::Context;
use crate::error::Result;
use crate::likelihood::Likelihood;
use crate::prior::JointPrior;
use crate::workspace::Workspace;
use std::sync::Arc;

/// So many steps more than setting up costs must be in sight before a trial is made.
const WORTH_A_TRIAL: f64 = 6.0;

/// Later systems are solved to a higher accuracy, and are harder, by about this factor.
const HARDER: f64 = 1.5;
const MOST_TRIALS: usize = 2;

/// Newton directions by conjugate gradients: in the inner product of K̃, or preconditioned, whichever has been cheaper.
#[derive(Debug)]
pub struct PreconditionedCg {
    plain: ConjugateGradients,
    /// The preconditioned iteration and what it takes, once they are needed.
    low_rank: Option<(LowRankCg, Arc<LowRankPrior>)>,
    /// An approximation that was made before.
    given: Option<Arc<LowRankPrior>>,
    choice: Choice,
}

/// Which way the next system is solved. Costs are counted in products, not in seconds: the same data give the same fit.
#[derive(Debug)]
struct Choice {
    usage: PreconditionerUse,
    /// Products that setting up costs, and applying.
    setup: f64,
    application: f64,
    /// Steps of the last system that was solved the plain way.
    plain: f64,
    /// Plain steps from which on the other way is tried.
    trial_from: f64,
    preconditioned: bool,
    trials: usize,
}

impl PreconditionedCg {
    /// A solver for n points and C classes.
    #[must_use]
    pub fn new(points: usize, classes: usize, usage: PreconditionerUse) -> Self {
        Self {
            plain: ConjugateGradients::new(points, classes),
            low_rank: None,
            given: None,
            choice: Choice {
                usage,
                setup: 0.0,
                application: 0.0,
                plain: 0.0,
                trial_from: SETUP_PRODUCTS + WORTH_A_TRIAL,
                preconditioned: usage == PreconditionerUse::On,
                trials: 0,
            },
        }
    }

    /// Uses an approximation that was made before, for the same kernel.
    #[must_use]
    pub fn with_low_rank_prior(mut self, approximation: Option<Arc<LowRankPrior>>) -> Self {
        self.given = approximation;
        self
    }

    /// Makes what the preconditioned iteration needs; tells whether there is such a thing for this prior.
    fn get_ready(&mut self, context: &Context, work: &mut Workspace, prior: &JointPrior) -> Result<bool> {
        if self.low_rank.is_some() {
            return Ok(true);
        }
        let made = match self.given.take() {
            Some(given) => Some(given),
            None => LowRankPrior::new(context, work, prior, self.choice.usage)?.map(Arc::new),
        };
        let Some(approximation) = made else {
            self.choice.usage = PreconditionerUse::Off;
            self.choice.preconditioned = false;
            return Ok(false);
        };
        (self.choice.setup, self.choice.application) = approximation.price(prior);
        self.low_rank = Some((LowRankCg::new(prior.points(), prior.classes()), approximation));
        Ok(true)
    }
}

impl Choice {
    fn observe_plain(&mut self, steps: usize) {
        self.plain = steps as f64;
        self.preconditioned = self.usage == PreconditionerUse::Auto && self.plain >= self.trial_from;
        self.trials += usize::from(self.preconditioned);
    }

    fn observe_preconditioned(&mut self, steps: usize) {
        let cost = self.setup + steps as f64 * (1.0 + self.application);
        if self.usage == PreconditionerUse::Auto && cost > HARDER * self.plain {
            self.preconditioned = false;
            self.trial_from = if self.trials < MOST_TRIALS { 2.0 * self.plain } else { f64::INFINITY };
        }
    }

    /// Steps that a preconditioned system may take: a trial that fails is to cost little.
    fn most_steps(&self) -> usize {
        if self.usage == PreconditionerUse::On {
            return usize::MAX;
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a number of steps
        let steps = (HARDER * self.plain) as usize;
        steps
    }
}

impl<L: Likelihood> NewtonDirection<L> for PreconditionedCg {
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
        if self.choice.preconditioned
            && self.get_ready(context, work, point.prior)?
            && let Some((cg, approximation)) = &mut self.low_rank
        {
            let mut curved = Curved::new(context, approximation, point.likelihood, point.curvature)?;
            let r = (point.r.view(), point.r_image.view());
            cg.begin(approximation, &mut curved, r, (point.forcing, f64::INFINITY), step)?;
            let most_steps = point.max_steps.min(self.choice.most_steps());
            let iteration = Iteration::Preconditioned { cg: &mut *cg, curved: &mut curved, approximation };
            let run = Run::new(point.likelihood, point.curvature, step, iteration);
            run_systems(context, work, point.prior, &mut [run], most_steps)?;
            self.choice.observe_preconditioned(cg.steps());
            return Ok(DirectionInfo { products: cg.steps(), steps: cg.steps(), rank: approximation.rank() });
        }
        let info = self.plain.solve(context, work, point, step)?;
        self.choice.observe_plain(info.steps);
        Ok(info)
    }
}
