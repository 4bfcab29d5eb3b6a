//! Learning: Ψ as a function of the hyperparameters, and its minimum.

use super::checkpoint::{Checkpoint, fingerprint};
use super::optimiser::{MinimiserOptions, Objective, minimise};
use super::parameters::ParameterLayout;
use crate::context::{Context, Progress};
use crate::cv::{CrossValidation, CvOptions, gradient};
use crate::data::{Inputs, check_shape};
use crate::error::{Error, Result};
use crate::kernel::Precision;
use crate::model::{FitOptions, ModelSpec};
use crate::prior::JointPrior;
use crate::solve::SolveParams;
use ndarray::Array2;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How hyperparameters are learned.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnOptions {
    /// How Ψ is computed; its fits are as accurate as this near the end.
    pub cv: CvOptions,
    /// Largest number of evaluations of Ψ.
    pub max_evaluations: usize,
    /// Learning ends when steps lower Ψ by less than this share of it.
    pub tolerance: f64,
    /// How far every logarithm may go, as (lower, upper); empty for the usual ones, a factor of 10⁶ to either side.
    pub bounds: Vec<(f64, f64)>,
    /// A normal prior on every logarithm, as (mean, standard deviation); empty for none (seed 000, section 9.4).
    pub prior: Vec<(f64, f64)>,
    /// Whether what has been learned so far is kept when the work is interrupted.
    pub keep_on_interrupt: bool,
    /// Where to keep the state, so that a run which was stopped, in whatever way, goes on where it was, to the same result.
    /// The file stays; whoever is done with it removes it.
    pub checkpoint: Option<PathBuf>,
}

impl Default for LearnOptions {
    fn default() -> Self {
        Self {
            cv: CvOptions::default(),
            max_evaluations: 60,
            tolerance: 1e-4,
            bounds: Vec::new(),
            prior: Vec::new(),
            keep_on_interrupt: false,
            checkpoint: None,
        }
    }
}

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
    Level { fits: 10.0, gradient: 30.0, tolerance: 30.0 },
    Level { fits: 1.0, gradient: 3.0, tolerance: 1.0 },
    Level { fits: 1.0, gradient: 0.3, tolerance: 1.0 },
];
/// The level at which learning ends, unless it gets stuck there.
const LAST_LEVEL: usize = 1;
/// Kernel matrices are kept in single precision where no more accuracy than this is asked for, and where the error is at
/// most so large beside I.
const SINGLE_ACCURACY: f64 = 1e-4;
const SINGLE_ERROR: f64 = 1e-2;
/// How far a logarithm goes by default.
const RANGE: f64 = 13.815_510_557_964_274; // ln 10⁶

/// One evaluation of Ψ.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// The logarithms of the hyperparameters.
    pub logarithms: Vec<f64>,
    /// Ψ, with the penalty of the prior on the hyperparameters if there is one.
    pub value: f64,
    /// Its gradient.
    pub gradient: Vec<f64>,
    /// Products with kernel matrices, of all folds.
    pub products: usize,
    /// Whether all fits reached their accuracy.
    pub converged: bool,
    /// Making the kernel matrices.
    pub kernel_time: Duration,
    /// The folds.
    pub fold_time: Duration,
    /// The derivatives.
    pub gradient_time: Duration,
    /// When it ended, since learning began.
    pub at: Duration,
}

/// What was learned.
#[derive(Debug)]
pub struct Learned {
    /// The model with its hyperparameters.
    pub spec: ModelSpec,
    /// Ψ there.
    pub value: f64,
    /// Whether learning ended because there was nothing left to gain.
    pub converged: bool,
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// Every evaluation.
    pub history: Vec<Evaluation>,
    /// Where a fit to all points may start, near its end.
    pub start: Option<Array2<f64>>,
}

/// Learns the hyperparameters of a model by minimising Ψ, from the values that it has.
pub fn learn(
    context: &Context,
    spec: &ModelSpec,
    layout: &ParameterLayout,
    x: &Inputs,
    cv: &mut CrossValidation,
    options: &LearnOptions,
) -> Result<Learned> {
    let start = layout.logarithms(spec);
    let bounds = match options.bounds.as_slice() {
        [] => start.iter().map(|log| (log - RANGE, log + RANGE)).collect(),
        given => given.to_vec(),
    };
    check_shape("there must be bounds for every hyperparameter", layout.len(), bounds.len())?;
    if !options.prior.is_empty() {
        check_shape("there must be a prior for every hyperparameter", layout.len(), options.prior.len())?;
    }
    let settings = MinimiserOptions { max_evaluations: options.max_evaluations, ..MinimiserOptions::default() };
    let checkpoint = match &options.checkpoint {
        Some(path) => {
            // More evaluations may be asked for when the first ones did not suffice.
            let compared = LearnOptions { max_evaluations: 0, checkpoint: None, ..options.clone() };
            let told = format!("{spec:?} {layout:?} {bounds:?} {compared:?}");
            Some(Checkpoint::open(path.clone(), fingerprint(x, cv, &told), cv)?)
        }
        None => None,
    };
    let before = checkpoint.as_ref().map_or(Duration::ZERO, Checkpoint::elapsed);
    let mut criterion = Criterion {
        context,
        spec,
        layout,
        x,
        cv: &mut *cv,
        options,
        level: 0,
        prior: None,
        begun: Instant::now(),
        before,
        checkpoint,
        best: None,
        history: Vec::new(),
    };
    let outcome = minimise(&mut criterion, &start, &bounds, &settings);
    let (converged, interrupted) = match outcome {
        Ok(minimum) => (minimum.converged, false),
        Err(Error::Interrupted) if options.keep_on_interrupt && criterion.best.is_some() => (false, true),
        Err(error) => return Err(error),
    };
    let (value, logarithms) = criterion.best.unwrap_or((f64::NAN, start));
    let spec = layout.with_logarithms(spec, &logarithms)?;
    let history = criterion.history;
    Ok(Learned { spec, value, converged, interrupted, history, start: cv.start_for_all() })
}

