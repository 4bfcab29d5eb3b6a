//! Storage of a symmetric matrix: one triangle, cut into square tiles.

use super::Shuffle;
use super::number::Number;
use super::symmetric::{SymmetricTiles, Tile};
use crate::context::Context;
use crate::error::{Error, Result};
use ndarray::Array1;
use rayon::prelude::*;
use std::ops::Range;

/// Rows and columns of a tile. A tile in double precision is 32 kB, what the first-level cache holds.
pub(crate) const TILE: usize = 64;
/// Entries of a tile.
pub(crate) const ENTRIES: usize = TILE * TILE;

/// How the entries of a stored kernel matrix are kept; sums are taken in double precision, but for rough products
/// ([`Context::with_rough_products`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// 8 bytes an entry.
    #[default]
    Double,
    /// 4 bytes an entry.
    Single,
}

/// In single precision, an entry that is less than this share of the largest one is kept as zero: products with it would come
/// below what a float is made for (2⁻¹²⁶), where processors take a hundred times as long.
pub(super) const NEGLIGIBLE: f64 = 8.673_617_379_884_035e-19; // 2⁻⁶⁰

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
    /// scratch. `largest` is the largest entry.
    pub(crate) fn build<S>(
        context: &Context,
        points: usize,
        (precision, largest): (Precision, f64),
        state: impl Fn() -> S + Sync + Send,
        fill: impl Fn(&mut S, &mut [f64], Range<usize>, Range<usize>) + Sync + Send,
    ) -> Result<Self> {
        let rows = match precision {
            Precision::Double => TileRows::Double(fill_rows(context, points, 0.0, state, fill)?),
            Precision::Single => TileRows::Single(fill_rows(context, points, NEGLIGIBLE * largest, state, fill)?),
        };
        Ok(Self { points, rows })
    }

    /// Bytes that a matrix of so many points takes.
    pub(crate) fn bytes(points: usize, precision: Precision) -> u64 {
        let side = points.div_ceil(TILE) as u64;
        let entry = match precision {
            Precision::Double => size_of::<f64>(),
            Precision::Single => size_of::<f32>(),
        };
        side * (side + 1) / 2 * ENTRIES as u64 * entry as u64
    }

    /// Bytes that this matrix takes.
    pub(crate) fn size(&self) -> u64 {
        let precision = match self.rows {
            TileRows::Double(_) => Precision::Double,
            TileRows::Single(_) => Precision::Single,
        };
        Self::bytes(self.points, precision)
    }

    /// How the entries are kept, for the user.
    pub(crate) fn description(&self) -> &'static str {
        match self.rows {
            TileRows::Double(_) => "stored in double precision",
            TileRows::Single(_) => "stored in single precision",
        }
    }

    /// Exchanges rows and columns, in place.
    pub(crate) fn shuffle(&mut self, shuffle: &Shuffle) {
        let points = self.points;
        match &mut self.rows {
            TileRows::Double(rows) => shuffle.swaps().iter().for_each(|&swap| swap_points(rows, points, swap)),
            TileRows::Single(rows) => shuffle.swaps().iter().for_each(|&swap| swap_points(rows, points, swap)),
        }
    }

    /// Column j.
    pub(crate) fn column(&self, j: usize, out: &mut [f64]) {
        for (i, out) in out.iter_mut().enumerate() {
            let (row, column) = (i.max(j), i.min(j));
            let place = column / TILE * ENTRIES + row % TILE * TILE + column % TILE;
            *out = match &self.rows {
                TileRows::Double(rows) => rows[row / TILE][place],
                TileRows::Single(rows) => rows[row / TILE][place].widen(),
            };
        }
    }

    /// The diagonal.
    pub(crate) fn diagonal(&self) -> Array1<f64> {
        let entry = |i: usize| {
            let place = i / TILE * ENTRIES + i % TILE * TILE + i % TILE;
            match &self.rows {
                TileRows::Double(rows) => rows[i / TILE][place],
                TileRows::Single(rows) => rows[i / TILE][place].widen(),
            }
        };
        (0..self.points).map(entry).collect()
    }
}

