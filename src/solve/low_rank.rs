//! A low-rank approximation M ≈ L Lᵀ of the kernel matrix, by Cholesky factors with pivots.

use crate::context::Context;
use crate::error::Result;
use crate::kernel::KernelOperator;
use crate::parallel::update;
use crate::workspace::Workspace;
use ndarray::Array2;

/// L.
#[derive(Debug)]
pub(super) struct LowRank {
    /// n × r.
    pub factor: Array2<f64>,
}

impl LowRank {
    /// Of the leading n points, takes the column with the largest remaining diagonal entry, again and again, until that entry is at most
    /// `negligible` or the rank is `most`.
    pub(super) fn new(
        context: &Context,
        work: &mut Workspace,
        (matrix, n): (&dyn KernelOperator, usize),
        most: usize,
        negligible: f64,
    ) -> Result<Self> {
        let mut remaining = matrix.diagonal().to_vec();
        remaining.truncate(n);
        // One row of Lᵀ after the other: they are long, and read as often as they are written.
        let mut columns: Vec<Vec<f64>> = Vec::new();
        while columns.len() < most.min(n) {
            context.check()?;
            let largest = (0..n).fold(0, |best, i| if remaining[i] > remaining[best] { i } else { best });
            let pivot = remaining[largest];
            if pivot.is_nan() || pivot <= negligible {
                break;
            }
            let mut column = vec![0.0; n];
            matrix.column(context, work, largest, &mut column)?;
            for earlier in &columns {
                let factor = earlier[largest];
                update(&mut column, [earlier], |column, [earlier]| {
                    column.iter_mut().zip(earlier).for_each(|(column, earlier)| *column -= factor * earlier);
                });
            }
            let root = pivot.sqrt();
            for (column, remaining) in column.iter_mut().zip(&mut remaining) {
                *column /= root;
                *remaining = (*remaining - *column * *column).max(0.0);
            }
            remaining[largest] = 0.0;
            columns.push(column);
        }
        Ok(Self { factor: Array2::from_shape_fn((n, columns.len()), |(i, j)| columns[j][i]) })
    }
}
