//! The metric that L-BFGS starts from: the second derivative of Φ along the few directions in which kernel matrices are
//! far larger than in all others.
//!
//! With q a leading eigenvector of M and E x = q xᵀ, where x has an entry for every class, Λ = Eᵀ K̃ E is a matrix over the
//! classes, and I + W K̃ takes E x nearly to E (I + W̄ Λ) x, with W̄ the curvature pooled over the points. So
//!
//! H₀ = c I + E G Eᵀ K̃, G = (Λ + Λ W̄ Λ)⁻¹ − c Λ⁻¹,
//!
//! is self-adjoint in ⟨·,·⟩_K for any q, and near (I + W K̃)⁻¹ on E. The image of E x is known from M q: no product is
//! needed. Measured on the reviews (317 classes, linear kernel, v = 5), products to a relative accuracy of 1e-4 of Φ: flat
//! 32 without, 18 with one vector; tree 59 without, 29 with one, 24 with four.

use super::leading::LeadingVectors;
use crate::context::Context;
use crate::data::{view, view_mut};
use crate::error::Result;
use crate::likelihood::Likelihood;
use crate::parallel::{PARTS, dot_sequential};
use crate::prior::JointPrior;
use crate::workspace::Workspace;
use ndarray::Array2;
use rayon::prelude::*;

/// More leading vectors than this gain nothing.
const MOST_VECTORS: usize = 4;
/// There is one leading vector for so many classes: finding them has to be cheap beside a product.
const CLASSES_PER_VECTOR: usize = 16;
/// Accuracy and largest number of steps of the small systems over the classes.
const SMALL_ACCURACY: f64 = 1e-10;
const SMALL_STEPS: usize = 200;

/// Systems of fewer classes are solved in less time than other threads take to wake up.
const FEW_CLASSES: usize = 256;

/// The leading directions, and where the iteration stands with respect to them.
#[derive(Debug)]
pub(super) struct Metric<'a> {
    prior: &'a JointPrior,
    leading: LeadingVectors,
    /// 1ᵀq_j.
    sums: Vec<f64>,
    /// The squares of every q, n rows: how much every point counts in W̄.
    pooling: Array2<f64>,
    /// The diagonal part of W̄, a row for every q.
    pooled: Array2<f64>,
    /// Sums over every part of the points.
    partial: Vec<Vec<f64>>,
}

impl<'a> Metric<'a> {
    /// Finds the leading vectors, where all functions share one matrix and the likelihood can say how curved it is.
    pub(super) fn new<L: Likelihood>(
        context: &Context,
        work: &mut Workspace,
        prior: &'a JointPrior,
        likelihood: &L,
        curvature: &L::Curvature,
    ) -> Result<Option<Self>> {
        let [matrix] = prior.blocks().matrices() else { return Ok(None) };
        let (n, classes) = (prior.points(), prior.classes());
        let count = (classes / CLASSES_PER_VECTOR).clamp(1, MOST_VECTORS).min(n);
        let leading = LeadingVectors::find(context, work, (matrix.as_ref(), n), count)?;
        let count = leading.values.len();
        let sums = (0..count).map(|j| leading.vectors.column(j).sum()).collect();
        let pooling = leading.vectors.mapv(|q| q * q);
        let Some(pooled) = likelihood.pooled_diagonal(curvature, pooling.view()) else { return Ok(None) };
        Ok(Some(Self { prior, leading, sums, pooling, pooled, partial: vec![vec![0.0; count * classes]; PARTS] }))
    }

    /// Products with K̃ that finding the vectors was worth.
    pub(super) fn products(&self) -> usize {
        self.leading.columns.div_ceil(self.prior.mixing().functions())
    }

    /// Number of leading vectors.
    pub(super) fn rank(&self) -> usize {
        self.leading.values.len()
    }

    /// Whether its systems are best solved one after the other.
    pub(super) fn is_small(&self) -> bool {
        self.prior.classes() < FEW_CLASSES
    }

    /// Entries of Eᵀ K̃ x, those of one leading vector after the other.
    pub(super) fn len(&self) -> usize {
        self.rank() * self.prior.classes()
    }

    /// Takes W̄ from where the iteration stands.
    pub(super) fn update<L: Likelihood>(&mut self, likelihood: &L, curvature: &L::Curvature) {
        if let Some(pooled) = likelihood.pooled_diagonal(curvature, self.pooling.view()) {
            self.pooled = pooled;
        }
    }

    /// Zeros for every part of the points, to which [`Metric::project_rows`] adds. [`Metric::total`] takes them back.
    pub(super) fn take_sums(&mut self) -> Vec<Vec<f64>> {
        let mut sums = std::mem::take(&mut self.partial);
        sums.iter_mut().for_each(|sums| sums.fill(0.0));
        sums
    }

