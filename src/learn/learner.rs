//! Learning: Ψ as a function of the hyperparameters, and its minimum.

use super::checkpoint::{Checkpoint, fingerprint};
use super::criterion::{Criterion, Task};
use super::optimiser::{Curvature, MinimiserOptions, minimise};
use super::parameters::ParameterLayout;
use super::parts::{Beginning, Part, part, parts, start_from_part};
use crate::context::Context;
use crate::cv::{CrossValidation, CvOptions};
use crate::data::{Inputs, Targets, check_shape};
use crate::error::{Error, Result};
use crate::kernel::Precision;
use crate::model::{FitInfo, FitOptions, Model, ModelSpec};
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
    /// Learning ends when steps lower Ψ by less than this share of it; from 1000 points on also where that is by less than a
    /// twentieth for every hyperparameter, and than ten times this share.
    pub tolerance: f64,
    /// Learning begins with a part of the points, of so many at least; `None` to begin with all of them.
    pub smallest_part: Option<usize>,
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
            smallest_part: Some(SMALLEST_PART),
            bounds: Vec::new(),
            prior: Vec::new(),
            keep_on_interrupt: false,
            checkpoint: None,
        }
    }
}

/// On fewer points an evaluation takes so little time that there is nothing to gain by a part of them.
const SMALLEST_PART: usize = 1000;
/// How far a logarithm may go on a part. A few points may say that an input counts for nothing; where its width is next to
/// zero so is the slope, and all points together could not bring it back. Of 48 small problems with a width for each of two
/// inputs, 5 ended more than 0.2 % above where learning from all points did (16 as far below); with 10³, 8 did.
const RANGE_OF_PART: f64 = 4.605_170_185_988_092; // ln 10²
/// Evaluations on a part are made up to this number, whatever is asked for on all points: they take little time.
const PART_EVALUATIONS: usize = 40;

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

impl Evaluation {
    /// An evaluation of which nothing is known yet.
    pub(super) fn new(logarithms: &[f64]) -> Self {
        Self {
            logarithms: logarithms.to_vec(),
            value: f64::NAN,
            gradient: Vec::new(),
            products: 0,
            converged: false,
            kernel_time: Duration::ZERO,
            fold_time: Duration::ZERO,
            gradient_time: Duration::ZERO,
            at: Duration::ZERO,
        }
    }
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
    /// Why the last checkpoint could not be written, where earlier ones could.
    pub checkpoint_problem: Option<Error>,
    /// Where a fit to all points may start, near its end.
    pub start: Option<Array2<f64>>,
    /// max|α + g| at which a fit to all points is as accurate as those of the folds were.
    pub tol: Option<f64>,
    /// Whether such a fit begins with rough products, as those of the folds do: large kernel matrices in double precision
    /// come from memory in twice the time, and there is next to nothing left to do with them then.
    pub begins_roughly: bool,
}

