//! Conjugate gradients for the symmetric form of Newton's system, with a low-rank preconditioner.
//!
//! With W = V Vᵀ, (I + W K̃)⁻¹ r = r − V β, where (I + Vᵀ K̃ V) β = Vᵀ K̃ r. Unlike the form of seed 000 (eq. 6) this one
//! has no D^{-½}. Every iterate s = r − V β is a descent direction, since ⟨b, β⟩ rises towards ⟨b, (I + VᵀK̃V)⁻¹ b⟩, and
//! K̃s comes from the products that are made anyway. With ρ the residual of this system, the quadratic model of Φ is within
//! ½‖ρ‖² of its minimum, and has fallen by at least ½(⟨r, K̃r⟩ − ⟨b, β⟩) when it gets there: that gives the stopping rule.

use super::iterate::{inner, slice_mut};
use super::preconditioner::{Preconditioner, PriorApproximation, SETUP_PRODUCTS};
use super::root::CurvatureRoot;
use super::{ConjugateGradients, DirectionInfo, NewtonDirection, NewtonPoint, PreconditionerUse, Step};
use crate::context::Context;
use crate::data::row_major;
use crate::error::{Error, Result};
use crate::likelihood::Likelihood;
use crate::parallel::{axpy, xpby};
use crate::prior::JointPrior;
use crate::workspace::Workspace;
use ndarray::Array2;

/// So many steps more than setting up costs must be in sight before a trial is made.
const WORTH_A_TRIAL: f64 = 6.0;

/// Later systems are solved to a higher accuracy, and are harder, by about this factor.
const HARDER: f64 = 1.5;
const MOST_TRIALS: usize = 2;

/// Newton directions by conjugate gradients: in the inner product of K̃, or preconditioned, whichever has been cheaper.
#[derive(Debug)]
pub struct PreconditionedCg {
    plain: ConjugateGradients,
    vectors: Option<Vectors>,
    approximation: Option<PriorApproximation>,
    choice: Choice,
}

/// The long vectors of the preconditioned iteration.
#[derive(Debug)]
struct Vectors {
    rho: Array2<f64>,
    z: Array2<f64>,
    p: Array2<f64>,
    root_p: Array2<f64>,
    image: Array2<f64>,
    q: Array2<f64>,
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
            vectors: None,
            approximation: None,
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

    /// Makes what the preconditioned iteration needs; tells whether there is such a thing for this prior.
    fn get_ready(&mut self, context: &Context, work: &mut Workspace, prior: &JointPrior) -> Result<bool> {
        if self.approximation.is_none() {
            self.approximation = PriorApproximation::new(context, work, prior)?;
            let Some(approximation) = &self.approximation else {
                self.choice.usage = PreconditionerUse::Off;
                self.choice.preconditioned = false;
                return Ok(false);
            };
            let (n, classes, m) = (prior.points() as f64, prior.classes() as f64, approximation.rank() as f64);
            let product = classes
                * prior.blocks().matrices().iter().map(|matrix| matrix.cost_per_column()).sum::<f64>()
                / prior.blocks().matrices().len() as f64;
            self.choice.setup = (n * (classes * m).powi(2) + (classes * m).powi(3) / 3.0) / product;
            self.choice.application = (4.0 * n * m * classes + 2.0 * (classes * m).powi(2)) / product;
            let zeros = || Array2::zeros((prior.points(), prior.classes()));
            self.vectors =
                Some(Vectors { rho: zeros(), z: zeros(), p: zeros(), root_p: zeros(), image: zeros(), q: zeros() });
        }
        Ok(true)
    }

    fn solve_preconditioned<L: Likelihood>(
        &mut self,
        context: &Context,
        work: &mut Workspace,
        point: &NewtonPoint<'_, L>,
        step: &mut Step,
    ) -> Result<DirectionInfo> {
        let missing = || Error::ExactUnsupported { requirement: "the softmax likelihood" };
        let (Some(approximation), Some(vectors)) = (&self.approximation, &mut self.vectors) else {
            return Err(missing());
        };
        let v = CurvatureRoot::new(point.likelihood.diagonal_part(point.curvature).ok_or_else(missing)?);
        let mut preconditioner = Preconditioner::new(context, approximation, &v)?;
        let Vectors { rho, z, p, root_p, image, q } = vectors;
        v.apply_transposed(rho, point.r_image)?;
        preconditioner.apply(approximation, &v, z, rho, q)?;
        p.assign(z);
        let mut rz = inner(rho, z)?;
        let norm = inner(point.r, point.r_image)?;
        let mut gained = 0.0;
        step.s.assign(point.r);
        step.image.assign(point.r_image);
        let mut steps = 0;
        let goal = point.forcing * point.forcing;
        let mut error = inner(rho, rho)?;
        let most_steps = point.max_steps.min(self.choice.most_steps());
        while steps < most_steps && error > goal * (norm - gained).max(0.0) && rz > 0.0 {
            v.apply(root_p, p)?;
            point.prior.apply(context, work, image.view_mut(), root_p.view())?;
            steps += 1;
            v.apply_transposed(q, image)?;
            axpy(slice_mut(q)?, 1.0, row_major("p", &p.view())?);
            let energy = inner(p, q)?;
            if energy.is_nan() || energy <= 0.0 {
                break;
            }
            let length = rz / energy;
            gained += length * rz;
            axpy(slice_mut(&mut step.s)?, -length, row_major("V p", &root_p.view())?);
            axpy(slice_mut(&mut step.image)?, -length, row_major("K̃V p", &image.view())?);
            axpy(slice_mut(rho)?, -length, row_major("q", &q.view())?);
            preconditioner.apply(approximation, &v, z, rho, q)?;
            let next = inner(rho, z)?;
            error = inner(rho, rho)?;
            xpby(slice_mut(p)?, row_major("z", &z.view())?, next / rz);
            rz = next;
        }
        let rank = approximation.rank();
        self.choice.observe_preconditioned(steps);
        Ok(DirectionInfo { products: steps, steps, rank })
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
        if self.choice.preconditioned && self.get_ready(context, work, point.prior)? {
            return self.solve_preconditioned(context, work, point, step);
        }
        let info = self.plain.solve(context, work, point, step)?;
        self.choice.observe_plain(info.steps);
        Ok(info)
    }
}
