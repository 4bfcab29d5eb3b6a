//! Multinomial logistic likelihood: ℓ_i = log Σ_c exp(u_ic) − y_iᵀ u_i.
//!
//! Where all that is known of a point is that its class is one of a set I (seed 000, section 7.3), the likelihood is
//! Σ_{c∈I} π_ic and ℓ_i = log Σ_c exp(u_ic) − log Σ_{c∈I} exp(u_ic), which is not convex. Its gradient is π − q with
//! q_c ∝ 1[c∈I] π_c: that of targets q, the E step of expectation maximisation. As W the second derivative for fixed q is
//! taken, which is never smaller than the true one. So a step of Newton's method is an E step and a step of the M step
//! after it, and as the line search looks at the likelihood itself, every step of every solver makes it larger.

use super::{Along, Likelihood, There};
use crate::data::{Target, Targets, check_shape, row_major, row_major_mut};
use crate::error::Result;
use crate::parallel::{PARTS, dot_sequential, fold_entries, larger_abs, max_abs_sequential, part_len, sum_sequential};
use crate::simd::{exp_within, widest};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis};
use rayon::prelude::*;

/// Classes whose exponentials are taken at once, on the stack.
const BLOCK: usize = 64;

/// The softmax likelihood of targets with weights.
#[derive(Debug, Clone)]
pub struct Softmax {
    targets: Targets,
}

impl Softmax {
    /// The likelihood of the given targets.
    #[must_use]
    pub fn new(targets: Targets) -> Self {
        Self { targets }
    }

    /// The targets.
    #[must_use]
    pub fn targets(&self) -> &Targets {
        &self.targets
    }

    /// Turns class functions into log probabilities, row by row.
    pub fn log_probabilities(u: &mut Array2<f64>) {
        for mut row in u.axis_iter_mut(Axis(0)) {
            let largest = row.fold(f64::NEG_INFINITY, |m, &x| m.max(x));
            let log_sum = largest + row.iter().map(|x| (x - largest).exp()).sum::<f64>().ln();
            row.mapv_inplace(|x| x - log_sum);
        }
    }

    fn check(&self, u: &ArrayView2<'_, f64>) -> Result<()> {
        check_shape("the rows of u must be the points", self.points(), u.nrows())?;
        check_shape("the columns of u must be the classes", self.classes(), u.ncols())
    }
}

impl Likelihood for Softmax {
    /// π, n × C row-major.
    type Curvature = Vec<f64>;

    fn points(&self) -> usize {
        self.targets.points()
    }

    fn classes(&self) -> usize {
        self.targets.classes()
    }

    fn new_curvature(&self) -> Vec<f64> {
        vec![0.0; self.points() * self.classes()]
    }

    fn evaluate(&self, u: ArrayView2<'_, f64>, mut g: ArrayViewMut2<'_, f64>, pi: &mut Vec<f64>) -> Result<f64> {
        self.check(&u)?;
        check_shape("the rows of g must be those of u", u.nrows(), g.nrows())?;
        check_shape("the columns of g must be those of u", u.ncols(), g.ncols())?;
        let classes = self.classes();
        let (u, g) = (row_major("u", &u)?, row_major_mut("g", &mut g)?);
        let rows = part_len(self.points());
        let len = rows * classes;
        let mut partial = [0.0; PARTS];
        let arrays = u.par_chunks(len).zip(g.par_chunks_mut(len)).zip(pi.par_chunks_mut(len));
        partial.par_iter_mut().zip(arrays).enumerate().for_each(|(part, (sum, ((u, g), pi)))| {
            let points = u.chunks(classes).zip(g.chunks_mut(classes)).zip(pi.chunks_mut(classes));
            widest(
                #[inline(always)]
                || {
                    for (row, ((u, g), pi)) in (part * rows..).zip(points) {
                        let weight = self.targets.weight(row);
                        let loss = softmax(pi, u);
                        g.iter_mut().zip(&*pi).for_each(|(g, pi)| *g = weight * pi);
                        let explained = self.explained(row, |class| u[class], |class, y| g[class] -= weight * y);
                        *sum += weight * (loss - explained);
                    }
                },
            );
        });
        Ok(partial.iter().sum())
    }

