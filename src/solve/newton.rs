//! Newton's method for Φ (seed 000, Algorithm 3), over any prior, likelihood and way of solving its systems.

use super::line_search::line_search;
use super::{DirectionInfo, NewtonDirection, NewtonPoint, Step};
use crate::context::{Context, Progress};
use crate::data::{check_shape, row_major, row_major_mut};
use crate::error::{Error, Result};
use crate::likelihood::Likelihood;
use crate::parallel::{axpy, dot, max_abs, update};
use crate::prior::JointPrior;
use crate::workspace::Workspace;
use ndarray::{Array2, ArrayView2, Axis};

/// Settings of the outer iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewtonParams {
    /// Stop when max|α + g| is at most this.
    pub tol: f64,
    /// Largest number of steps (k₁ in seed 000).
    pub max_steps: usize,
    /// Accuracy η of the first systems; later ones are solved as well as the progress warrants.
    pub first_forcing: f64,
}

impl Default for NewtonParams {
    fn default() -> Self {
        Self { tol: 1e-3, max_steps: 200, first_forcing: 0.5 }
    }
}

impl NewtonParams {
    /// Fails where a setting makes no sense.
    pub fn check(&self) -> Result<()> {
        if !(self.tol > 0.0 && self.tol.is_finite()) {
            return Err(Error::InvalidParameter { name: "tol", value: self.tol, requirement: "positive and finite" });
        }
        if !(self.first_forcing > 0.0 && self.first_forcing < 1.0) {
            let requirement = "between 0 and 1";
            return Err(Error::InvalidParameter { name: "first_forcing", value: self.first_forcing, requirement });
        }
        Ok(())
    }
}

/// How a fit went.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewtonInfo {
    /// The name of the way the systems were solved.
    pub solver: &'static str,
    /// Whether max|α + g| ≤ tol was reached, with u = K̃α computed afresh.
    pub converged: bool,
    /// Newton steps.
    pub newton_steps: usize,
    /// Steps of the inner iteration, all told.
    pub cg_steps: usize,
    /// Products with K̃.
    pub products: usize,
    /// Φ at the end.
    pub objective: f64,
    /// max|α + g| at the end.
    pub residual: f64,
}

/// The minimum of Φ.
#[derive(Debug, Clone)]
pub struct NewtonResult {
    /// α, n × C; its rows sum to zero.
    pub alpha: Array2<f64>,
    /// u = K̃α.
    pub u: Array2<f64>,
    /// How it went.
    pub info: NewtonInfo,
}

/// Steps without progress after which the iteration gives up: rounding is all that is left.
const PATIENCE: usize = 8;

/// Minimises Φ from α = 0, or from a previous α.
pub fn newton<L: Likelihood>(
    context: &Context,
    prior: &JointPrior,
    likelihood: &L,
    start: Option<ArrayView2<'_, f64>>,
    direction: &mut impl NewtonDirection<L>,
    params: &NewtonParams,
) -> Result<NewtonResult> {
    params.check()?;
    let shape = (likelihood.points(), likelihood.classes());
    check_shape("the number of targets must be that of the rows of X", prior.points(), shape.0)?;
    check_shape("the number of classes of the targets must be that of the prior", prior.classes(), shape.1)?;
    let mut alpha = Array2::zeros(shape);
    if let Some(start) = start {
        check_shape("the rows of the starting α must be the points", shape.0, start.nrows())?;
        check_shape("the columns of the starting α must be the classes", shape.1, start.ncols())?;
        alpha.assign(&start);
    }
    let mut work = Workspace::default();
    let mut state = State {
        u: Array2::zeros(shape),
        g: Array2::zeros(shape),
        r: Array2::zeros(shape),
        curvature: likelihood.new_curvature(),
        alpha,
        fresh: false,
        info: NewtonInfo {
            solver: direction.name(),
            converged: false,
            newton_steps: 0,
            cg_steps: 0,
            products: 0,
            objective: 0.0,
            residual: 0.0,
        },
    };
    state.refresh(context, &mut work, prior)?;
    state.evaluate(likelihood, prior)?;
    let mut step = Step::zeros(shape.0, shape.1);
    let mut forcing = Forcing::new(params);
    let mut progress = ProgressWatch::new(&state.info);
    loop {
        let info = &state.info;
        context.report(Progress::NewtonStep {
            step: info.newton_steps,
            products: info.products,
            objective: info.objective,
            residual: info.residual,
        });
        let good = info.residual <= params.tol;
        let exhausted = info.newton_steps >= params.max_steps || progress.stalled(info);
        if good || exhausted {
            // Images carried along drift by rounding: no claim without a fresh u.
            if !state.fresh {
                state.refresh(context, &mut work, prior)?;
                state.evaluate(likelihood, prior)?;
                if good && !exhausted && state.info.residual > params.tol {
                    continue;
                }
            }
            state.info.converged = state.info.residual <= params.tol;
            return Ok(NewtonResult { alpha: state.alpha, u: state.u, info: state.info });
        }
        let point = NewtonPoint {
            prior,
            likelihood,
            curvature: &state.curvature,
            r: &state.r,
            forcing: forcing.next(state.info.residual),
        };
        let found = direction.solve(context, &mut work, &point, &mut step)?;
        forcing.learn(&found);
        let line = line_search(likelihood, &state.alpha, &state.u, &state.r, &step)?;
        state.advance(&step, line.step, &found)?;
        state.evaluate(likelihood, prior)?;
    }
}

