//! Many linear systems (I + W K̃) x = b at once: one for every fold of a cross-validation, each with its own W, right-hand
//! side and accuracy. All that are not done yet share every product.

use super::{ConjugateGradients, Step};
use crate::context::Context;
use crate::data::{check_shape, row_major, row_major_mut, view, view_mut};
use crate::error::Result;
use crate::likelihood::Likelihood;
use crate::parallel::part_len;
use crate::prior::JointPrior;
use crate::workspace::Workspace;
use ndarray::{Array2, ArrayView2};
use rayon::prelude::*;

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
}

/// How one system went.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SystemInfo {
    /// Steps, each with one product.
    pub steps: usize,
    /// Whether the accuracy was reached.
    pub converged: bool,
    /// The norm of what is left of b, in the norm of K̃.
    pub residual: f64,
}

/// Solves all systems, to the accuracy of each, in at most `max_steps` steps. A system that is done takes no further part
/// in the products. Every solution comes with its image under K̃.
pub fn solve_systems<L: Likelihood>(
    context: &Context,
    work: &mut Workspace,
    prior: &JointPrior,
    systems: &[LinearSystem<'_, L>],
    max_steps: usize,
) -> Result<Vec<(Step, SystemInfo)>> {
    let shape = (prior.points(), prior.classes());
    let mut states = Vec::with_capacity(systems.len());
    for system in systems {
        check_shape("the rows of a right-hand side must be the points", shape.0, system.b.nrows())?;
        check_shape("the columns of a right-hand side must be the classes", shape.1, system.b.ncols())?;
        let mut cg = ConjugateGradients::new(shape.0, shape.1);
        cg.r.assign(&system.b);
        states.push((cg, Step::zeros(shape.0, shape.1)));
    }
    let mut active: Vec<usize> = (0..systems.len()).collect();
    multiply(context, work, prior, &mut states, &active)?;
    for (system, (cg, step)) in systems.iter().zip(&mut states) {
        cg.begin(system.accuracy, step)?;
    }
    let mut converged = vec![false; systems.len()];
    for _ in 0..max_steps {
        let mut going = Vec::with_capacity(active.len());
        for &k in &active {
            let (cg, step) = &mut states[k];
            if cg.advance(systems[k].likelihood, systems[k].curvature, step)? {
                going.push(k);
            } else {
                converged[k] = true;
            }
        }
        active = going;
        if active.is_empty() {
            break;
        }
        multiply(context, work, prior, &mut states, &active)?;
        for &k in &active {
            states[k].0.turn()?;
        }
    }
    let info = |(k, (cg, step)): (usize, (ConjugateGradients, Step))| {
        let info = SystemInfo { steps: cg.steps(), converged: converged[k], residual: cg.residual_norm() };
        (step, info)
    };
    Ok(states.into_iter().enumerate().map(info).collect())
}

/// K̃r for the given systems, side by side in one product.
fn multiply(
    context: &Context,
    work: &mut Workspace,
    prior: &JointPrior,
    states: &mut [(ConjugateGradients, Step)],
    active: &[usize],
) -> Result<()> {
    if let [k] = active {
        let cg = &mut states[*k].0;
        return prior.apply(context, work, cg.r_image.view_mut(), cg.r.view());
    }
    let (n, classes) = (prior.points(), prior.classes());
    let shape = (n, classes * active.len());
    if active.is_empty() {
        return Ok(());
    }
    let (mut together, mut product) = (work.take(shape.0 * shape.1), work.take(shape.0 * shape.1));
    let mut all = || {
        for (place, &k) in active.iter().enumerate() {
            copy_in(&mut together, &states[k].0.r, shape.1, place)?;
        }
        prior.apply(context, work, view_mut(shape, &mut product)?, view(shape, &together)?)?;
        for (place, &k) in active.iter().enumerate() {
            copy_out(&mut states[k].0.r_image, &product, shape.1, place)?;
        }
        Ok(())
    };
    let done = all();
    work.give(together);
    work.give(product);
    done
}

/// Copies an array to its place among several side by side.
fn copy_in(together: &mut [f64], one: &Array2<f64>, width: usize, place: usize) -> Result<()> {
    let (n, classes) = one.dim();
    let rows = part_len(n);
    let one = one.view();
    let one = row_major("r", &one)?;
    together.par_chunks_mut(rows * width).zip(one.par_chunks(rows * classes)).for_each(|(together, one)| {
        for (together, one) in together.chunks_mut(width).zip(one.chunks(classes)) {
            together[place * classes..(place + 1) * classes].copy_from_slice(one);
        }
    });
    Ok(())
}

/// The way back.
fn copy_out(one: &mut Array2<f64>, together: &[f64], width: usize, place: usize) -> Result<()> {
    let (n, classes) = one.dim();
    let rows = part_len(n);
    let mut one = one.view_mut();
    let one = row_major_mut("K̃r", &mut one)?;
    one.par_chunks_mut(rows * classes).zip(together.par_chunks(rows * width)).for_each(|(one, together)| {
        for (one, together) in one.chunks_mut(classes).zip(together.chunks(width)) {
            one.copy_from_slice(&together[place * classes..(place + 1) * classes]);
        }
    });
    Ok(())
}