    fn move_along(
        &self,
        [mut alpha, mut u]: [ArrayViewMut2<'_, f64>; 2],
        step: Option<(f64, [ArrayView2<'_, f64>; 2])>,
        mut r: ArrayViewMut2<'_, f64>,
        pi: &mut Vec<f64>,
    ) -> Result<There> {
        self.check(&alpha.view())?;
        self.check(&u.view())?;
        self.check(&r.view())?;
        let classes = self.classes();
        let rows = part_len(self.points());
        let len = rows * classes;
        let step = match &step {
            Some((length, [s, image])) => {
                self.check(s)?;
                self.check(image)?;
                Some((*length, [row_major("s", s)?, row_major("K̃s", image)?]))
            }
            None => None,
        };
        let [alpha, u] = [row_major_mut("α", &mut alpha)?, row_major_mut("u", &mut u)?].map(|a| a.par_chunks_mut(len));
        let follow = row_major_mut("r", &mut r)?.par_chunks_mut(len).zip(pi.par_chunks_mut(len));
        let mut partial = [There { loss: 0.0, residual: 0.0, product: 0.0 }; PARTS];
        let arrays = alpha.zip(u).zip(follow);
        partial.par_iter_mut().zip(arrays).enumerate().for_each(|(part, (there, ((alpha, u), (r, pi))))| {
            let pairs = alpha.chunks_mut(classes).zip(u.chunks_mut(classes));
            let points = pairs.zip(r.chunks_mut(classes).zip(pi.chunks_mut(classes)));
            widest(
                #[inline(always)]
                || {
                    for (row, ((alpha, u), (r, pi))) in (part * rows..).zip(points) {
                        if let Some((length, [s, image])) = step {
                            let range = row * classes..(row + 1) * classes;
                            alpha.iter_mut().zip(&s[range.clone()]).for_each(|(alpha, s)| *alpha += length * s);
                            u.iter_mut().zip(&image[range]).for_each(|(u, image)| *u += length * image);
                        }
                        let weight = self.targets.weight(row);
                        let loss = softmax(pi, u);
                        // g first: next to its end α + g is far smaller than either of the two that make up g.
                        r.iter_mut().zip(&*pi).for_each(|(r, pi)| *r = weight * pi);
                        let explained = self.explained(row, |class| u[class], |class, y| r[class] -= weight * y);
                        r.iter_mut().zip(&*alpha).for_each(|(r, alpha)| *r = -(alpha + *r));
                        there.loss += weight * (loss - explained);
                        there.residual = larger_abs(there.residual, max_abs_sequential(r));
                        there.product += dot_sequential(alpha, u);
                    }
                },
            );
        });
        let sum = |of: fn(&There) -> f64| partial.iter().map(of).sum();
        let residual = partial.iter().fold(0.0, |most, there| larger_abs(most, there.residual));
        Ok(There { loss: sum(|there| there.loss), residual, product: sum(|there| there.product) })
    }

    fn apply_curvature(&self, pi: &Vec<f64>, mut out: ArrayViewMut2<'_, f64>, b: ArrayView2<'_, f64>) -> Result<()> {
        self.check(&b)?;
        check_shape("the columns of the product must be those of B", b.ncols(), out.ncols())?;
        let classes = self.classes();
        let rows = part_len(self.points());
        let len = rows * classes;
        let (b, out) = (row_major("B", &b)?, row_major_mut("the product", &mut out)?);
        let arrays = out.par_chunks_mut(len).zip(b.par_chunks(len)).zip(pi.par_chunks(len));
        arrays.enumerate().for_each(|(part, ((out, b), pi))| {
            let points = out.chunks_mut(classes).zip(b.chunks(classes)).zip(pi.chunks(classes));
            widest(
                #[inline(always)]
                || {
                    for (row, ((out, b), pi)) in (part * rows..).zip(points) {
                        let weight = self.targets.weight(row);
                        let mean = dot_sequential(pi, b);
                        for ((out, b), pi) in out.iter_mut().zip(b).zip(pi) {
                            *out = weight * pi * (b - mean);
                        }
                    }
                },
            );
        });
        Ok(())
    }

    fn next_direction(
        &self,
        pi: &Vec<f64>,
        [r, r_image]: [ArrayView2<'_, f64>; 2],
        b: f64,
        [mut q, mut p_image]: [ArrayViewMut2<'_, f64>; 2],
    ) -> Result<f64> {
        self.check(&r)?;
        self.check(&r_image)?;
        check_shape("the columns of a direction must be the classes", r.ncols(), q.ncols())?;
        check_shape("the columns of an image must be the classes", r.ncols(), p_image.ncols())?;
        let classes = self.classes();
        let rows = part_len(self.points());
        let len = rows * classes;
        let read = row_major("r", &r)?.par_chunks(len).zip(row_major("K̃r", &r_image)?.par_chunks(len));
        let q = row_major_mut("q", &mut q)?.par_chunks_mut(len);
        let written = q.zip(row_major_mut("K̃p", &mut p_image)?.par_chunks_mut(len));
        let mut partial = [0.0; PARTS];
        let arrays = read.zip(written).zip(pi.par_chunks(len));
        partial.par_iter_mut().zip(arrays).enumerate().for_each(|(part, (sum, (((r, r_image), (q, p_image)), pi)))| {
            let read = r.chunks(classes).zip(r_image.chunks(classes)).zip(pi.chunks(classes));
            let written = q.chunks_mut(classes).zip(p_image.chunks_mut(classes));
            widest(
                #[inline(always)]
                || {
                    for (row, (((r, r_image), pi), (q, p_image))) in (part * rows..).zip(read.zip(written)) {
                        let weight = self.targets.weight(row);
                        let mean = dot_sequential(pi, r_image);
                        let entries = r.iter().zip(r_image).zip(pi);
                        for ((q, p_image), ((r, r_image), pi)) in q.iter_mut().zip(&mut *p_image).zip(entries) {
                            *q = r + weight * pi * (r_image - mean) + b * *q;
                            *p_image = r_image + b * *p_image;
                        }
                        *sum += dot_sequential(p_image, q);
                    }
                },
            );
        });
        Ok(partial.iter().sum())
    }

    fn max_curved(&self, pi: &Vec<f64>, b: ArrayView2<'_, f64>, _scratch: ArrayViewMut2<'_, f64>) -> Result<f64> {
        self.check(&b)?;
        let classes = self.classes();
        let rows = part_len(self.points());
        let len = rows * classes;
        let parts = row_major("B", &b)?.par_chunks(len).zip(pi.par_chunks(len)).enumerate().map(|(part, (b, pi))| {
            let points = (part * rows..).zip(b.chunks(classes).zip(pi.chunks(classes)));
            widest(
                #[inline(always)]
                || {
                    points.fold(0.0, |most, (row, (b, pi))| {
                        let (weight, mean) = (self.targets.weight(row), dot_sequential(pi, b));
                        let here = fold_entries([b, pi], |[b, pi]| weight * pi * (b - mean), 0.0, larger_abs);
                        larger_abs(most, here)
                    })
                },
            )
        });
        Ok(parts.reduce(|| 0.0, larger_abs))
    }

    fn along(&self, u: ArrayView2<'_, f64>, direction: ArrayView2<'_, f64>, step: f64) -> Result<Along> {
        self.check(&u)?;
        self.check(&direction)?;
        let classes = self.classes();
        let (u, d) = (row_major("u", &u)?, row_major("the direction", &direction)?);
        // Three sums in one pass: the parts of each are kept apart and added in order.
        let rows = part_len(self.points());
        let len = rows * classes;
        let mut partial = [[0.0; 3]; PARTS];
        let arrays = u.par_chunks(len).zip(d.par_chunks(len));
        partial.par_iter_mut().zip(arrays).enumerate().for_each(|(part, (sums, (u, d)))| {
            widest(
                #[inline(always)]
                || {
                    let mut scratch = [[0.0; BLOCK]; 2];
                    for (row, (u, d)) in (part * rows..).zip(u.chunks(classes).zip(d.chunks(classes))) {
                        let terms = self.along_point(row, u, d, step, &mut scratch);
                        sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
                    }
                },
            );
        });
        let sum = |i: usize| partial.iter().map(|part| part[i]).sum();
        Ok(Along { value: sum(0), slope: sum(1), curvature: sum(2) })
    }

    fn diagonal_part(&self, pi: &Vec<f64>) -> Option<Array2<f64>> {
        let classes = self.classes();
        Some(Array2::from_shape_fn((self.points(), classes), |(i, c)| self.targets.weight(i) * pi[i * classes + c]))
    }

    fn pooled_diagonal(&self, pi: &Vec<f64>, weights: ArrayView2<'_, f64>) -> Option<Array2<f64>> {
        let (classes, kinds) = (self.classes(), weights.ncols());
        let rows = part_len(self.points());
        let one = |(part, pi): (usize, &[f64])| {
            let mut sums = vec![0.0; kinds * classes];
            widest(
                #[inline(always)]
                || {
                    for (i, pi) in (part * rows..).zip(pi.chunks(classes)) {
                        let weight = self.targets.weight(i);
                        for (sums, of_kind) in sums.chunks_mut(classes).zip(weights.row(i)) {
                            sums.iter_mut().zip(pi).for_each(|(sum, pi)| *sum += weight * of_kind * pi);
                        }
                    }
                },
            );
            sums
        };
        let parts: Vec<Vec<f64>> = pi.par_chunks(rows * classes).enumerate().map(one).collect();
        let mut total = vec![0.0; kinds * classes];
        for sums in &parts {
            total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
        }
        Array2::from_shape_vec((kinds, classes), total).ok()
    }
}

impl Softmax {
    /// w ℓ(u + λ d) of one point with its first two derivatives in λ.
    #[inline(always)]
    fn along_point(&self, row: usize, u: &[f64], d: &[f64], step: f64, scratch: &mut [[f64; BLOCK]; 2]) -> [f64; 3] {
        let at = |(u, d): (&f64, &f64)| u + step * d;
        let largest = fold_entries([u, d], |[u, d]| at((&u, &d)), f64::NEG_INFINITY, larger);
        let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
        let [e, weighted] = scratch;
        for (u, d) in u.chunks(BLOCK).zip(d.chunks(BLOCK)) {
            let (e, weighted) = (&mut e[..u.len()], &mut weighted[..d.len()]);
            e.iter_mut().zip(u.iter().zip(d)).for_each(|(e, pair)| *e = at(pair) - largest);
            exp_within(e, 1.0);
            weighted.iter_mut().zip(e.iter().zip(d)).for_each(|(weighted, (e, d))| *weighted = e * d);
            sum += sum_sequential(e);
            first += sum_sequential(weighted);
            second += dot_sequential(weighted, d);
        }
        let mean = first / sum;
        // Rounding may take a variance below zero.
        let variance = (second / sum - mean * mean).max(0.0);
        let mut slope = mean;
        let explained = self.explained(row, |class| at((&u[class], &d[class])), |class, y| slope -= y * d[class]);
        let value = largest + sum.ln() - explained;
        let weight = self.targets.weight(row);
        [weight * value, weight * slope, weight * variance]
    }

    /// What the target takes off log Σ exp(u): yᵀu, or log Σ_{c∈I} exp(u_c). Calls `visit(c, y_c)`, or (c, q_c), for
    /// every class of the target.
    #[inline(always)]
    fn explained(&self, row: usize, u: impl Fn(usize) -> f64, mut visit: impl FnMut(usize, f64)) -> f64 {
        match self.targets.of_point(row) {
            Target::Class(class) => {
                visit(class, 1.0);
                u(class)
            }
            Target::Distribution(y) => {
                let mut sum = 0.0;
                for (class, &y) in y.iter().enumerate().filter(|(_, y)| **y > 0.0) {
                    visit(class, y);
                    sum += y * u(class);
                }
                sum
            }
            Target::OneOf(set) => {
                let values = set.iter().map(|&class| u(class as usize));
                let largest = values.clone().fold(f64::NEG_INFINITY, larger);
                let log_sum = largest + values.map(|u| (u - largest).exp()).sum::<f64>().ln();
                for &class in set {
                    visit(class as usize, (u(class as usize) - log_sum).exp());
                }
                log_sum
            }
        }
    }
}

/// Writes π = softmax(u) and returns log Σ exp(u).
#[inline(always)]
fn softmax(pi: &mut [f64], u: &[f64]) -> f64 {
    let largest = fold_entries([u], |[u]| u, f64::NEG_INFINITY, larger);
    pi.iter_mut().zip(u).for_each(|(pi, u)| *pi = u - largest);
    exp_within(pi, 1.0);
    let sum = sum_sequential(pi);
    pi.iter_mut().for_each(|pi| *pi /= sum);
    largest + sum.ln()
}

/// The larger of two numbers; unlike `f64::max` a single instruction, as it does not look for NaN.
#[inline(always)]
fn larger(a: f64, b: f64) -> f64 {
    if b > a { b } else { a }
}
