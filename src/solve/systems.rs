//! Many linear systems (I + W K̃) x = b at once: one for every fold of a cross-validation, each with its own W, right-hand
//! side and accuracy. All that are not done yet share every product.

use super::low_rank_cg::{Curved, LowRankCg};
use super::{ConjugateGradients, LowRankPrior, Step};
use crate::context::Context;
use crate::data::{check_shape, row_major, row_major_mut, view, view_mut};
use crate::error::Result;
use crate::likelihood::Likelihood;
use crate::parallel::{put_beside, take_from_beside};
use crate::prior::JointPrior;
use crate::workspace::Workspace;
use ndarray::{Array2, ArrayView2};

/// One system. Points that are not part of it (those that a fold holds out) have no weight in its likelihood and zeros in
/// b; x is zero there too.
#[derive(Debug)]
pub struct LinearSystem<'a, L: Likelihood> {
    /// Where W comes from.
    pub likelihood: &'a L,
    /// W.
    pub curvature: &'a L::Curvature,
    /// The right-hand side.
    pub b: ArrayView2<'a, f64>,
    /// The relative accuracy η, in the norm of K̃.
    pub accuracy: f64,
    /// What may be left of b in the norm of K̃, where the relative accuracy allows more.
    pub most_left: f64,
}

/// How one system went.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SystemInfo {
    /// Steps, each with one product.
    pub steps: usize,
    /// Whether the accuracy was reached.
    pub converged: bool,
    /// The norm of what is left of b, in the norm of K̃; with a preconditioner, a bound on the error.
    pub residual: f64,
}

