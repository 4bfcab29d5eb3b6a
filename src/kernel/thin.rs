//! Tiles of a symmetric matrix times a few columns, register by register.
//!
//! A tile M_ij below the diagonal serves twice, out_i += M_ij s_j and out_j += M_ijᵀ s_i, while it passes through the
//! registers once. Rows of S and of the product are V registers wide; R rows of the tile are taken at a time, so that their
//! part of S and of the product stays in registers while the columns of the tile pass by.

use super::packed::TILE;
use crate::simd::prefetch;
use pulp::{Arch, Simd, WithSimd};

/// How far ahead of its use an entry is fetched from memory; tiles lie one behind the other. Measured.
const AHEAD: usize = 4096;
/// Bytes of a cache line.
const LINE: usize = 64;

/// An entry of a stored tile.
pub(crate) trait Entry: Copy + Default + Send + Sync + 'static {
    /// Rounds to what is stored.
    fn narrow(value: f64) -> Self;
    /// Back to double precision.
    fn widen(self) -> f64;
    /// Some rows of a tile in double precision: themselves, or copied into the buffer.
    fn widen_rows<'a, const R: usize>(
        rows: &'a [[Self; TILE]; R],
        buffer: &'a mut [[f64; TILE]; R],
    ) -> &'a [[f64; TILE]; R];
}

impl Entry for f64 {
    #[inline(always)]
    fn narrow(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn widen(self) -> f64 {
        self
    }

    #[inline(always)]
    fn widen_rows<'a, const R: usize>(rows: &'a [[f64; TILE]; R], _: &'a mut [[f64; TILE]; R]) -> &'a [[f64; TILE]; R] {
        rows
    }
}

impl Entry for f32 {
    #[allow(clippy::cast_possible_truncation)]
    #[inline(always)]
    fn narrow(value: f64) -> Self {
        value as f32
    }

    #[inline(always)]
    fn widen(self) -> f64 {
        f64::from(self)
    }

    #[inline(always)]
    fn widen_rows<'a, const R: usize>(
        rows: &'a [[f32; TILE]; R],
        buffer: &'a mut [[f64; TILE]; R],
    ) -> &'a [[f64; TILE]; R] {
        for (wide, row) in buffer.iter_mut().zip(rows) {
            for (wide, &entry) in wide.iter_mut().zip(row) {
                *wide = f64::from(entry);
            }
        }
        buffer
    }
}

/// One tile and the parts of S and of the product that belong to it: TILE rows each, all of one width. On the diagonal
/// `out_j` is empty.
pub(crate) struct TileProduct<'a, T> {
    pub tile: &'a [T],
    pub s_i: &'a [f64],
    pub s_j: &'a [f64],
    pub out_i: &'a mut [f64],
    pub out_j: &'a mut [f64],
}

impl<T: Entry> TileProduct<'_, T> {
    /// Adds the product, for parts of one column, or of one or two registers of them.
    pub(crate) fn add(self, arch: Arch, columns: usize, lanes: usize) {
        let registers = if columns == 1 { 0 } else { columns / lanes };
        match (registers, self.out_j.is_empty()) {
            (0, false) => arch.dispatch(One::<T, true>(self)),
            (0, true) => arch.dispatch(One::<T, false>(self)),
            (1, false) => arch.dispatch(Few::<T, 1, 4, true>(self)),
            (1, true) => arch.dispatch(Few::<T, 1, 4, false>(self)),
            (_, false) => arch.dispatch(Few::<T, 2, 2, true>(self)),
            (_, true) => arch.dispatch(Few::<T, 2, 2, false>(self)),
        }
    }
}

/// V registers of columns, R rows of the tile at a time; BOTH: the tile serves twice.
struct Few<'a, T, const V: usize, const R: usize, const BOTH: bool>(TileProduct<'a, T>);

