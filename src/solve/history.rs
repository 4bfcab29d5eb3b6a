//! Pairs of steps and changes of the gradient that L-BFGS remembers, each with its image under K̃.
//!
//! They are kept in single precision: a pair only says where curvature was found, and half the memory is half the time.
//! Every pass goes over all pairs at once, block by block, so that the vector they meet stays in the cache.

use crate::parallel::{PARTS, fold_lanes, part_len};
use crate::simd::widest;
use rayon::prelude::*;
use std::ops::Range;

/// Entries of the long vectors that are worked on at once.
const BLOCK: usize = 1024;

/// Running sums of an inner product, for whole registers.
const LANES: usize = 8;

/// One remembered step: s = λ d, y = the change of α + g, and their images.
#[derive(Debug)]
struct Pair {
    s: Vec<f32>,
    y: Vec<f32>,
    s_image: Vec<f32>,
    y_image: Vec<f32>,
}

/// The last pairs, oldest first.
#[derive(Debug)]
pub(super) struct History {
    pairs: Vec<Pair>,
    capacity: usize,
    partial: Vec<f64>,
}

/// Inner products in the norm of K̃ of one vector with all s and all y.
#[derive(Debug, Clone, Default)]
pub(super) struct Products {
    pub s: Vec<f64>,
    pub y: Vec<f64>,
}

impl History {
    pub(super) fn new(capacity: usize) -> Self {
        Self { pairs: Vec::with_capacity(capacity), capacity, partial: vec![0.0; 2 * capacity * PARTS] }
    }

    pub(super) fn len(&self) -> usize {
        self.pairs.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.pairs.len() == self.capacity
    }

    pub(super) fn clear(&mut self) {
        self.pairs.clear();
    }

    /// Remembers a pair; returns whether the oldest one had to go. `before` and `after` are r = −(α + g), with images,
    /// around the step `length` times the direction.
    pub(super) fn push(
        &mut self,
        length: f64,
        direction: [&[f64]; 2],
        before: [&[f64]; 2],
        after: [&[f64]; 2],
    ) -> bool {
        let n = direction[0].len();
        let forgotten = self.is_full();
        let mut pair = if forgotten {
            self.pairs.remove(0)
        } else {
            let room = || vec![0.0; n];
            Pair { s: room(), y: room(), s_image: room(), y_image: room() }
        };
        pair.fill(length, direction, before, after);
        self.pairs.push(pair);
        forgotten
    }

    /// ⟨s_i, x⟩_K and ⟨y_i, x⟩_K for all pairs, from the image of x.
    pub(super) fn products(&mut self, image: &[f64], out: &mut Products) {
        let count = 2 * self.pairs.len();
        let len = part_len(image.len());
        let parts = image.len().div_ceil(len);
        let pairs = &self.pairs;
        let partial = &mut self.partial[..count * parts];
        out.s.clear();
        out.y.clear();
        if count == 0 {
            return;
        }
        partial.par_chunks_mut(count).enumerate().for_each(|(part, sums)| {
            sums.fill(0.0);
            let end = ((part + 1) * len).min(image.len());
            for start in (part * len..end).step_by(BLOCK) {
                let range = start..(start + BLOCK).min(end);
                let x = &image[range.clone()];
                widest(
                    #[inline(always)]
                    || {
                        for (pair, sums) in pairs.iter().zip(sums.as_chunks_mut::<2>().0) {
                            sums[0] += mixed_dot(&pair.s[range.clone()], x);
                            sums[1] += mixed_dot(&pair.y[range.clone()], x);
                        }
                    },
                );
            }
        });
        let total = |i: usize| partial.chunks(count).map(|sums| sums[i]).sum::<f64>();
        out.s.extend((0..count / 2).map(|i| total(2 * i)));
        out.y.extend((0..count / 2).map(|i| total(2 * i + 1)));
    }

    /// out = c (x + Σ_i y_i b_i) + Σ_i s_i a_i, and the same of the images.
    pub(super) fn combine(&self, c: f64, (x, b): ([&[f64]; 2], &[f64]), a: &[f64], out: [&mut [f64]; 2]) {
        let len = part_len(out[0].len());
        let [plain, image] = out;
        let parts = plain.par_chunks_mut(len).zip(image.par_chunks_mut(len));
        parts.enumerate().for_each(|(part, (plain, image))| {
            let blocks = plain.chunks_mut(BLOCK).zip(image.chunks_mut(BLOCK)).enumerate();
            for (block, (plain, image)) in blocks {
                let start = part * len + block * BLOCK;
                let range = start..start + plain.len();
                let pairs = || self.pairs.iter().zip(a.iter().zip(b));
                widest(
                    #[inline(always)]
                    || {
                        let s_and_y = pairs().map(|(pair, factors)| (&pair.s, &pair.y, factors));
                        combine(plain, (c, x[0]), s_and_y, &range);
                        let images = pairs().map(|(pair, factors)| (&pair.s_image, &pair.y_image, factors));
                        combine(image, (c, x[1]), images, &range);
                    },
                );
            }
        });
    }
}

impl Pair {
    /// s = λ d and y = what r has changed by, with their images.
    #[allow(clippy::cast_possible_truncation)] // single precision is what a pair is kept in
    fn fill(&mut self, length: f64, d: [&[f64]; 2], before: [&[f64]; 2], after: [&[f64]; 2]) {
        let len = part_len(self.s.len());
        let Self { s, y, s_image, y_image } = self;
        let plain = s.par_chunks_mut(len).zip(y.par_chunks_mut(len));
        let images = s_image.par_chunks_mut(len).zip(y_image.par_chunks_mut(len));
        plain.zip(images).enumerate().for_each(|(part, (plain, images))| {
            for (kind, (s, y)) in [plain, images].into_iter().enumerate() {
                let range = part * len..part * len + s.len();
                widest(
                    #[inline(always)]
                    || {
                        s.iter_mut().zip(&d[kind][range.clone()]).for_each(|(s, d)| *s = (length * d) as f32);
                        let changes = before[kind][range.clone()].iter().zip(&after[kind][range.clone()]);
                        y.iter_mut().zip(changes).for_each(|(y, (before, after))| *y = (before - after) as f32);
                    },
                );
            }
        });
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
