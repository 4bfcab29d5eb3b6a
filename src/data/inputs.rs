//! Inputs: one row a point, dense or sparse, finite.

use super::CsrRows;
use crate::error::{Error, Result};
use crate::kernel::Shuffle;
use ndarray::{ArcArray2, Array2, ArrayView1, Axis, s};
use std::ops::Range;
use std::sync::Arc;

/// The inputs of n points, one row each; checked to be finite when made through [`Inputs::dense`] or [`Inputs::sparse`].
/// A clone shares the entries.
#[derive(Debug, Clone, PartialEq)]
pub enum Inputs {
    /// A row-major array.
    Dense(ArcArray2<f64>),
    /// Compressed sparse rows.
    Sparse(Arc<CsrRows>),
}

impl Inputs {
    /// Dense rows. An array in another memory order is copied into row-major order.
    pub fn dense(x: Array2<f64>) -> Result<Self> {
        if let Some(((row, column), &value)) = x.indexed_iter().find(|(_, value)| !value.is_finite()) {
            return Err(Error::NonFiniteInput { row, column, value });
        }
        let x = if x.is_standard_layout() { x } else { x.as_standard_layout().into_owned() };
        Self::Dense(x.into_shared()).not_empty()
    }

    /// Sparse rows.
    pub fn sparse(x: CsrRows) -> Result<Self> {
        for row in 0..x.rows() {
            let (columns, values) = x.row(row);
            if let Some(i) = values.iter().position(|value| !value.is_finite()) {
                return Err(Error::NonFiniteInput { row, column: columns[i] as usize, value: values[i] });
            }
        }
        Self::Sparse(Arc::new(x)).not_empty()
    }

    fn not_empty(self) -> Result<Self> {
        let (rows, columns) = (self.rows(), self.columns());
        if rows == 0 || columns == 0 { Err(Error::EmptyInput { rows, columns }) } else { Ok(self) }
    }

    /// Number of points.
    #[must_use]
    pub fn rows(&self) -> usize {
        match self {
            Self::Dense(x) => x.nrows(),
            Self::Sparse(x) => x.rows(),
        }
    }

    /// Number of inputs of a point.
    #[must_use]
    pub fn columns(&self) -> usize {
        match self {
            Self::Dense(x) => x.ncols(),
            Self::Sparse(x) => x.columns(),
        }
    }

    /// Calls `visit(column, value)` for the entries of a row that may differ from zero.
    pub fn for_row(&self, row: usize, mut visit: impl FnMut(usize, f64)) {
        match self {
            Self::Dense(x) => x.row(row).iter().enumerate().for_each(|(column, &value)| visit(column, value)),
            Self::Sparse(x) => {
                let (columns, values) = x.row(row);
                columns.iter().zip(values).for_each(|(&column, &value)| visit(column as usize, value));
            }
        }
    }

    /// Some of the rows.
    #[must_use]
    pub fn slice(&self, rows: Range<usize>) -> Self {
        match self {
            Self::Dense(x) => Self::Dense(x.clone().slice_move(s![rows, ..])),
            Self::Sparse(x) => Self::Sparse(Arc::new(x.select(rows))),
        }
    }

