//! The linear kernel M = X Xᵀ, never formed: X (Xᵀ S) takes two passes over the entries of X.

use super::full::multiply;
use super::{Covariance, KernelOperator, Parameter, Precision};
use crate::context::Context;
use crate::data::{CsrRows, Inputs, check_shape, row_major, row_major_mut, view, view_mut};
use crate::error::Result;
use crate::parallel::{dot_sequential, part_len};
use crate::workspace::Workspace;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use ndarray::{ArcArray2, Array1, Array2, ArrayView2, ArrayViewMut2, Axis};
use rayon::prelude::*;
use std::sync::Arc;

/// The inner product of the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Linear;

impl Covariance for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn parameters(&self) -> Vec<Parameter> {
        Vec::new()
    }

    fn with_parameters(&self, values: &[f64]) -> Result<Arc<dyn Covariance>> {
        check_shape("the number of shape parameters", 0, values.len())?;
        Ok(Arc::new(*self))
    }

    fn operator(&self, _context: &Context, x: &Inputs, _precision: Precision) -> Result<Box<dyn KernelOperator>> {
        Ok(match x {
            Inputs::Dense(x) => Box::new(LinearDense { x: x.clone() }),
            Inputs::Sparse(x) => Box::new(LinearSparse { transpose: x.transpose(), x: Arc::clone(x) }),
        })
    }

    fn cross_apply(
        &self,
        context: &Context,
        out: ArrayViewMut2<'_, f64>,
        test: &Inputs,
        train: &Inputs,
        s: ArrayView2<'_, f64>,
    ) -> Result<()> {
        check_shape("the number of columns of X must be that of the training points", train.columns(), test.columns())?;
        check_shape("the rows of S must be the training points", train.rows(), s.nrows())?;
        check_shape("the rows of the product must be the test points", test.rows(), out.nrows())?;
        check_shape("the columns of the product must be those of S", s.ncols(), out.ncols())?;
        let mut weights = Array2::zeros((train.columns(), s.ncols()));
        match train {
            Inputs::Dense(x) => transposed_multiply(context, weights.view_mut(), x, s)?,
            Inputs::Sparse(x) => sparse_multiply(context, weights.view_mut(), &x.transpose(), s)?,
        }
        match test {
            Inputs::Dense(x) => multiply(context, out, x.view(), weights.view()),
            Inputs::Sparse(x) => sparse_multiply(context, out, x, weights.view()),
        }
    }
}

/// M = X Xᵀ for dense rows.
#[derive(Debug)]
pub struct LinearDense {
    x: ArcArray2<f64>,
}

/// M = X Xᵀ for sparse rows.
#[derive(Debug)]
pub struct LinearSparse {
    x: Arc<CsrRows>,
    /// Xᵀ as compressed rows, so that both halves of the product write each row of their result once.
    transpose: CsrRows,
}

impl KernelOperator for LinearDense {
    fn points(&self) -> usize {
        self.x.nrows()
    }

    fn apply(
        &self,
        context: &Context,
        work: &mut Workspace,
        out: ArrayViewMut2<'_, f64>,
        s: ArrayView2<'_, f64>,
    ) -> Result<()> {
        let x = &self.x;
        through_inputs(
            work,
            (x.ncols(), s.ncols()),
            |weights| transposed_multiply(context, weights, x, s),
            |weights| multiply(context, out, x.view(), weights),
        )
    }

    fn diagonal(&self) -> Array1<f64> {
        self.x.map_axis(Axis(1), |row| row.dot(&row))
    }

    fn gradient(&self, _context: &Context, _e: ArrayView2<'_, f64>, _f: ArrayView2<'_, f64>) -> Result<Vec<f64>> {
        Ok(Vec::new())
    }
}

impl KernelOperator for LinearSparse {
    fn points(&self) -> usize {
        self.x.rows()
    }

    fn apply(
        &self,
        context: &Context,
        work: &mut Workspace,
        out: ArrayViewMut2<'_, f64>,
        s: ArrayView2<'_, f64>,
    ) -> Result<()> {
        let x = &self.x;
        through_inputs(
            work,
            (x.columns(), s.ncols()),
            |weights| sparse_multiply(context, weights, &self.transpose, s),
            |weights| sparse_multiply(context, out, x, weights),
        )
    }

    fn diagonal(&self) -> Array1<f64> {
        (0..self.x.rows()).map(|row| dot_sequential(self.x.row(row).1, self.x.row(row).1)).collect()
    }

    fn gradient(&self, _context: &Context, _e: ArrayView2<'_, f64>, _f: ArrayView2<'_, f64>) -> Result<Vec<f64>> {
        Ok(Vec::new())
    }
}

/// Runs the two halves of a product, Xᵀ S into a buffer of the workspace and X times that.
fn through_inputs(
    work: &mut Workspace,
    shape: (usize, usize),
    first: impl FnOnce(ArrayViewMut2<'_, f64>) -> Result<()>,
    second: impl FnOnce(ArrayView2<'_, f64>) -> Result<()>,
) -> Result<()> {
    let mut buffer = work.take(shape.0 * shape.1);
    let done = first(view_mut(shape, &mut buffer)?).and_then(|()| second(view(shape, &buffer)?));
    work.give(buffer);
    done
}

/// out = Xᵀ S for a row-major X.
fn transposed_multiply(
    context: &Context,
    mut out: ArrayViewMut2<'_, f64>,
    x: &ArcArray2<f64>,
    s: ArrayView2<'_, f64>,
) -> Result<()> {
    /// Inputs that one task multiplies.
    const COLUMNS: usize = 64;
    let ((n, d), k) = (x.dim(), s.ncols());
    check_shape("the rows of S must be the points", n, s.nrows())?;
    if k == 0 {
        return Ok(());
    }
    let x = x.view();
    let (x, s) = (row_major("X", &x)?, row_major("S", &s)?);
    row_major_mut("the product", &mut out)?.par_chunks_mut(COLUMNS * k).enumerate().try_for_each(|(block, out)| {
        context.check()?;
        let height = out.len() / k;
        let x = MatRef::from_row_major_slice(x, n, d).subcols(block * COLUMNS, height);
        let s = MatRef::from_row_major_slice(s, n, k);
        let out = MatMut::from_row_major_slice_mut(out, height, k);
        matmul(out, Accum::Replace, x.transpose(), s, 1.0, Par::Seq);
        Ok(())
    })
}

/// out = A S for sparse rows A.
fn sparse_multiply(
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
