//! Scaling of inputs, learned from the training points and applied to every point that comes later.

use super::{Inputs, check_shape};
use crate::error::Result;
use crate::memory;
use crate::parallel::dot_sequential;
use ndarray::{Array2, ArrayView1, Axis};
use std::sync::Arc;

/// How inputs are scaled before the kernel sees them.
#[derive(Debug, Clone, PartialEq)]
pub enum Scaling {
    /// As they are.
    None,
    /// Dense columns: subtract `mean`, multiply by `factor`.
    Standardise {
        /// Mean of every column.
        mean: Vec<f64>,
        /// One over the standard deviation of every column; 1 for constant ones.
        factor: Vec<f64>,
    },
    /// Rows divided by their Euclidean norm; rows of zeros stay.
    UnitNorm,
}

impl Scaling {
    /// Standardises dense columns (each point counting with its weight) and gives sparse rows unit norm.
    #[must_use]
    pub fn automatic(x: &Inputs, weights: Option<ArrayView1<'_, f64>>) -> Self {
        if matches!(x, Inputs::Sparse(_)) {
            return Self::UnitNorm;
        }
        let (mean, variance) = x.column_moments(weights);
        // A constant column has a variance of rounding errors only.
        let constant = |m: f64, v: f64| v <= (10.0 * f64::EPSILON * m).powi(2) || v == 0.0;
        let factor = mean.iter().zip(&variance).map(|(&m, &v)| if constant(m, v) { 1.0 } else { v.sqrt().recip() });
        Self::Standardise { factor: factor.collect(), mean }
    }

    /// Scales inputs, in place where nothing else holds them.
    pub fn apply(&self, x: Inputs) -> Result<Inputs> {
        match (self, x) {
            (Self::None, x) => Ok(x),
            (Self::Standardise { mean, factor }, Inputs::Dense(x)) => {
                let mut x = x.into_owned();
                for mut row in x.axis_iter_mut(Axis(0)) {
                    for ((value, m), f) in row.iter_mut().zip(mean).zip(factor) {
                        *value = (*value - m) * f;
                    }
                }
                Inputs::dense(x)
            }
            (Self::Standardise { .. }, Inputs::Sparse(x)) => {
                let entries = (x.rows() as u64).saturating_mul(x.columns() as u64);
                memory::check("inputs that are standardised, with all their zeros,", entries.saturating_mul(8))?;
                let mut dense = Array2::zeros((x.rows(), x.columns()));
                for row in 0..x.rows() {
                    let (columns, values) = x.row(row);
                    columns.iter().zip(values).for_each(|(&column, &value)| dense[[row, column as usize]] = value);
                }
                self.apply(Inputs::dense(dense)?)
            }
            (Self::UnitNorm, Inputs::Dense(x)) => {
                let mut x = x.into_owned();
                x.axis_iter_mut(Axis(0)).for_each(|mut row| {
                    let scale = 1.0 / unit_or_norm(row.iter().map(|v| v * v).sum());
                    row.mapv_inplace(|v| v * scale);
                });
                Inputs::dense(x)
            }
            (Self::UnitNorm, Inputs::Sparse(x)) => {
                let mut x = Arc::unwrap_or_clone(x);
                for row in 0..x.rows() {
                    let (_, values) = x.row_mut(row);
                    let scale = 1.0 / unit_or_norm(dot_sequential(values, values));
                    values.iter_mut().for_each(|v| *v *= scale);
                }
                Inputs::sparse(x)
            }
        }
    }

    /// Turns weights of scaled inputs, one row for each, into those of the inputs as they come. Rows of unit norm have no
    /// such weights: there they stay those of the scaled inputs.
    pub fn unscale_weights(&self, weights: &mut Array2<f64>) -> Result<()> {
        let Self::Standardise { factor, .. } = self else { return Ok(()) };
        check_shape("there must be a row of weights for every input", factor.len(), weights.nrows())?;
        weights.outer_iter_mut().zip(factor).for_each(|(mut row, factor)| row *= *factor);
        Ok(())
    }
}

/// The norm, or 1 where it is zero.
fn unit_or_norm(square: f64) -> f64 {
    if square > 0.0 { square.sqrt() } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::CsrRows;
    use ndarray::array;

    #[test]
    fn standardises_columns_and_leaves_constant_ones_finite() {
        let x = Inputs::dense(array![[1.0, 1e6], [3.0, 1e6]]).unwrap();
        let scaled = Scaling::automatic(&x, None).apply(x).unwrap();
        assert_eq!(scaled, Inputs::dense(array![[-1.0, 0.0], [1.0, 0.0]]).unwrap());
    }

    #[test]
    fn gives_sparse_rows_unit_norm_and_keeps_empty_ones() {
        let rows = CsrRows::new(vec![0, 2, 2], vec![0, 2], vec![3.0, 4.0], 3).unwrap();
        let x = Inputs::sparse(rows).unwrap();
        let Inputs::Sparse(scaled) = Scaling::automatic(&x, None).apply(x).unwrap() else { unreachable!() };
        assert!((scaled.row(0).1[0] - 0.6).abs() < 1e-15 && (scaled.row(0).1[1] - 0.8).abs() < 1e-15);
    }
}
