//! Ψ, and what its gradient needs of every fold.

use super::Folds;
use super::fold::{FINEST, FoldResult, FoldState, in_place};
use super::meeting::side_by_side;
use super::shuffled::shuffled;
use crate::context::Context;
use crate::data::{Target, Targets, check_shape};
use crate::error::Result;
use crate::model::FitOptions;
use crate::prior::JointPrior;
use crate::solve::{LowRankPrior, PreconditionerUse, SolveParams, Solver};
use crate::workspace::Workspace;
use ndarray::{Array1, Array2};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The way through the folds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FoldMethod {
    /// What was measured to be faster for such a kernel.
    #[default]
    Auto,
    /// All folds side by side, in place.
    Batched,
    /// One fold after the other, on shuffled kernel matrices.
    Shuffled,
    /// One fold after the other, in place; for the exact solver and for tests.
    InPlace,
}

/// How Ψ is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CvOptions {
    /// How the fits of the folds are made.
    pub fit: FitOptions,
    /// The way through the folds.
    pub method: FoldMethod,
    /// Where the gradient is computed, fits and adjoint systems are carried on until its error is below about this share of
    /// Ψ. The error of Ψ itself is then of second order.
    pub accuracy: f64,
}

impl Default for CvOptions {
    fn default() -> Self {
        Self { fit: FitOptions::default(), method: FoldMethod::Auto, accuracy: 1e-3 }
    }
}

/// From so many columns on a product is bound by arithmetic, and gains nothing from those of other folds.
const WIDE: usize = 32;
/// From so many points on a kernel matrix does not stay in the cache of a core. Smaller ones are multiplied in less time than
/// folds take to meet.
const LARGE: usize = 1000;

impl CvOptions {
    /// The solver of a fold, and its parameters. Preconditioners are used if asked for only: fits that start near their end
    /// are short, and every one would try anew. Figures are in `benches/results/fit.md`.
    pub(super) fn solver(&self, context: &Context, prior: &JointPrior) -> (Solver, SolveParams) {
        let (solver, pairs, _) = self.fit.solver.choose(context, prior, self.fit.solve.pairs);
        let preconditioner = match self.fit.solve.preconditioner {
            PreconditionerUse::Auto => PreconditionerUse::Off,
            named => named,
        };
        (solver, SolveParams { pairs, preconditioner, ..self.fit.solve })
    }

    /// The way through the folds that is taken.
    fn choose(&self, prior: &JointPrior) -> FoldMethod {
        match self.method {
            FoldMethod::Auto if self.fit.solver == Solver::Exact => FoldMethod::InPlace,
            FoldMethod::Auto => {
                // Columns that one matrix is multiplied with: thin products are bound by memory, which folds can share.
                let columns = prior.mixing().functions().div_ceil(prior.blocks().matrices().len().max(1));
                let shares = columns < WIDE && prior.points() >= LARGE;
                if shares { FoldMethod::Batched } else { FoldMethod::Shuffled }
            }
            named => named,
        }
    }
}

/// How an evaluation went.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CvInfo {
    /// The way through the folds.
    pub method: FoldMethod,
    /// Products with K̃, or its corner, of all folds.
    pub products: usize,
    /// Whether every fold reached its accuracy.
    pub converged: bool,
    /// What it took.
    pub time: Duration,
}

/// Ψ with E and F of every fold.
#[derive(Debug)]
pub struct CvResult {
    /// Ψ.
    pub value: f64,
    /// E_k, n × C each.
    pub e: Vec<Array2<f64>>,
    /// F_k, where they were asked for.
    pub f: Option<Vec<Array2<f64>>>,
    /// How it went.
    pub info: CvInfo,
}

/// A cross-validation: targets and folds, and where every fold stands from one evaluation to the next.
#[derive(Debug)]
pub struct CrossValidation {
    targets: Targets,
    folds: Folds,
    states: Vec<Option<FoldState>>,
}

impl CrossValidation {
    /// A cross-validation of the given targets. Points of which only a set of classes is known take no part: their
    /// likelihood has more than one maximum, and Ψ would not be a function of the hyperparameters alone.
    pub fn new(targets: Targets, folds: Folds) -> Result<Self> {
        check_shape("there must be a fold for every point", targets.points(), folds.points())?;
        let targets = known(targets)?;
        let states = vec![None; folds.count()];
        Ok(Self { targets, folds, states })
    }

    /// The targets.
    #[must_use]
    pub fn targets(&self) -> &Targets {
        &self.targets
    }

    /// The folds.
    #[must_use]
    pub fn folds(&self) -> &Folds {
        &self.folds
    }

    /// Where the next evaluation starts, for every fold.
    #[must_use]
    pub fn states(&self) -> &[Option<FoldState>] {
        &self.states
    }

    /// Starts the next evaluation from the given states.
    pub fn set_states(&mut self, states: Vec<Option<FoldState>>) -> Result<()> {
        check_shape("there must be a state for every fold", self.folds.count(), states.len())?;
        for array in states.iter().flatten().flat_map(|state| std::iter::once(&state.alpha).chain(&state.adjoint)) {
            check_shape("the rows of a starting α must be the points", self.targets.points(), array.nrows())?;
            check_shape("the columns of a starting α must be the classes", self.targets.classes(), array.ncols())?;
        }
        self.states = states;
        Ok(())
    }

