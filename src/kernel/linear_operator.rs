//! X Xᵀ by way of X: X (Xᵀ S) takes two passes over the entries of X and no n × n matrix.

use super::symmetric::check_corner;
use super::{KernelOperator, Shuffle};
use crate::context::Context;
use crate::data::{CsrRows, Inputs, check_shape, row_major, row_major_mut, squared_norms, view, view_mut};
use crate::error::Result;
use crate::parallel::part_len;
use crate::simd;
use crate::workspace::Workspace;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use ndarray::{ArcArray2, Array1, ArrayView2, ArrayViewMut2, s};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

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

/// M = X Xᵀ for sparse rows.
#[derive(Debug)]
pub struct LinearSparse {
    x: Arc<CsrRows>,
    /// Xᵀ as compressed rows, so that both halves of the product write each row of their result once.
    transpose: CsrRows,
}

impl LinearSparse {
    /// The rows are shared, not copied; their transpose is made.
    #[must_use]
    pub fn new(x: &Arc<CsrRows>) -> Self {
        Self { transpose: x.transpose(), x: Arc::clone(x) }
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

    fn gradient(&self, _context: &Context, _e: ArrayView2<'_, f64>, _f: ArrayView2<'_, f64>) -> Result<Vec<f64>> {
        Ok(Vec::new())
    }
}

impl KernelOperator for LinearSparse {
    fn points(&self) -> usize {
        self.x.rows()
    }

    fn representation(&self) -> &'static str {
        "sparse rows"
    }

    fn apply(
        &self,
        context: &Context,
        work: &mut Workspace,
        mut out: ArrayViewMut2<'_, f64>,
        s: ArrayView2<'_, f64>,
    ) -> Result<()> {
        let (n, k) = s.dim();
        check_corner(self.points(), n)?;
        check_shape("the rows of the product must be those of S", n, out.nrows())?;
        check_shape("the columns of the product must be those of S", k, out.ncols())?;
        let (s, out) = (row_major("S", &s)?, row_major_mut("the product", &mut out)?);
        let blocks = column_blocks(k);
        let buffer = |block: &Range<usize>| (n + n + self.transpose.rows()) * padded(block.len());
        let mut buffers = work.take(blocks.iter().map(buffer).sum());
        // Every block has its own piece of the buffers; the product is put together from them at the end.
        let mut pieces = Vec::with_capacity(blocks.len());
        let mut rest = &mut buffers[..];
        for block in &blocks {
            let (piece, others) = rest.split_at_mut(buffer(block));
            pieces.push((block.clone(), piece));
            rest = others;
        }
        // Whole blocks go to threads where there are enough of them, since each then keeps its block in its own cache;
        // otherwise all threads share each block. The sums are the same.
        let share = blocks.len() < rayon::current_num_threads();
        let one = |(block, piece): (Range<usize>, &mut [f64])| {
            context.check()?;
            match padded(block.len()) {
                1 => self.multiply_block::<1>(piece, s, k, &block, n, share),
                4 => self.multiply_block::<4>(piece, s, k, &block, n, share),
                8 => self.multiply_block::<8>(piece, s, k, &block, n, share),
                _ => self.multiply_block::<16>(piece, s, k, &block, n, share),
            }
            Ok(())
        };
        let done: Result<()> =
            if share { pieces.into_iter().try_for_each(one) } else { pieces.into_par_iter().try_for_each(one) };
        if done.is_ok() {
            gather_blocks(out, k, &blocks, &buffers, n, self.transpose.rows());
        }
        work.give(buffers);
        done
    }

    fn shuffle(&mut self, shuffle: &Shuffle) {
        self.x = Arc::new(self.x.select(shuffle.order(self.x.rows())));
        self.transpose = self.x.transpose();
    }

    fn diagonal(&self) -> Array1<f64> {
        squared_norms(&Inputs::Sparse(Arc::clone(&self.x)))
    }

    fn gradient(&self, _context: &Context, _e: ArrayView2<'_, f64>, _f: ArrayView2<'_, f64>) -> Result<Vec<f64>> {
        Ok(Vec::new())
    }
}

/// Columns that are multiplied together: their part of S, and of Xᵀ S, then stays in the second-level cache.
const BLOCK: usize = 16;

/// Cuts columns into blocks.
fn column_blocks(k: usize) -> Vec<Range<usize>> {
    (0..k).step_by(BLOCK).map(|start| start..(start + BLOCK).min(k)).collect()
}

/// The width with which a block is kept: whole registers.
fn padded(columns: usize) -> usize {
    match columns {
        0 | 1 => 1,
        2..=4 => 4,
        5..=8 => 8,
        _ => BLOCK,
    }
}

