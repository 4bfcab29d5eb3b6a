//! (I + Vᵀ K̂ V)⁻¹ for K̂ = G Gᵀ of low rank.
//!
//! (I + Vᵀ K̂ V)⁻¹ = I − Vᵀ G (I + Gᵀ W G)⁻¹ Gᵀ V,
//!
//! positive definite for every K̂, with a system of Cm unknowns that couples all classes. Where that would be too large, W is
//! replaced by a diagonal E ≥ W, and with R diagonal every class has a system of m unknowns. The result is positive definite
//! as well, as I + Gᵀ E G > Gᵀ W G. Every W_i is at most D_i and, being diagonally dominant, at most 2 diag(W_i); the one
//! with the smaller trace is taken: 2 diag(W_i) at a point whose class is nearly certain.
//!
//! It is for the symmetric system of [`super::low_rank_cg`], where it takes no product of its own; in the inner product of K̃
//! it would double their number, and be positive definite only with a bound on K̃ − K̂.

use super::low_rank_prior::LowRankPrior;
use super::root::CurvatureRoot;
use crate::context::Context;
use crate::data::{row_major, row_major_mut};
use crate::error::{Error, Result};
use crate::parallel::part_len;
use faer::linalg::matmul::matmul;
use faer::linalg::solvers::{Llt, Solve};
use faer::{Accum, Mat, MatMut, MatRef, Par, Side};
use ndarray::Array2;
use rayon::prelude::*;

/// Partial sums of LᵀB.
const PARTS: usize = 16;

/// The preconditioner at one curvature.
#[derive(Debug)]
pub(super) struct Preconditioner {
    factor: Factor,
    /// Products with features: PARTS of m × C.
    partial: Vec<f64>,
    /// Unknowns, class by class, and coefficients of the features, m × C.
    unknowns: Vec<f64>,
    coefficients: Vec<f64>,
}

/// Cholesky factors.
#[derive(Debug)]
enum Factor {
    /// Of I + Gᵀ W G.
    Coupled(Llt<f64>),
    /// Of the blocks of I + Gᵀ E G, one for every class.
    Blocks(Vec<Llt<f64>>),
}

impl Factor {
    /// Solves for unknowns that are counted class by class.
    fn solve(&self, t: &mut [f64]) {
        let solve = |factor: &Llt<f64>, t: &mut [f64]| {
            let rows = t.len();
            factor.solve_in_place(MatMut::from_column_major_slice_mut(t, rows, 1));
        };
        match self {
            Self::Coupled(factor) => solve(factor, t),
            Self::Blocks(factors) => {
                let m = t.len() / factors.len();
                t.par_chunks_mut(m).zip(factors).for_each(|(t, factor)| solve(factor, t));
            }
        }
    }
}

impl Preconditioner {
    pub(super) fn new(context: &Context, approximation: &LowRankPrior, root: &CurvatureRoot) -> Result<Self> {
        let unknowns = root.root().ncols() * approximation.rank();
        let factor = if approximation.coupled {
            Factor::Coupled(coupled_factor(context, approximation, root)?)
        } else {
            Factor::Blocks(block_factors(context, approximation, root)?)
        };
        let zeros = |len| vec![0.0; len];
        Ok(Self { factor, partial: zeros(PARTS * unknowns), unknowns: zeros(unknowns), coefficients: zeros(unknowns) })
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
        approximation.to_unknowns(&mut self.unknowns, sums);
        self.factor.solve(&mut self.unknowns);
        approximation.to_coefficients(&mut self.coefficients, &self.unknowns);
        let back = MatRef::from_row_major_slice(&self.coefficients, m, classes);
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

/// The factor of I + Gᵀ W G.
fn coupled_factor(context: &Context, approximation: &LowRankPrior, root: &CurvatureRoot) -> Result<Llt<f64>> {
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
    let mut system = approximation.load(entry, classes);
    (0..unknowns).for_each(|i| system[(i, i)] += 1.0);
    factor(&system, 0)
}

/// The factors of the blocks of I + Gᵀ E G.
fn block_factors(context: &Context, approximation: &LowRankPrior, root: &CurvatureRoot) -> Result<Vec<Llt<f64>>> {
    let (n, classes) = root.root().dim();
    let m = approximation.rank();
    let features = approximation.features.view();
    let features = MatRef::from_row_major_slice(row_major("the features", &features)?, n, m);
    // With π = D/ΣD, the traces of D_i and 2 diag(W_i) are ΣD and 2 (1 − Σπ²) ΣD.
    let is_certain: Vec<bool> = (root.root().outer_iter().zip(root.inverse_sums()))
        .map(|(root, inverse)| root.iter().map(|root| (root * root * inverse).powi(2)).sum::<f64>() > 0.5)
        .collect();
    let bound = |i: usize, class: usize| {
        let d = root.root()[[i, class]].powi(2);
        if is_certain[i] { 2.0 * d * (1.0 - d * root.inverse_sums()[i]) } else { d }
    };
    let one = |class: usize| {
        context.check()?;
        let weighted = Mat::from_fn(n, m, |i, j| bound(i, class) * features[(i, j)]);
        let mut system = Mat::zeros(m, m);
        matmul(system.as_mut(), Accum::Replace, features.transpose(), weighted.as_ref(), 1.0, Par::Seq);
        let scale = |j: usize| approximation.own_loading(j, class);
        for j in 0..m {
            for i in 0..m {
                system[(i, j)] *= scale(i) * scale(j);
            }
            system[(j, j)] += 1.0;
        }
        factor(&system, class)
    };
    (0..classes).into_par_iter().map(one).collect()
}

fn factor(system: &Mat<f64>, class: usize) -> Result<Llt<f64>> {
    Llt::new(system.as_ref(), Side::Lower).map_err(|_| Error::NotPositiveDefinite { class })
}
