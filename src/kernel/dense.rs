//! A stored kernel matrix.

use super::KernelOperator;
use super::covariance::{PointwiseCovariance, TileBuffers};
use super::packed::{PackedSymmetric, Precision, TILE, tile_range};
use crate::context::Context;
use crate::data::{Inputs, check_shape, row_major, row_major_mut};
use crate::error::Result;
use crate::workspace::Workspace;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use ndarray::{Array1, ArrayView2, ArrayViewMut2};
use rayon::prelude::*;
use std::ops::Range;

/// M of a covariance function that is evaluated entry by entry, stored as one triangle of tiles.
#[derive(Debug)]
pub struct DenseOperator<F> {
    function: F,
    inputs: Inputs,
    matrix: PackedSymmetric,
}

impl<F: PointwiseCovariance> DenseOperator<F> {
    /// Evaluates the function for all pairs of points.
    pub fn new(context: &Context, function: F, x: &Inputs, precision: Precision) -> Result<Self> {
        let matrix = PackedSymmetric::build(
            context,
            x.rows(),
            precision,
            TileBuffers::default,
            |buffers, tile, rows, columns| {
                function.tile(tile, (x, rows), (x, columns), buffers);
            },
        )?;
        Ok(Self { function, inputs: x.clone(), matrix })
    }
}

impl<F: PointwiseCovariance> KernelOperator for DenseOperator<F> {
    fn points(&self) -> usize {
        self.matrix.points()
    }

    fn apply(
        &self,
        context: &Context,
        _work: &mut Workspace,
        mut out: ArrayViewMut2<'_, f64>,
        s: ArrayView2<'_, f64>,
    ) -> Result<()> {
        let n = self.points();
        let k = s.ncols();
        check_shape("the rows of S must be the points of the kernel matrix", n, s.nrows())?;
        check_shape("the rows of the product must be the points of the kernel matrix", n, out.nrows())?;
        check_shape("the columns of the product must be those of S", k, out.ncols())?;
        context.check()?;
        if k == 0 {
            return Ok(());
        }
        let s = row_major("S", &s)?;
        let tiles = n.div_ceil(TILE);
        let scratch = || vec![0.0; TILE * TILE];
        row_major_mut("the product", &mut out)?.par_chunks_mut(TILE * k).enumerate().for_each_init(
            scratch,
            |scratch, (i, out)| {
                let height = out.len() / k;
                let mut out = MatMut::from_row_major_slice_mut(out, height, k);
                for j in 0..tiles {
                    let columns = tile_range(n, j);
                    let s = part(s, &columns, k);
                    let stored = self.matrix.tile(i.max(j), i.min(j), scratch);
                    let stored = MatRef::from_row_major_slice(stored, TILE, TILE);
                    let tile = if j <= i { stored } else { stored.transpose() };
                    let accumulate = if j == 0 { Accum::Replace } else { Accum::Add };
                    matmul(out.as_mut(), accumulate, tile.submatrix(0, 0, height, columns.len()), s, 1.0, Par::Seq);
                }
            },
        );
        Ok(())
    }

    fn diagonal(&self) -> Array1<f64> {
        Array1::from_elem(self.points(), self.function.at_zero())
    }

    fn gradient(&self, context: &Context, e: ArrayView2<'_, f64>, f: ArrayView2<'_, f64>) -> Result<Vec<f64>> {
        let n = self.points();
        let k = e.ncols();
        check_shape("the rows of E must be the points of the kernel matrix", n, e.nrows())?;
        check_shape("the rows of F must be those of E", n, f.nrows())?;
        check_shape("the columns of F must be those of E", k, f.ncols())?;
        let (e, f) = (row_major("E", &e)?, row_major("F", &f)?);
        let count = self.function.parameter_count();
        // One row of tiles after the other, so that the order of the sums is fixed.
        let partial = (0..n.div_ceil(TILE)).into_par_iter().map(|i| {
            let rows = tile_range(n, i);
            let mut gradient = vec![0.0; count];
            let mut buffers = TileBuffers::default();
            let mut t = vec![0.0; TILE * TILE];
            for j in 0..=i {
                context.check()?;
                let columns = tile_range(n, j);
                let t = &mut t[..rows.len() * columns.len()];
                // T = E_i F_jᵀ, and for tiles below the diagonal also what the mirrored tile would give.
                let mut product = MatMut::from_row_major_slice_mut(&mut *t, rows.len(), columns.len());
                matmul(
                    product.as_mut(),
                    Accum::Replace,
                    part(e, &rows, k),
                    part(f, &columns, k).transpose(),
                    1.0,
                    Par::Seq,
                );
                if j < i {
                    matmul(product, Accum::Add, part(f, &rows, k), part(e, &columns, k).transpose(), 1.0, Par::Seq);
                }
                self.function.tile_gradient(&mut gradient, t, &self.inputs, rows.clone(), columns, &mut buffers);
            }
            Ok(gradient)
        });
        let mut gradient = vec![0.0; count];
        for part in partial.collect::<Result<Vec<_>>>()? {
            gradient.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        Ok(gradient)
    }
}

/// The given rows of an array of k columns.
fn part<'a>(array: &'a [f64], rows: &Range<usize>, k: usize) -> MatRef<'a, f64> {
    MatRef::from_row_major_slice(&array[rows.start * k..rows.end * k], rows.len(), k)
}
