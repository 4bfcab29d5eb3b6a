//! (I + Vᵀ K̂ V)⁻¹ for a low-rank K̂ ≈ K̃, with all classes coupled as they are.
//!
//! K̂ = G Gᵀ, G = [R ⊗ L, σ I ⊗ 1], where L Lᵀ ≈ M and R Rᵀ = mix V mixᵀ is the covariance between the classes (flat: R is
//! diagonal). Then
//!
//! (I + Vᵀ K̂ V)⁻¹ = I − Vᵀ G (I + Gᵀ W G)⁻¹ Gᵀ V,
//!
//! positive definite for every K̂, with a system of C(r + 1) unknowns. It is for the symmetric system of
//! [`super::low_rank_cg`], where it takes no product of its own; in the inner product of K̃ it would double their number, and
//! be positive definite only with a bound on K̃ − K̂.

use super::low_rank::LowRank;
use super::root::CurvatureRoot;
use crate::context::Context;
use crate::data::{row_major, row_major_mut, view};
use crate::error::{Error, Result};
use crate::parallel::part_len;
use crate::prior::JointPrior;
use crate::workspace::Workspace;
use faer::linalg::matmul::matmul;
use faer::linalg::solvers::{Llt, Solve};
use faer::{Accum, Mat, MatMut, MatRef, Par, Side};
use ndarray::Array2;
use rayon::prelude::*;

/// Largest number of unknowns of the small system.
const MOST_UNKNOWNS: usize = 1600;
/// Setting up may cost as much as so many products.
pub(super) const SETUP_PRODUCTS: f64 = 4.0;
/// A smaller rank than this is not worth a trial.
const SMALLEST_RANK: usize = 8;
/// A part of M is left out when its variance is so small beside the 1 of I + Vᵀ K̃ V.
const NEGLIGIBLE: f64 = 1e-4;
/// Partial sums of LᵀB.
const PARTS: usize = 16;

/// K̂, made once for a kernel and used at every Newton step and in every fold.
#[derive(Debug)]
pub struct LowRankPrior {
    /// L and, with intercepts, a column of ones: n × m.
    features: Array2<f64>,
    /// How a feature's coefficients go to the classes: R for those of M, σ I for the intercept.
    loadings: Mat<f64>,
    intercept: Option<f64>,
    diagonal_loadings: bool,
}

impl LowRankPrior {
    /// `None` where no rank pays: several kernel matrices, too many classes, or no room.
    pub fn new(context: &Context, work: &mut Workspace, prior: &JointPrior) -> Result<Option<Self>> {
        let [matrix] = prior.blocks().matrices() else { return Ok(None) };
        let most = Self::affordable_rank(prior, matrix.cost_per_column());
        let unknowns = prior.classes() * (most + 1);
        if most < SMALLEST_RANK || !context.has_room(8 * (unknowns * (2 * unknowns + prior.points())) as u64) {
            return Ok(None);
        }
        let largest = prior.blocks().blocks().iter().map(|block| block.variance).fold(0.0, f64::max);
        let low_rank = LowRank::new(context, work, (matrix.as_ref(), prior.points()), most, NEGLIGIBLE / largest)?;
        let (n, rank) = low_rank.factor.dim();
        let intercept = (prior.intercept_variance() > 0.0).then(|| prior.intercept_variance().sqrt());
        let mut features = Array2::ones((n, rank + usize::from(intercept.is_some())));
        features.slice_mut(ndarray::s![.., ..rank]).assign(&low_rank.factor);
        let flat = prior.mixing().is_identity();
        let loadings = if flat {
            let blocks = prior.blocks().blocks();
            Mat::from_fn(blocks.len(), blocks.len(), |c, a| if c == a { blocks[c].variance.sqrt() } else { 0.0 })
        } else {
            class_covariance_root(prior)?
        };
        Ok(Some(Self { features, loadings, intercept, diagonal_loadings: flat }))
    }

    /// The rank at which setting up costs [`SETUP_PRODUCTS`] products: n (C r)² = 4 · C · cost of a column.
    fn affordable_rank(prior: &JointPrior, cost_per_column: f64) -> usize {
        let (n, classes) = (prior.points() as f64, prior.classes() as f64);
        let by_cost = (SETUP_PRODUCTS * cost_per_column / (n * classes)).sqrt();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive, and of moderate size
        let by_cost = by_cost.min(1e6) as usize;
        by_cost.min((MOST_UNKNOWNS / prior.classes()).saturating_sub(1))
    }