    /// Where a fit to all points may start, once there was an evaluation: the mean of the α that folds have, every point being
    /// in all of these but one.
    #[must_use]
    pub fn start_for_all(&self) -> Option<Array2<f64>> {
        let alphas: Vec<_> = self.states.iter().flatten().map(|state| &state.alpha).collect();
        let mut start = Array2::zeros(alphas.first()?.raw_dim());
        alphas.iter().for_each(|alpha| start += *alpha);
        start /= (alphas.len() as f64 - 1.0).max(1.0);
        Some(start)
    }

    /// How small max|α + g| of a fit to all points has to be for it to be as accurate as those of the folds were, where Ψ
    /// was to be right to this share of it; `None` where no evaluation has told. Where variances are large, a fit whose
    /// gradient seems small may still be far from its end.
    #[must_use]
    pub fn tol_for_all(&self, accuracy: f64) -> Option<f64> {
        let paces = self.states.iter().flatten().filter_map(|state| state.pace);
        paces.map(|pace| (pace.enough * accuracy).max(FINEST)).min_by(f64::total_cmp)
    }

    /// Ψ at the hyperparameters of the prior, and E and F of every fold if the gradient is wanted. Fits start from where
    /// the last evaluation ended. The prior is as it was when this returns.
    pub fn evaluate(
        &mut self,
        context: &Context,
        prior: &mut JointPrior,
        options: &CvOptions,
        wants_gradient: bool,
    ) -> Result<CvResult> {
        check_shape("the points of the prior must be those of the targets", self.targets.points(), prior.points())?;
        let begun = Instant::now();
        let method = options.choose(prior);
        let results = match method {
            FoldMethod::Shuffled => self.one_after_the_other(context, prior, options, wants_gradient)?,
            FoldMethod::InPlace => self.in_place(context, prior, options, wants_gradient)?,
            FoldMethod::Batched | FoldMethod::Auto => self.batched(context, prior, options, wants_gradient)?,
        };
        let info = CvInfo {
            method,
            products: results.iter().map(|result| result.products).sum(),
            converged: results.iter().all(|result| result.converged),
            time: begun.elapsed(),
        };
        let value = results.iter().map(|result| result.value).sum();
        self.states = results.iter().enumerate().map(|(k, result)| Some(self.state(k, result))).collect();
        let (e, f): (Vec<_>, Vec<_>) = results.into_iter().map(|result| (result.e, result.f)).unzip();
        Ok(CvResult { value, e, f: f.into_iter().collect(), info })
    }

    /// Where the next evaluation of a fold starts.
    fn state(&self, fold: usize, result: &FoldResult) -> FoldState {
        // F is minus the adjoint solution on the points kept.
        let adjoint = result.f.as_ref().map(|f| {
            let mut x = -f;
            self.folds.held_out(fold).into_iter().for_each(|point| x.row_mut(point).fill(0.0));
            x
        });
        FoldState { alpha: result.e.clone(), adjoint, pace: result.pace }
    }

    fn one_after_the_other(
        &self,
        context: &Context,
        prior: &mut JointPrior,
        options: &CvOptions,
        wants_gradient: bool,
    ) -> Result<Vec<FoldResult>> {
        context.install(|| {
            (0..self.folds.count())
                .map(|k| {
                    let held_out = self.folds.held_out(k);
                    shuffled(context, prior, &self.targets, &held_out, self.states[k].as_ref(), options, wants_gradient)
                })
                .collect()
        })
    }

    fn in_place(
        &self,
        context: &Context,
        prior: &JointPrior,
        options: &CvOptions,
        wants_gradient: bool,
    ) -> Result<Vec<FoldResult>> {
        let fold = |k| self.fold_in_place(context, prior, k, None, options, wants_gradient);
        context.install(|| (0..self.folds.count()).map(fold).collect())
    }

    fn batched(
        &self,
        context: &Context,
        prior: &JointPrior,
        options: &CvOptions,
        wants_gradient: bool,
    ) -> Result<Vec<FoldResult>> {
        // One preconditioner for all folds; a fold of its own would make it again.
        let approximation = if options.fit.solve.preconditioner == PreconditionerUse::On {
            context
                .install(|| LowRankPrior::new(context, &mut Workspace::default(), prior, PreconditionerUse::On))?
                .map(Arc::new)
        } else {
            None
        };
        side_by_side(context, prior, self.folds.count(), |context, k| {
            self.fold_in_place(context, prior, k, approximation.as_ref(), options, wants_gradient)
        })
    }

    fn fold_in_place(
        &self,
        context: &Context,
        prior: &JointPrior,
        k: usize,
        approximation: Option<&Arc<LowRankPrior>>,
        options: &CvOptions,
        wants_gradient: bool,
    ) -> Result<FoldResult> {
        let is_held_out = |row: usize| self.folds.of_point()[row] == k;
        let parts = (&self.targets, is_held_out);
        in_place(context, prior, parts, self.states[k].as_ref(), approximation, options, wants_gradient)
    }
}

/// Targets in which points that may be of several classes have no weight.
fn known(targets: Targets) -> Result<Targets> {
    let uncertain = |row: usize| matches!(targets.of_point(row), Target::OneOf(_));
    if !(0..targets.points()).any(uncertain) {
        return Ok(targets);
    }
    let weight = |row: usize| if uncertain(row) { 0.0 } else { targets.weight(row) };
    let weights: Array1<f64> = (0..targets.points()).map(weight).collect();
    targets.with_weights(weights)
}