    /// Some of the rows, in the given order.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        match self {
            Self::Dense(x) => Self::Dense(x.select(Axis(0), rows).into_shared()),
            Self::Sparse(x) => Self::Sparse(Arc::new(x.select(rows.iter().copied()))),
        }
    }

    /// Some of the columns, in the given order. Fails where one is not there.
    pub fn select_columns(&self, columns: &[usize]) -> Result<Self> {
        let found = self.columns();
        if let Some(&column) = columns.iter().find(|&&column| column >= found) {
            return Err(Error::UnknownColumn { column, columns: found });
        }
        match self {
            Self::Dense(x) => {
                // Selecting columns may change the memory order.
                Self::Dense(x.select(Axis(1), columns).as_standard_layout().into_owned().into_shared())
            }
            Self::Sparse(x) => Self::Sparse(Arc::new(x.select_columns(columns)?)),
        }
        .not_empty()
    }

    /// Every column times its factor.
    #[must_use]
    pub(crate) fn scale_columns(&self, factors: &[f64]) -> Self {
        match self {
            Self::Dense(x) => Self::Dense((x.to_owned() * ArrayView1::from(factors)).into_shared()),
            Self::Sparse(x) => {
                let mut scaled = CsrRows::clone(x);
                for row in 0..scaled.rows() {
                    let (columns, values) = scaled.row_mut(row);
                    values.iter_mut().zip(columns).for_each(|(value, &column)| *value *= factors[column as usize]);
                }
                Self::Sparse(Arc::new(scaled))
            }
        }
    }

    /// A point near those of `self` and `other`: the first one of `other` where both are dense, else the origin, for sparse
    /// rows cannot be shifted.
    #[must_use]
    pub(crate) fn common_origin(&self, other: &Self) -> Vec<f64> {
        match (self, other) {
            (Self::Dense(_), Self::Dense(other)) => other.row(0).to_vec(),
            _ => vec![0.0; self.columns()],
        }
    }

    /// Exchanges points.
    pub(crate) fn shuffle(&mut self, shuffle: &Shuffle) {
        match self {
            Self::Dense(x) => {
                for &(a, b) in shuffle.swaps() {
                    let (mut a, mut b) = x.multi_slice_mut((s![a, ..], s![b, ..]));
                    a.iter_mut().zip(&mut b).for_each(|(a, b)| std::mem::swap(a, b));
                }
            }
            Self::Sparse(x) => *x = Arc::new(x.select(shuffle.order(x.rows()))),
        }
    }

    /// Weighted mean and variance of every column; each point counts with its weight.
    #[must_use]
    pub fn column_moments(&self, weights: Option<ArrayView1<'_, f64>>) -> (Vec<f64>, Vec<f64>) {
        let weight = |row: usize| weights.as_ref().map_or(1.0, |w| w[row]);
        let total: f64 = (0..self.rows()).map(weight).sum();
        let mut mean = vec![0.0; self.columns()];
        for row in 0..self.rows() {
            self.for_row(row, |column, value| mean[column] += weight(row) / total * value);
        }
        // Squares are taken about the mean: Σ w (x - m)², where a sparse row's missing entries give m² each.
        let mut variance: Vec<f64> = match self {
            Self::Dense(_) => vec![0.0; self.columns()],
            Self::Sparse(_) => mean.iter().map(|m| m * m).collect(),
        };
        let sparse = matches!(self, Self::Sparse(_));
        for row in 0..self.rows() {
            self.for_row(row, |column, value| {
                let m = mean[column];
                let about_zero = if sparse { m * m } else { 0.0 };
                variance[column] += weight(row) / total * ((value - m).powi(2) - about_zero);
            });
        }
        variance.iter_mut().for_each(|v| *v = v.max(0.0));
        (mean, variance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn names_the_first_entry_that_is_not_finite() {
        let error = Inputs::dense(array![[1.0, 2.0], [3.0, f64::NAN]]).unwrap_err();
        assert!(matches!(error, Error::NonFiniteInput { row: 1, column: 1, .. }));
        let rows = CsrRows::new(vec![0, 1, 2], vec![4, 3], vec![1.0, f64::INFINITY], 5).unwrap();
        let error = Inputs::sparse(rows).unwrap_err();
        assert!(matches!(error, Error::NonFiniteInput { row: 1, column: 3, .. }));
    }

    #[test]
    fn moments_agree_for_dense_and_sparse_rows_and_a_weight_is_a_repetition() {
        let dense = Inputs::dense(array![[1.0, 0.0], [3.0, 2.0], [3.0, 2.0]]).unwrap();
        let rows = CsrRows::new(vec![0, 1, 3], vec![0, 0, 1], vec![1.0, 3.0, 2.0], 2).unwrap();
        let sparse = Inputs::sparse(rows).unwrap();
        let (mean, variance) = dense.column_moments(None);
        let (mean_s, variance_s) = sparse.column_moments(Some(array![1.0, 2.0].view()));
        for j in 0..2 {
            assert!((mean[j] - mean_s[j]).abs() < 1e-15);
            assert!((variance[j] - variance_s[j]).abs() < 1e-15);
        }
    }
}