impl LinearSparse {
    /// X (Xᵀ S) for one block of columns, W wide, for the first n points. `piece` is S, Xᵀ S and the product.
    fn multiply_block<const W: usize>(
        &self,
        piece: &mut [f64],
        s: &[f64],
        k: usize,
        block: &Range<usize>,
        n: usize,
        share: bool,
    ) {
        let d = self.transpose.rows();
        let (packed, rest) = piece.as_chunks_mut::<W>().0.split_at_mut(n);
        let (weights, product) = rest.split_at_mut(d);
        for (packed, s) in packed.iter_mut().zip(s.chunks(k)) {
            packed.fill(0.0);
            packed[..block.len()].copy_from_slice(&s[block.clone()]);
        }
        multiply_rows(weights, &self.transpose, packed, n, share);
        multiply_rows(product, &self.x, weights, d, share);
    }
}

/// out = A S, W columns; entries of A at or past column `limit` do not count. Every row is summed in registers.
fn multiply_rows<const W: usize>(out: &mut [[f64; W]], a: &CsrRows, s: &[[f64; W]], limit: usize, share: bool) {
    let some = |first: usize, out: &mut [[f64; W]]| {
        simd::best().dispatch(
            #[inline(always)]
            || {
                for (out, row) in out.iter_mut().zip(first..) {
                    let (columns, values) = a.row(row);
                    let end = if limit < a.columns() {
                        columns.partition_point(|&c| (c as usize) < limit)
                    } else {
                        columns.len()
                    };
                    let mut sums = [0.0; W];
                    for (&column, &value) in columns[..end].iter().zip(values) {
                        let s = &s[column as usize];
                        for c in 0..W {
                            sums[c] += value * s[c];
                        }
                    }
                    *out = sums;
                }
            },
        );
    };
    if share {
        let rows = part_len(out.len());
        out.par_chunks_mut(rows).enumerate().for_each(|(part, out)| some(part * rows, out));
    } else {
        some(0, out);
    }
}

/// Writes the products of all blocks to their columns.
fn gather_blocks(out: &mut [f64], k: usize, blocks: &[Range<usize>], buffers: &[f64], n: usize, d: usize) {
    let rows = part_len(n);
    out.par_chunks_mut((rows * k).max(1)).enumerate().for_each(|(part, out)| {
        let mut start = 0;
        for block in blocks {
            let width = padded(block.len());
            let product = &buffers[start + (n + d) * width..start + (n + d + n) * width];
            start += (n + d + n) * width;
            for (out, product) in out.chunks_mut(k).zip(product[part * rows * width..].chunks(width)) {
                out[block.clone()].copy_from_slice(&product[..block.len()]);
            }
        }
    });
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
    let blocks = d.div_ceil(COLUMNS);
    let mut sums = work.take(parts * d * k);
    let mut pieces: Vec<&mut [f64]> = sums.chunks_mut(d * k).flat_map(|part| part.chunks_mut(COLUMNS * k)).collect();
    let done = pieces.par_iter_mut().enumerate().try_for_each(|(task, out)| {
        context.check()?;
        let (part, block) = (task / blocks, task % blocks);
        let rows = part * n / parts..(part + 1) * n / parts;
        let height = out.len() / k;
        let x = MatRef::from_row_major_slice(&x[rows.start * d..rows.end * d], rows.len(), d);
        let s = MatRef::from_row_major_slice(&s[rows.start * k..rows.end * k], rows.len(), k);
        let out = MatMut::from_row_major_slice_mut(out, height, k);
        matmul(out, Accum::Replace, x.subcols(block * COLUMNS, height).transpose(), s, 1.0, Par::Seq);
        Ok(())
    });
    out.copy_from_slice(&sums[..d * k]);
    for part in sums.chunks(d * k).skip(1) {
        out.iter_mut().zip(part).for_each(|(out, part)| *out += part);
    }
    work.give(sums);
    done
}

/// out = A S for sparse rows A.
pub(super) fn sparse_multiply(
    context: &Context,
    mut out: ArrayViewMut2<'_, f64>,
    a: &CsrRows,
    s: ArrayView2<'_, f64>,
) -> Result<()> {
    let (n, k) = s.dim();
    check_shape("the rows of S must be the columns of the matrix", a.columns(), n)?;
    check_shape("the rows of the product must be those of the matrix", a.rows(), out.nrows())?;
    if k == 0 {
        return Ok(());
    }
    let s = row_major("S", &s)?;
    let rows = part_len(a.rows());
    row_major_mut("the product", &mut out)?.par_chunks_mut(rows * k).enumerate().try_for_each(|(part, out)| {
        context.check()?;
        for (out, row) in out.chunks_mut(k).zip(part * rows..) {
            out.fill(0.0);
            let (columns, values) = a.row(row);
            for (&column, &value) in columns.iter().zip(values) {
                let s = &s[column as usize * k..(column as usize + 1) * k];
                out.iter_mut().zip(s).for_each(|(out, s)| *out += value * s);
            }
        }
        Ok(())
    })
}
