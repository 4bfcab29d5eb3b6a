//! K̂ = G Gᵀ ≈ K̃ of low rank, from which preconditioners are made.
//!
//! G = [R ⊗ L, σ I ⊗ 1], where L Lᵀ ≈ M. With few classes R Rᵀ = mix V mixᵀ is the covariance between them (flat: R is
//! diagonal), and all are coupled as they are. With many, R is diagonal, R² = diag(mix V mixᵀ), and every class has a system
//! of its own.

use super::PreconditionerUse;
use super::low_rank::LowRank;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::prior::JointPrior;
use crate::workspace::Workspace;
use faer::linalg::solvers::Llt;
use faer::{Mat, Side};
use ndarray::Array2;

/// Largest number of unknowns of a system that couples all classes.
const MOST_UNKNOWNS: usize = 1600;
/// Largest rank where every class has a system of its own.
const LARGEST_BLOCK: usize = 256;
/// Setting up may cost as much as so many products.
pub(super) const SETUP_PRODUCTS: f64 = 4.0;
/// A smaller rank than this is not worth a trial.
const SMALLEST_RANK: usize = 8;
/// A part of M is left out when its variance is so small beside the 1 of I + Vᵀ K̃ V.
const NEGLIGIBLE: f64 = 1e-4;

/// K̂, made once for a kernel and used at every Newton step and in every fold.
#[derive(Debug)]
pub struct LowRankPrior {
    /// L and, with intercepts, a column of ones: n × m.
    pub(super) features: Array2<f64>,
    /// R.
    loadings: Loadings,
    intercept: Option<f64>,
    /// Whether one system couples all classes; else every class has one.
    pub(super) coupled: bool,
}

/// How the coefficients of a feature go to the classes.
#[derive(Debug)]
enum Loadings {
    Diagonal(Vec<f64>),
    Full(Mat<f64>),
}

impl LowRankPrior {
    /// `None` where no rank pays: several kernel matrices, or no room. Systems of single classes save few
    /// products, if any, and no time (`benches/results/fit.md`), so they are made only where a preconditioner is asked for.
    pub fn new(
        context: &Context,
        work: &mut Workspace,
        prior: &JointPrior,
        usage: PreconditionerUse,
    ) -> Result<Option<Self>> {
        let [matrix] = prior.blocks().matrices() else { return Ok(None) };
        let (n, classes) = (prior.points(), prior.classes());
        let fits = |numbers: usize| context.has_room((numbers * size_of::<f64>()) as u64);
        let joint = joint_rank(prior, matrix.cost_per_column());
        let unknowns = classes * (joint + 1);
        let coupled = joint >= SMALLEST_RANK && fits(unknowns * (2 * unknowns + n));
        let most = if coupled { joint } else { block_rank(prior, matrix.cost_per_column()) };
        let asked = usage == PreconditionerUse::On;
        if !coupled && (!asked || most < SMALLEST_RANK || !fits(classes * (most + 1).pow(2) + 4 * n * most)) {
            return Ok(None);
        }
        let largest = prior.blocks().blocks().iter().map(|block| block.variance).fold(0.0, f64::max);
        let low_rank = LowRank::new(context, work, (matrix.as_ref(), n), most, NEGLIGIBLE / largest)?;
        let rank = low_rank.factor.ncols();
        let intercept = (prior.intercept_variance() > 0.0).then(|| prior.intercept_variance().sqrt());
        let mut features = Array2::ones((n, rank + usize::from(intercept.is_some())));
        features.slice_mut(ndarray::s![.., ..rank]).assign(&low_rank.factor);
        let loadings = if prior.mixing().is_identity() {
            Loadings::Diagonal(prior.blocks().blocks().iter().map(|block| block.variance.sqrt()).collect())
        } else {
            Loadings::of_mixing(prior, coupled)?
        };
        Ok(Some(Self { features, loadings, intercept, coupled }))
    }