/// Solves all systems, to the accuracy of each, in at most `max_steps` steps. A system that is done takes no further part
/// in the products. Every solution comes with its image under K̃. With an approximation of the prior they are
/// preconditioned.
pub fn solve_systems<L: Likelihood>(
    context: &Context,
    work: &mut Workspace,
    prior: &JointPrior,
    systems: &[LinearSystem<'_, L>],
    approximation: Option<&LowRankPrior>,
    max_steps: usize,
) -> Result<Vec<(Step, SystemInfo)>> {
    let shape = (prior.points(), prior.classes());
    for system in systems {
        check_shape("the rows of a right-hand side must be the points", shape.0, system.b.nrows())?;
        check_shape("the columns of a right-hand side must be the classes", shape.1, system.b.ncols())?;
    }
    let mut runs = start(context, work, prior, systems, approximation)?;
    let mut active: Vec<usize> = (0..runs.len()).collect();
    for _ in 0..max_steps {
        let mut going = Vec::with_capacity(active.len());
        for &k in &active {
            if runs[k].advance(&systems[k])? {
                going.push(k);
            }
        }
        active = going;
        if active.is_empty() {
            break;
        }
        multiply(context, work, prior, &mut runs, &active)?;
        for &k in &active {
            runs[k].turn(approximation)?;
        }
    }
    Ok(runs.into_iter().map(Run::finish).collect())
}

/// One system on its way.
struct Run {
    iteration: Iteration,
    step: Step,
}

enum Iteration {
    Plain(Box<ConjugateGradients>),
    Preconditioned(Box<(LowRankCg, Curved)>),
}

/// Multiplies all right-hand sides, and starts the iterations.
fn start<L: Likelihood>(
    context: &Context,
    work: &mut Workspace,
    prior: &JointPrior,
    systems: &[LinearSystem<'_, L>],
    approximation: Option<&LowRankPrior>,
) -> Result<Vec<Run>> {
    let shape = (prior.points(), prior.classes());
    let plain = |system: &LinearSystem<'_, L>| {
        let mut cg = ConjugateGradients::new(shape.0, shape.1);
        cg.r.assign(&system.b);
        Run { iteration: Iteration::Plain(Box::new(cg)), step: Step::zeros(shape.0, shape.1) }
    };
    let mut runs: Vec<Run> = systems.iter().map(plain).collect();
    let all: Vec<usize> = (0..runs.len()).collect();
    multiply(context, work, prior, &mut runs, &all)?;
    for (system, run) in systems.iter().zip(&mut runs) {
        let Iteration::Plain(cg) = &mut run.iteration else { continue };
        if let Some(approximation) = approximation {
            let mut curved = Curved::new(context, approximation, system.likelihood, system.curvature)?;
            let mut low_rank = LowRankCg::new(shape.0, shape.1);
            let b = (cg.r.view(), cg.r_image.view());
            let accuracy = (system.accuracy, system.most_left);
            low_rank.begin(approximation, &mut curved, b, accuracy, &mut run.step)?;
            run.iteration = Iteration::Preconditioned(Box::new((low_rank, curved)));
        } else {
            cg.begin(system.accuracy, system.most_left, &mut run.step)?;
        }
    }
    Ok(runs)
}

impl Run {
    /// Gets the next product ready; `false` if there is nothing left to gain.
    fn advance<L: Likelihood>(&mut self, system: &LinearSystem<'_, L>) -> Result<bool> {
        match &mut self.iteration {
            Iteration::Plain(cg) => cg.advance(system.likelihood, system.curvature, &mut self.step),
            Iteration::Preconditioned(both) => both.0.advance(&both.1),
        }
    }

    /// Goes on, once the product is there.
    fn turn(&mut self, approximation: Option<&LowRankPrior>) -> Result<()> {
        match (&mut self.iteration, approximation) {
            (Iteration::Plain(cg), _) => cg.turn(),
            (Iteration::Preconditioned(both), Some(approximation)) => {
                let (cg, curved) = both.as_mut();
                cg.turn(approximation, curved, &mut self.step)
            }
            (Iteration::Preconditioned(_), None) => Ok(()),
        }
    }

    /// What is multiplied, and where the product goes.
    fn product(&mut self) -> (&Array2<f64>, &mut Array2<f64>) {
        match &mut self.iteration {
            Iteration::Plain(cg) => (&cg.r, &mut cg.r_image),
            Iteration::Preconditioned(both) => (&both.0.root_p, &mut both.0.image),
        }
    }

    fn finish(self) -> (Step, SystemInfo) {
        let info = match &self.iteration {
            Iteration::Plain(cg) => {
                SystemInfo { steps: cg.steps(), converged: cg.is_done(), residual: cg.residual_norm() }
            }
            Iteration::Preconditioned(both) => {
                let cg = &both.0;
                SystemInfo { steps: cg.steps(), converged: cg.is_done(), residual: cg.residual_norm() }
            }
        };
        (self.step, info)
    }
}

/// The products of the given systems, side by side in one.
fn multiply(
    context: &Context,
    work: &mut Workspace,
    prior: &JointPrior,
    runs: &mut [Run],
    active: &[usize],
) -> Result<()> {
    if let [k] = active {
        let (s, out) = runs[*k].product();
        return prior.apply(context, work, out.view_mut(), s.view());
    }
    let (n, classes) = (prior.points(), prior.classes());
    let shape = (n, classes * active.len());
    if active.is_empty() {
        return Ok(());
    }
    let (mut together, mut product) = (work.take(shape.0 * shape.1), work.take(shape.0 * shape.1));
    let mut all = || {
        for (place, &k) in active.iter().enumerate() {
            let s = runs[k].product().0.view();
            put_beside(&mut together, row_major("r", &s)?, classes, place, active.len());
        }
        prior.apply(context, work, view_mut(shape, &mut product)?, view(shape, &together)?)?;
        for (place, &k) in active.iter().enumerate() {
            let mut out = runs[k].product().1.view_mut();
            take_from_beside(row_major_mut("K̃r", &mut out)?, &product, classes, place, active.len());
        }
        Ok(())
    };
    let done = all();
    work.give(together);
    work.give(product);
    done
}
