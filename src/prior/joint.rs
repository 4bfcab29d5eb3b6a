//! K̃, the covariance of all class functions at all points.

use super::Mixing;
use crate::context::Context;
use crate::data::{check_shape, row_major, row_major_mut, view, view_mut};
use crate::error::{Error, Result};
use crate::kernel::{KernelBlocks, Shuffle};
use crate::parallel::{PARTS, part_len};
use crate::workspace::Workspace;
use ndarray::{Array1, ArrayView2, ArrayViewMut2};
use rayon::prelude::*;
use std::sync::Arc;
use std::time::Instant;

/// K̃(S) = K̆(S·mix)·mixᵀ + σ² 1 1ᵀ S.
#[derive(Debug)]
pub struct JointPrior {
    blocks: KernelBlocks,
    mixing: Arc<dyn Mixing>,
    intercept_variance: f64,
}

impl JointPrior {
    /// Puts the parts together. An intercept variance σ² of zero means no intercept.
    pub fn new(blocks: KernelBlocks, mixing: Arc<dyn Mixing>, intercept_variance: f64) -> Result<Self> {
        check_shape(
            "there must be one kernel block for every function of the prior",
            mixing.functions(),
            blocks.len(),
        )?;
        check_intercept(intercept_variance)?;
        Ok(Self { blocks, mixing, intercept_variance })
    }

    /// Number of points n.
    #[must_use]
    pub fn points(&self) -> usize {
        self.blocks.points()
    }

    /// Number of classes C.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.mixing.classes()
    }

    /// Bytes that the stored kernel matrices take.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        self.blocks.matrices().iter().map(|matrix| matrix.stored_bytes()).sum()
    }

    /// K̆.
    #[must_use]
    pub fn blocks(&self) -> &KernelBlocks {
        &self.blocks
    }

    /// The class structure.
    #[must_use]
    pub fn mixing(&self) -> &dyn Mixing {
        self.mixing.as_ref()
    }

    /// σ².
    #[must_use]
    pub fn intercept_variance(&self) -> f64 {
        self.intercept_variance
    }

    /// out = K̃ S; S is n × C, or several such arrays side by side.
    pub fn apply(
        &self,
        context: &Context,
        work: &mut Workspace,
        mut out: ArrayViewMut2<'_, f64>,
        s: ArrayView2<'_, f64>,
    ) -> Result<()> {
        let (n, width) = s.dim();
        check_shape("the columns of S must be the classes, once or several times", 0, width % self.classes())?;
        check_shape("the columns of the product must be those of S", width, out.ncols())?;
        if let Some(member) = context.member() {
            return member.multiply(self, out, s, context.has_rough_products());
        }
        if self.mixing.is_identity() {
            self.blocks.apply(context, work, out.view_mut(), s)?;
        } else {
            let shape = (n, width / self.classes() * self.mixing.functions());
            let (mut functions, mut product) = (work.take(shape.0 * shape.1), work.take(shape.0 * shape.1));
            let mut all = || {
                let begun = Instant::now();
                self.mixing.to_functions(view_mut(shape, &mut functions)?, s)?;
                work.spent_mixing(begun);
                self.blocks.apply(context, work, view_mut(shape, &mut product)?, view(shape, &functions)?)?;
                let begun = Instant::now();
                self.mixing.to_classes(out.view_mut(), view(shape, &product)?)?;
                work.spent_mixing(begun);
                Ok(())
            };
            let done: Result<()> = all();
            work.give(functions);
            work.give(product);
            done?;
        }
        if self.intercept_variance > 0.0 {
            let mut sums = work.take(PARTS * width);
            self.add_intercepts(row_major_mut("the product", &mut out)?, row_major("S", &s)?, width, &mut sums);
            work.give(sums);
        }
        Ok(())
    }

    /// out = K̃ S for q arrays side by side, one for each fold, of which the k-th is zero at the points of fold k; so is the
    /// product. All folds are served by one pass over the kernel matrices.
    pub fn apply_masked(
        &self,
        context: &Context,
        work: &mut Workspace,
        mut out: ArrayViewMut2<'_, f64>,
        s: ArrayView2<'_, f64>,
        fold_of_point: &[usize],
    ) -> Result<()> {
        check_shape("there must be a fold for every point", self.points(), fold_of_point.len())?;
        self.apply(context, work, out.view_mut(), s)?;
        let (classes, width) = (self.classes(), out.ncols());
        let out = row_major_mut("the product", &mut out)?;
        out.par_chunks_mut(width).zip(fold_of_point).for_each(|(row, fold)| {
            if let Some(masked) = row.get_mut(fold * classes..(fold + 1) * classes) {
                masked.fill(0.0);
            }
        });
        Ok(())
    }

    /// Lets this be the prior over the given number of leading points, or over all of them again.
    pub(crate) fn lead(&mut self, points: Option<usize>) {
        self.blocks.lead(points);
    }

    /// Changes the variances of all functions and of the intercepts; the kernel matrices stay.
    pub(crate) fn set_variances(
        &mut self,
        variances: impl IntoIterator<Item = f64>,
        intercept_variance: f64,
    ) -> Result<()> {
        check_intercept(intercept_variance)?;
        self.blocks.set_variances(variances)?;
        self.intercept_variance = intercept_variance;
        Ok(())
    }

    /// Exchanges points, so that a subset of them has the leading corner of K̃; the same call again undoes it.
    pub fn shuffle(&mut self, shuffle: &Shuffle) {
        self.blocks.shuffle(shuffle);
    }

    /// out += σ² 1 1ᵀ S; `partial` holds a row of column sums for every part.
    fn add_intercepts(&self, out: &mut [f64], s: &[f64], width: usize, partial: &mut [f64]) {
        let rows = part_len(s.len() / width);
        partial.par_chunks_mut(width).zip(s.par_chunks(rows * width)).for_each(|(sums, s)| column_sums(sums, s));
        let used = s.len().div_ceil(rows * width);
        let (total, rest) = partial[..used * width].split_at_mut(width);
        for part in rest.chunks(width) {
            total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
        }
        out.par_chunks_mut(rows * width).for_each(|part| {
            for row in part.chunks_mut(width) {
                row.iter_mut().zip(&*total).for_each(|(out, total)| *out += self.intercept_variance * total);
            }
        });
    }

    /// The intercepts b_c = σ² Σ_i α_ic.
    #[must_use]
    pub fn intercepts(&self, alpha: ArrayView2<'_, f64>) -> Array1<f64> {
        alpha.sum_axis(ndarray::Axis(0)) * self.intercept_variance
    }
}

fn check_intercept(variance: f64) -> Result<()> {
    if variance >= 0.0 && variance.is_finite() {
        return Ok(());
    }
    let requirement = "finite and not negative";
    Err(Error::InvalidParameter { name: "intercept_variance", value: variance, requirement })
}

/// The sum of every column.
fn column_sums(sums: &mut [f64], s: &[f64]) {
    sums.fill(0.0);
    for row in s.chunks(sums.len()) {
        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
}