    /// Adds the part of Eᵀ K̃ x that comes from some rows of the image of x, from the given one on.
    #[inline(always)]
    pub(super) fn project_rows(&self, sums: &mut [f64], first: usize, image: &[f64]) {
        let classes = self.prior.classes();
        for (i, row) in (first..).zip(image.chunks(classes)) {
            for (j, sums) in sums.chunks_mut(classes).enumerate() {
                let q = self.leading.vectors[[i, j]];
                sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += q * value);
            }
        }
    }

    /// out = Eᵀ K̃ x, the sum over all parts.
    pub(super) fn total(&mut self, out: &mut [f64], sums: Vec<Vec<f64>>) {
        out.fill(0.0);
        for sums in &sums {
            out.iter_mut().zip(sums).for_each(|(out, sum)| *out += sum);
        }
        self.partial = sums;
    }

    /// out = (Λ + Λ W̄ Λ)⁻¹ b or, not `curved`, Λ⁻¹ b, for every leading vector.
    pub(super) fn solve(&self, out: &mut [f64], b: &[f64], curved: bool) -> Result<()> {
        let classes = self.prior.classes();
        let one = |(j, (out, b)): (usize, (&mut [f64], &[f64]))| self.small_system(j, out, b, curved);
        if self.is_small() {
            return out.chunks_mut(classes).zip(b.chunks(classes)).enumerate().try_for_each(one);
        }
        out.par_chunks_mut(classes).zip(b.par_chunks(classes)).enumerate().try_for_each(one)
    }

    /// What E x adds to a vector and to its image.
    pub(super) fn addition<'m>(&'m self, x: &'m [f64]) -> Result<Addition<'m>> {
        let classes = self.prior.classes();
        let mut mixed = vec![0.0; x.len()];
        let mut functions = vec![0.0; self.prior.mixing().functions()];
        let mut intercepts = vec![0.0; classes];
        for (j, sum) in self.sums.iter().enumerate() {
            let range = j * classes..(j + 1) * classes;
            self.mix(&mut mixed[range.clone()], &x[range.clone()], &mut functions)?;
            let factor = self.prior.intercept_variance() * sum;
            intercepts.iter_mut().zip(&x[range]).for_each(|(sum, x)| *sum += factor * x);
        }
        Ok(Addition { leading: &self.leading, x, mixed, intercepts })
    }

    /// out = mix V mixᵀ x, the covariance between the classes; `functions` is overwritten.
    fn mix(&self, out: &mut [f64], x: &[f64], functions: &mut [f64]) -> Result<()> {
        let classes = self.prior.classes();
        let blocks = self.prior.blocks().blocks();
        let mixing = self.prior.mixing();
        let shape = (1, functions.len());
        mixing.to_functions(view_mut(shape, functions)?, view((1, classes), x)?)?;
        functions.iter_mut().zip(blocks).for_each(|(value, block)| *value *= block.variance);
        mixing.to_classes(view_mut((1, classes), out)?, view(shape, functions)?)
    }

    /// out = Λ x for one leading vector.
    fn covariance(&self, j: usize, out: &mut [f64], x: &[f64], functions: &mut [f64]) -> Result<()> {
        self.mix(out, x, functions)?;
        let (value, sum) = (self.leading.values[j], self.sums[j]);
        let intercept = self.prior.intercept_variance() * sum * sum;
        out.iter_mut().zip(x).for_each(|(out, x)| *out = value * *out + intercept * x);
        Ok(())
    }

    /// Solves Λ x = b or, `curved`, (Λ + Λ W̄ Λ) x = b by conjugate gradients. W̄ = diag p − p pᵀ/Σp.
    fn small_system(&self, j: usize, x: &mut [f64], b: &[f64], curved: bool) -> Result<()> {
        let classes = b.len();
        x.fill(0.0);
        let (mut r, mut p) = (b.to_vec(), b.to_vec());
        let (mut q, mut inner) = (vec![0.0; classes], vec![0.0; classes]);
        let mut functions = vec![0.0; self.prior.mixing().functions()];
        let mut rho = dot_sequential(&r, &r);
        let goal = SMALL_ACCURACY * SMALL_ACCURACY * rho;
        for _ in 0..SMALL_STEPS {
            if rho <= goal || rho.is_nan() {
                break;
            }
            self.covariance(j, &mut q, &p, &mut functions)?;
            if curved {
                let pooled = self.pooled.row(j);
                let total = pooled.sum();
                let mean = if total > 0.0 { pooled.dot(&ndarray::ArrayView1::from(&q)) / total } else { 0.0 };
                for ((inner, pooled), (p, q)) in inner.iter_mut().zip(pooled).zip(p.iter().zip(&q)) {
                    *inner = p + pooled * (q - mean);
                }
                self.covariance(j, &mut q, &inner, &mut functions)?;
            }
            let length = rho / dot_sequential(&p, &q);
            x.iter_mut().zip(&p).for_each(|(x, p)| *x += length * p);
            r.iter_mut().zip(&q).for_each(|(r, q)| *r -= length * q);
            let next = dot_sequential(&r, &r);
            p.iter_mut().zip(&r).for_each(|(p, r)| *p = r + next / rho * *p);
            rho = next;
        }
        Ok(())
    }
}

/// E x and K̃ E x, row by row.
pub(super) struct Addition<'m> {
    leading: &'m LeadingVectors,
    x: &'m [f64],
    /// mix V mixᵀ x.
    mixed: Vec<f64>,
    intercepts: Vec<f64>,
}

impl Addition<'_> {
    /// Adds to some rows of d and K̃d, from the given one on.
    #[inline(always)]
    pub(super) fn add(&self, first: usize, d: &mut [f64], image: &mut [f64]) {
        let classes = self.intercepts.len();
        for (i, (d, image)) in (first..).zip(d.chunks_mut(classes).zip(image.chunks_mut(classes))) {
            image.iter_mut().zip(&self.intercepts).for_each(|(image, b)| *image += b);
            for (j, (x, mixed)) in self.x.chunks(classes).zip(self.mixed.chunks(classes)).enumerate() {
                let (q, m) = (self.leading.vectors[[i, j]], self.leading.images[[i, j]]);
                d.iter_mut().zip(x).for_each(|(d, x)| *d += q * x);
                image.iter_mut().zip(mixed).for_each(|(image, x)| *image += m * x);
            }
        }
    }
}
