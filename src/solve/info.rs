//! What every solver takes and gives.

use crate::error::{Error, Result};
use ndarray::Array2;
use std::time::Duration;

/// Whether Newton's systems are preconditioned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PreconditionerUse {
    /// Where a trial says that it saves work.
    #[default]
    Auto,
    /// From the first system on, where the prior allows it.
    On,
    /// Never.
    Off,
}

/// When a solver stops, and how it goes about its steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SolveParams {
    /// Stop when max|α + g| is at most this.
    pub tol: f64,
    /// Largest number of outer steps (k₁ in seed 000).
    pub max_steps: usize,
    /// Largest number of inner steps for one linear system (k₂ in seed 000).
    pub max_inner_steps: usize,
    /// Largest number of products with K̃.
    pub max_products: usize,
    /// Accuracy η of the first systems; later ones are solved as well as the progress warrants.
    pub first_forcing: f64,
    /// Pairs of steps and gradients that L-BFGS keeps. Its first metric knows most of what more of them would say: patents
    /// with a tree (521 classes, v = 100) took 156 products and 24 s with 4 pairs, 179 and 40 s with 10.
    pub pairs: usize,
    /// Whether Newton's systems are preconditioned.
    pub preconditioner: PreconditionerUse,
}

impl Default for SolveParams {
    fn default() -> Self {
        Self {
            tol: 1e-3,
            max_steps: 1000,
            max_inner_steps: 500,
            max_products: 300,
            first_forcing: 0.5,
            pairs: 4,
            preconditioner: PreconditionerUse::Auto,
        }
    }
}

impl SolveParams {
    /// Fails where a setting makes no sense.
    pub fn check(&self) -> Result<()> {
        if !(self.tol > 0.0 && self.tol.is_finite()) {
            return Err(Error::InvalidParameter { name: "tol", value: self.tol, requirement: "positive and finite" });
        }
        if !(self.first_forcing > 0.0 && self.first_forcing < 1.0) {
            let requirement = "between 0 and 1";
            return Err(Error::InvalidParameter { name: "first_forcing", value: self.first_forcing, requirement });
        }
        if self.pairs == 0 {
            return Err(Error::InvalidParameter { name: "pairs", value: 0.0, requirement: "at least 1" });
        }
        Ok(())
    }
}

/// Where a solver stood after an outer step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TracePoint {
    /// Since the solver began.
    pub time: Duration,
    /// Products with K̃ so far.
    pub products: usize,
    /// Φ.
    pub objective: f64,
    /// max|α + g|.
    pub residual: f64,
}

/// How a fit went.
#[derive(Debug, Clone, PartialEq)]
pub struct SolveInfo {
    /// The name of the solver.
    pub solver: &'static str,
    /// Whether max|α + g| ≤ tol was reached, with u = K̃α computed afresh.
    pub converged: bool,
    /// Outer steps: Newton steps, or those of L-BFGS.
    pub steps: usize,
    /// Those of Newton's method among them.
    pub newton_steps: usize,
    /// Steps of the inner iteration, all told.
    pub inner_steps: usize,
    /// Products with K̃.
    pub products: usize,
    /// Φ at the end.
    pub objective: f64,
    /// max|α + g| at the end.
    pub residual: f64,
    /// Rank of the preconditioner at the end; 0 where none was used.
    pub preconditioner_rank: usize,
    /// What the products spent on the way between the functions of the prior and the classes.
    pub mixing_time: Duration,
    /// One entry for every outer step.
    pub trace: Vec<TracePoint>,
}

impl SolveInfo {
    /// Adds what another solver did before this one.
    pub(crate) fn add_before(&mut self, before: &Self) {
        let time = before.trace.last().map_or(Duration::ZERO, |last| last.time);
        let later = |point: &TracePoint| TracePoint {
            time: time + point.time,
            products: before.products + point.products,
            ..*point
        };
        self.trace = before.trace.iter().copied().chain(self.trace.iter().map(later)).collect();
        self.steps += before.steps;
        self.newton_steps += before.newton_steps;
        self.inner_steps += before.inner_steps;
        self.products += before.products;
        self.mixing_time += before.mixing_time;
    }
}

/// The minimum of Φ.
#[derive(Debug, Clone)]
pub struct Solution {
    /// α, n × C; its rows sum to zero.
    pub alpha: Array2<f64>,
    /// u = K̃α.
    pub u: Array2<f64>,
    /// How it went.
    pub info: SolveInfo,
}