/// Exchanges points a and b: the entries (a, c) and (b, c) for all c, where (a, b) itself stays.
fn swap_points<T: Number>(rows: &mut [Vec<T>], points: usize, (a, b): (usize, usize)) {
    // Diagonal tiles are stored in full, so entries within one have two places; `upper` is the mirrored one.
    let place = |i: usize, j: usize| (i / TILE, j / TILE * ENTRIES + i % TILE * TILE + j % TILE);
    let get = |rows: &[Vec<T>], i: usize, j: usize| {
        let (row, place) = place(i.max(j), i.min(j));
        rows[row][place]
    };
    let set = |rows: &mut [Vec<T>], i: usize, j: usize, value| {
        let (row, low) = place(i.max(j), i.min(j));
        rows[row][low] = value;
        if i / TILE == j / TILE {
            let (row, upper) = place(i.min(j), i.max(j));
            rows[row][upper] = value;
        }
    };
    for c in (0..points).filter(|&c| c != a && c != b) {
        let (at_a, at_b) = (get(rows, a, c), get(rows, b, c));
        set(rows, a, c, at_b);
        set(rows, b, c, at_a);
    }
    let (at_a, at_b) = (get(rows, a, a), get(rows, b, b));
    set(rows, a, a, at_b);
    set(rows, b, b, at_a);
}

impl SymmetricTiles for PackedSymmetric {
    type Scratch = ();

    fn points(&self) -> usize {
        self.points
    }

    fn scratch(&self) {}

    fn tile<'a>(&'a self, i: usize, j: usize, (): &'a mut ()) -> Tile<'a> {
        let place = j * ENTRIES..(j + 1) * ENTRIES;
        match &self.rows {
            TileRows::Double(rows) => Tile::Double(&rows[i][place]),
            TileRows::Single(rows) => Tile::Single(&rows[i][place]),
        }
    }

    fn is_single(&self) -> bool {
        matches!(self.rows, TileRows::Single(_))
    }

    fn is_widened(&self) -> bool {
        self.is_single()
    }

    /// Measured at 1024 and 4435 points with 64 to 512 columns: both ways are within a sixth of each other, the library
    /// ahead at the small size, the registers at the large one.
    fn wide_from(&self) -> usize {
        64
    }
}

/// The points in the i-th row of tiles.
pub(crate) fn tile_range(points: usize, i: usize) -> Range<usize> {
    i * TILE..((i + 1) * TILE).min(points)
}

/// Allocates and fills all rows of tiles, refusing politely where there is not enough memory.
fn fill_rows<T: Number, S>(
    context: &Context,
    points: usize,
    least: f64,
    state: impl Fn() -> S + Sync + Send,
    fill: impl Fn(&mut S, &mut [f64], Range<usize>, Range<usize>) + Sync + Send,
) -> Result<Vec<Vec<T>>> {
    let side = points.div_ceil(TILE);
    let make = || (state(), vec![0.0; ENTRIES]);
    // The long rows come first, so that no thread is left alone with one at the end.
    let rows = (0..side).into_par_iter().rev().map_init(make, |(state, buffer), i| {
        context.check()?;
        let mut row = Vec::new();
        let bytes = ((i + 1) * ENTRIES * size_of::<T>()) as u64;
        let refused = |_| Error::MemoryLimit { what: "a part of the kernel matrix", needed: bytes, allowed: 0 };
        row.try_reserve_exact((i + 1) * ENTRIES).map_err(refused)?;
        for j in 0..=i {
            context.check()?;
            let (height, width) = (tile_range(points, i), tile_range(points, j));
            let values = &mut buffer[..height.len() * width.len()];
            fill(state, values, height, width.clone());
            row.resize((j + 1) * ENTRIES, T::default());
            for (tile, values) in row[j * ENTRIES..].chunks_mut(TILE).zip(values.chunks(width.len())) {
                let kept = |value: f64| if value.abs() < least { 0.0 } else { value };
                tile.iter_mut().zip(values).for_each(|(entry, &value)| *entry = T::narrow(kept(value)));
            }
        }
        Ok(row)
    });
    let mut rows = rows.collect::<Result<Vec<_>>>()?;
    rows.reverse();
    Ok(rows)
}
