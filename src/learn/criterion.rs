//! Ψ as a function of the logarithms of the hyperparameters, and how accurate it is when.

use super::checkpoint::Checkpoint;
use super::learner::{Evaluation, LearnOptions};
use super::optimiser::Objective;
use super::parameters::ParameterLayout;
use crate::context::{Context, Progress};
use crate::cv::{CrossValidation, CvOptions, gradient};
use crate::data::Inputs;
use crate::error::{Error, Result};
use crate::kernel::Precision;
use crate::model::{FitOptions, ModelSpec};
use crate::prior::JointPrior;
use crate::solve::SolveParams;
use std::time::{Duration, Instant};

/// How accurate evaluations are: loose at first, and more so only when there is nothing left to gain.
#[derive(Debug, Clone, Copy)]
struct Level {
    /// max|α + g| of the fits is at most so many times what was asked for.
    fits: f64,
    /// The error of the gradient is at most about so many times what was asked for.
    gradient: f64,
    /// Steps that gain less than so many times the tolerance do not count.
    tolerance: f64,
}

const LEVELS: [Level; 3] = [
    Level { fits: 10.0, gradient: 100.0, tolerance: 10.0 },
    Level { fits: 1.0, gradient: 10.0, tolerance: 1.0 },
    Level { fits: 1.0, gradient: 1.0, tolerance: 1.0 },
];
/// The level at which learning ends, unless it gets stuck there.
const LAST_LEVEL: usize = 1;
/// Kernel matrices are kept in single precision where no more accuracy than this is asked for, and where the error is at
/// most so large beside I.
const SINGLE_ACCURACY: f64 = 1e-4;
const SINGLE_ERROR: f64 = 1e-2;

/// With fewer points than this, evaluations take no time worth saving: products are not rough then, for example, and learning
/// goes on for as long as there is anything to gain.
const MANY_POINTS: usize = 1000;

/// A slope is seen where the error of the gradient is at most about so many times as large: what is known of the error is a
/// bound, and mostly far above the error itself.
const SEEN: f64 = 10.0;
/// Slopes get smaller on the way, by about so much from one evaluation to the next. With many points, evaluations are as
/// accurate at once as such a slope needs: that takes fewer products than to make them twice (on satimage with a kernel for
/// every class, a tenth less).
const SMALLER: f64 = 0.3;

/// With many points, a step need not count that lowers Ψ by less than so much for every hyperparameter, or by less than so
/// many times the tolerance, whichever is less. Ψ is a log likelihood: chance alone lowers its minimum by about half a unit
/// for each of them. On nine data sets learning took 10 to 40 % less time, and log loss on test points was as often lower as
/// higher.
const NEGLIGIBLE_GAIN: f64 = 0.05;
const MOST_TOLERANCES: f64 = 10.0;

/// What is learned, from whatever points.
pub(super) struct Task<'a> {
    pub context: &'a Context,
    pub spec: &'a ModelSpec,
    pub layout: &'a ParameterLayout,
    pub options: &'a LearnOptions,
    /// Number of all points.
    pub points: usize,
    pub begun: Instant,
}

impl Task<'_> {
    /// The model that folds of so many of the points are fitted with. What is learned is to suit all points, so widths are
    /// carried from there to the points that folds keep: else two folds would be blamed for what three do better.
    fn spec_of_folds(&self, logarithms: &[f64], points: usize, folds: usize) -> Result<ModelSpec> {
        let kept = points as f64 * (1.0 - 1.0 / folds as f64);
        let carried = self.layout.for_share(self.spec, logarithms, kept / self.points as f64);
        self.layout.with_logarithms(self.spec, &carried)
    }

    /// How the matrices of some hyperparameters are kept: in single precision, for half the memory and less time, where
    /// nobody can tell the difference; and whether products may be rough, which they may be for the same reason.
    pub(super) fn precision(&self, spec: &ModelSpec, x: &Inputs) -> Result<(Precision, bool)> {
        let given = self.options.cv;
        if given.accuracy < SINGLE_ACCURACY {
            return Ok((given.fit.precision, false));
        }
        // Rounding adds a matrix of random entries to K; its largest eigenvalue goes with √n, and is to be small beside I.
        let means = spec.covariances.iter().map(|covariance| covariance.mean_variance(x, None));
        let means = means.collect::<Result<Vec<_>>>()?;
        let largest = spec.blocks.iter().map(|block| block.variance * means[block.matrix]).fold(0.0, f64::max);
        let error = f64::from(f32::EPSILON) * largest * (x.rows() as f64).sqrt();
        let rough = x.rows() >= MANY_POINTS;
        Ok(if error <= SINGLE_ERROR { (Precision::Single, rough) } else { (given.fit.precision, false) })
    }
}

