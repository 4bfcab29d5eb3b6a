//! X Xᵀ for sparse rows, by way of X: X (Xᵀ S) takes two passes over the entries of X and no n × n matrix.

use super::symmetric::check_corner;
use super::{KernelOperator, Shuffle};
use crate::context::Context;
use crate::data::{CsrRows, Inputs, check_shape, row_major, row_major_mut, squared_norms};
use crate::error::Result;
use crate::parallel::part_len;
use crate::simd;
use crate::workspace::Workspace;
use ndarray::{Array1, ArrayView2, ArrayViewMut2};
use pulp::{Simd, WithSimd};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

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
        let blocks = k.div_ceil(BLOCK);
        // Whole blocks go to threads where there are enough of them, since each then keeps its block in its own cache;
        // otherwise all threads share each block. The sums are the same.
        let threads = rayon::current_num_threads();
        let share = blocks < threads;
        let run = if share { blocks.max(1) } else { blocks.div_ceil(threads) };
        // All blocks are of full width but the last.
        let widths = column_blocks(k).map(|block| padded(block.len())).sum::<usize>();
        let scratch_len = (n + self.transpose.rows()) * BLOCK;
        let mut products = work.take(n * widths);
        let mut scratch = work.take(blocks.div_ceil(run) * scratch_len);
        let one = |(group, (scratch, products)): (usize, (&mut [f64], &mut [f64]))| {
            column_blocks(k).skip(group * run).zip(products.chunks_mut(n * BLOCK)).try_for_each(|(block, product)| {
                context.check()?;
                let scratch = &mut scratch[..(n + self.transpose.rows()) * padded(block.len())];
                match padded(block.len()) {
                    1 => self.multiply_block::<1>(product, scratch, s, k, &block, share),
                    4 => self.multiply_block::<4>(product, scratch, s, k, &block, share),
                    _ => self.multiply_block::<BLOCK>(product, scratch, s, k, &block, share),
                }
                Ok(())
            })
        };
        let done = if n == 0 || k == 0 {
            Ok(())
        } else if share {
            scratch.chunks_mut(scratch_len).zip(products.chunks_mut(n * BLOCK * run)).enumerate().try_for_each(one)
        } else {
            let groups = scratch.par_chunks_mut(scratch_len).zip(products.par_chunks_mut(n * BLOCK * run));
            groups.enumerate().try_for_each(one)
        };
        if done.is_ok() {
            gather_blocks(out, k, &products, n);
        }
        work.give(products);
        work.give(scratch);
        done
    }

    fn shuffle(&mut self, shuffle: &Shuffle) {
        self.x = Arc::new(self.x.select(shuffle.order(self.x.rows())));
        self.transpose = self.x.transpose();
    }

    fn diagonal(&self) -> Array1<f64> {
        squared_norms(&Inputs::Sparse(Arc::clone(&self.x)))
    }

    /// Every entry is used twice, each time at some three times the cost of one in a dense product (measured).
    fn cost_per_column(&self) -> f64 {
        14.0 * self.x.entries() as f64
    }

    fn gradient(&self, _context: &Context, _e: ArrayView2<'_, f64>, _f: ArrayView2<'_, f64>) -> Result<Vec<f64>> {
        Ok(Vec::new())
    }
}

/// Columns that are multiplied together: their part of S, and of Xᵀ S, then stays in the second-level cache. Measured: 8,
/// 16 and 32 columns took 45, 51 and 78 ms on 7710 patents.
const BLOCK: usize = 8;

/// Cuts columns into blocks.
fn column_blocks(k: usize) -> impl Iterator<Item = Range<usize>> {
    (0..k).step_by(BLOCK).map(move |start| start..(start + BLOCK).min(k))
}

/// The width with which a block is kept: whole registers.
fn padded(columns: usize) -> usize {
    match columns {
        0 | 1 => 1,
        2..=4 => 4,
        _ => BLOCK,
    }
}