impl Learned {
    /// Fits the model that was learned to all points, starting from the fits of the folds, and at least as accurate as
    /// these, by which it was judged.
    pub fn fit(
        &self,
        context: &Context,
        x: &Inputs,
        targets: Targets,
        options: &FitOptions,
    ) -> Result<(Model, FitInfo)> {
        let fit = |context: &Context, start, targets, options: &FitOptions| {
            self.spec.fit_further(context, x, targets, start, self.tol, options)
        };
        let start = self.start.as_ref().map(|start| start.view());
        if !self.begins_roughly || options.precision == Precision::Single {
            return fit(context, start, targets, options);
        }
        let rough = FitOptions { precision: Precision::Single, ..*options };
        let (begun, before) = fit(&context.with_rough_products(true), start, targets.clone(), &rough)?;
        let left = options.solve.max_products.saturating_sub(before.solve.products).max(1);
        let rest = FitOptions { solve: SolveParams { max_products: left, ..options.solve }, ..*options };
        let (model, mut info) = fit(context, Some(begun.alpha()), targets, &rest)?;
        info.add_before(&before);
        Ok((model, info))
    }
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
    let given = layout.logarithms(spec);
    let bounds: Vec<_> = match options.bounds.as_slice() {
        [] => given.iter().map(|log| (log - RANGE, log + RANGE)).collect(),
        given => given.to_vec(),
    };
    check_shape("there must be bounds for every hyperparameter", layout.len(), bounds.len())?;
    if !options.prior.is_empty() {
        check_shape("there must be a prior for every hyperparameter", layout.len(), options.prior.len())?;
    }
    let mut checkpoint = match &options.checkpoint {
        Some(path) => {
            // More evaluations may be asked for when the first ones did not suffice.
            let compared = LearnOptions { max_evaluations: 0, checkpoint: None, ..options.clone() };
            // What was evaluated with other widths in the folds is no part of this.
            let of_half = layout.for_share(spec, &given, 0.5);
            let told = format!("{spec:?} {layout:?} {bounds:?} {compared:?} {of_half:?}");
            Some(Checkpoint::open(path.clone(), fingerprint(x, cv, &told), cv)?)
        }
        None => None,
    };
    let task = Task { context, spec, layout, options, points: x.rows(), begun: Instant::now() };
    let recorded = checkpoint.as_ref().and_then(|checkpoint| checkpoint.beginning().cloned());
    let (beginning, mut interrupted) = match recorded {
        Some(recorded) => (recorded, false),
        None => begin(&task, x, cv, &bounds, given)?,
    };
    if let Some(checkpoint) = &mut checkpoint {
        checkpoint.begin_at(beginning.clone());
    }
    let mut logarithms = beginning.logarithms.clone();
    let (mut value, mut converged, mut history, mut checkpoint_problem) = (f64::NAN, false, Vec::new(), None);
    if !interrupted {
        let settings = MinimiserOptions { max_evaluations: options.max_evaluations, ..MinimiserOptions::default() };
        let mut criterion = Criterion::new(&task, x, cv, checkpoint);
        match minimise(&mut criterion, &logarithms, &bounds, &settings, beginning.curvature) {
            Ok(minimum) => converged = minimum.converged,
            Err(Error::Interrupted) if options.keep_on_interrupt && criterion.best.is_some() => interrupted = true,
            Err(error) => return Err(error),
        }
        if let Some(best) = criterion.best {
            (value, logarithms) = best;
        }
        (history, checkpoint_problem) = (criterion.history, criterion.checkpoint_problem);
    }
    let spec = layout.with_logarithms(spec, &logarithms)?;
    let stores_matrices = spec.covariances.iter().any(|covariance| covariance.is_pairwise());
    let begins_roughly = stores_matrices && task.precision(&spec, x)?.1;
    let (start, tol) = (cv.start_for_all(), cv.tol_for_all(options.cv.accuracy));
    Ok(Learned { spec, value, converged, interrupted, history, checkpoint_problem, start, tol, begins_roughly })
}

/// Learns from parts of the points, as far as that is of use, and tells where learning from all of them begins. `true` where
/// it was interrupted and what it has is to be kept.
fn begin(
    task: &Task<'_>,
    x: &Inputs,
    cv: &mut CrossValidation,
    bounds: &[(f64, f64)],
    given: Vec<f64>,
) -> Result<(Beginning, bool)> {
    let near = |(log, (lower, upper)): (&f64, &(f64, f64))| {
        (lower.max(log - RANGE_OF_PART).min(*upper), upper.min(log + RANGE_OF_PART).max(*lower))
    };
    let bounds: Vec<(f64, f64)> = given.iter().zip(bounds).map(near).collect();
    let mut beginning = Beginning { logarithms: given, ..Beginning::default() };
    let settings = MinimiserOptions { max_evaluations: PART_EVALUATIONS, ..MinimiserOptions::default() };
    let mut before: Option<Part> = None;
    let growth = |before: &Option<Part>, points: usize| {
        points as f64 / before.as_ref().map_or(1, |before| before.rows.len()) as f64
    };
    for every in parts(task.spec, x.rows(), task.options.smallest_part) {
        let Some(mut part) = part(x, cv, every) else { continue };
        if let Some(before) = &before {
            start_from_part(&mut part.cv, Some(&part.rows), before)?;
        }
        let known = beginning.curvature.times(growth(&before, part.rows.len()));
        let mut criterion = Criterion::of_a_part(task, &part.x, &mut part.cv);
        match minimise(&mut criterion, &beginning.logarithms, &bounds, &settings, known) {
            Ok(minimum) => beginning = Beginning { logarithms: minimum.x, curvature: minimum.curvature },
            // What goes wrong there need not go wrong on all points.
            Err(Error::NotFinite { .. } | Error::NotPositiveDefinite { .. }) => {
                beginning.curvature = Curvature::default();
            }
            Err(Error::Interrupted) if task.options.keep_on_interrupt && criterion.best.is_some() => {
                let logarithms = criterion.best.map_or(beginning.logarithms, |(_, logarithms)| logarithms);
                return Ok((Beginning { logarithms, ..Beginning::default() }, true));
            }
            Err(error) => return Err(error),
        }
        before = Some(part);
    }
    if let Some(before) = &before {
        start_from_part(cv, None, before)?;
    }
    beginning.curvature = beginning.curvature.times(growth(&before, x.rows()));
    Ok((beginning, false))
}
