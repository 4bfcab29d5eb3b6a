//! Tiles of a symmetric matrix times many columns: arithmetic binds, so rows of tiles are laid out in full and go through a
//! library.

use super::number::{Entry, Number, doubles_for, numbers};
use super::packed::{ENTRIES, TILE};
use super::symmetric::{SymmetricTiles, Tile};
use crate::context::Context;
use crate::error::Result;
use crate::parallel::part_len;
use crate::simd;
use crate::workspace::Workspace;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

/// Tiles that are laid side by side, and below each other, for one call of the library.
const WIDE_TILES: usize = 16;
const HIGH_TILES: usize = 2;

/// out = M S for the leading rows and columns of M.
pub(super) fn multiply_wide<M: SymmetricTiles, N: Number>(
    context: &Context,
    work: &mut Workspace,
    matrix: &M,
    (out, s, k): (&mut [f64], &[f64], usize),
) -> Result<()>
where
    f64: Entry<N>,
    f32: Entry<N>,
{
    let n = s.len() / k;
    let side = n.div_ceil(TILE);
    let mut buffer = work.take(doubles_for::<N>(s.len()));
    let narrowed = &mut numbers::<N>(&mut buffer)[..s.len()];
    let part = part_len(s.len());
    narrowed.par_chunks_mut(part).zip(s.par_chunks(part)).for_each(|(narrowed, s)| {
        narrowed.iter_mut().zip(s).for_each(|(narrowed, &s)| *narrowed = N::factor(s));
    });
    let s = &*narrowed;
    let own = if N::NEEDS_OWN { HIGH_TILES * TILE * k } else { 0 };
    let make = || (matrix.scratch(), vec![N::default(); HIGH_TILES * WIDE_TILES * ENTRIES], vec![N::default(); own]);
    let blocks = out.par_chunks_mut(HIGH_TILES * TILE * k).enumerate();
    let done = blocks.try_for_each_init(make, |(scratch, panel, own), (block, out)| {
        out.fill(0.0);
        let height = out.len() / k;
        let rows = block * HIGH_TILES..(block * HIGH_TILES + HIGH_TILES).min(side);
        for start in (0..side).step_by(WIDE_TILES) {
            context.check()?;
            let end = (start + WIDE_TILES).min(side);
            let columns = start * TILE..(end * TILE).min(n);
            let width = (end - start) * TILE;
            for (high, i) in rows.clone().enumerate() {
                for j in start..end {
                    let target = &mut panel[(high * width + j - start) * TILE..];
                    match matrix.tile(i.max(j), i.min(j), scratch) {
                        Tile::Double(tile) => lay_out(target, width, tile, j > i),
                        Tile::Single(tile) => lay_out(target, width, tile, j > i),
                    }
                }
            }
            let panel = MatRef::from_row_major_slice(&panel[..rows.len() * TILE * width], rows.len() * TILE, width);
            let s = MatRef::from_row_major_slice(&s[columns.start * k..columns.end * k], columns.len(), k);
            let panel = panel.submatrix(0, 0, height, columns.len());
            let product = MatMut::from_row_major_slice_mut(N::place(out, own), height, k);
            matmul(product, Accum::Add, panel, s, N::narrow(1.0), Par::Seq);
            N::settle(simd::best(), out, own);
        }
        Ok(())
    });
    work.give(buffer);
    done
}

/// Copies a tile, or its transpose, into a wider row-major array.
fn lay_out<T: Entry<N>, N: Number>(panel: &mut [N], width: usize, tile: &[T], transpose: bool) {
    let rows = tile.as_chunks::<TILE>().0;
    if transpose {
        // Eight columns of the tile at a time: their lines stay in the cache while they are read across.
        for start in (0..TILE).step_by(8) {
            for (a, row) in rows.iter().enumerate() {
                for b in start..start + 8 {
                    panel[b * width + a] = row[b].number();
                }
            }
        }
    } else {
        for (panel, row) in panel.chunks_mut(width).zip(rows) {
            panel.iter_mut().zip(row).for_each(|(number, entry)| *number = entry.number());
        }
    }
}
