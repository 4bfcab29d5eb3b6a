//! Pairs of steps and changes of the gradient that L-BFGS remembers, each with its image under K̃.
//!
//! They are kept in single precision: a pair only says where curvature was found, and half the memory is half the time.
//! Every pass goes over all pairs at once, block by block, so that the vector they meet stays in the cache.

use crate::parallel::{PARTS, dot_sequential, fold_lanes, part_len};
use crate::simd::widest;
use rayon::prelude::*;
use std::collections::VecDeque;
use std::ops::Range;

/// Entries of the long vectors that are worked on at once: few enough for a cache, and so many that what follows in each vector
/// is fetched ahead. 256 to 1024 took 5 to 10 % more.
const BLOCK: usize = 4096;

/// Running sums of an inner product, for whole registers.
const LANES: usize = 8;

/// Inner products that are taken of a new step: of its direction, and of r before and after it.
const OF_STEP: usize = 3;

/// One remembered step: s = λ d, y = the change of α + g, and their images.
#[derive(Debug, Default)]
struct Pair {
    s: Vec<f32>,
    y: Vec<f32>,
    s_image: Vec<f32>,
    y_image: Vec<f32>,
}

/// The last pairs, oldest first.
#[derive(Debug)]
pub(super) struct History {
    pairs: VecDeque<Pair>,
    /// The pair of the step that was looked at last, or room for the next one.
    next: Pair,
    capacity: usize,
    /// Entries of a row: vectors are cut into parts and blocks of whole rows.
    width: usize,
    partial: Vec<f64>,
}

/// Inner products in the norm of K̃ of one vector with all s and all y.
#[derive(Debug, Clone, Default)]
pub(super) struct Products {
    pub s: Vec<f64>,
    pub y: Vec<f64>,
}