impl<T: Entry, const V: usize, const R: usize, const BOTH: bool> WithSimd for Few<'_, T, V, R, BOTH> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let TileProduct { tile, s_i, s_j, out_i, out_j } = self.0;
        let s_i = S::as_simd_f64s(s_i).0.as_chunks::<V>().0.as_chunks::<R>().0;
        let s_j = &S::as_simd_f64s(s_j).0.as_chunks::<V>().0[..TILE];
        let out_i = S::as_mut_simd_f64s(out_i).0.as_chunks_mut::<V>().0.as_chunks_mut::<R>().0;
        let out_j = S::as_mut_simd_f64s(out_j).0.as_chunks_mut::<V>().0;
        let out_j = &mut out_j[..if BOTH { TILE } else { 0 }];
        let zero = simd.splat_f64s(0.0);
        let rows = tile.as_chunks::<TILE>().0.as_chunks::<R>().0;
        // Lines of memory that R rows take, spread evenly over their columns.
        let every = LINE / (R * size_of::<T>());
        let mut buffer = [[0.0; TILE]; R];
        for (rows, (s_a, out_a)) in rows.iter().zip(s_i.iter().zip(out_i)) {
            let rows_wide = T::widen_rows(rows, &mut buffer);
            // A copy, so that it stays in registers: for all the compiler knows, `out_j` might overlap the original.
            let s_a = *s_a;
            let mut sums = [[zero; V]; R];
            for b in 0..TILE {
                if b % every == 0 {
                    prefetch(&rows[..], AHEAD + b / every * LINE);
                }
                let s_b = s_j[b];
                let mut out_b = if BOTH { out_j[b] } else { [zero; V] };
                for r in 0..R {
                    let m = simd.splat_f64s(rows_wide[r][b]);
                    for v in 0..V {
                        sums[r][v] = simd.mul_add_e_f64s(m, s_b[v], sums[r][v]);
                        if BOTH {
                            out_b[v] = simd.mul_add_e_f64s(m, s_a[r][v], out_b[v]);
                        }
                    }
                }
                if BOTH {
                    out_j[b] = out_b;
                }
            }
            for r in 0..R {
                for v in 0..V {
                    out_a[r][v] = simd.add_f64s(out_a[r][v], sums[r][v]);
                }
            }
        }
    }
}

/// A single column: registers hold several columns of the tile instead.
///
/// Memory binds here, so rows are read one after the other: what the processor fetches ahead on its own follows one stream.
/// Where matrices lie in a large third-level cache, prefetches across the borders of pages take another tenth off the time,
/// and a quarter in single precision; several rows at a time gain nothing, or lose.
struct One<'a, T, const BOTH: bool>(TileProduct<'a, T>);

/// Sums kept apart in a single column, so that no addition waits for the one before.
const CHAINS: usize = 4;

impl<T: Entry, const BOTH: bool> WithSimd for One<'_, T, BOTH> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let TileProduct { tile, s_i, s_j, out_i, out_j } = self.0;
        let s_j = S::as_simd_f64s(s_j).0;
        let registers = s_j.len();
        let out_j = S::as_mut_simd_f64s(out_j).0;
        let out_j = &mut out_j[..if BOTH { registers } else { 0 }];
        let mut buffer = [[0.0; TILE]];
        for ((row, s_a), out_a) in tile.as_chunks::<TILE>().0.iter().zip(s_i).zip(out_i) {
            for line in 0..TILE * size_of::<T>() / LINE {
                prefetch(&row[..], AHEAD + line * LINE);
            }
            let row = &T::widen_rows(std::array::from_ref(row), &mut buffer)[0];
            let row = &S::as_simd_f64s(row).0[..registers];
            let s_a = simd.splat_f64s(*s_a);
            let mut sums = [simd.splat_f64s(0.0); CHAINS];
            for first in (0..registers).step_by(CHAINS) {
                // By index: an iterator over the sums keeps the compiler from widening entries in registers, and single
                // precision then takes 1.8 times as long.
                #[allow(clippy::needless_range_loop)]
                for c in 0..CHAINS {
                    let b = first + c;
                    let m = row[b];
                    sums[c] = simd.mul_add_e_f64s(m, s_j[b], sums[c]);
                    if BOTH {
                        out_j[b] = simd.mul_add_e_f64s(m, s_a, out_j[b]);
                    }
                }
            }
            let sum = sums.into_iter().reduce(|a, b| simd.add_f64s(a, b));
            *out_a += sum.map_or(0.0, |sum| simd.reduce_sum_f64s(sum));
        }
    }
}
