//! A symmetric matrix given in full by the user.

use super::KernelOperator;
use crate::context::Context;
use crate::data::{Inputs, check_shape, row_major, row_major_mut};
use crate::error::{Error, Result};
use crate::workspace::Workspace;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use ndarray::{ArcArray2, Array1, ArrayView2, ArrayViewMut2};
use rayon::prelude::*;

/// Two entries that should be equal may differ by this much, relative to the largest entry.
const ASYMMETRY: f64 = 1e-8;

/// A kernel matrix in the array it came in; it is not copied.
#[derive(Debug)]
pub struct FullOperator {
    matrix: ArcArray2<f64>,
}

impl FullOperator {
    /// The matrix must be square and symmetric.
    pub fn new(matrix: ArcArray2<f64>) -> Result<Self> {
        check_shape("a precomputed kernel matrix must be square", matrix.nrows(), matrix.ncols())?;
        let largest = matrix.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        for ((row, column), &value) in matrix.indexed_iter() {
            let difference = (value - matrix[[column, row]]).abs();
            if column < row && difference > ASYMMETRY * largest {
                return Err(Error::NotSymmetric { row, column, difference });
            }
        }
        Ok(Self { matrix })
    }
}

/// The inputs as a dense array.
pub(super) fn dense(inputs: &Inputs) -> Result<&ArcArray2<f64>> {
    match inputs {
        Inputs::Dense(matrix) => Ok(matrix),
        Inputs::Sparse(_) => Err(Error::SparsePrecomputed),
    }
}

/// Rows that one task multiplies.
const ROWS: usize = 64;

/// out = A S for a row-major A.
pub(super) fn multiply(
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

impl KernelOperator for FullOperator {
    fn points(&self) -> usize {
        self.matrix.nrows()
    }

    fn apply(
        &self,
        context: &Context,
        _work: &mut Workspace,
        out: ArrayViewMut2<'_, f64>,
        s: ArrayView2<'_, f64>,
    ) -> Result<()> {
        multiply(context, out, self.matrix.view(), s)
    }

    fn diagonal(&self) -> Array1<f64> {
        self.matrix.diag().to_owned()
    }

    fn gradient(&self, _context: &Context, _e: ArrayView2<'_, f64>, _f: ArrayView2<'_, f64>) -> Result<Vec<f64>> {
        Ok(Vec::new())
    }
}
