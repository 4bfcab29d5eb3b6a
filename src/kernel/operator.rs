//! What fitting needs of a kernel matrix.

use super::Shuffle;
use crate::context::Context;
use crate::data::{row_major_mut, view, view_mut};
use crate::error::Result;
use crate::parallel::part_len;
use crate::workspace::Workspace;
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2, s};
use rayon::prelude::*;

/// The matrix M of a covariance function over the n training points, in whatever form makes its products fast.
///
/// Arrays are n × k, row-major and contiguous; k is free. Results do not depend on the number of threads.
pub trait KernelOperator: std::fmt::Debug + Send + Sync {
    /// Number of points n.
    fn points(&self) -> usize;

    /// How the matrix is kept, in a few words for the user.
    fn representation(&self) -> &'static str;

    /// Bytes that the matrix takes, where it is stored.
    fn stored_bytes(&self) -> u64 {
        0
    }

    /// out = M S. Where S has fewer rows than there are points, M is the corner of its leading rows and columns.
    fn apply(
        &self,
        context: &Context,
        work: &mut Workspace,
        out: ArrayViewMut2<'_, f64>,
        s: ArrayView2<'_, f64>,
    ) -> Result<()>;

    /// out = M S, every column times its factor. What is here takes another pass over the product.
    fn apply_scaled(
        &self,
        context: &Context,
        work: &mut Workspace,
        mut out: ArrayViewMut2<'_, f64>,
        s: ArrayView2<'_, f64>,
        factor: &(dyn Fn(usize) -> f64 + Sync),
    ) -> Result<()> {
        self.apply(context, work, out.view_mut(), s)?;
        let k = out.ncols();
        let mut factors = work.take(k);
        factors.iter_mut().enumerate().for_each(|(column, of_column)| *of_column = factor(column));
        if factors.iter().any(|factor| (factor - 1.0).abs() > 0.0) {
            let out = row_major_mut("the product", &mut out)?;
            out.par_chunks_mut(part_len(out.len() / k) * k).for_each(|part| {
                for row in part.chunks_mut(k) {
                    row.iter_mut().zip(&factors).for_each(|(value, factor)| *value *= factor);
                }
            });
        }
        work.give(factors);
        Ok(())
    }

    /// Exchanges points, so that a subset of them has the leading corner of M; the same call again undoes it exactly.
    fn shuffle(&mut self, shuffle: &Shuffle);

    /// The diagonal of M.
    fn diagonal(&self) -> Array1<f64>;

    /// Number of shape parameters.
    fn parameter_count(&self) -> usize {
        0
    }

    /// Σ_p e_pᵀ (∂M/∂log θ) f_p over the columns of E and F, for every shape parameter θ, in the order of
    /// [`Covariance::parameters`](super::Covariance::parameters).
    fn gradient(&self, context: &Context, e: ArrayView2<'_, f64>, f: ArrayView2<'_, f64>) -> Result<Vec<f64>>;

    /// Column j of M, of its leading rows as many as there is room for. What is here takes a product.
    fn column(&self, context: &Context, work: &mut Workspace, j: usize, out: &mut [f64]) -> Result<()> {
        let n = out.len();
        let mut unit = work.take(n);
        unit.fill(0.0);
        if let Some(entry) = unit.get_mut(j) {
            *entry = 1.0;
        }
        let done = view((n, 1), &unit).and_then(|unit| self.apply(context, work, view_mut((n, 1), out)?, unit));
        work.give(unit);
        done
    }

    /// Roughly what a product with one column costs, in additions and multiplications.
    fn cost_per_column(&self) -> f64 {
        2.0 * (self.points() as f64).powi(2)
    }

    /// M itself, for exact solvers and tests. What is here takes it column by column from products.
    fn to_dense(&self, context: &Context) -> Result<Array2<f64>> {
        const BLOCK: usize = 64;
        let n = self.points();
        let mut dense = Array2::zeros((n, n));
        let mut work = Workspace::default();
        for start in (0..n).step_by(BLOCK) {
            let columns = start..(start + BLOCK).min(n);
            let unit = Array2::from_shape_fn((n, columns.len()), |(i, j)| f64::from(u8::from(i == columns.start + j)));
            let mut product = Array2::zeros(unit.raw_dim());
            self.apply(context, &mut work, product.view_mut(), unit.view())?;
            dense.slice_mut(s![.., columns]).assign(&product);
        }
        Ok(dense)
    }
}
