//! The matrix of a covariance function that is evaluated entry by entry: stored, or made anew for every product.

use super::covariance::{PointwiseCovariance, TileBuffers};
use super::packed::{ENTRIES, PackedSymmetric, Precision, TILE, tile_range};
use super::symmetric::{SymmetricTiles, Tile, check_corner, multiply, workspace_bytes};
use super::{KernelOperator, Shuffle};
use crate::context::Context;
use crate::data::{Inputs, PreparedRows, check_shape, row_major};
use crate::error::Result;
use crate::workspace::Workspace;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use ndarray::{Array1, ArrayView2, ArrayViewMut2};
use rayon::prelude::*;
use std::ops::Range;

/// M over the training points.
#[derive(Debug)]
pub struct DenseOperator<F> {
    source: Computed<F>,
    /// The matrix, where there is room for it.
    stored: Option<PackedSymmetric>,
}

/// M by tiles that are computed when they are needed.
#[derive(Debug)]
struct Computed<F> {
    function: F,
    points: PreparedRows,
}

impl<F: PointwiseCovariance> DenseOperator<F> {
    /// Evaluates the function for all pairs of points, in single precision where there is no room for more, or, where the
    /// matrix would not fit in memory even so, gets ready to do so in every product.
    pub fn new(context: &Context, function: F, x: &Inputs, precision: Precision) -> Result<Self> {
        let mut operator = Self::matrix_free(function, x);
        let fits = |precision: &Precision| context.has_room(PackedSymmetric::bytes(x.rows(), *precision));
        if let Some(precision) = [precision, Precision::Single].into_iter().find(fits) {
            let Computed { function, points } = &operator.source;
            let build = |buffers: &mut TileBuffers, tile: &mut [f64], rows, columns| {
                function.tile(tile, (points, rows), (points, columns), buffers);
            };
            let largest = function.diagonal(points).iter().fold(0.0, |most: f64, one| most.max(one.abs()));
            let kept = (precision, largest);
            operator.stored = Some(PackedSymmetric::build(context, x.rows(), kept, TileBuffers::default, build)?);
        } else {
            context.plan_memory("a product with the kernel matrix, without storing it,", workspace_bytes(x.rows()))?;
        }
        Ok(operator)
    }

    /// Stores nothing: every product evaluates the function anew.
    #[must_use]
    pub fn matrix_free(function: F, x: &Inputs) -> Self {
        Self { source: Computed { points: function.prepare(x, &x.common_origin(x)), function }, stored: None }
    }
}

impl<F: PointwiseCovariance> SymmetricTiles for Computed<F> {
    type Scratch = (TileBuffers, Vec<f64>);

    fn points(&self) -> usize {
        self.points.rows().rows()
    }

    fn scratch(&self) -> Self::Scratch {
        (TileBuffers::default(), vec![0.0; 2 * ENTRIES])
    }

    fn tile<'a>(&'a self, i: usize, j: usize, (buffers, values): &'a mut Self::Scratch) -> Tile<'a> {
        let (rows, columns) = (tile_range(self.points(), i), tile_range(self.points(), j));
        let (height, width) = (rows.len(), columns.len());
        let (tile, edge) = values.split_at_mut(ENTRIES);
        if height * width == ENTRIES {
            self.function.tile(tile, (&self.points, rows), (&self.points, columns), buffers);
        } else {
            self.function.tile(&mut edge[..height * width], (&self.points, rows), (&self.points, columns), buffers);
            tile.fill(0.0);
            for (tile, edge) in tile.chunks_mut(TILE).zip(edge[..height * width].chunks(width)) {
                tile[..width].copy_from_slice(edge);
            }
        }
        Tile::Double(tile)
    }

    fn is_single(&self) -> bool {
        false
    }

    fn is_widened(&self) -> bool {
        true
    }

    /// Computing a tile costs more than multiplying it: it is never done twice.
    fn wide_from(&self) -> usize {
        usize::MAX
    }
}

impl<F: PointwiseCovariance> KernelOperator for DenseOperator<F> {
    fn parameter_count(&self) -> usize {
        self.source.function.parameter_count()
    }

    fn points(&self) -> usize {
        self.source.points()
    }

    fn representation(&self) -> &'static str {
        self.stored.as_ref().map_or("matrix-free", PackedSymmetric::description)
    }

    fn stored_bytes(&self) -> u64 {
        self.stored.as_ref().map_or(0, PackedSymmetric::size)
    }

    fn apply(
        &self,
        context: &Context,
        work: &mut Workspace,
        out: ArrayViewMut2<'_, f64>,
        s: ArrayView2<'_, f64>,
    ) -> Result<()> {
        match &self.stored {
            Some(stored) => multiply(context, work, out, stored, s),
            None => multiply(context, work, out, &self.source, s),
        }
    }

    fn shuffle(&mut self, shuffle: &Shuffle) {
        self.source.points.shuffle(shuffle);
        if let Some(stored) = &mut self.stored {
            stored.shuffle(shuffle);
        }
    }

    fn diagonal(&self) -> Array1<f64> {
        self.source.function.diagonal(&self.source.points)
    }

    fn column(&self, _context: &Context, _work: &mut Workspace, j: usize, out: &mut [f64]) -> Result<()> {
        check_corner(self.points(), out.len())?;
        if let Some(stored) = &self.stored {
            stored.column(j, out);
            return Ok(());
        }
        // Whole tiles, as products take them: then the entries have the same bits as there, and as stored ones.
        let scratch = || self.source.scratch();
        out.par_chunks_mut(TILE).enumerate().for_each_init(scratch, |scratch, (i, out)| {
            let (row, column) = (i.max(j / TILE), i.min(j / TILE));
            let Tile::Double(tile) = self.source.tile(row, column, scratch) else { return };
            for (a, out) in out.iter_mut().enumerate() {
                *out = if i == row { tile[a * TILE + j % TILE] } else { tile[j % TILE * TILE + a] };
            }
        });
        Ok(())
    }

    fn gradient(&self, context: &Context, e: ArrayView2<'_, f64>, f: ArrayView2<'_, f64>) -> Result<Vec<f64>> {
        let n = self.points();
        let k = e.ncols();
        check_shape("the rows of E must be the points of the kernel matrix", n, e.nrows())?;
        check_shape("the rows of F must be those of E", n, f.nrows())?;
        check_shape("the columns of F must be those of E", k, f.ncols())?;
        let (e, f) = (row_major("E", &e)?, row_major("F", &f)?);
        let count = self.source.function.parameter_count();
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
                self.source.function.tile_gradient(
                    &mut gradient,
                    t,
                    &self.source.points,
                    rows.clone(),
                    columns,
                    &mut buffers,
                );
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
