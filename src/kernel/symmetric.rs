//! Products with a symmetric matrix given by its tiles, stored or computed as they are needed.

use super::number::{Entry, Number, doubles_for, lanes, numbers};
use super::packed::TILE;
use super::thin::{TileProduct, add_up_lanes};
use super::wide::multiply_wide;
use crate::context::Context;
use crate::data::{check_shape, row_major, row_major_mut};
use crate::error::Result;
use crate::parallel::part_len;
use crate::simd;
use crate::workspace::Workspace;
use ndarray::{ArrayView2, ArrayViewMut2};
use pulp::Arch;
use rayon::prelude::*;

/// A tile of TILE × TILE entries, row-major.
pub(crate) enum Tile<'a> {
    Double(&'a [f64]),
    Single(&'a [f32]),
}

/// A symmetric matrix by its tiles (i, j), j ≤ i; edges are padded with zeros.
pub(crate) trait SymmetricTiles: Sync {
    /// Buffers of one thread.
    type Scratch;

    fn points(&self) -> usize;

    fn scratch(&self) -> Self::Scratch;

    fn tile<'a>(&'a self, i: usize, j: usize, scratch: &'a mut Self::Scratch) -> Tile<'a>;

    /// Whether entries are stored in single precision.
    fn is_single(&self) -> bool;

    /// Whether entries are not fetched from memory in double precision, but made: from single precision, or altogether.
    fn is_widened(&self) -> bool;

    /// From how many columns on a tile is better fetched twice, and multiplied by a library.
    fn wide_from(&self) -> usize;
}

/// Columns that are multiplied in one pass over the tiles; their products take this many times [`groups`] columns.
const MAX_COLUMNS: usize = 64;

/// Rough products have so many columns at least, or so few points that matrices come from a cache. Else memory binds: half the
/// arithmetic gains little (a sixth with five columns of six matrices in turn, n = 4435), and the steps that rounding costs
/// solvers as much (a seventh, on satimage).
const ROUGH_FROM: usize = 8;
const CACHED_POINTS: usize = 2300;

/// Into how many groups the tiles are cut. Each has its own sums, which are added in the end, in order.
fn groups(side: usize) -> usize {
    if side >= 128 { 16 } else { 8 }
}

/// Bytes that the buffers of a product take at most; what lanes sum up apart takes less than a row of tiles.
pub(crate) fn workspace_bytes(points: usize) -> u64 {
    let side = points.div_ceil(TILE);
    ((groups(side) + 1) * MAX_COLUMNS * (side + 1) * TILE * size_of::<f64>()) as u64
}

/// out = M S for the leading rows and columns of M, as many as S has rows.
pub(crate) fn multiply<M: SymmetricTiles>(
    context: &Context,
    work: &mut Workspace,
    mut out: ArrayViewMut2<'_, f64>,
    matrix: &M,
    s: ArrayView2<'_, f64>,
) -> Result<()> {
    let (n, k) = s.dim();
    check_corner(matrix.points(), n)?;
    check_shape("the rows of the product must be those of S", n, out.nrows())?;
    check_shape("the columns of the product must be those of S", k, out.ncols())?;
    context.check()?;
    if n == 0 || k == 0 {
        return Ok(());
    }
    let (s, out) = (row_major("S", &s)?, row_major_mut("the product", &mut out)?);
    let arithmetic_binds = k >= ROUGH_FROM || n <= CACHED_POINTS;
    if context.has_rough_products() && matrix.is_single() && arithmetic_binds {
        multiply_as::<M, f32>(context, work, matrix, (out, s, k))
    } else {
        multiply_as::<M, f64>(context, work, matrix, (out, s, k))
    }
}

/// The same with sums over tiles of a certain precision; those over all tiles are in double precision.
fn multiply_as<M: SymmetricTiles, N: Number>(
    context: &Context,
    work: &mut Workspace,
    matrix: &M,
    (out, s, k): (&mut [f64], &[f64], usize),
) -> Result<()>
where
    f64: Entry<N>,
    f32: Entry<N>,
{
    if k >= matrix.wide_from() {
        return multiply_wide::<M, N>(context, work, matrix, (out, s, k));
    }
    for start in (0..k).step_by(MAX_COLUMNS) {
        let columns = start..(start + MAX_COLUMNS).min(k);
        multiply_thin::<M, N>(context, work, simd::best(), matrix, (&mut *out, s, k), columns)?;
    }
    Ok(())
}

/// Fails if there are fewer points than rows.
pub(crate) fn check_corner(points: usize, rows: usize) -> Result<()> {
    check_shape("S must not have more rows than there are points", points, rows.max(points))
}

/// Columns of S: `first` of them all, `width` with the padding to whole registers, `offset` in a packed array. There they lie
/// side by side, or, where registers lie across the rows of a tile, one behind the other for every row of tiles.
#[derive(Clone, Copy, Default)]
struct ColumnBlock {
    first: usize,
    width: usize,
    offset: usize,
    is_across: bool,
}

/// Cuts columns into blocks of one or two registers, and a rest that is taken across, without padding; all figures behind it
/// were measured.
///
/// Where entries are widened on the way, few passes with two registers are best, and a rest of up to three quarters of a
/// register is best taken across. Entries in double precision are best passed by with one register, unless two take all
/// columns at once, and a rest is taken across up to half a register.
fn column_blocks(
    blocks: &mut [ColumnBlock; MAX_COLUMNS],
    columns: usize,
    lanes: usize,
    rows: usize,
    widened: bool,
) -> &[ColumnBlock] {
    let (mut count, mut first) = (0, 0);
    let most_across = if widened { 3 * lanes / 4 } else { lanes / 2 }.max(1);
    while first < columns {
        let left = columns - first;
        let one_by_one = !widened && columns > 2 * lanes;
        let width = match left {
            _ if left <= most_across => left,
            _ if left <= lanes + most_across || one_by_one => lanes,
            _ => 2 * lanes,
        };
        blocks[count] = ColumnBlock { first, width, offset: first * rows, is_across: width < lanes };
        count += 1;
        first += width;
    }
    &blocks[..count]
}

/// A few columns: every tile is fetched once and used for both of its places.
fn multiply_thin<M: SymmetricTiles, N: Number>(
    context: &Context,
    work: &mut Workspace,
    arch: Arch,
    matrix: &M,
    (out, s, k): (&mut [f64], &[f64], usize),
    columns: std::ops::Range<usize>,
) -> Result<()>
where
    f64: Entry<N>,
    f32: Entry<N>,
{
    let n = s.len() / k;
    let side = n.div_ceil(TILE);
    let rows = side * TILE;
    let lanes = lanes::<N>(arch);
    let mut room = [ColumnBlock::default(); MAX_COLUMNS];
    let blocks = column_blocks(&mut room, columns.len(), lanes, rows, matrix.is_widened() && !N::NEEDS_OWN);
    let packed_len: usize = blocks.iter().map(|block| block.width * rows).sum();
    let groups = groups(side);
    // Registers are fetched from whole cache lines only where arrays start at one. Rows come in whole tiles, so the parts
    // of an array start at lines as well.
    let mut packed_buffer = work.take(doubles_for::<N>(packed_len) + LINE);
    // Only the last block may be taken across; what its lanes sum up apart comes after the sums of a group, and then what
    // a tile has of its own.
    let across = blocks.last().filter(|block| block.is_across);
    let apart_len = across.map_or(0, |block| block.width * TILE * lanes);
    let own_len = if N::NEEDS_OWN { blocks.iter().map(|block| block.width * TILE).max().unwrap_or(0) } else { 0 };
    let group_len = packed_len + doubles_for::<N>(apart_len + 2 * own_len);
    let mut sums_buffer = work.take(groups * group_len + LINE);
    let packed = &mut numbers::<N>(aligned(&mut packed_buffer))[..packed_len];
    let sums = &mut aligned(&mut sums_buffer)[..groups * group_len];
    for block in blocks {
        pack(&mut packed[block.offset..block.offset + block.width * rows], s, k, &columns, block);
    }
    let tiles = side * (side + 1) / 2;
    let done = sums.par_chunks_mut(group_len).enumerate().try_for_each_init(
        || matrix.scratch(),
        |scratch, (group, sums)| {
            sums.fill(0.0);
            let (sums, rest) = sums.split_at_mut(packed_len);
            let (apart, own) = numbers::<N>(rest).split_at_mut(apart_len);
            let (own_i, own_j) = own.split_at_mut(own_len);
            let mut sums = Sums { total: sums, apart, own: [own_i, own_j] };
            let indices = group * tiles / groups..(group + 1) * tiles / groups;
            for index in indices.clone() {
                context.check()?;
                let (i, j) = tile_place(index);
                match matrix.tile(i, j, scratch) {
                    Tile::Double(tile) => add_tile(arch, tile, (i, j), blocks, lanes, packed, &mut sums),
                    Tile::Single(tile) => add_tile(arch, tile, (i, j), blocks, lanes, packed, &mut sums),
                }
                if let Some(block) = across.filter(|_| i == j || index + 1 == indices.end) {
                    add_up_lanes(arch, sums.apart, &mut sums.total[block.offset + i * TILE * block.width..]);
                }
            }
            Ok(())
        },
    );
    if done.is_ok() {
        unpack(out, k, &columns, blocks, sums, group_len);
    }
    work.give(packed_buffer);
    work.give(sums_buffer);
    done
}

/// Doubles in a cache line.
const LINE: usize = 8;

/// The part of a buffer that starts at a cache line.
fn aligned(buffer: &mut [f64]) -> &mut [f64] {
    let offset = buffer.as_ptr().align_offset(LINE * size_of::<f64>());
    // An offset that cannot be had is larger than any buffer; any start is right, if slower.
    if offset < LINE { &mut buffer[offset..] } else { buffer }
}

/// The sums of a group of tiles.
struct Sums<'a, N> {
    total: &'a mut [f64],
    /// What lanes sum up apart over a row of tiles.
    apart: &'a mut [N],
    /// What a tile has of its own, for its rows and for its columns.
    own: [&'a mut [N]; 2],
}

/// Adds what one tile gives to the sums of its group.
fn add_tile<T: Entry<N>, N: Number>(
    arch: Arch,
    tile: &[T],
    (i, j): (usize, usize),
    blocks: &[ColumnBlock],
    lanes: usize,
    packed: &[N],
    Sums { total, apart, own: [own_i, own_j] }: &mut Sums<'_, N>,
) {
    for block in blocks {
        let part = TILE * block.width;
        let s = &packed[block.offset..];
        let (before, rest) = total[block.offset..].split_at_mut(i * part);
        let sums_i = if block.is_across { &mut [][..] } else { &mut rest[..part] };
        let sums_j = if i == j { &mut [][..] } else { &mut before[j * part..(j + 1) * part] };
        let out_i = if block.is_across { &mut **apart } else { N::place(sums_i, own_i) };
        let out_j = N::place(sums_j, own_j);
        let (s_i, s_j) = (&s[i * part..(i + 1) * part], &s[j * part..(j + 1) * part]);
        TileProduct { tile, s_i, s_j, out_i, out_j }.add(arch, block.width, lanes);
        N::settle(arch, sums_i, own_i);
        N::settle(arch, sums_j, own_j);
    }
}

/// Copies a block of columns, padded with zeros to its width and to whole tiles.
fn pack<N: Number>(packed: &mut [N], s: &[f64], k: usize, columns: &std::ops::Range<usize>, block: &ColumnBlock) {
    let first = columns.start + block.first;
    let used = block.width.min(columns.end - first);
    let rows = part_len(packed.len() / block.width).next_multiple_of(TILE);
    packed.par_chunks_mut(rows * block.width).enumerate().for_each(|(part, packed)| {
        for (tile, packed) in packed.chunks_mut(TILE * block.width).enumerate() {
            for a in 0..TILE {
                let row = part * rows + tile * TILE + a;
                let filled = s.get(row * k + first..row * k + first + used).unwrap_or_default();
                if block.is_across {
                    for c in 0..block.width {
                        packed[c * TILE + a] = filled.get(c).map_or(N::default(), |&s| N::factor(s));
                    }
                } else {
                    let packed = &mut packed[a * block.width..(a + 1) * block.width];
                    packed.iter_mut().zip(filled).for_each(|(packed, &s)| *packed = N::factor(s));
                    packed[filled.len()..].fill(N::default());
                }
            }
        }
    });
}

/// Adds the sums of all groups, in their order, and writes them to their places.
fn unpack(
    out: &mut [f64],
    k: usize,
    columns: &std::ops::Range<usize>,
    blocks: &[ColumnBlock],
    sums: &[f64],
    group_len: usize,
) {
    let rows = part_len(out.len() / k);
    out.par_chunks_mut(rows * k).enumerate().for_each(|(part, out)| {
        for (out, row) in out.chunks_mut(k).zip(part * rows..) {
            for block in blocks {
                let first = columns.start + block.first;
                let used = block.width.min(columns.end - first);
                let out = &mut out[first..first + used];
                if block.is_across {
                    let place = block.offset + row / TILE * TILE * block.width + row % TILE;
                    for (c, out) in out.iter_mut().enumerate() {
                        *out = sums[place + c * TILE..].iter().step_by(group_len).sum();
                    }
                } else {
                    let place = block.offset + row * block.width;
                    out.copy_from_slice(&sums[place..place + used]);
                    for group in sums.chunks(group_len).skip(1) {
                        out.iter_mut().zip(&group[place..place + used]).for_each(|(out, sum)| *out += sum);
                    }
                }
            }
        }
    });
}

/// Row and column of the tile with the given index, when tiles are counted row after row.
pub(crate) fn tile_place(index: usize) -> (usize, usize) {
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
    use crate::kernel::packed::{PackedSymmetric, Precision};
    use ndarray::Array2;

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

    /// Every instruction set, both ways of multiplying, every width, sizes around those of a tile, and corners.
    #[test]
    fn every_way_of_multiplying_gives_the_product() {
        check_every_way(&[1, 2, 63, 64, 65, 257], 1..=33);
    }

    /// Small enough for a memory checker.
    #[test]
    fn a_few_small_products() {
        check_every_way(&[65], 1..=9);
    }

    fn check_every_way(sizes: &[usize], columns: std::ops::RangeInclusive<usize>) {
        let context = Context::new(Some(2)).unwrap();
        let entry = |i: usize, j: usize| ((i.max(j) * 7 + i.min(j) * 3) % 23) as f64 - 11.0;
        for &points in sizes {
            for precision in [Precision::Double, Precision::Single] {
                let fill =
                    |(): &mut (), tile: &mut [f64], rows: std::ops::Range<usize>, columns: std::ops::Range<usize>| {
                        let places = rows.flat_map(|i| columns.clone().map(move |j| (i, j)));
                        tile.iter_mut().zip(places).for_each(|(value, (i, j))| *value = entry(i, j));
                    };
                let matrix = PackedSymmetric::build(&context, points, (precision, 11.0), || (), fill).unwrap();
                for n in [points, points.div_ceil(2)] {
                    let dense = Array2::from_shape_fn((n, n), |(i, j)| entry(i, j));
                    for k in columns.clone() {
                        let s = Array2::from_shape_fn((n, k), |(i, c)| ((i * 5 + c * 11) % 17) as f64 - 8.0);
                        // Small whole numbers: every order of summation gives the same.
                        let expected = dense.dot(&s);
                        let (s, mut out) = (s.as_slice().unwrap(), vec![f64::NAN; n * k]);
                        let expected = expected.as_slice().unwrap();
                        let mut work = Workspace::default();
                        let mut check = |told: String, multiply: &mut dyn FnMut(&mut Workspace, &mut [f64])| {
                            out.fill(f64::NAN);
                            multiply(&mut work, &mut out);
                            assert_eq!(out, expected, "n = {n}, k = {k}, {told}");
                        };
                        for arch in simd::all() {
                            check(format!("{arch:?}"), &mut |work, out| {
                                multiply_thin::<_, f64>(&context, work, arch, &matrix, (out, s, k), 0..k).unwrap();
                            });
                            check(format!("rough, {arch:?}"), &mut |work, out| {
                                multiply_thin::<_, f32>(&context, work, arch, &matrix, (out, s, k), 0..k).unwrap();
                            });
                        }
                        check("wide".into(), &mut |work, out| {
                            multiply_wide::<_, f64>(&context, work, &matrix, (out, s, k)).unwrap();
                        });
                        check("wide, rough".into(), &mut |work, out| {
                            multiply_wide::<_, f32>(&context, work, &matrix, (out, s, k)).unwrap();
                        });
                    }
                }
            }
        }
    }
}
