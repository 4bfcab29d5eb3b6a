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

/// The tiles (i, j) with j ≤ i, row after row; every tile is full size, edges are padded with zeros.
#[derive(Debug)]
pub(crate) struct PackedSymmetric {
    points: usize,
    tiles: Tiles,
}

#[derive(Debug)]
enum Tiles {
    Double(Vec<f64>),
    Single(Vec<f32>),
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
        let entries = tile_count(points) * ENTRIES;
        let tiles = match precision {
            Precision::Double => Tiles::Double(fill_tiles(context, points, allocate(context, entries)?, state, fill)?),
            Precision::Single => Tiles::Single(fill_tiles(context, points, allocate(context, entries)?, state, fill)?),
        };
        Ok(Self { points, tiles })
    }

    pub(crate) fn points(&self) -> usize {
        self.points
    }

    /// The tile in row i and column j ≤ i of the tiles, row-major; single precision is widened into `scratch`.
    pub(crate) fn tile<'a>(&'a self, i: usize, j: usize, scratch: &'a mut [f64]) -> &'a [f64] {
        let start = (i * (i + 1) / 2 + j) * ENTRIES;
        match &self.tiles {
            Tiles::Double(tiles) => &tiles[start..start + ENTRIES],
            Tiles::Single(tiles) => {
                scratch.iter_mut().zip(&tiles[start..start + ENTRIES]).for_each(|(wide, &x)| *wide = f64::from(x));
                scratch
            }
        }
    }
}

/// The points in the i-th row of tiles.
pub(crate) fn tile_range(points: usize, i: usize) -> Range<usize> {
    i * TILE..((i + 1) * TILE).min(points)
}

/// Number of stored tiles.
fn tile_count(points: usize) -> usize {
    let side = points.div_ceil(TILE);
    side * (side + 1) / 2
}

/// Memory for the tiles, refused politely where there is not enough.
fn allocate<T: Copy + Default>(context: &Context, entries: usize) -> Result<Vec<T>> {
    let what = "the kernel matrix";
    let needed = entries as u64 * size_of::<T>() as u64;
    context.plan_memory(what, needed)?;
    let mut tiles = Vec::new();
    tiles.try_reserve_exact(entries).map_err(|_| Error::MemoryLimit { what, needed, allowed: 0 })?;
    tiles.resize(entries, T::default());
    Ok(tiles)
}

/// An entry type of the store.
trait Entry: Copy + Default + Send {
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

fn fill_tiles<T: Entry, S>(
    context: &Context,
    points: usize,
    mut tiles: Vec<T>,
    state: impl Fn() -> S + Sync + Send,
    fill: impl Fn(&mut S, &mut [f64], Range<usize>, Range<usize>) + Sync + Send,
) -> Result<Vec<T>> {
    let make = || (state(), vec![0.0; ENTRIES]);
    tiles.par_chunks_mut(ENTRIES).enumerate().try_for_each_init(make, |(state, buffer), (index, tile)| {
        context.check()?;
        let (i, j) = tile_place(index);
        let (rows, columns) = (tile_range(points, i), tile_range(points, j));
        fill(state, &mut buffer[..rows.len() * columns.len()], rows, columns.clone());
        for (tile, values) in tile.chunks_mut(TILE).zip(buffer.chunks(columns.len())) {
            tile.iter_mut().zip(values).for_each(|(entry, &value)| *entry = T::narrow(value));
        }
        Ok(())
    })?;
    Ok(tiles)
}

/// Row and column of the tile with the given index.
fn tile_place(index: usize) -> (usize, usize) {
    // i is the largest whole number with i (i + 1) / 2 ≤ index.
    let mut i = ((2 * index).isqrt()).min(index);
    while i * (i + 1) / 2 > index {
        i -= 1;
    }
    (i, index - i * (i + 1) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_counted_row_after_row() {
        let mut index = 0;
        for i in 0..100 {
            for j in 0..=i {
                assert_eq!(tile_place(index), (i, j));
                index += 1;
            }
        }
    }
}
