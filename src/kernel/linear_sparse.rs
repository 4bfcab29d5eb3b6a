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
    /// Xᵀ as compressed rows, so that both halves of the product write each row of their result once; cut where X is so
    /// large that it would come from memory for every block of columns.
    transposes: Vec<CsrRows>,
}

impl LinearSparse {
    /// The rows are shared, not copied; their transpose is made.
    #[must_use]
    pub fn new(x: &Arc<CsrRows>) -> Self {
        Self::cut(x, rows_at_once(x))
    }

    /// With so many rows of X at once.
    fn cut(x: &Arc<CsrRows>, rows: usize) -> Self {
        let transposes = if rows >= x.rows() {
            vec![x.transpose()]
        } else {
            let one = |start: usize| x.select(start..(start + rows).min(x.rows())).transpose();
            (0..x.rows()).step_by(rows).map(one).collect()
        };
        Self { transposes, x: Arc::clone(x) }
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
        out: ArrayViewMut2<'_, f64>,
        s: ArrayView2<'_, f64>,
    ) -> Result<()> {
        self.apply_scaled(context, work, out, s, &|_| 1.0)
    }

    fn apply_scaled(
        &self,
        context: &Context,
        work: &mut Workspace,
        mut out: ArrayViewMut2<'_, f64>,
        s: ArrayView2<'_, f64>,
        factor: &(dyn Fn(usize) -> f64 + Sync),
    ) -> Result<()> {
        let (n, k) = s.dim();
        check_corner(self.points(), n)?;
        check_shape("the rows of the product must be those of S", n, out.nrows())?;
        check_shape("the columns of the product must be those of S", k, out.ncols())?;
        if n == 0 || k == 0 {
            return Ok(());
        }
        let (s, out) = (row_major("S", &s)?, row_major_mut("the product", &mut out)?);
        let at_once = self.blocks_at_once().min(k.div_ceil(BLOCK));
        let Shares { run, groups, .. } = Shares::new(at_once);
        let mut products = work.take(groups * run * self.rows_at_once().min(n) * BLOCK);
        let mut scratch = work.take(groups * self.room(run));
        let done = (0..k).step_by(at_once * BLOCK).try_for_each(|start| {
            let columns = start..(start + at_once * BLOCK).min(k);
            self.multiply(context, (&mut *out, s, k), &columns, [&mut scratch, &mut products], factor)
        });
        work.give(products);
        work.give(scratch);
        done
    }