    /// Number of features m.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.features.ncols()
    }

    /// The loading of feature j: entry (c, a).
    fn loading(&self, j: usize, c: usize, a: usize) -> f64 {
        match self.intercept {
            Some(sigma) if j + 1 == self.rank() => {
                if c == a {
                    sigma
                } else {
                    0.0
                }
            }
            _ => self.loadings[(c, a)],
        }
    }
}

/// R with R Rᵀ = mix V mixᵀ.
fn class_covariance_root(prior: &JointPrior) -> Result<Mat<f64>> {
    let (classes, functions) = (prior.classes(), prior.mixing().functions());
    let identity = Array2::eye(classes);
    let mut down = Array2::zeros((classes, functions));
    prior.mixing().to_functions(down.view_mut(), identity.view())?;
    for mut row in down.outer_iter_mut() {
        row.iter_mut().zip(prior.blocks().blocks()).for_each(|(value, block)| *value *= block.variance);
    }
    let mut covariance = Array2::zeros((classes, classes));
    prior.mixing().to_classes(covariance.view_mut(), down.view())?;
    let covariance = Mat::from_fn(classes, classes, |a, b| covariance[[a, b]]);
    let factor = Llt::new(covariance.as_ref(), Side::Lower).map_err(|_| Error::NotPositiveDefinite { class: 0 })?;
    Ok(factor.L().to_owned())
}

/// The preconditioner at one curvature.
#[derive(Debug)]
pub(super) struct Preconditioner {
    /// The Cholesky factor of I + Gᵀ W G; unknowns are counted class by class.
    factor: Llt<f64>,
    /// Products with features: PARTS of m × C.
    partial: Vec<f64>,
}

impl Preconditioner {
    pub(super) fn new(context: &Context, approximation: &LowRankPrior, root: &CurvatureRoot) -> Result<Self> {
        let (n, classes) = root.root().dim();
        let m = approximation.rank();
        let unknowns = classes * m;
        // W_i = D_i − D_i 1 1ᵀ D_i / Σ: the second part is −Uᵀ U with rows U_i = D_i ⊗ L_i / √Σ.
        let mut coupled = vec![0.0; n * unknowns];
        coupled.par_chunks_mut(unknowns).enumerate().for_each(|(i, row)| {
            let scale = root.inverse_sums()[i].sqrt();
            for (row, root) in row.chunks_mut(m).zip(root.root().row(i)) {
                let factor = scale * root * root;
                row.iter_mut().zip(approximation.features.row(i)).for_each(|(out, feature)| *out = factor * feature);
            }
        });
        let coupled = MatRef::from_row_major_slice(&coupled, n, unknowns);
        let features = approximation.features.view();
        let features = MatRef::from_row_major_slice(row_major("the features", &features)?, n, m);
        // Rows of blocks below the diagonal, one class after the other; the long ones come first.
        let mut stripes: Vec<Mat<f64>> = (0..classes)
            .into_par_iter()
            .rev()
            .map(|class| {
                context.check()?;
                let mut stripe = Mat::zeros(m, (class + 1) * m);
                let own = coupled.subcols(class * m, m).transpose();
                matmul(stripe.as_mut(), Accum::Replace, own, coupled.subcols(0, (class + 1) * m), -1.0, Par::Seq);
                let weighted = Mat::from_fn(n, m, |i, j| root.root()[[i, class]].powi(2) * features[(i, j)]);
                let block = stripe.as_mut().subcols_mut(class * m, m);
                matmul(block, Accum::Add, features.transpose(), weighted.as_ref(), 1.0, Par::Seq);
                Ok(stripe)
            })
            .collect::<Result<_>>()?;
        stripes.reverse();
        let entry = |row: usize, column: usize| {
            let (row, column) = (row.max(column), row.min(column));
            stripes[row / m][(row % m, column)]
        };
        let mut system = approximation.load(entry, classes, m);
        (0..unknowns).for_each(|i| system[(i, i)] += 1.0);
        let factor = Llt::new(system.as_ref(), Side::Lower).map_err(|_| Error::NotPositiveDefinite { class: 0 })?;
        Ok(Self { factor, partial: vec![0.0; PARTS * unknowns] })
    }