/// The pair (α, u) and what follows from it.
struct State<C> {
    alpha: Array2<f64>,
    u: Array2<f64>,
    g: Array2<f64>,
    /// r = −(α + g).
    r: Array2<f64>,
    curvature: C,
    /// Whether u is K̃α itself rather than a sum of images.
    fresh: bool,
    info: NewtonInfo,
}

impl<C> State<C> {
    /// Makes the rows of α sum to zero, as those of −g do, and computes u = K̃α.
    fn refresh(&mut self, context: &Context, work: &mut Workspace, prior: &JointPrior) -> Result<()> {
        for mut row in self.alpha.axis_iter_mut(Axis(0)) {
            let mean = row.sum() / row.len() as f64;
            row.mapv_inplace(|a| a - mean);
        }
        if self.alpha.iter().all(|a| *a == 0.0) {
            self.u.fill(0.0);
        } else {
            prior.apply(context, work, self.u.view_mut(), self.alpha.view())?;
            self.info.products += 1;
        }
        self.fresh = true;
        Ok(())
    }

    /// g, W, r, Φ and max|α + g| at u.
    fn evaluate<L: Likelihood<Curvature = C>>(&mut self, likelihood: &L, prior: &JointPrior) -> Result<()> {
        let loss = likelihood.evaluate(self.u.view(), self.g.view_mut(), &mut self.curvature)?;
        let (alpha, u, g) = (self.alpha.view(), self.u.view(), self.g.view());
        let (alpha, u, g) = (row_major("α", &alpha)?, row_major("u", &u)?, row_major("g", &g)?);
        let mut r = self.r.view_mut();
        let r = row_major_mut("r", &mut r)?;
        update(r, [alpha, g], |r, [alpha, g]| {
            r.iter_mut().zip(alpha).zip(g).for_each(|((r, alpha), g)| *r = -(alpha + g));
        });
        self.info.objective = loss + 0.5 * dot(alpha, u);
        self.info.residual = max_abs(r);
        if self.info.objective.is_finite() && self.info.residual.is_finite() {
            return Ok(());
        }
        let variance = prior.blocks().blocks().iter().map(|block| block.variance).fold(0.0, f64::max);
        Err(Error::NotFinite { steps: self.info.newton_steps, variance })
    }

    /// Goes along a step.
    fn advance(&mut self, step: &Step, length: f64, found: &DirectionInfo) -> Result<()> {
        axpy(row_major_mut("α", &mut self.alpha.view_mut())?, length, row_major("s", &step.s.view())?);
        axpy(row_major_mut("u", &mut self.u.view_mut())?, length, row_major("K̃s", &step.image.view())?);
        self.fresh = false;
        self.info.newton_steps += 1;
        self.info.cg_steps += found.steps;
        self.info.products += found.products;
        Ok(())
    }
}

/// The accuracy of the next system, after Eisenstat and Walker: as good as the last step was successful.
struct Forcing {
    first: f64,
    tol: f64,
    /// ‖r‖² of the two last systems.
    norms: [Option<f64>; 2],
}

impl Forcing {
    const SMALLEST: f64 = 1e-4;

    fn new(params: &NewtonParams) -> Self {
        Self { first: params.first_forcing, tol: params.tol, norms: [None; 2] }
    }

    /// η for a system whose right-hand side has the given largest entry.
    fn next(&self, residual: f64) -> f64 {
        let wanted = match self.norms {
            [Some(before), Some(last)] if before > 0.0 => (last / before).min(self.first),
            _ => self.first,
        };
        // Not more accurate than the goal of the whole fit warrants.
        wanted.max(0.1 * self.tol / residual).clamp(Self::SMALLEST, self.first)
    }

    fn learn(&mut self, found: &DirectionInfo) {
        self.norms = [self.norms[1], found.squared_norm];
    }
}

/// Notices when nothing gets better any more.
struct ProgressWatch {
    best_objective: f64,
    best_residual: f64,
    since: usize,
}

impl ProgressWatch {
    fn new(info: &NewtonInfo) -> Self {
        Self { best_objective: info.objective, best_residual: info.residual, since: 0 }
    }

    /// Whether neither Φ nor max|α + g| has improved for a while.
    fn stalled(&mut self, info: &NewtonInfo) -> bool {
        let better = info.objective < self.best_objective - 1e-13 * self.best_objective.abs()
            || info.residual < 0.9 * self.best_residual;
        self.best_objective = self.best_objective.min(info.objective);
        self.best_residual = self.best_residual.min(info.residual);
        self.since = if better { 0 } else { self.since + 1 };
        self.since > PATIENCE
    }
}
