//! Parallel loops and sums whose results do not depend on the number of threads.
//!
//! Every array is cut into at most [`PARTS`] parts; where the cuts fall depends on its length alone. A thread works on
//! whole parts, and partial sums are added in the order of the parts, so one thread and sixty-four give the same bits.

use crate::simd::widest;
use rayon::prelude::*;
use std::ops::Range;

/// Largest number of parts an array is cut into.
pub const PARTS: usize = 64;

/// Below this many entries a loop stays on the calling thread: waking others would take longer.
const SEQUENTIAL: usize = 8192;

/// Entries of a vector that stay in the first-level cache while others meet it.
const CACHED: usize = 1024;

/// Number of items in each part but the last.
#[must_use]
pub fn part_len(items: usize) -> usize {
    items.div_ceil(PARTS).max(1)
}

/// Calls `work` once for every part of `0..items` and returns the sums of what it returns.
fn sums_over_parts<const N: usize>(items: usize, work: impl Fn(Range<usize>) -> [f64; N] + Sync) -> [f64; N] {
    let len = part_len(items);
    let mut partial = [[0.0; N]; PARTS];
    let partial = &mut partial[..items.div_ceil(len)];
    let one = |(part, sums): (usize, &mut [f64; N])| {
        *sums = widest(
            #[inline(always)]
            || work(part * len..((part + 1) * len).min(items)),
        );
    };
    if items < SEQUENTIAL {
        partial.iter_mut().enumerate().for_each(one);
    } else {
        partial.par_iter_mut().enumerate().for_each(one);
    }
    std::array::from_fn(|i| partial.iter().map(|sums| sums[i]).sum())
}

/// ⟨a, b⟩ with a fixed order of summation.
#[must_use]
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    let [sum] = dots([a], b);
    sum
}

/// ⟨a, b⟩ for several a, in one pass.
#[must_use]
pub fn dots<const N: usize>(a: [&[f64]; N], b: &[f64]) -> [f64; N] {
    sums_over_parts(
        b.len(),
        #[inline(always)]
        |part| {
            let mut sums = [0.0; N];
            for start in part.clone().step_by(CACHED) {
                let block = start..(start + CACHED).min(part.end);
                for (sum, a) in sums.iter_mut().zip(a) {
                    *sum += dot_sequential(&a[block.clone()], &b[block.clone()]);
                }
            }
            sums
        },
    )
}