    /// z = (I + Vᵀ K̂ V)⁻¹ b; `scratch` is overwritten.
    pub(super) fn apply(
        &mut self,
        approximation: &LowRankPrior,
        root: &CurvatureRoot,
        z: &mut Array2<f64>,
        b: &Array2<f64>,
        scratch: &mut Array2<f64>,
    ) -> Result<()> {
        let (n, classes) = b.dim();
        let m = approximation.rank();
        root.apply(scratch, b)?;
        let sums = {
            let features = approximation.features.view();
            let features = row_major("the features", &features)?;
            let values = scratch.view();
            let values = row_major("V b", &values)?;
            let rows = n.div_ceil(PARTS).max(1);
            let used = n.div_ceil(rows);
            let partial = &mut self.partial[..used * m * classes];
            partial.par_chunks_mut(m * classes).enumerate().for_each(|(part, out)| {
                let range = part * rows..((part + 1) * rows).min(n);
                let height = range.len();
                let features = MatRef::from_row_major_slice(&features[range.start * m..range.end * m], height, m);
                let values =
                    MatRef::from_row_major_slice(&values[range.start * classes..range.end * classes], height, classes);
                let out = MatMut::from_row_major_slice_mut(out, m, classes);
                matmul(out, Accum::Replace, features.transpose(), values, 1.0, Par::Seq);
            });
            let (total, rest) = partial.split_at_mut(m * classes);
            for part in rest.chunks(m * classes) {
                total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
            }
            &*total
        };
        let mut t = Mat::zeros(classes * m, 1);
        approximation.to_unknowns(&mut t, sums);
        self.factor.solve_in_place(t.as_mut());
        let mut back = vec![0.0; m * classes];
        approximation.to_coefficients(&mut back, &t);
        let back = view((m, classes), &back)?;
        let back = MatRef::from_row_major_slice(row_major("coefficients", &back)?, m, classes);
        let rows = part_len(n);
        let features = approximation.features.view();
        let features = row_major("the features", &features)?;
        {
            let mut values = scratch.view_mut();
            let values = row_major_mut("G t", &mut values)?;
            values.par_chunks_mut(rows * classes).zip(features.par_chunks(rows * m)).for_each(|(out, features)| {
                let height = out.len() / classes;
                let features = MatRef::from_row_major_slice(features, height, m);
                let out = MatMut::from_row_major_slice_mut(out, height, classes);
                matmul(out, Accum::Replace, features, back, 1.0, Par::Seq);
            });
        }
        root.apply_transposed(z, scratch)?;
        let (mut z, b) = (z.view_mut(), b.view());
        crate::parallel::update(row_major_mut("z", &mut z)?, [row_major("b", &b)?], |z, [b]| {
            z.iter_mut().zip(b).for_each(|(z, b)| *z = b - *z);
        });
        Ok(())
    }
}

impl LowRankPrior {
    /// The matrix over unknowns (a, j) from that over (class, feature): loadings on both sides.
    fn load(&self, entry: impl Fn(usize, usize) -> f64 + Sync, classes: usize, m: usize) -> Mat<f64> {
        let unknowns = classes * m;
        if self.diagonal_loadings {
            let scale = |row: usize| self.loading(row % m, row / m, row / m);
            return Mat::from_fn(unknowns, unknowns, |i, j| scale(i) * scale(j) * entry(i, j));
        }
        let plain = Mat::from_fn(unknowns, unknowns, &entry);
        let loadings = Mat::from_fn(unknowns, unknowns, |from, to| {
            if from % m == to % m { self.loading(to % m, from / m, to / m) } else { 0.0 }
        });
        let right = &plain * &loadings;
        loadings.transpose() * right
    }

    /// t = Gᵀ-coefficients: from m × C sums to unknowns, class by class.
    fn to_unknowns(&self, t: &mut Mat<f64>, sums: &[f64]) {
        let classes = self.loadings.nrows();
        let m = self.rank();
        for a in 0..classes {
            for j in 0..m {
                let range = if self.diagonal_loadings { a..a + 1 } else { 0..classes };
                t[(a * m + j, 0)] = range.map(|c| self.loading(j, c, a) * sums[j * classes + c]).sum();
            }
        }
    }

    /// The way back: m × C coefficients of the features.
    fn to_coefficients(&self, back: &mut [f64], t: &Mat<f64>) {
        let classes = self.loadings.nrows();
        let m = self.rank();
        for j in 0..m {
            for c in 0..classes {
                let range = if self.diagonal_loadings { c..c + 1 } else { 0..classes };
                back[j * classes + c] = range.map(|a| self.loading(j, c, a) * t[(a * m + j, 0)]).sum();
            }
        }
    }
}