    /// Number of features m.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.features.ncols()
    }

    /// Products that setting a preconditioner up costs, and applying it.
    pub(super) fn price(&self, prior: &JointPrior) -> (f64, f64) {
        let (n, classes, m) = (prior.points() as f64, prior.classes() as f64, self.rank() as f64);
        let product = classes * prior.blocks().matrices().iter().map(|matrix| matrix.cost_per_column()).sum::<f64>();
        // So many systems, of so many unknowns.
        let (systems, unknowns) = if self.coupled { (1.0, classes * m) } else { (classes, m) };
        let setup = systems * (n * unknowns.powi(2) + unknowns.powi(3) / 3.0);
        let application = 4.0 * n * m * classes + systems * 2.0 * unknowns.powi(2);
        (setup / product, application / product)
    }

    /// The loading of feature j: entry (c, a).
    fn loading(&self, j: usize, c: usize, a: usize) -> f64 {
        match (&self.loadings, self.intercept) {
            (_, Some(sigma)) if j + 1 == self.rank() => {
                if c == a {
                    sigma
                } else {
                    0.0
                }
            }
            (Loadings::Full(full), _) => full[(c, a)],
            (Loadings::Diagonal(diagonal), _) => {
                if c == a {
                    diagonal[c]
                } else {
                    0.0
                }
            }
        }
    }

    /// The loading of feature j for one class, where loadings are diagonal.
    pub(super) fn own_loading(&self, j: usize, class: usize) -> f64 {
        self.loading(j, class, class)
    }

    /// Classes whose coefficients have a part in those of the given one.
    fn related(&self, class: usize, classes: usize) -> std::ops::Range<usize> {
        match self.loadings {
            Loadings::Diagonal(_) => class..class + 1,
            Loadings::Full(_) => 0..classes,
        }
    }

    /// The matrix over unknowns (a, j), counted class by class, from that over (class, feature): loadings on both sides.
    pub(super) fn load(&self, entry: impl Fn(usize, usize) -> f64 + Sync, classes: usize) -> Mat<f64> {
        let m = self.rank();
        let unknowns = classes * m;
        if let Loadings::Diagonal(_) = self.loadings {
            let scale = |row: usize| self.own_loading(row % m, row / m);
            return Mat::from_fn(unknowns, unknowns, |i, j| scale(i) * scale(j) * entry(i, j));
        }
        let plain = Mat::from_fn(unknowns, unknowns, &entry);
        let loadings = Mat::from_fn(unknowns, unknowns, |from, to| {
            if from % m == to % m { self.loading(to % m, from / m, to / m) } else { 0.0 }
        });
        let right = &plain * &loadings;
        loadings.transpose() * right
    }

    /// From m × C sums over the points to unknowns, class by class.
    pub(super) fn to_unknowns(&self, t: &mut [f64], sums: &[f64]) {
        let m = self.rank();
        let classes = t.len() / m;
        for a in 0..classes {
            for j in 0..m {
                let terms = self.related(a, classes).map(|c| self.loading(j, c, a) * sums[j * classes + c]);
                t[a * m + j] = terms.sum();
            }
        }
    }

    /// The way back: m × C coefficients of the features.
    pub(super) fn to_coefficients(&self, back: &mut [f64], t: &[f64]) {
        let m = self.rank();
        let classes = t.len() / m;
        for j in 0..m {
            for c in 0..classes {
                back[j * classes + c] = self.related(c, classes).map(|a| self.loading(j, c, a) * t[a * m + j]).sum();
            }
        }
    }
}

impl Loadings {
    /// From the covariance between the classes; all of it, or its diagonal.
    fn of_mixing(prior: &JointPrior, coupled: bool) -> Result<Self> {
        if !coupled {
            return Ok(Self::Diagonal(class_variances(prior)?.into_iter().map(f64::sqrt).collect()));
        }
        let covariance = class_covariance(prior)?;
        let covariance = Mat::from_fn(prior.classes(), prior.classes(), |a, b| covariance[[a, b]]);
        let factor = Llt::new(covariance.as_ref(), Side::Lower).map_err(|_| Error::NotPositiveDefinite { class: 0 })?;
        Ok(Self::Full(factor.L().to_owned()))
    }
}

/// The rank at which setting up one system of all classes costs [`SETUP_PRODUCTS`] products: n (C r)² = 4 · C · cost of a
/// column.
fn joint_rank(prior: &JointPrior, cost_per_column: f64) -> usize {
    let (n, classes) = (prior.points() as f64, prior.classes() as f64);
    let by_cost = whole((SETUP_PRODUCTS * cost_per_column / (n * classes)).sqrt());
    by_cost.min((MOST_UNKNOWNS / prior.classes()).saturating_sub(1))
}

/// The same for a system of every class: n r² = 4 · cost of a column.
fn block_rank(prior: &JointPrior, cost_per_column: f64) -> usize {
    whole((SETUP_PRODUCTS * cost_per_column / prior.points() as f64).sqrt()).min(LARGEST_BLOCK)
}

fn whole(rank: f64) -> usize {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive, and of moderate size
    let whole = rank.min(1e6) as usize;
    whole
}

/// mix V mixᵀ, the covariance between the classes.
fn class_covariance(prior: &JointPrior) -> Result<Array2<f64>> {
    let (classes, functions) = (prior.classes(), prior.mixing().functions());
    let identity = Array2::eye(classes);
    let mut down = Array2::zeros((classes, functions));
    prior.mixing().to_functions(down.view_mut(), identity.view())?;
    for mut row in down.outer_iter_mut() {
        row.iter_mut().zip(prior.blocks().blocks()).for_each(|(value, block)| *value *= block.variance);
    }
    let mut covariance = Array2::zeros((classes, classes));
    prior.mixing().to_classes(covariance.view_mut(), down.view())?;
    Ok(covariance)
}

/// The diagonal of the same: what the function of every class varies by, at M = 1. One class at a time, as all of the
/// covariance would be large.
fn class_variances(prior: &JointPrior) -> Result<Vec<f64>> {
    let (classes, functions) = (prior.classes(), prior.mixing().functions());
    let (mut unit, mut down) = (Array2::zeros((1, classes)), Array2::zeros((1, functions)));
    (0..classes)
        .map(|class| {
            unit.fill(0.0);
            unit[[0, class]] = 1.0;
            prior.mixing().to_functions(down.view_mut(), unit.view())?;
            Ok(down.iter().zip(prior.blocks().blocks()).map(|(part, block)| part * part * block.variance).sum())
        })
        .collect()
}
