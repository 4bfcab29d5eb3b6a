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
        row_major("a right-hand side", &system.b)?;
    }
    let mut iterations: Vec<(ConjugateGradients, Step)> =
        systems.iter().map(|_| (ConjugateGradients::new(shape.0, shape.1), Step::zeros(shape.0, shape.1))).collect();
    multiply_right_hand_sides(context, work, prior, systems, &mut iterations)?;
    let Some(approximation) = approximation else {
        let mut runs = Vec::with_capacity(systems.len());
        for (system, (cg, step)) in systems.iter().zip(&mut iterations) {
            cg.begin(system.accuracy, system.most_left, step)?;
            runs.push(Run::new(system.likelihood, system.curvature, step, Iteration::Plain(cg)));
        }
        run_systems(context, work, prior, &mut runs, max_steps)?;
        for (system, (cg, step)) in systems.iter().zip(&mut iterations) {
            cg.finish(system.likelihood, system.curvature, &system.b, step)?;
        }
        return Ok(iterations.into_iter().map(|(cg, step)| (step, cg.info())).collect());
    };
    let mut preconditioned = Vec::with_capacity(systems.len());
    for (system, (cg, mut step)) in systems.iter().zip(iterations) {
        let mut curved = Curved::new(context, approximation, system.likelihood, system.curvature)?;
        let mut low_rank = LowRankCg::new(shape.0, shape.1);
        let accuracy = (system.accuracy, system.most_left);
        low_rank.begin(approximation, &mut curved, (cg.r.view(), cg.r_image.view()), accuracy, &mut step)?;
        preconditioned.push((low_rank, curved, step));
    }
    let mut runs: Vec<_> = (systems.iter().zip(&mut preconditioned))
        .map(|(system, (cg, curved, step))| {
            let iteration = Iteration::Preconditioned { cg, curved, approximation };
            Run::new(system.likelihood, system.curvature, step, iteration)
        })
        .collect();
    run_systems(context, work, prior, &mut runs, max_steps)?;
    Ok(preconditioned.into_iter().map(|(cg, _, step)| (step, cg.info())).collect())
}

/// One system on its way.
pub(super) struct Run<'a, L: Likelihood> {
    likelihood: &'a L,
    curvature: &'a L::Curvature,
    step: &'a mut Step,
    iteration: Iteration<'a>,
}

/// An iteration that has begun.
pub(super) enum Iteration<'a> {
    Plain(&'a mut ConjugateGradients),
    Preconditioned { cg: &'a mut LowRankCg, curved: &'a mut Curved, approximation: &'a LowRankPrior },
}

/// Takes all systems to their accuracy, in at most `max_steps` steps: the one loop of Newton's method, which has one system
/// at a time, and of cross-validation. Nothing is allocated in it.
pub(super) fn run_systems<L: Likelihood>(
    context: &Context,
    work: &mut Workspace,
    prior: &JointPrior,
    runs: &mut [Run<'_, L>],
    max_steps: usize,
) -> Result<()> {
    let mut active: Vec<usize> = (0..runs.len()).collect();
    for _ in 0..max_steps {
        let mut advanced = Ok(());
        active.retain(|&k| match runs[k].advance() {
            Ok(going) => going,
            Err(error) => {
                advanced = Err(error);
                false
            }
        });
        advanced?;
        if active.is_empty() {
            break;
        }
        multiply(context, work, prior, runs, &active)?;
        active.iter().try_for_each(|&k| runs[k].turn())?;
    }
    Ok(())
}

impl<'a, L: Likelihood> Run<'a, L> {
    pub(super) fn new(
        likelihood: &'a L,
        curvature: &'a L::Curvature,
        step: &'a mut Step,
        iteration: Iteration<'a>,
    ) -> Self {
        Self { likelihood, curvature, step, iteration }
    }

    /// Gets the next product ready; `false` if there is nothing left to gain.
    fn advance(&mut self) -> Result<bool> {
        match &mut self.iteration {
            Iteration::Plain(cg) => cg.advance(self.likelihood, self.curvature, self.step),
            Iteration::Preconditioned { cg, curved, .. } => cg.advance(curved),
        }
    }

    /// Goes on, once the product is there.
    fn turn(&mut self) -> Result<()> {
        match &mut self.iteration {
            Iteration::Plain(cg) => cg.turn(),
            Iteration::Preconditioned { cg, curved, approximation } => cg.turn(approximation, curved, self.step),
        }
    }

    /// What is multiplied, and where the product goes.
    fn product(&mut self) -> (&Array2<f64>, &mut Array2<f64>) {
        match &mut self.iteration {
            Iteration::Plain(cg) => (&cg.r, &mut cg.r_image),
            Iteration::Preconditioned { cg, .. } => (&cg.root_p, &mut cg.image),
        }
    }
}

/// Copies all right-hand sides and computes their images.
fn multiply_right_hand_sides<L: Likelihood>(
    context: &Context,
    work: &mut Workspace,
    prior: &JointPrior,
    systems: &[LinearSystem<'_, L>],
    iterations: &mut [(ConjugateGradients, Step)],
) -> Result<()> {
    let mut runs = Vec::with_capacity(systems.len());
    for (system, (cg, step)) in systems.iter().zip(iterations) {
        cg.r.assign(&system.b);
        runs.push(Run::new(system.likelihood, system.curvature, step, Iteration::Plain(cg)));
    }
    let all: Vec<usize> = (0..runs.len()).collect();
    multiply(context, work, prior, &mut runs, &all)
}

/// The products of the given systems, side by side in one.
fn multiply<L: Likelihood>(
    context: &Context,
    work: &mut Workspace,
    prior: &JointPrior,
    runs: &mut [Run<'_, L>],
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
