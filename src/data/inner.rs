//! Tiles of inner products between rows, the raw material of every covariance function.

use super::Inputs;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use std::ops::Range;

/// Buffers of one thread for tiles of inner products.
#[derive(Debug, Default)]
pub(crate) struct TileScratch {
    left: Vec<f64>,
    right: Vec<f64>,
}

/// out[i, j] = Σ_d s_d (a_id − m_d)(b_jd − m_d) for the given rows of a and columns (rows of b), with a factor s_d and a
/// shift m_d for every input. Sparse rows are not shifted: they would become dense.
pub(crate) fn inner_products(
    out: &mut [f64],
    (a, rows): (&Inputs, Range<usize>),
    (b, columns): (&Inputs, Range<usize>),
    (factor, shift): (&[f64], &[f64]),
    scratch: &mut TileScratch,
) {
    let (height, width, d) = (rows.len(), columns.len(), a.columns());
    let out = &mut out[..height * width];
    if let (Inputs::Dense(_), Inputs::Dense(_)) = (a, b) {
        pack_rows(&mut scratch.left, a, rows, |column, value| factor[column] * (value - shift[column]));
        pack_rows(&mut scratch.right, b, columns, |column, value| value - shift[column]);
        let left = MatRef::from_row_major_slice(&scratch.left[..], height, d);
        let right = MatRef::from_row_major_slice(&scratch.right[..], width, d);
        let out = MatMut::from_row_major_slice_mut(out, height, width);
        return matmul(out, Accum::Replace, left, right.transpose(), 1.0, Par::Seq);
    }
    // One side is sparse: the other is laid out input by input, so that each entry meets a whole row of it.
    scratch.right.clear();
    scratch.right.resize(d * width, 0.0);
    for (j, row) in columns.enumerate() {
        b.for_row(row, |column, value| scratch.right[column * width + j] = factor[column] * value);
    }
    out.fill(0.0);
    for (out, row) in out.chunks_mut(width).zip(rows) {
        a.for_row(row, |column, value| {
            let right = &scratch.right[column * width..(column + 1) * width];
            out.iter_mut().zip(right).for_each(|(out, right)| *out += value * right);
        });
    }
}

/// Lays rows side by side as dense ones, each stored entry changed by `change(column, value)`.
pub(crate) fn pack_rows(packed: &mut Vec<f64>, x: &Inputs, rows: Range<usize>, change: impl Fn(usize, f64) -> f64) {
    let d = x.columns();
    packed.clear();
    packed.resize(rows.len() * d, 0.0);
    for (packed, row) in packed.chunks_mut(d).zip(rows) {
        x.for_row(row, |column, value| packed[column] = change(column, value));
    }
}