impl LinearSparse {
    /// X (Xᵀ S) for one block of columns, W wide, and as many points as the product has; `scratch` takes S and Xᵀ S.
    fn multiply_block<const W: usize>(
        &self,
        product: &mut [f64],
        scratch: &mut [f64],
        s: &[f64],
        k: usize,
        block: &Range<usize>,
        share: bool,
    ) {
        let product = product.as_chunks_mut::<W>().0;
        let n = product.len();
        let (packed, weights) = scratch.as_chunks_mut::<W>().0.split_at_mut(n);
        for (packed, s) in packed.iter_mut().zip(s.chunks(k)) {
            // Copies of a length known beforehand take a few instructions, others a call.
            if let Some(columns) = s[block.start..].first_chunk() {
                *packed = *columns;
            } else {
                *packed = [0.0; W];
                packed.iter_mut().zip(&s[block.start..]).for_each(|(packed, s)| *packed = *s);
            }
        }
        multiply_rows(weights, &self.transpose, packed, share);
        multiply_rows(product, &self.x, weights, share);
    }
}

/// out = A S, W columns; entries of A past the rows of S do not count.
fn multiply_rows<const W: usize>(out: &mut [[f64; W]], a: &CsrRows, s: &[[f64; W]], share: bool) {
    if share {
        let rows = part_len(out.len());
        out.par_chunks_mut(rows).enumerate().for_each(|(part, out)| {
            simd::best().dispatch(SparseRows { out, a, first: part * rows, s });
        });
    } else {
        simd::best().dispatch(SparseRows { out, a, first: 0, s });
    }
}

/// Some rows of a sparse matrix, from `first` on, times W columns; every row is summed in registers.
struct SparseRows<'a, const W: usize> {
    out: &'a mut [[f64; W]],
    a: &'a CsrRows,
    first: usize,
    s: &'a [[f64; W]],
}

impl<const W: usize> WithSimd for SparseRows<'_, W> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { out, a, first, s } = self;
        for (out, row) in out.iter_mut().zip(first..) {
            let (columns, values) = a.row(row);
            let end = if s.len() < a.columns() {
                columns.partition_point(|&c| (c as usize) < s.len())
            } else {
                columns.len()
            };
            let (columns, values) = (&columns[..end], &values[..end]);
            // Two sums in turns: one alone would wait for its last addition.
            let mut sums = [[0.0; W]; 2];
            let (pairs, last) = columns.as_chunks::<2>();
            let (pair_values, last_value) = values.as_chunks::<2>();
            for (columns, values) in pairs.iter().zip(pair_values) {
                for lane in 0..2 {
                    add_scaled(simd, &mut sums[lane], values[lane], &s[columns[lane] as usize]);
                }
            }
            for (&column, &value) in last.iter().zip(last_value) {
                add_scaled(simd, &mut sums[0], value, &s[column as usize]);
            }
            for c in 0..W {
                out[c] = sums[0][c] + sums[1][c];
            }
        }
    }
}

/// sums += value · s.
#[inline(always)]
fn add_scaled<S: Simd, const W: usize>(simd: S, sums: &mut [f64; W], value: f64, s: &[f64; W]) {
    let m = simd.splat_f64s(value);
    let (sums, sums_rest) = S::as_mut_simd_f64s(sums);
    let (s, s_rest) = S::as_simd_f64s(s);
    for (sum, s) in sums.iter_mut().zip(s) {
        *sum = simd.mul_add_e_f64s(m, *s, *sum);
    }
    for (sum, s) in sums_rest.iter_mut().zip(s_rest) {
        *sum += value * s;
    }
}

/// Writes the products of all blocks to their columns.
fn gather_blocks(out: &mut [f64], k: usize, products: &[f64], n: usize) {
    let rows = part_len(n);
    out.par_chunks_mut((rows * k).max(1)).enumerate().for_each(|(part, out)| {
        let mut start = 0;
        for block in column_blocks(k) {
            let width = padded(block.len());
            let product = &products[start + part * rows * width..start + n * width];
            start += n * width;
            for (out, product) in out.chunks_mut(k).zip(product.chunks(width)) {
                let out = &mut out[block.start..];
                if let (Some(out), Some(product)) = (out.first_chunk_mut::<BLOCK>(), product.first_chunk()) {
                    *out = *product;
                } else {
                    out.iter_mut().zip(product).for_each(|(out, product)| *out = *product);
                }
            }
        }
    });
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