/// Ψ as a function of the logarithms.
pub(super) struct Criterion<'a> {
    task: &'a Task<'a>,
    x: &'a Inputs,
    cv: &'a mut CrossValidation,
    /// Which of the [`LEVELS`] evaluations are at, and at which learning ends unless it gets stuck there.
    level: usize,
    last_level: usize,
    /// The prior of the last evaluation, where its kernel matrices can be used again, and how these are kept.
    prior: Option<(JointPrior, Precision)>,
    /// Time of evaluations that were made before a stop.
    before: Duration,
    checkpoint: Option<Checkpoint>,
    /// Why the last checkpoint could not be written.
    pub checkpoint_problem: Option<Error>,
    /// The lowest value, and where.
    pub best: Option<(f64, Vec<f64>)>,
    pub history: Vec<Evaluation>,
}

impl<'a> Criterion<'a> {
    /// Ψ on all points, some evaluations of which may have been made before.
    pub(super) fn new(
        task: &'a Task<'a>,
        x: &'a Inputs,
        cv: &'a mut CrossValidation,
        checkpoint: Option<Checkpoint>,
    ) -> Self {
        let before = checkpoint.as_ref().map_or(Duration::ZERO, Checkpoint::elapsed);
        let (best, history) = (None, Vec::new());
        let (level, last_level, prior, checkpoint_problem) = (0, LAST_LEVEL, None, None);
        Self { task, x, cv, level, last_level, prior, before, checkpoint, checkpoint_problem, best, history }
    }

    /// Ψ on a part of the points, to begin with: only as accurate as at first, or as its slopes need.
    pub(super) fn of_a_part(task: &'a Task<'a>, x: &'a Inputs, cv: &'a mut CrossValidation) -> Self {
        Self { last_level: 0, ..Self::new(task, x, cv, None) }
    }

    /// The prior at some hyperparameters.
    fn prior(&mut self, spec: &ModelSpec, precision: Precision) -> Result<JointPrior> {
        match self.prior.take() {
            Some((mut prior, kept)) if kept == precision && self.task.layout.keeps_matrices() => {
                prior.set_variances(spec.blocks.iter().map(|block| block.variance), spec.intercept_variance)?;
                Ok(prior)
            }
            _ => spec.prior_for_folds(self.task.context, self.x, precision, self.cv.folds().count()),
        }
    }

    /// Adds the penalty of a normal prior on the logarithms.
    fn penalise(&self, logarithms: &[f64], value: &mut f64, gradient: &mut [f64]) {
        for ((log, gradient), (mean, deviation)) in logarithms.iter().zip(gradient).zip(&self.task.options.prior) {
            let standard = (log - mean) / deviation;
            *value += 0.5 * standard * standard;
            *gradient += standard / deviation;
        }
    }

    /// Takes an evaluation down, and returns what the optimiser needs.
    fn take_down(&mut self, evaluation: Evaluation) -> (f64, Vec<f64>) {
        let (value, gradient) = (evaluation.value, evaluation.gradient.clone());
        if self.best.as_ref().is_none_or(|(lowest, _)| value < *lowest) {
            self.best = Some((value, evaluation.logarithms.clone()));
        }
        self.history.push(evaluation);
        let slope = largest(&gradient);
        self.task.context.report(Progress::Evaluation {
            evaluation: self.history.len(),
            points: self.x.rows(),
            value,
            slope,
        });
        (value, gradient)
    }
}

