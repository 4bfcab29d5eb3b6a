//! X Xᵀ for dense rows, by way of X: X (Xᵀ S) takes two passes over X and no n × n matrix.

use super::symmetric::check_corner;
use super::{KernelOperator, Shuffle};
use crate::context::Context;
use crate::data::{Inputs, check_shape, row_major, row_major_mut, squared_norms, view, view_mut};
use crate::error::Result;
use crate::workspace::Workspace;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use ndarray::{ArcArray2, Array1, ArrayView2, ArrayViewMut2, s};
use rayon::prelude::*;

/// M = X Xᵀ for dense rows.
#[derive(Debug)]
pub struct LinearDense {
    x: ArcArray2<f64>,
}

impl LinearDense {
    /// The rows are shared, not copied.
    #[must_use]
    pub fn new(x: &ArcArray2<f64>) -> Self {
        Self { x: x.clone() }
    }
}

impl KernelOperator for LinearDense {
    fn points(&self) -> usize {
        self.x.nrows()
    }

    fn representation(&self) -> &'static str {
        "dense rows"
    }

    fn apply(
        &self,
        context: &Context,
        work: &mut Workspace,
        out: ArrayViewMut2<'_, f64>,
        s: ArrayView2<'_, f64>,
    ) -> Result<()> {
        check_corner(self.points(), s.nrows())?;
        let x = self.x.slice(s![..s.nrows(), ..]);
        let shape = (x.ncols(), s.ncols());
        let mut weights = work.take(shape.0 * shape.1);
        let done = view_mut(shape, &mut weights)
            .and_then(|weights| transposed_multiply(context, work, weights, x, s))
            .and_then(|()| dense_multiply(context, out, x, view(shape, &weights)?));
        work.give(weights);
        done
    }

    fn shuffle(&mut self, shuffle: &Shuffle) {
        let mut x = Inputs::Dense(std::mem::take(&mut self.x));
        x.shuffle(shuffle);
        if let Inputs::Dense(x) = x {
            self.x = x;
        }
    }

    fn diagonal(&self) -> Array1<f64> {
        squared_norms(&Inputs::Dense(self.x.clone()))
    }

    fn cost_per_column(&self) -> f64 {
        4.0 * self.x.len() as f64
    }

    fn gradient(&self, _context: &Context, _e: ArrayView2<'_, f64>, _f: ArrayView2<'_, f64>) -> Result<Vec<f64>> {
        Ok(Vec::new())
    }
}

/// Rows that one task multiplies.
const ROWS: usize = 64;

/// out = A S for a row-major A.
pub(super) fn dense_multiply(
    context: &Context,
    mut out: ArrayViewMut2<'_, f64>,
    a: ArrayView2<'_, f64>,
    s: ArrayView2<'_, f64>,
) -> Result<()> {
    check_shape("the rows of S must be the columns of the matrix", a.ncols(), s.nrows())?;
    check_shape("the rows of the product must be those of the matrix", a.nrows(), out.nrows())?;
    check_shape("the columns of the product must be those of S", s.ncols(), out.ncols())?;
    let (n, k) = s.dim();
    if k == 0 {
        return Ok(());
    }
    let (a, s) = (row_major("the matrix", &a)?, row_major("S", &s)?);
    let out = row_major_mut("the product", &mut out)?;
    out.par_chunks_mut(ROWS * k).zip(a.par_chunks(ROWS * n)).try_for_each(|(out, a)| {
        context.check()?;
        let height = out.len() / k;
        let a = MatRef::from_row_major_slice(a, height, n);
        let s = MatRef::from_row_major_slice(s, n, k);
        matmul(MatMut::from_row_major_slice_mut(out, height, k), Accum::Replace, a, s, 1.0, Par::Seq);
        Ok(())
    })
}

/// out = Xᵀ S for a row-major X. Where there are few inputs, parts of the points are summed apart and added in order.
pub(super) fn transposed_multiply(
    context: &Context,
    work: &mut Workspace,
    mut out: ArrayViewMut2<'_, f64>,
    x: ArrayView2<'_, f64>,
    s: ArrayView2<'_, f64>,
) -> Result<()> {
    /// Inputs that one task multiplies.
    const COLUMNS: usize = 64;
    let ((n, d), k) = (x.dim(), s.ncols());
    check_shape("the rows of S must be the points", n, s.nrows())?;
    if k == 0 || d == 0 {
        return Ok(());
    }
    let (x, s) = (row_major("X", &x)?, row_major("S", &s)?);
    let out = row_major_mut("the product", &mut out)?;
    let parts = (n / (4 * d).max(512)).clamp(1, 16);
    let mut sums = work.take(parts * d * k);
    let done = sums.par_chunks_mut(d * k).enumerate().try_for_each(|(part, sums)| {
        let rows = part * n / parts..(part + 1) * n / parts;
        let x = MatRef::from_row_major_slice(&x[rows.start * d..rows.end * d], rows.len(), d);
        let s = MatRef::from_row_major_slice(&s[rows.start * k..rows.end * k], rows.len(), k);
        sums.par_chunks_mut(COLUMNS * k).enumerate().try_for_each(|(block, out)| {
            context.check()?;
            let height = out.len() / k;
            let out = MatMut::from_row_major_slice_mut(out, height, k);
            matmul(out, Accum::Replace, x.subcols(block * COLUMNS, height).transpose(), s, 1.0, Par::Seq);
            Ok(())
        })
    });
    out.copy_from_slice(&sums[..d * k]);
    for part in sums.chunks(d * k).skip(1) {
        out.iter_mut().zip(part).for_each(|(out, part)| *out += part);
    }
    work.give(sums);
    done
}
