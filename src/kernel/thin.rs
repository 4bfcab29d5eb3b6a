//! Tiles of a symmetric matrix times a few columns, register by register.
//!
//! A tile M_ij below the diagonal serves twice, out_i += M_ij s_j and out_j += M_ijᵀ s_i, while it passes through the
//! registers once; R rows of it are taken at a time. Registers hold either several columns of S and of the product
//! ([`Few`]): then the parts of these that belong to the R rows stay in registers while the columns of the tile pass by. Or,
//! where columns would not fill one, several columns of the tile ([`Across`]).
//!
//! N is the precision of S and of the sums over a tile, T that in which the tile is stored.

use super::number::{Entry, Number};
use super::packed::TILE;
use crate::simd::prefetch;
use pulp::{Arch, Simd, WithSimd};

/// How far ahead of its use an entry is fetched from memory; tiles lie one behind the other. Measured.
const AHEAD: usize = 4096;
/// Bytes of a cache line.
const LINE: usize = 64;

/// One tile and the parts of S and of the product that belong to it: TILE rows each, all of one width. On the diagonal
/// `out_j` is empty. Where columns are fewer than lanes, `out_i` has as many numbers for each of its entries as there are lanes.
pub(crate) struct TileProduct<'a, T, N> {
    pub tile: &'a [T],
    pub s_i: &'a [N],
    pub s_j: &'a [N],
    pub out_i: &'a mut [N],
    pub out_j: &'a mut [N],
}

impl<T: Entry<N>, N: Number> TileProduct<'_, T, N> {
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
            // As many entries of the tile as there are registers for.
            0 if lanes * size_of::<N>() == LINE => arch.dispatch(Across::<T, N, 4, 4, BOTH>(self)),
            0 => arch.dispatch(Across::<T, N, 2, 4, BOTH>(self)),
            1 => arch.dispatch(Few::<T, N, 1, 4, BOTH>(self)),
            _ => arch.dispatch(Few::<T, N, 2, 2, BOTH>(self)),
        }
    }
}

/// V registers of columns, R rows of the tile at a time; BOTH: the tile serves twice.
struct Few<'a, T, N, const V: usize, const R: usize, const BOTH: bool>(TileProduct<'a, T, N>);

impl<T: Entry<N>, N: Number, const V: usize, const R: usize, const BOTH: bool> WithSimd for Few<'_, T, N, V, R, BOTH> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let TileProduct { tile, s_i, s_j, out_i, out_j } = self.0;
        let s_i = N::registers::<S>(s_i).as_chunks::<V>().0.as_chunks::<R>().0;
        let s_j = &N::registers::<S>(s_j).as_chunks::<V>().0[..TILE];
        let out_i = N::registers_mut::<S>(out_i).as_chunks_mut::<V>().0.as_chunks_mut::<R>().0;
        let out_j = N::registers_mut::<S>(out_j).as_chunks_mut::<V>().0;
        let out_j = &mut out_j[..if BOTH { TILE } else { 0 }];
        let zero = N::splat(simd, N::default());
        let rows = tile.as_chunks::<TILE>().0.as_chunks::<R>().0;
        // Lines of memory that R rows take, spread evenly over their columns.
        let every = LINE / (R * size_of::<T>());
        let mut buffer = [[N::default(); TILE]; R];
        for (rows, (s_a, out_a)) in rows.iter().zip(s_i.iter().zip(out_i)) {
            let entries = T::rows(rows, &mut buffer);
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
                    let m = N::splat(simd, entries[r][b]);
                    for v in 0..V {
                        sums[r][v] = N::mul_add(simd, m, s_b[v], sums[r][v]);
                        if BOTH {
                            out_b[v] = N::mul_add(simd, m, s_a[r][v], out_b[v]);
                        }
                    }
                }
                if BOTH {
                    out_j[b] = out_b;
                }
            }
            for r in 0..R {
                for v in 0..V {
                    out_a[r][v] = N::add_registers(simd, out_a[r][v], sums[r][v]);
                }
            }
        }
    }
}

/// Fewer columns than a register has lanes, one behind the other: registers hold several columns of the tile instead, so that
/// none is padded. R rows of the tile are taken at a time, and of these B registers each, which stay where they are while the
/// columns of S pass by. What lanes have summed up is left apart until [`add_up_lanes`]: to add it up after every row of a
/// tile would take as long as the products.
struct Across<'a, T, N, const R: usize, const B: usize, const BOTH: bool>(TileProduct<'a, T, N>);

impl<T: Entry<N>, N: Number, const R: usize, const B: usize, const BOTH: bool> WithSimd
    for Across<'_, T, N, R, B, BOTH>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let TileProduct { tile, s_i, s_j, out_i, out_j } = self.0;
        let registers = TILE / N::lanes::<S>();
        let columns = s_i.as_chunks::<TILE>().0.iter().zip(N::registers::<S>(s_j).chunks_exact(registers));
        let out_i = N::registers_mut::<S>(out_i);
        let out_j = N::registers_mut::<S>(out_j);
        // Lines of memory that R rows take, spread evenly over their registers.
        let lines = R * TILE * size_of::<T>() / LINE;
        let mut buffer = [[N::default(); TILE]; R];
        for (part, rows) in tile.as_chunks::<TILE>().0.as_chunks::<R>().0.iter().enumerate() {
            let entries = T::rows(rows, &mut buffer);
            let entries: [_; R] = std::array::from_fn(|r| N::registers::<S>(&entries[r]).as_chunks::<B>().0);
            for first in (0..registers).step_by(B) {
                for line in first * lines / registers..(first + B) * lines / registers {
                    prefetch(&rows[..], AHEAD + line * LINE);
                }
                // Copies, so that they stay in registers for all columns.
                let m: [[_; B]; R] = std::array::from_fn(|r| entries[r][first / B]);
                for (c, (s_a, s_b)) in columns.clone().enumerate() {
                    let s_a: [_; R] = std::array::from_fn(|r| N::splat(simd, s_a[part * R + r]));
                    let s_b = &s_b[first..][..B];
                    let out_a = &mut out_i[c * TILE + part * R..][..R];
                    let out_b = &mut out_j[if BOTH { c * registers + first } else { 0 }..][..if BOTH { B } else { 0 }];
                    let mut sums: [_; R] = std::array::from_fn(|r| out_a[r]);
                    for b in 0..B {
                        let mut sum_b = if BOTH { out_b[b] } else { N::splat(simd, N::default()) };
                        for r in 0..R {
                            sums[r] = N::mul_add(simd, m[r][b], s_b[b], sums[r]);
                            if BOTH {
                                sum_b = N::mul_add(simd, m[r][b], s_a[r], sum_b);
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
}

/// Adds up what lanes have summed up apart, for one row of tiles, and clears it.
pub(crate) fn add_up_lanes<N: Number>(arch: Arch, apart: &mut [N], out: &mut [f64]) {
    struct AddUp<'a, N>(&'a mut [N], &'a mut [f64]);
    impl<N: Number> WithSimd for AddUp<'_, N> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            for (lanes, out) in N::registers_mut::<S>(self.0).iter_mut().zip(self.1) {
                *out += N::sum_lanes(simd, *lanes).widen();
                *lanes = N::splat(simd, N::default());
            }
        }
    }
    arch.dispatch(AddUp(apart, out));
}
