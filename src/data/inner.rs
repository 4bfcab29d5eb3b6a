//! Tiles of inner products between rows, the raw material of every covariance function.

use super::Inputs;
use crate::kernel::Shuffle;
use crate::parallel::dot_sequential;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use std::ops::Range;
use std::sync::Arc;

/// Points made ready for tiles: every input shifted and scaled as the covariance function wants it, with squared norms.
#[derive(Debug, Clone)]
pub struct PreparedRows {
    rows: Inputs,
    squared_norms: Vec<f64>,
}

impl PreparedRows {
    /// Multiplies every input by its factor after subtracting its shift. Sparse rows are not shifted: they would become
    /// dense.
    #[must_use]
    pub fn new(x: &Inputs, factors: &[f64], shift: &[f64]) -> Self {
        let rows = match x {
            Inputs::Dense(x) => {
                let mut x = x.to_owned();
                for mut row in x.outer_iter_mut() {
                    row.iter_mut().zip(shift).zip(factors).for_each(|((x, shift), factor)| *x = factor * (*x - shift));
                }
                Inputs::Dense(x.into_shared())
            }
            Inputs::Sparse(x) => {
                let mut x = x.as_ref().clone();
                for row in 0..x.rows() {
                    let (columns, values) = x.row_mut(row);
                    columns.iter().zip(values).for_each(|(&column, value)| *value *= factors[column as usize]);
                }
                Inputs::Sparse(Arc::new(x))
            }
        };
        let squared_norm = |row| {
            let mut sum = 0.0;
            rows.for_row(row, |_, value| sum += value * value);
            sum
        };
        let squared_norms = (0..rows.rows()).map(squared_norm).collect();
        Self { rows, squared_norms }
    }

    /// The points as they came.
    #[must_use]
    pub fn plain(x: &Inputs) -> Self {
        Self { rows: x.clone(), squared_norms: Vec::new() }
    }

    /// Exchanges points.
    pub(crate) fn shuffle(&mut self, shuffle: &Shuffle) {
        self.rows.shuffle(shuffle);
        if !self.squared_norms.is_empty() {
            shuffle.swaps().iter().for_each(|&(a, b)| self.squared_norms.swap(a, b));
        }
    }

    /// The rows.
    #[must_use]
    pub fn rows(&self) -> &Inputs {
        &self.rows
    }

    /// The squared norm of every row.
    #[must_use]
    pub fn squared_norms(&self) -> &[f64] {
        &self.squared_norms
    }
}

/// out[i, j] = the inner product of row i of a and row j of b, for the given rows of each; `scratch` is a thread's own.
pub(crate) fn inner_products(
    out: &mut [f64],
    (a, rows): (&Inputs, Range<usize>),
    (b, columns): (&Inputs, Range<usize>),
    scratch: &mut Vec<f64>,
) {
    let (height, width, d) = (rows.len(), columns.len(), a.columns());
    let out = &mut out[..height * width];
    if let (Inputs::Dense(a), Inputs::Dense(b)) = (a, b)
        && let (Some(a), Some(b)) = (a.as_slice(), b.as_slice())
    {
        let a = MatRef::from_row_major_slice(&a[rows.start * d..rows.end * d], height, d);
        let b = MatRef::from_row_major_slice(&b[columns.start * d..columns.end * d], width, d);
        let out = MatMut::from_row_major_slice_mut(out, height, width);
        return matmul(out, Accum::Replace, a, b.transpose(), 1.0, Par::Seq);
    }
    // One side is sparse: the other is laid out input by input, so that each entry meets a whole row of it.
    scratch.clear();
    scratch.resize(d * width, 0.0);
    for (j, row) in columns.enumerate() {
        b.for_row(row, |column, value| scratch[column * width + j] = value);
    }
    out.fill(0.0);
    for (out, row) in out.chunks_mut(width).zip(rows) {
        a.for_row(row, |column, value| {
            let right = &scratch[column * width..(column + 1) * width];
            out.iter_mut().zip(right).for_each(|(out, right)| *out += value * right);
        });
    }
}

/// Lays rows side by side as dense ones.
pub(crate) fn pack_rows(packed: &mut Vec<f64>, x: &Inputs, rows: Range<usize>) {
    let d = x.columns();
    packed.clear();
    packed.resize(rows.len() * d, 0.0);
    for (packed, row) in packed.chunks_mut(d).zip(rows) {
        x.for_row(row, |column, value| packed[column] = value);
    }
}

/// The squared norm of every row of X.
pub(crate) fn squared_norms(x: &Inputs) -> ndarray::Array1<f64> {
    match x {
        Inputs::Dense(x) => x.outer_iter().map(|row| row.dot(&row)).collect(),
        Inputs::Sparse(x) => (0..x.rows()).map(|row| dot_sequential(x.row(row).1, x.row(row).1)).collect(),
    }
}
