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
/// `out_j` is empty. Where columns are fewer than lanes, `out_i` has as many numbers for each of its entries as there are lanes.
pub(crate) struct TileProduct<'a, T> {
    pub tile: &'a [T],
    pub s_i: &'a [f64],
    pub s_j: &'a [f64],
    pub out_i: &'a mut [f64],
    pub out_j: &'a mut [f64],
}

impl<T: Entry> TileProduct<'_, T> {
    /// Adds the product, for parts of one or two registers of columns, or of fewer columns than a register has lanes: these
    /// lie one behind the other.
    pub(crate) fn add(self, arch: Arch, columns: usize, lanes: usize) {
        if self.out_j.is_empty() {
            self.add_to::<false>(arch, columns, lanes);
        } else {
            self.add_to::<true>(arch, columns, lanes);
        }
    }

    fn add_to<const BOTH: bool>(self, arch: Arch, columns: usize, lanes: usize) {
        match columns / lanes {
            0 => arch.dispatch(Across::<T, 2, BOTH>(self)),
            1 => arch.dispatch(Few::<T, 1, 4, BOTH>(self)),
            _ => arch.dispatch(Few::<T, 2, 2, BOTH>(self)),
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

/// Fewer columns than a register has lanes, one behind the other: registers hold several columns of the tile instead, so that
/// none is padded. R rows of the tile are taken at a time. What lanes have summed up is left apart until [`fold_lanes`]: to
/// add it up after every row of a tile would take as long as the products.
struct Across<'a, T, const R: usize, const BOTH: bool>(TileProduct<'a, T>);

impl<T: Entry, const R: usize, const BOTH: bool> WithSimd for Across<'_, T, R, BOTH> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let TileProduct { tile, s_i, s_j, out_i, out_j } = self.0;
        let registers = TILE / S::F64_LANES;
        let columns = s_i.as_chunks::<TILE>().0.iter().zip(S::as_simd_f64s(s_j).0.chunks_exact(registers));
        let out_i = S::as_mut_simd_f64s(out_i).0;
        let out_j = S::as_mut_simd_f64s(out_j).0;
        let lines = R * TILE * size_of::<T>() / LINE;
        let mut buffer = [[0.0; TILE]; R];
        for (part, rows) in tile.as_chunks::<TILE>().0.as_chunks::<R>().0.iter().enumerate() {
            let rows_wide = T::widen_rows(rows, &mut buffer);
            let rows_wide: [_; R] = std::array::from_fn(|r| &S::as_simd_f64s(&rows_wide[r]).0[..registers]);
            for (c, (s_a, s_b)) in columns.clone().enumerate() {
                let s_a: [_; R] = std::array::from_fn(|r| simd.splat_f64s(s_a[part * R + r]));
                let out_a = &mut out_i[c * TILE + part * R..][..R];
                let out_b = &mut out_j[if BOTH { c * registers } else { 0 }..][..if BOTH { registers } else { 0 }];
                let mut sums: [_; R] = std::array::from_fn(|r| out_a[r]);
                for b in 0..registers {
                    if c == 0 {
                        // Lines of memory that R rows take, spread evenly over their registers.
                        for line in b * lines / registers..(b + 1) * lines / registers {
                            prefetch(&rows[..], AHEAD + line * LINE);
                        }
                    }
                    let mut sum_b = if BOTH { out_b[b] } else { simd.splat_f64s(0.0) };
                    for r in 0..R {
                        let m = rows_wide[r][b];
                        sums[r] = simd.mul_add_e_f64s(m, s_b[b], sums[r]);
                        if BOTH {
                            sum_b = simd.mul_add_e_f64s(m, s_a[r], sum_b);
                        }
                    }
                    if BOTH {
                        out_b[b] = sum_b;
                    }
                }
                out_a.copy_from_slice(&sums);
            }
        }
    }
}

/// Adds up what lanes have summed up apart, for one row of tiles, and clears it.
pub(crate) fn fold_lanes(arch: Arch, apart: &mut [f64], out: &mut [f64]) {
    struct Fold<'a>(&'a mut [f64], &'a mut [f64]);
    impl WithSimd for Fold<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            for (lanes, out) in S::as_mut_simd_f64s(self.0).0.iter_mut().zip(self.1) {
                *out += simd.reduce_sum_f64s(*lanes);
                *lanes = simd.splat_f64s(0.0);
            }
        }
    }
    arch.dispatch(Fold(apart, out));
}