    fn shuffle(&mut self, shuffle: &Shuffle) {
        *self = Self::cut(&Arc::new(self.x.select(shuffle.order(self.x.rows()))), self.rows_at_once());
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

/// Entries of X that are worked on at once, for several blocks of columns: these and their transpose stay in the cache that
/// all cores share, where X would come from memory for every block. Measured on 64000 documents of 57 words, 64 columns:
/// 50 ms without, about 35 with 2¹⁶ to 2¹⁸ entries.
const ENTRIES: usize = 1 << 18;
/// The same for every column of X: all of Xᵀ S is gone through for each part of X.
const ENTRIES_PER_COLUMN: usize = 8;
/// Bytes of Xᵀ S that a thread has for blocks of columns that X is gone through once for.
const AT_ONCE: usize = 4 << 20;

/// Rows of X that are worked on at once.
fn rows_at_once(x: &CsrRows) -> usize {
    let most = ENTRIES.max(ENTRIES_PER_COLUMN * x.columns());
    // What is not much larger is not cut.
    let parts = if x.entries() <= 2 * most { 1 } else { x.entries().div_ceil(most) };
    x.rows().div_ceil(parts).max(1)
}

/// The width with which a block is kept, where so many columns or more are left: whole registers.
fn padded(columns: usize) -> usize {
    match columns {
        0 | 1 => 1,
        2..=4 => 4,
        _ => BLOCK,
    }
}

impl LinearSparse {
    fn rows_at_once(&self) -> usize {
        self.transposes.first().map_or(1, CsrRows::columns).max(1)
    }

    /// Entries of Xᵀ S for a block of columns.
    fn block_len(&self) -> usize {
        self.x.columns().max(1) * BLOCK
    }

    /// Blocks of columns for which X is gone through once: some for every thread.
    fn blocks_at_once(&self) -> usize {
        rayon::current_num_threads() * (AT_ONCE / (self.block_len() * size_of::<f64>())).max(1)
    }

    /// Room that a group of so many blocks needs: for a part of S, and for Xᵀ S. Blocks follow each other where X is not cut.
    fn room(&self, blocks: usize) -> usize {
        let kept = if self.is_cut() { blocks } else { 1 };
        self.rows_at_once() * BLOCK + kept * self.block_len()
    }

    fn is_cut(&self) -> bool {
        self.transposes.len() > 1
    }

    /// X (Xᵀ S) for some columns, each times its factor; products of a part of the rows wait until all columns are there.
    fn multiply(
        &self,
        context: &Context,
        (out, s, k): (&mut [f64], &[f64], usize),
        columns: &Range<usize>,
        [scratch, products]: [&mut [f64]; 2],
        factor: &(dyn Fn(usize) -> f64 + Sync),
    ) -> Result<()> {
        let (n, rows) = (s.len() / k, self.rows_at_once());
        let shares = Shares::new(columns.len().div_ceil(BLOCK));
        let blocks = |group: usize| columns.clone().step_by(BLOCK).skip(group * shares.run).take(shares.run);
        let width = |start: usize| padded(columns.end - start);
        let product_len = rows.min(n) * BLOCK;
        let lens = [self.room(shares.run), shares.run * product_len];
        shares.each([scratch, products], lens, |group, [scratch, products]| {
            let (packed, weights) = scratch.split_at_mut(rows * BLOCK);
            if let [transpose] = self.transposes.as_slice() {
                for (start, product) in blocks(group).zip(products.chunks_mut(product_len)) {
                    context.check()?;
                    let from = (s, k, start);
                    to_weights(width(start), weights, transpose, packed, from, (false, shares.within));
                    from_weights(width(start), product, (&self.x, 0..n), weights, shares.within);
                }
                return Ok(());
            }
            for (part, (transpose, s)) in self.transposes.iter().zip(s.chunks(rows * k)).enumerate() {
                for (start, weights) in blocks(group).zip(weights.chunks_mut(self.block_len())) {
                    context.check()?;
                    let from = (s, k, start);
                    to_weights(width(start), weights, transpose, packed, from, (part > 0, shares.within));
                }
            }
            Ok(())
        })?;
        for (part, out) in out.chunks_mut(rows * k).enumerate() {
            let points = part * rows..((part + 1) * rows).min(n);
            if self.is_cut() {
                shares.each([&mut *scratch, &mut *products], lens, |group, [scratch, products]| {
                    let weights = scratch[rows * BLOCK..].chunks(self.block_len());
                    for (start, (weights, product)) in blocks(group).zip(weights.zip(products.chunks_mut(product_len)))
                    {
                        context.check()?;
                        from_weights(width(start), product, (&self.x, points.clone()), weights, shares.within);
                    }
                    Ok(())
                })?;
            }
            gather_blocks((out, k), columns, products, product_len, factor);
        }
        Ok(())
    }
}

/// How blocks are given to threads.
struct Shares {
    /// Blocks for each thread, one group of them for every one.
    run: usize,
    groups: usize,
    /// Whether all threads work on every block instead.
    within: bool,
}

impl Shares {
    /// Whole blocks go to threads where there are enough of them, since each then keeps its block in its own cache; otherwise
    /// all threads share each block. The sums are the same.
    fn new(blocks: usize) -> Self {
        let threads = rayon::current_num_threads();
        let within = blocks < threads;
        let run = if within { blocks } else { blocks.div_ceil(threads) };
        Self { run, groups: blocks.div_ceil(run), within }
    }

    /// Calls `work` for every group, with its parts of two arrays.
    fn each(
        &self,
        arrays: [&mut [f64]; 2],
        lens: [usize; 2],
        work: impl Fn(usize, [&mut [f64]; 2]) -> Result<()> + Sync,
    ) -> Result<()> {
        let one = |(group, (first, second)): (usize, (&mut [f64], &mut [f64]))| work(group, [first, second]);
        let [first, second] = arrays;
        let (first, second) = (&mut first[..self.groups * lens[0]], &mut second[..self.groups * lens[1]]);
        if self.within {
            return first.chunks_mut(lens[0]).zip(second.chunks_mut(lens[1])).enumerate().try_for_each(one);
        }
        first.par_chunks_mut(lens[0]).zip(second.par_chunks_mut(lens[1])).enumerate().try_for_each(one)
    }
}

/// weights = Xᵀ S, or weights += Xᵀ S, for some rows of X and of S, and the given number of columns.
fn to_weights(
    width: usize,
    weights: &mut [f64],
    transpose: &CsrRows,
    packed: &mut [f64],
    from: (&[f64], usize, usize),
    how: (bool, bool),
) {
    match width {
        1 => to_weights_of::<1>(weights, transpose, packed, from, how),
        4 => to_weights_of::<4>(weights, transpose, packed, from, how),
        _ => to_weights_of::<BLOCK>(weights, transpose, packed, from, how),
    }
}

fn to_weights_of<const W: usize>(
    weights: &mut [f64],
    transpose: &CsrRows,
    packed: &mut [f64],
    (s, k, start): (&[f64], usize, usize),
    (add, share): (bool, bool),
) {
    let packed = &mut packed.as_chunks_mut::<W>().0[..s.len() / k];
    for (packed, s) in packed.iter_mut().zip(s.chunks(k)) {
        // Copies of a length known beforehand take a few instructions, others a call.
        if let Some(columns) = s[start..].first_chunk() {
            *packed = *columns;
        } else {
            *packed = [0.0; W];
            packed.iter_mut().zip(&s[start..]).for_each(|(packed, s)| *packed = *s);
        }
    }
    let weights = &mut weights.as_chunks_mut::<W>().0[..transpose.rows()];
    multiply_rows(weights, (transpose, 0), packed, add, share);
}

/// product = X weights, for some rows of X and the given number of columns.
fn from_weights(width: usize, product: &mut [f64], (x, rows): (&CsrRows, Range<usize>), weights: &[f64], share: bool) {
    let (count, d) = (rows.len(), x.columns());
    let from = (x, rows.start);
    match width {
        1 => from_weights_of::<1>(product, from, (count, d), weights, share),
        4 => from_weights_of::<4>(product, from, (count, d), weights, share),
        _ => from_weights_of::<BLOCK>(product, from, (count, d), weights, share),
    }
}

fn from_weights_of<const W: usize>(
    product: &mut [f64],
    from: (&CsrRows, usize),
    (count, d): (usize, usize),
    weights: &[f64],
    share: bool,
) {
    let product = &mut product.as_chunks_mut::<W>().0[..count];
    multiply_rows(product, from, &weights.as_chunks::<W>().0[..d], false, share);
}

/// out = A S, or out += A S, for the rows of A from `first` on and W columns; entries of A past the rows of S do not count.
fn multiply_rows<const W: usize>(
    out: &mut [[f64; W]],
    (a, first): (&CsrRows, usize),
    s: &[[f64; W]],
    add: bool,
    share: bool,
) {
    if share {
        let rows = part_len(out.len());
        out.par_chunks_mut(rows).enumerate().for_each(|(part, out)| {
            simd::best().dispatch(SparseRows { out, a, first: first + part * rows, s, add });
        });
    } else {
        simd::best().dispatch(SparseRows { out, a, first, s, add });
    }
}

/// Some rows of a sparse matrix, from `first` on, times W columns; every row is summed in registers.
struct SparseRows<'a, const W: usize> {
    out: &'a mut [[f64; W]],
    a: &'a CsrRows,
    first: usize,
    s: &'a [[f64; W]],
    /// Whether the product is added to what is there.
    add: bool,
}

impl<const W: usize> WithSimd for SparseRows<'_, W> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { out, a, first, s, add } = self;
        for (out, row) in out.iter_mut().zip(first..) {
            let (columns, values) = a.row(row);
            let end = if s.len() < a.columns() {
                columns.partition_point(|&c| (c as usize) < s.len())
            } else {
                columns.len()
            };
            let (columns, values) = (&columns[..end], &values[..end]);
            // Two sums in turns: one alone would wait for its last addition.
            let mut sums = [if add { *out } else { [0.0; W] }, [0.0; W]];
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

/// Writes the products of some columns to their places in an array of k, each times its factor.
fn gather_blocks(
    (out, k): (&mut [f64], usize),
    columns: &Range<usize>,
    products: &[f64],
    product_len: usize,
    factor: &(dyn Fn(usize) -> f64 + Sync),
) {
    let rows = part_len(out.len() / k);
    out.par_chunks_mut(rows * k).enumerate().for_each(|(part, out)| {
        for (start, product) in columns.clone().step_by(BLOCK).zip(products.chunks(product_len)) {
            let count = BLOCK.min(columns.end - start);
            let width = padded(count);
            let factors: [f64; BLOCK] = std::array::from_fn(|c| if c < count { factor(start + c) } else { 0.0 });
            for (out, product) in out.chunks_mut(k).zip(product.chunks(width).skip(part * rows)) {
                let out = &mut out[start..start + count];
                if let (Some(out), Some(product)) = (out.first_chunk_mut::<BLOCK>(), product.first_chunk::<BLOCK>()) {
                    *out = std::array::from_fn(|c| factors[c] * product[c]);
                } else {
                    let scaled = product.iter().zip(factors);
                    out.iter_mut().zip(scaled).for_each(|(out, (product, factor))| *out = factor * product);
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

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    /// Some sparse rows, one of them empty, and the same as a dense array.
    fn rows(n: usize, d: usize) -> (Arc<CsrRows>, Array2<f64>) {
        let entry = |i: usize, j: usize| {
            let mixed = (i * 7919 + j * 104_729) % 97;
            if i == 5 || mixed > 30 { 0.0 } else { mixed as f64 / 10.0 - 1.0 }
        };
        let dense = Array2::from_shape_fn((n, d), |(i, j)| entry(i, j));
        let (mut offsets, mut indices, mut values) = (vec![0], vec![], vec![]);
        for row in dense.outer_iter() {
            for (column, &value) in (0..).zip(row).filter(|(_, value)| **value != 0.0) {
                indices.push(column);
                values.push(value);
            }
            offsets.push(values.len());
        }
        (Arc::new(CsrRows::new(offsets, indices, values, d).unwrap()), dense)
    }

    #[test]
    fn rows_that_are_cut_give_the_same_products_on_any_number_of_threads() {
        let (n, d) = (60, 19);
        let (x, dense) = rows(n, d);
        let gram = dense.dot(&dense.t());
        for (leading, k, at_once) in [n, 29, 7, 1]
            .into_iter()
            .flat_map(|n| [1, 3, 8, 12, 75].map(|k| (n, k)))
            .flat_map(|(n, k)| [60, 59, 13, 1].map(|at_once| (n, k, at_once)))
        {
            let operator = LinearSparse::cut(&x, at_once);
            let s = Array2::from_shape_fn((leading, k), |(i, c)| ((i * 31 + c * 17) % 23) as f64 / 7.0 - 1.5);
            let expected = gram.slice(ndarray::s![..leading, ..leading]).dot(&s);
            let mut first: Option<Array2<f64>> = None;
            for threads in [1, 2, 5] {
                let context = Context::new(Some(threads)).unwrap();
                let mut out = Array2::from_elem((leading, k), f64::NAN);
                let mut work = Workspace::default();
                context.install(|| operator.apply(&context, &mut work, out.view_mut(), s.view())).unwrap();
                let worst = (&out - &expected).iter().fold(0.0, |m: f64, x| m.max(x.abs()));
                assert!(worst < 1e-10, "n = {leading}, k = {k}, {at_once} rows at once: off by {worst}");
                assert_eq!(*first.get_or_insert_with(|| out.clone()), out, "{threads} threads give other bits");
            }
        }
    }

    #[test]
    fn only_what_is_large_is_cut_and_into_parts_of_the_same_size() {
        let columns = 40_000;
        let many = |rows: usize| {
            let words = 60;
            let indices = (0..rows).flat_map(|_| 0..words).collect();
            let offsets = (0..=rows).map(|row| row * words as usize).collect();
            CsrRows::new(offsets, indices, vec![1.0; rows * words as usize], columns).unwrap()
        };
        // ENTRIES_PER_COLUMN entries for each of the columns.
        let most = ENTRIES_PER_COLUMN * columns / 60;
        assert_eq!(rows_at_once(&many(2 * most)), 2 * most);
        assert_eq!(rows_at_once(&many(2 * most + 2)), (2 * most + 2).div_ceil(3));
        assert_eq!(rows_at_once(&many(0)), 1);
    }
}
