//! What a fitted model says, in terms of its inputs and of its training points.

use super::Model;
use crate::context::Context;
use crate::data::{CsrRows, Inputs, check_shape, row_major_mut};
use crate::error::{Error, Result};
use ndarray::{Array2, ArrayView2, s};
use rayon::prelude::*;

/// Points whose kernel values with all training points are there at once.
const BLOCK: usize = 64;

impl Model {
    /// Whether all functions are weighted sums of the inputs, and a constant.
    #[must_use]
    pub fn is_linear(&self) -> bool {
        self.spec().covariances.iter().all(|covariance| covariance.is_linear())
    }

    /// The weight of every input in every independent function ŭ_p, one row an input; fails unless all kernels are linear.
    pub fn function_weights(&self, context: &Context) -> Result<Array2<f64>> {
        if let Some(other) = self.spec().covariances.iter().find(|covariance| !covariance.is_linear()) {
            return Err(Error::NeedsLinear { kernel: other.name() });
        }
        // A linear function has its weights at the points that have one input of 1.
        let inputs = self.train().columns();
        let columns = (0..u32::MAX).take(inputs).collect();
        let units = CsrRows::new((0..=inputs).collect(), columns, vec![1.0; inputs], inputs)?;
        self.function_values(context, &Inputs::sparse(units)?)
    }

    /// The weight of every input in the function of every class, one row an input; fails unless all kernels are linear.
    pub fn class_weights(&self, context: &Context) -> Result<Array2<f64>> {
        let weights = self.function_weights(context)?;
        context.install(|| self.to_classes(weights.view()))
    }

    /// How much every training point adds to Σ_c d_c u_c(x), for every row x of the inputs with the row d of `directions`:
    /// one row for every x, one column for every training point. What is missing to the value are the intercepts.
    pub fn contributions(&self, context: &Context, x: &Inputs, directions: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let (points, mixing) = (self.alpha().nrows(), &self.spec().mixing);
        check_shape("there must be a direction for every point", x.rows(), directions.nrows())?;
        check_shape("directions must have a column for every class", mixing.classes(), directions.ncols())?;
        let needed = ((x.rows() + BLOCK) as u64).saturating_mul((points * size_of::<f64>()) as u64);
        context.plan_memory("the contributions of all training points", needed)?;
        context.install(|| {
            let mut functions = Array2::zeros((x.rows(), mixing.functions()));
            mixing.to_functions(functions.view_mut(), directions)?;
            let mut out = Array2::zeros((x.rows(), points));
            for (covariance, (users, coefficients)) in self.spec().covariances.iter().zip(self.coefficients()) {
                for start in (0..x.rows()).step_by(BLOCK) {
                    let rows = start..(start + BLOCK).min(x.rows());
                    // Most classes use few of the functions.
                    let used = |row: usize| -> Vec<(usize, f64)> {
                        let weights = users.iter().map(|&p| functions[[row, p]]).enumerate();
                        weights.filter(|(_, weight)| *weight != 0.0).collect()
                    };
                    let used: Vec<_> = rows.clone().map(used).collect();
                    if used.iter().all(Vec::is_empty) {
                        continue;
                    }
                    let matrix = covariance.cross_matrix(context, &x.slice(rows.clone()), self.train())?;
                    let mut out = out.slice_mut(s![rows, ..]);
                    let out = row_major_mut("the contributions", &mut out)?;
                    out.par_chunks_mut(points).zip(&used).enumerate().for_each(|(row, (out, used))| {
                        for (i, out) in out.iter_mut().enumerate() {
                            let coefficient: f64 = used.iter().map(|&(k, weight)| weight * coefficients[[i, k]]).sum();
                            *out += coefficient * matrix[[i, row]];
                        }
                    });
                }
            }
            Ok(out)
        })
    }
}