/// ⟨a, b⟩ on one thread. Eight running sums let the compiler use whole registers.
#[must_use]
#[inline(always)]
pub fn dot_sequential(a: &[f64], b: &[f64]) -> f64 {
    let (a_blocks, a_rest) = a.as_chunks::<8>();
    let (b_blocks, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (x, y) in a_blocks.iter().zip(b_blocks) {
        for lane in 0..8 {
            sums[lane] += x[lane] * y[lane];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum();
    fold_lanes(sums, |a, b| a + b) + rest
}

/// Σ a on one thread, with eight running sums.
#[must_use]
#[inline(always)]
pub fn sum_sequential(a: &[f64]) -> f64 {
    let (blocks, rest) = a.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for block in blocks {
        sums.iter_mut().zip(block).for_each(|(sum, x)| *sum += x);
    }
    fold_lanes(sums, |a, b| a + b) + rest.iter().sum::<f64>()
}

/// Eight running results as one, in pairs: in a row each operation would wait for the one before it.
#[inline(always)]
pub fn fold_lanes(lanes: [f64; 8], operation: impl Fn(f64, f64) -> f64) -> f64 {
    let [a, b, c, d, e, f, g, h] = lanes;
    let four = [operation(a, e), operation(b, f), operation(c, g), operation(d, h)];
    operation(operation(four[0], four[2]), operation(four[1], four[3]))
}

/// The larger of a maximum so far and |x|; NaN if either is NaN.
#[inline(always)]
#[must_use]
pub fn larger_abs(most: f64, x: f64) -> f64 {
    let x = x.abs();
    if x > most || x.is_nan() { x } else { most }
}

/// Values of matching entries, taken together by an operation in which order does not matter; from `start` on. Eight
/// running results let the compiler use whole registers.
#[inline(always)]
pub fn fold_entries<const N: usize>(
    entries: [&[f64]; N],
    value: impl Fn([f64; N]) -> f64,
    start: f64,
    operation: impl Fn(f64, f64) -> f64,
) -> f64 {
    let chunks = entries.map(<[f64]>::as_chunks::<8>);
    let mut lanes = [start; 8];
    for block in 0..chunks[0].0.len() {
        let blocks = chunks.map(|(blocks, _)| blocks[block]);
        for lane in 0..8 {
            lanes[lane] = operation(lanes[lane], value(blocks.map(|block| block[lane])));
        }
    }
    let rest = (0..chunks[0].1.len()).map(|i| value(chunks.map(|(_, rest)| rest[i])));
    rest.fold(fold_lanes(lanes, &operation), &operation)
}

/// max |a| on one thread; NaN if any entry is NaN.
#[inline(always)]
#[must_use]
pub fn max_abs_sequential(a: &[f64]) -> f64 {
    fold_entries([a], |[a]| a, 0.0, larger_abs)
}

/// max |a|; NaN if any entry is NaN.
#[must_use]
pub fn max_abs(a: &[f64]) -> f64 {
    let len = part_len(a.len());
    let part = |p: &[f64]| {
        widest(
            #[inline(always)]
            || max_abs_sequential(p),
        )
    };
    if a.len() < SEQUENTIAL { part(a) } else { a.par_chunks(len).map(part).reduce(|| 0.0, larger_abs) }
}

/// Calls `work` for matching parts of one array that is written and several that are read.
pub fn update<const N: usize>(out: &mut [f64], read: [&[f64]; N], work: impl Fn(&mut [f64], [&[f64]; N]) + Sync) {
    let items = out.len();
    let len = part_len(items);
    let one = |(part, out): (usize, &mut [f64])| {
        let range = part * len..part * len + out.len();
        widest(
            #[inline(always)]
            || work(out, read.map(|r| &r[range.clone()])),
        );
    };
    if items < SEQUENTIAL {
        out.chunks_mut(len).enumerate().for_each(one);
    } else {
        out.par_chunks_mut(len).enumerate().for_each(one);
    }
}

/// y += a x for two arrays of the same length.
pub fn axpy_both(y: [&mut [f64]; 2], a: [f64; 2], x: [&[f64]; 2]) {
    let items = y[0].len();
    let len = part_len(items);
    let [first, second] = y;
    let one = |(part, (first, second)): (usize, (&mut [f64], &mut [f64]))| {
        let range = part * len..part * len + first.len();
        widest(
            #[inline(always)]
            || {
                for ((y, a), x) in [first, second].into_iter().zip(a).zip(x) {
                    y.iter_mut().zip(&x[range.clone()]).for_each(|(y, x)| *y += a * x);
                }
            },
        );
    };
    if items < SEQUENTIAL {
        first.chunks_mut(len).zip(second.chunks_mut(len)).enumerate().for_each(one);
    } else {
        first.par_chunks_mut(len).zip(second.par_chunks_mut(len)).enumerate().for_each(one);
    }
}

/// y = x.
pub fn copy(y: &mut [f64], x: &[f64]) {
    update(y, [x], |y, [x]| y.copy_from_slice(x));
}

/// y += a x.
pub fn axpy(y: &mut [f64], a: f64, x: &[f64]) {
    update(y, [x], |y, [x]| y.iter_mut().zip(x).for_each(|(y, x)| *y += a * x));
}

/// y = x + b y.
pub fn xpby(y: &mut [f64], x: &[f64], b: f64) {
    update(y, [x], |y, [x]| y.iter_mut().zip(x).for_each(|(y, x)| *y = x + b * *y));
}

/// Writes an array of `columns` columns to its place among several of the same size, side by side.
pub fn put_beside(all: &mut [f64], one: &[f64], columns: usize, place: usize, count: usize) {
    let (width, rows) = (columns * count, part_len(one.len() / columns));
    all.par_chunks_mut(rows * width).zip(one.par_chunks(rows * columns)).for_each(|(all, one)| {
        for (all, one) in all.chunks_mut(width).zip(one.chunks(columns)) {
            all[place * columns..(place + 1) * columns].copy_from_slice(one);
        }
    });
}

/// The way back from [`put_beside`].
pub fn take_from_beside(one: &mut [f64], all: &[f64], columns: usize, place: usize, count: usize) {
    let (width, rows) = (columns * count, part_len(one.len() / columns));
    one.par_chunks_mut(rows * columns).zip(all.par_chunks(rows * width)).for_each(|(one, all)| {
        for (one, all) in one.chunks_mut(columns).zip(all.chunks(width)) {
            one.copy_from_slice(&all[place * columns..(place + 1) * columns]);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn dot_agrees_with_a_plain_loop(values in prop::collection::vec((-1e3..1e3, -1e3..1e3), 0..400)) {
            let (a, b): (Vec<f64>, Vec<f64>) = values.into_iter().unzip();
            let plain: f64 = a.iter().zip(&b).map(|(x, y)| x * y).sum();
            let scale: f64 = a.iter().zip(&b).map(|(x, y)| (x * y).abs()).sum();
            prop_assert!((dot(&a, &b) - plain).abs() <= 1e-14 * scale);
        }
    }

    #[test]
    fn sums_have_the_same_bits_for_any_number_of_threads() {
        let a: Vec<f64> = (0..100_003).map(|i| f64::from(i % 1013).sin()).collect();
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| dot(&a, &a)).to_bits()
        };
        assert_eq!(with(1), with(2));
        assert_eq!(with(1), with(7));
    }

    #[test]
    fn arrays_side_by_side_come_back_as_they_were() {
        let arrays: Vec<Vec<f64>> = (0..3).map(|k| (0..140).map(|i| f64::from(1000 * k + i)).collect()).collect();
        let mut all = vec![0.0; 3 * 140];
        arrays.iter().enumerate().for_each(|(k, one)| put_beside(&mut all, one, 2, k, 3));
        assert_eq!(all[..6], [0.0, 1.0, 1000.0, 1001.0, 2000.0, 2001.0]);
        for (k, one) in arrays.iter().enumerate() {
            let mut back = vec![0.0; 140];
            take_from_beside(&mut back, &all, 2, k, 3);
            assert_eq!(back, *one);
        }
    }

    #[test]
    fn max_abs_shows_nan() {
        let mut a = vec![1.0; 20_000];
        assert!((max_abs(&a) - 1.0).abs() < f64::EPSILON);
        a[13_000] = f64::NAN;
        assert!(max_abs(&a).is_nan());
    }
}
