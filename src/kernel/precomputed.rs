//! Kernel matrices that the user computes.

use super::cross::check_cross;
use super::linear_dense::dense_multiply;
use super::packed::PackedSymmetric;
use super::symmetric::{SymmetricTiles, check_corner, multiply};
use super::{Covariance, KernelOperator, Parameter, Precision, Shuffle};
use crate::context::Context;
use crate::data::{Inputs, check_shape};
use crate::error::{Error, Result};
use crate::workspace::Workspace;
use ndarray::{ArcArray2, Array1, Array2, ArrayView2, ArrayViewMut2, s};
use std::sync::Arc;

/// The inputs are the kernel matrix itself: n × n for training, test points × n for prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Precomputed;

impl Covariance for Precomputed {
    fn name(&self) -> &'static str {
        "precomputed"
    }

    fn parameters(&self) -> Vec<Parameter> {
        Vec::new()
    }

    fn with_parameters(&self, values: &[f64]) -> Result<Arc<dyn Covariance>> {
        check_shape("the number of shape parameters", 0, values.len())?;
        Ok(Arc::new(*self))
    }

    fn needs_training_points(&self) -> bool {
        false
    }

    fn operator(&self, context: &Context, x: &Inputs, precision: Precision) -> Result<Box<dyn KernelOperator>> {
        Ok(Box::new(StoredOperator::new(context, dense(x)?, precision)?))
    }

    fn cross_apply(
        &self,
        context: &Context,
        out: ArrayViewMut2<'_, f64>,
        test: &Inputs,
        train: &Inputs,
        s: ArrayView2<'_, f64>,
    ) -> Result<()> {
        check_cross(&out, test, train.rows(), train, &s)?;
        dense_multiply(context, out, dense(test)?.view(), s)
    }

    fn cross_matrix(&self, _context: &Context, test: &Inputs, train: &Inputs) -> Result<Array2<f64>> {
        check_shape("the number of columns of X must be that of the training points", train.rows(), test.columns())?;
        Ok(dense(test)?.t().as_standard_layout().into_owned())
    }
}

/// The inputs as a dense array.
fn dense(inputs: &Inputs) -> Result<&ArcArray2<f64>> {
    match inputs {
        Inputs::Dense(matrix) => Ok(matrix),
        Inputs::Sparse(_) => Err(Error::SparsePrecomputed),
    }
}

/// Two entries that should be equal may differ by this much, relative to the largest entry.
const ASYMMETRY: f64 = 1e-8;

/// A given kernel matrix, of which one triangle is kept.
#[derive(Debug)]
pub struct StoredOperator {
    matrix: PackedSymmetric,
}

impl StoredOperator {
    /// The matrix must be square and symmetric.
    pub fn new(context: &Context, matrix: &ArcArray2<f64>, precision: Precision) -> Result<Self> {
        let n = matrix.nrows();
        check_shape("a precomputed kernel matrix must be square", n, matrix.ncols())?;
        let largest = matrix.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        for ((row, column), &value) in matrix.indexed_iter() {
            let difference = (value - matrix[[column, row]]).abs();
            if column < row && difference > ASYMMETRY * largest {
                return Err(Error::NotSymmetric { row, column, difference });
            }
        }
        context.plan_memory("the kernel matrix", PackedSymmetric::bytes(n, precision))?;
        let fill = |(): &mut (), tile: &mut [f64], rows: std::ops::Range<usize>, columns: std::ops::Range<usize>| {
            let part = matrix.slice(s![rows, columns]);
            tile.iter_mut().zip(part).for_each(|(tile, value)| *tile = *value);
        };
        Ok(Self { matrix: PackedSymmetric::build(context, n, (precision, largest), || (), fill)? })
    }
}

impl KernelOperator for StoredOperator {
    fn points(&self) -> usize {
        self.matrix.points()
    }

    fn representation(&self) -> &'static str {
        self.matrix.description()
    }

    fn stored_bytes(&self) -> u64 {
        self.matrix.size()
    }

    fn apply(
        &self,
        context: &Context,
        work: &mut Workspace,
        out: ArrayViewMut2<'_, f64>,
        s: ArrayView2<'_, f64>,
    ) -> Result<()> {
        multiply(context, work, out, &self.matrix, s)
    }

    fn shuffle(&mut self, shuffle: &Shuffle) {
        self.matrix.shuffle(shuffle);
    }

    fn diagonal(&self) -> Array1<f64> {
        self.matrix.diagonal()
    }

    fn column(&self, _context: &Context, _work: &mut Workspace, j: usize, out: &mut [f64]) -> Result<()> {
        check_corner(self.points(), out.len())?;
        self.matrix.column(j, out);
        Ok(())
    }

    fn gradient(&self, _context: &Context, _e: ArrayView2<'_, f64>, _f: ArrayView2<'_, f64>) -> Result<Vec<f64>> {
        Ok(Vec::new())
    }
}
