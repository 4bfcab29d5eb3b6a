//! Storage of a symmetric matrix: one triangle, cut into square tiles.

use crate::context::Context;
use crate::error::{Error, Result};
use rayon::prelude::*;
use std::ops::Range;

/// Rows and columns of a tile. A tile in double precision is 32 kB, what the first-level cache holds.
pub(crate) const TILE: usize = 64;
const ENTRIES: usize = TILE * TILE;

/// How the entries of a stored kernel matrix are kept; sums are always taken in double precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// 8 bytes an entry.
    #[default]
    Double,
    /// 4 bytes an entry.
    Single,
}

/// The tiles (i, j) with j ≤ i; every tile is full size, edges are padded with zeros.
#[derive(Debug)]
pub(crate) struct PackedSymmetric {
    points: usize,
    rows: TileRows,
}

/// For every i the tiles (i, 0), …, (i, i), one after the other. Each row has its own memory, so that the threads that
/// fill it also fetch it from the operating system.
#[derive(Debug)]
enum TileRows {
    Double(Vec<Vec<f64>>),
    Single(Vec<Vec<f32>>),
}

impl PackedSymmetric {
    /// Makes the matrix by calling `fill(tile, rows, columns)` for every tile, in parallel; `state` makes a thread's
    /// scratch.
    pub(crate) fn build<S>(
        context: &Context,
        points: usize,
        precision: Precision,
        state: impl Fn() -> S + Sync + Send,
        fill: impl Fn(&mut S, &mut [f64], Range<usize>, Range<usize>) + Sync + Send,
    ) -> Result<Self> {
        let rows = match precision {
            Precision::Double => TileRows::Double(fill_rows(context, points, state, fill)?),
            Precision::Single => TileRows::Single(fill_rows(context, points, state, fill)?),
        };
        Ok(Self { points, rows })
    }

    pub(crate) fn points(&self) -> usize {
        self.points
    }

    /// The tile in row i and column j ≤ i of the tiles, row-major; single precision is widened into `scratch`.
    pub(crate) fn tile<'a>(&'a self, i: usize, j: usize, scratch: &'a mut [f64]) -> &'a [f64] {
        let place = j * ENTRIES..(j + 1) * ENTRIES;
        match &self.rows {
            TileRows::Double(rows) => &rows[i][place],
            TileRows::Single(rows) => {
                scratch.iter_mut().zip(&rows[i][place]).for_each(|(wide, &x)| *wide = f64::from(x));
                scratch
            }
        }
    }
}

/// The points in the i-th row of tiles.
pub(crate) fn tile_range(points: usize, i: usize) -> Range<usize> {
    i * TILE..((i + 1) * TILE).min(points)
}

/// An entry type of the store.
trait Entry: Copy + Default + Send + Sync {
    fn narrow(value: f64) -> Self;
}

impl Entry for f64 {
    fn narrow(value: f64) -> Self {
        value
    }
}

impl Entry for f32 {
    #[allow(clippy::cast_possible_truncation)]
    fn narrow(value: f64) -> Self {
        value as f32
    }
}

/// Allocates and fills all rows of tiles, refusing politely where there is not enough memory.
fn fill_rows<T: Entry, S>(
    context: &Context,
    points: usize,
    state: impl Fn() -> S + Sync + Send,
    fill: impl Fn(&mut S, &mut [f64], Range<usize>, Range<usize>) + Sync + Send,
) -> Result<Vec<Vec<T>>> {
    let what = "the kernel matrix";
    let side = points.div_ceil(TILE);
    let needed = (side * (side + 1) / 2 * ENTRIES) as u64 * size_of::<T>() as u64;
    context.plan_memory(what, needed)?;
    let make = || (state(), vec![0.0; ENTRIES]);
    // The long rows come first, so that no thread is left alone with one at the end.
    let rows = (0..side).into_par_iter().rev().map_init(make, |(state, buffer), i| {
        context.check()?;
        let mut row = Vec::new();
        row.try_reserve_exact((i + 1) * ENTRIES).map_err(|_| Error::MemoryLimit { what, needed, allowed: 0 })?;
        for j in 0..=i {
            context.check()?;
            let (height, width) = (tile_range(points, i), tile_range(points, j));
            let values = &mut buffer[..height.len() * width.len()];
            fill(state, values, height, width.clone());
            row.resize((j + 1) * ENTRIES, T::default());
            for (tile, values) in row[j * ENTRIES..].chunks_mut(TILE).zip(values.chunks(width.len())) {
                tile.iter_mut().zip(values).for_each(|(entry, &value)| *entry = T::narrow(value));
            }
        }
        Ok(row)
    });
    let mut rows = rows.collect::<Result<Vec<_>>>()?;
    rows.reverse();
    Ok(rows)
}