impl Objective for Criterion<'_> {
    fn evaluate(&mut self, logarithms: &[f64]) -> Result<(f64, Vec<f64>)> {
        self.task.context.check()?;
        if let Some(checkpoint) = &mut self.checkpoint
            && let Some(evaluation) = checkpoint.recall(logarithms, self.cv)?
        {
            return Ok(self.take_down(evaluation));
        }
        let begun = Instant::now();
        let spec = self.task.spec_of_folds(logarithms, self.x.rows(), self.cv.folds().count())?;
        let (precision, rough) = self.task.precision(&spec, self.x)?;
        let mut prior = self.prior(&spec, precision)?;
        let kernel_time = begun.elapsed();
        let (given, level) = (self.task.options.cv, LEVELS[self.level]);
        let solve = SolveParams { tol: level.fits * given.fit.solve.tol, ..given.fit.solve };
        let mut options = CvOptions { fit: FitOptions { solve, ..given.fit }, ..given };
        let smaller = if self.x.rows() >= MANY_POINTS { SMALLER } else { 1.0 };
        let of_last = self.history.last().map_or(f64::INFINITY, |last| smaller * accuracy_to_see(last));
        options.accuracy = (level.gradient * given.accuracy).min(of_last).max(given.accuracy);
        let quiet = self.task.context.without_listener().with_rough_products(rough);
        let mut evaluation = Evaluation { kernel_time, ..Evaluation::new(logarithms) };
        loop {
            let found = self.cv.evaluate(&quiet, &mut prior, &options, true)?;
            let gradient_begun = Instant::now();
            let f = found.f.unwrap_or_default();
            evaluation.value = found.value;
            evaluation.gradient = self.task.layout.gradient(&gradient(self.task.context, &prior, &found.e, &f)?);
            self.penalise(logarithms, &mut evaluation.value, &mut evaluation.gradient);
            evaluation.converged = found.info.converged;
            evaluation.products += found.info.products;
            evaluation.fold_time += found.info.time;
            evaluation.gradient_time += gradient_begun.elapsed();
            // Near the end of a flat valley slopes are far smaller than Ψ, and errors would look like slopes and curvature.
            let needed = accuracy_to_see(&evaluation);
            if options.accuracy <= needed.max(given.accuracy) || !evaluation.converged {
                break;
            }
            options.accuracy = (0.5 * needed).max(given.accuracy);
        }
        evaluation.at = self.before + self.task.begun.elapsed();
        self.prior = Some((prior, precision));
        let told = self.take_down(evaluation);
        if let Some(checkpoint) = &mut self.checkpoint
            && let Err(problem) = checkpoint.keep(&self.history, self.cv)
        {
            // A path that never worked is a mistake to be told at once; a disk that is full by now is no reason to lose all.
            if !checkpoint.has_worked() {
                return Err(problem);
            }
            self.checkpoint_problem = Some(problem);
        }
        Ok(told)
    }

    fn tolerance(&self) -> f64 {
        let asked = self.task.options.tolerance;
        let negligible = match self.history.last() {
            // What a part of the points tells is to be as accurate as what all of them tell: they begin there.
            Some(last) if self.last_level > 0 && self.x.rows() >= MANY_POINTS => {
                NEGLIGIBLE_GAIN * self.task.layout.len() as f64 / last.value.abs()
            }
            _ => 0.0,
        };
        LEVELS[self.level].tolerance * negligible.max(asked).min(MOST_TOLERANCES * asked)
    }

    fn refine(&mut self, stuck: bool) -> bool {
        let last = if stuck && self.last_level > 0 { LEVELS.len() - 1 } else { self.last_level };
        let finer = self.level < last;
        if finer {
            self.level += 1;
            if stuck {
                // What seemed lowest may have been an error.
                self.best = None;
            }
        }
        finer
    }
}

/// The error of the gradient, as a share of Ψ, through which its slope is still seen.
fn accuracy_to_see(evaluation: &Evaluation) -> f64 {
    SEEN * largest(&evaluation.gradient) / evaluation.value.abs()
}

/// The largest entry, whatever its sign.
fn largest(gradient: &[f64]) -> f64 {
    gradient.iter().fold(0.0, |most, g| most.max(g.abs()))
}
