//! Products with the matrix between test and training points, made tile by tile and never stored.

use super::covariance::{PointwiseCovariance, TileBuffers};
use crate::context::Context;
use crate::data::{Inputs, check_shape, row_major, row_major_mut};
use crate::error::Result;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use ndarray::{ArrayView2, ArrayViewMut2};
use rayon::prelude::*;

/// Test points that one task takes at a time.
const TEST_ROWS: usize = 64;
/// Training points of a tile.
const TRAIN_ROWS: usize = 256;
/// Test points that are prepared at a time, so that memory does not grow with their number.
const PREPARED_ROWS: usize = 8192;

/// Fails unless the shapes of out = M(X*, X) S fit together; `columns` are those that X* must have.
pub(super) fn check_cross(
    out: &ArrayViewMut2<'_, f64>,
    test: &Inputs,
    columns: usize,
    train: &Inputs,
    s: &ArrayView2<'_, f64>,
) -> Result<()> {
    check_shape("the number of columns of X must be that of the training points", columns, test.columns())?;
    check_shape("the rows of S must be the training points", train.rows(), s.nrows())?;
    check_shape("the rows of the product must be the test points", test.rows(), out.nrows())?;
    check_shape("the columns of the product must be those of S", s.ncols(), out.ncols())
}

/// out = M(X*, X) S.
pub(super) fn cross_multiply(
    context: &Context,
    mut out: ArrayViewMut2<'_, f64>,
    function: &impl PointwiseCovariance,
    test: &Inputs,
    train: &Inputs,
    s: ArrayView2<'_, f64>,
) -> Result<()> {
    check_cross(&out, test, train.columns(), train, &s)?;
    let (n, k) = s.dim();
    if k == 0 {
        return Ok(());
    }
    let s = row_major("S", &s)?;
    let origin = test.common_origin(train);
    let prepared_train = function.prepare(train, &origin);
    let make = || (TileBuffers::default(), vec![0.0; TEST_ROWS * TRAIN_ROWS]);
    let out = row_major_mut("the product", &mut out)?;
    for (part, out) in out.chunks_mut(PREPARED_ROWS * k).enumerate() {
        let start = part * PREPARED_ROWS;
        let prepared = function.prepare(&test.slice(start..start + out.len() / k), &origin);
        out.par_chunks_mut(TEST_ROWS * k).enumerate().try_for_each_init(make, |(buffers, tile), (block, out)| {
            let height = out.len() / k;
            let rows = block * TEST_ROWS..block * TEST_ROWS + height;
            let mut out = MatMut::from_row_major_slice_mut(out, height, k);
            for start in (0..n).step_by(TRAIN_ROWS) {
                context.check()?;
                let columns = start..(start + TRAIN_ROWS).min(n);
                let tile = &mut tile[..height * columns.len()];
                function.tile(tile, (&prepared, rows.clone()), (&prepared_train, columns.clone()), buffers);
                let tile = MatRef::from_row_major_slice(&*tile, height, columns.len());
                let s = MatRef::from_row_major_slice(&s[columns.start * k..columns.end * k], columns.len(), k);
                let accumulate = if start == 0 { Accum::Replace } else { Accum::Add };
                matmul(out.as_mut(), accumulate, tile, s, 1.0, Par::Seq);
            }
            Ok(())
        })?;
    }
    Ok(())
}