/// A step that was taken, `length` times a direction, and r = −(α + g) before it and now; all with their images.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change<'a> {
    pub length: f64,
    pub direction: [&'a [f64]; 2],
    pub before: [&'a [f64]; 2],
    pub now: [&'a [f64]; 2],
}

impl History {
    pub(super) fn new(capacity: usize, width: usize) -> Self {
        let partial = vec![0.0; (2 * capacity + OF_STEP) * PARTS];
        Self { pairs: VecDeque::with_capacity(capacity), next: Pair::default(), capacity, width, partial }
    }

    pub(super) fn len(&self) -> usize {
        self.pairs.len()
    }

    pub(super) fn clear(&mut self) {
        self.pairs.clear();
    }

    /// Makes room for another pair; returns whether the oldest one had to go.
    pub(super) fn make_room(&mut self) -> bool {
        let forgotten = if self.pairs.len() == self.capacity { self.pairs.pop_front() } else { None };
        let has_gone = forgotten.is_some();
        self.next = forgotten.unwrap_or_else(|| std::mem::take(&mut self.next));
        has_gone
    }

    /// Remembers the step that was looked at last.
    pub(super) fn remember(&mut self) {
        self.pairs.push_back(std::mem::take(&mut self.next));
    }

    /// All inner products with r = −(α + g) after a step, in one pass: of all pairs, of the direction of the step, of r
    /// before it, and of r itself. The step can be remembered then. Calls `also` for every block of K̃r, with its first row
    /// and what there is in `of_parts` for its part.
    pub(super) fn look<A: Send>(
        &mut self,
        change: &Change<'_>,
        out: &mut Products,
        of_parts: &mut [A],
        also: impl Fn(&mut A, usize, &[f64]) + Sync,
    ) -> [f64; OF_STEP] {
        let count = 2 * self.pairs.len() + OF_STEP;
        let (width, image) = (self.width, change.now[1]);
        self.next.resize(image.len());
        let len = part_len(image.len() / width) * width;
        let parts = image.len().div_ceil(len);
        let (pairs, partial) = (&self.pairs, &mut self.partial[..count * parts]);
        let next = self.next.parts_mut(len).zip(partial.par_chunks_mut(count)).zip(of_parts.par_iter_mut());
        next.enumerate().for_each(|(part, ((mut next, sums), of_part))| {
            sums.fill(0.0);
            let (of_pairs, of_step) = sums.split_at_mut(count - OF_STEP);
            for block in blocks(part * len..((part + 1) * len).min(image.len()), width) {
                let x = &image[block.clone()];
                widest(
                    #[inline(always)]
                    || {
                        for (pair, sums) in pairs.iter().zip(of_pairs.as_chunks_mut::<2>().0) {
                            sums[0] += mixed_dot(&pair.s[block.clone()], x);
                            sums[1] += mixed_dot(&pair.y[block.clone()], x);
                        }
                        for (sum, with) in of_step.iter_mut().zip([change.direction, change.before, change.now]) {
                            *sum += dot_sequential(&with[0][block.clone()], x);
                        }
                        next.fill(change, &block, part * len);
                        also(of_part, block.start / width, x);
                    },
                );
            }
        });
        let total = |i: usize| partial.chunks(count).map(|sums| sums[i]).sum::<f64>();
        out.s.clear();
        out.y.clear();
        out.s.extend((0..pairs.len()).map(|i| total(2 * i)));
        out.y.extend((0..pairs.len()).map(|i| total(2 * i + 1)));
        std::array::from_fn(|i| total(count - OF_STEP + i))
    }

    /// out = c (x + Σ_i y_i b_i) + Σ_i s_i a_i, and the same of the images. Calls `then` for every block of both, with its
    /// range, and returns the sums of what that returns.
    pub(super) fn combine<const N: usize>(
        &self,
        c: f64,
        (x, b): ([&[f64]; 2], &[f64]),
        a: &[f64],
        out: [&mut [f64]; 2],
        then: impl Fn(Range<usize>, [&mut [f64]; 2]) -> [f64; N] + Sync,
    ) -> [f64; N] {
        let width = self.width;
        let len = part_len(out[0].len() / width) * width;
        let [plain, image] = out;
        let mut partial = [[0.0; N]; PARTS];
        let parts = plain.par_chunks_mut(len).zip(image.par_chunks_mut(len)).zip(&mut partial);
        parts.enumerate().for_each(|(part, ((plain, image), sums))| {
            let start = part * len;
            for block in blocks(start..start + plain.len(), width) {
                let here = block.start - start..block.end - start;
                let (plain, image) = (&mut plain[here.clone()], &mut image[here]);
                let pairs = || self.pairs.iter().zip(a.iter().zip(b));
                widest(
                    #[inline(always)]
                    || {
                        let s_and_y = pairs().map(|(pair, factors)| (&pair.s, &pair.y, factors));
                        combine(plain, (c, x[0]), s_and_y, &block);
                        let images = pairs().map(|(pair, factors)| (&pair.s_image, &pair.y_image, factors));
                        combine(image, (c, x[1]), images, &block);
                        let told = then(block.clone(), [plain, image]);
                        sums.iter_mut().zip(told).for_each(|(sum, told)| *sum += told);
                    },
                );
            }
        });
        std::array::from_fn(|i| partial.iter().map(|sums| sums[i]).sum())
    }
}

/// Cuts a range of entries into blocks of whole rows of the given width.
fn blocks(range: Range<usize>, width: usize) -> impl Iterator<Item = Range<usize>> {
    let len = (BLOCK / width).max(1) * width;
    let end = range.end;
    range.step_by(len).map(move |start| start..(start + len).min(end))
}

impl Pair {
    fn resize(&mut self, len: usize) {
        [&mut self.s, &mut self.y, &mut self.s_image, &mut self.y_image].into_iter().for_each(|v| v.resize(len, 0.0));
    }

    /// Parts of so many entries, to be written.
    fn parts_mut(&mut self, len: usize) -> impl IndexedParallelIterator<Item = PairPart<'_>> {
        let plain = self.s.par_chunks_mut(len).zip(self.y.par_chunks_mut(len));
        let images = self.s_image.par_chunks_mut(len).zip(self.y_image.par_chunks_mut(len));
        plain.zip(images).map(|((s, y), (s_image, y_image))| PairPart { s: [s, s_image], y: [y, y_image] })
    }
}

/// Some entries of a pair that is written, each with its image.
struct PairPart<'a> {
    s: [&'a mut [f32]; 2],
    y: [&'a mut [f32]; 2],
}

impl PairPart<'_> {
    /// s = λ d and y = what r has changed by, with their images, for a block of entries; the part begins at `start`.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // single precision is what a pair is kept in
    fn fill(&mut self, change: &Change<'_>, block: &Range<usize>, start: usize) {
        let here = block.start - start..block.end - start;
        for kind in 0..2 {
            let (s, y) = (&mut self.s[kind][here.clone()], &mut self.y[kind][here.clone()]);
            let direction = &change.direction[kind][block.clone()];
            s.iter_mut().zip(direction).for_each(|(s, d)| *s = (change.length * d) as f32);
            let changes = change.before[kind][block.clone()].iter().zip(&change.now[kind][block.clone()]);
            y.iter_mut().zip(changes).for_each(|(y, (before, now))| *y = (before - now) as f32);
        }
    }
}

/// out = c (x + Σ_i y_i b_i) + Σ_i s_i a_i for a block of entries.
#[inline(always)]
fn combine<'a>(
    out: &mut [f64],
    (c, x): (f64, &[f64]),
    pairs: impl Iterator<Item = (&'a Vec<f32>, &'a Vec<f32>, (&'a f64, &'a f64))>,
    range: &Range<usize>,
) {
    out.iter_mut().zip(&x[range.clone()]).for_each(|(out, x)| *out = c * x);
    for (s, y, (a, b)) in pairs {
        let entries = s[range.clone()].iter().zip(&y[range.clone()]);
        for (out, (s, y)) in out.iter_mut().zip(entries) {
            *out += a * f64::from(*s) + c * b * f64::from(*y);
        }
    }
}

/// ⟨a, b⟩ of a block.
#[inline(always)]
fn mixed_dot(a: &[f32], b: &[f64]) -> f64 {
    let (a_blocks, a_rest) = a.as_chunks::<LANES>();
    let (b_blocks, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        for lane in 0..LANES {
            sums[lane] += f64::from(a[lane]) * b[lane];
        }
    }
    fold_lanes(sums, |a, b| a + b) + a_rest.iter().zip(b_rest).map(|(a, b)| f64::from(*a) * b).sum::<f64>()
}