/// Ψ as a function of the logarithms.
struct Criterion<'a> {
    context: &'a Context,
    spec: &'a ModelSpec,
    layout: &'a ParameterLayout,
    x: &'a Inputs,
    cv: &'a mut CrossValidation,
    options: &'a LearnOptions,
    /// Which of the [`LEVELS`] evaluations are at.
    level: usize,
    /// The prior of the last evaluation, where its kernel matrices can be used again, and how these are kept.
    prior: Option<(JointPrior, Precision)>,
    begun: Instant,
    /// Time of evaluations that were made before a stop.
    before: Duration,
    checkpoint: Option<Checkpoint>,
    /// The lowest value at this accuracy, and where.
    best: Option<(f64, Vec<f64>)>,
    history: Vec<Evaluation>,
}

impl Criterion<'_> {
    /// The prior at some hyperparameters.
    fn prior(&mut self, spec: &ModelSpec, precision: Precision) -> Result<JointPrior> {
        match self.prior.take() {
            Some((mut prior, kept)) if kept == precision && self.layout.keeps_matrices() => {
                prior.set_variances(spec.blocks.iter().map(|block| block.variance), spec.intercept_variance)?;
                Ok(prior)
            }
            _ => self.context.install(|| spec.prior(self.context, self.x, precision)),
        }
    }

    /// How the matrices of some hyperparameters are kept: in single precision, for half the memory and less time, where
    /// nobody can tell the difference.
    fn precision(&self, spec: &ModelSpec) -> Result<Precision> {
        let given = self.options.cv;
        if given.accuracy < SINGLE_ACCURACY {
            return Ok(given.fit.precision);
        }
        // Rounding adds a matrix of random entries to K; its largest eigenvalue goes with √n, and is to be small beside I.
        let means = spec.covariances.iter().map(|covariance| covariance.mean_variance(self.x, None));
        let means = means.collect::<Result<Vec<_>>>()?;
        let largest = spec.blocks.iter().map(|block| block.variance * means[block.matrix]).fold(0.0, f64::max);
        let error = f64::from(f32::EPSILON) * largest * (self.x.rows() as f64).sqrt();
        Ok(if error <= SINGLE_ERROR { Precision::Single } else { given.fit.precision })
    }

    /// Adds the penalty of a normal prior on the logarithms.
    fn penalise(&self, logarithms: &[f64], value: &mut f64, gradient: &mut [f64]) {
        for ((log, gradient), (mean, deviation)) in logarithms.iter().zip(gradient).zip(&self.options.prior) {
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
        let slope = gradient.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
        self.context.report(Progress::Evaluation { evaluation: self.history.len(), value, slope });
        (value, gradient)
    }
}

impl Objective for Criterion<'_> {
    fn evaluate(&mut self, logarithms: &[f64]) -> Result<(f64, Vec<f64>)> {
        self.context.check()?;
        if let Some(checkpoint) = &mut self.checkpoint
            && let Some(evaluation) = checkpoint.recall(logarithms, self.cv)?
        {
            return Ok(self.take_down(evaluation));
        }
        let begun = Instant::now();
        let spec = self.layout.with_logarithms(self.spec, logarithms)?;
        let precision = self.precision(&spec)?;
        let mut prior = self.prior(&spec, precision)?;
        let kernel_time = begun.elapsed();
        let (given, level) = (self.options.cv, LEVELS[self.level]);
        let solve = SolveParams { tol: level.fits * given.fit.solve.tol, ..given.fit.solve };
        let accuracy = level.gradient * given.accuracy;
        let options = CvOptions { fit: FitOptions { solve, ..given.fit }, accuracy, ..given };
        let quiet = self.context.without_listener();
        let found = self.cv.evaluate(&quiet, &mut prior, &options, true)?;
        let gradient_begun = Instant::now();
        let f = found.f.unwrap_or_default();
        let mut gradient = self.layout.gradient(&gradient(self.context, &prior, &found.e, &f)?);
        let mut value = found.value;
        self.penalise(logarithms, &mut value, &mut gradient);
        self.prior = Some((prior, precision));
        let told = self.take_down(Evaluation {
            logarithms: logarithms.to_vec(),
            value,
            gradient,
            products: found.info.products,
            converged: found.info.converged,
            kernel_time,
            fold_time: found.info.time,
            gradient_time: gradient_begun.elapsed(),
            at: self.before + self.begun.elapsed(),
        });
        if let Some(checkpoint) = &mut self.checkpoint {
            checkpoint.keep(&self.history, self.cv)?;
        }
        Ok(told)
    }

    fn tolerance(&self) -> f64 {
        LEVELS[self.level].tolerance * self.options.tolerance
    }

    fn refine(&mut self, stuck: bool) -> bool {
        let last = if stuck { LEVELS.len() - 1 } else { LAST_LEVEL };
        let finer = self.level < last;
        if finer {
            self.level += 1;
            // What seemed lowest may have been an error.
            self.best = None;
        }
        finer
    }
}
