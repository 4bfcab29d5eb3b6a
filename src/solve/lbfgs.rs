//! L-BFGS in the space of functions: all inner products are ⟨a, b⟩_K = ⟨a, K̃b⟩, in which the gradient of Φ is α + g.
//!
//! Every vector travels with its image under K̃, so a step costs one product, and the line search none. The direction is
//! that of the compact form, H = H₀ + [S H₀Y] N [S H₀Y]ᵀ: with R the upper triangle of ⟨s_i, y_j⟩_K and D its diagonal,
//!
//! p = R⁻¹ Sᵀr, d = H₀ (r − Y p) + S R⁻ᵀ ((D + Yᵀ H₀ Y) p − Yᵀ H₀ r).

use super::history::{Change, History, Products};
use super::iterate::{Iterate, Next, slice_mut};
use super::line_search::{Course, line_search};
use super::metric::Metric;
use super::{Solution, SolveParams, Step};
use crate::context::Context;
use crate::data::row_major;
use crate::error::Result;
use crate::likelihood::Likelihood;
use crate::parallel::{PARTS, dot_sequential};
use crate::prior::JointPrior;
use ndarray::{Array2, ArrayView2};
use rayon::prelude::*;

/// A pair is remembered if ⟨s, y⟩_K is at least this share of ‖y‖²_K: less is rounding.
const CURVATURE: f64 = 1e-10;

/// Steps without progress after which there is none to be had; max|α + g| goes up and down here.
const PATIENCE: usize = 40;

/// Minimises Φ from α = 0, or from a previous α.
pub fn lbfgs<L: Likelihood>(
    context: &Context,
    prior: &JointPrior,
    likelihood: &L,
    start: Option<ArrayView2<'_, f64>>,
    params: &SolveParams,
) -> Result<Solution> {
    let mut iterate = Iterate::begin(context, prior, likelihood, start, params, ("lbfgs", PATIENCE))?;
    let metric = Metric::new(context, &mut iterate.work, prior, likelihood, &iterate.curvature)?;
    if let Some(metric) = &metric {
        iterate.info.products += metric.products();
        iterate.info.preconditioner_rank = metric.rank();
    }
    let mut memory = Memory::new(params.pairs, likelihood.classes(), metric);
    let mut step = Step::zeros(likelihood.points(), likelihood.classes());
    let mut before = Step::zeros(likelihood.points(), likelihood.classes());
    let mut taken = None;
    while let Next::Step = iterate.next(context)? {
        iterate.multiply_residual(context)?;
        if iterate.is_fresh() {
            // It seemed to be at its end and was not: the last pairs are as small as the rounding that showed.
            memory.forget();
            taken = None;
        }
        let taken_step = taken.take().map(|(length, descent)| Taken { length, descent, step: &step, before: &before });
        memory.observe(&iterate.r, &iterate.r_image, taken_step)?;
        if iterate.settle(&mut step)?.0 {
            // The step was not one of this method, so it says nothing of the curvature.
            continue;
        }
        memory.update(likelihood, &iterate.curvature)?;
        let mut course = memory.direction(&iterate, &mut step)?;
        if course.descent.partial_cmp(&0.0) != Some(std::cmp::Ordering::Greater) {
            // Rounding has spoilt the pairs: start again with the gradient.
            memory.forget();
            step.take(&iterate.r, &iterate.r_image)?;
            course = iterate.course(&step)?;
        }
        let length = line_search(likelihood, &iterate.u, &step, &course)?.step;
        taken = (length > 0.0).then_some((length, course.descent));
        // r and K̃r are kept by exchange: what is there now is written anew.
        std::mem::swap(&mut iterate.r, &mut before.s);
        std::mem::swap(&mut iterate.r_image, &mut before.image);
        iterate.advance(&step, length)?;
    }
    Ok(iterate.finish())
}

/// The last step: `length` times a direction along which Φ began to fall by `descent`, and r, with its image, before it.
struct Taken<'a> {
    length: f64,
    descent: f64,
    step: &'a Step,
    before: &'a Step,
}

/// b = Eᵀ K̃ x of some x, with the two parts of G b.
struct Projected {
    value: Vec<f64>,
    curved: Vec<f64>,
    plain: Vec<f64>,
}

impl Projected {
    fn new(metric: &Metric<'_>, value: Vec<f64>) -> Result<Self> {
        let (mut curved, mut plain) = (vec![0.0; value.len()], vec![0.0; value.len()]);
        metric.solve(&mut curved, &value, true)?;
        metric.solve(&mut plain, &value, false)?;
        Ok(Self { value, curved, plain })
    }

    /// bᵀ G b'.
    fn product(&self, other: &Self, c: f64) -> f64 {
        dot_sequential(&self.value, &other.curved) - c * dot_sequential(&self.value, &other.plain)
    }
}

/// The pairs, and the small matrices that belong to them.
struct Memory<'a> {
    history: History,
    metric: Option<Metric<'a>>,
    /// ⟨s_i, y_j⟩_K for i ≤ j, row after row of a square of `capacity`.
    sy: Square,
    /// ⟨y_i, y_j⟩_K.
    yy: Square,
    /// What the metric knows of every y_i.
    y_projected: Vec<Projected>,
    /// Eᵀ K̃ r, now and at the last step.
    r_projected: [Vec<f64>; 2],
    /// Inner products of r with the pairs.
    products: Products,
    /// ‖r‖²_K when last seen.
    norm: f64,
    /// c of H₀.
    scale: f64,
}

impl<'a> Memory<'a> {
    fn new(capacity: usize, classes: usize, metric: Option<Metric<'a>>) -> Self {
        let len = metric.as_ref().map_or(0, Metric::len);
        Self {
            history: History::new(capacity, classes),
            metric,
            sy: Square::new(capacity),
            yy: Square::new(capacity),
            y_projected: Vec::new(),
            r_projected: [vec![0.0; len], vec![0.0; len]],
            products: Products::default(),
            norm: 0.0,
            scale: 1.0,
        }
    }

    fn forget(&mut self) {
        self.history.clear();
        self.y_projected.clear();
        self.products = Products::default();
        self.scale = 1.0;
    }

    /// Takes W̄ from where the iteration stands.
    fn update<L: Likelihood>(&mut self, likelihood: &L, curvature: &L::Curvature) -> Result<()> {
        let Some(metric) = &mut self.metric else { return Ok(()) };
        metric.update(likelihood, curvature);
        let metric = &*metric;
        let one = |y: &mut Projected| metric.solve(&mut y.curved, &y.value, true);
        if metric.is_small() {
            return self.y_projected.iter_mut().try_for_each(one);
        }
        self.y_projected.par_iter_mut().try_for_each(one)
    }

    /// Takes in a new r, and the step that led there. Where that was not one of this method nothing is remembered of it.
    fn observe(&mut self, r: &Array2<f64>, r_image: &Array2<f64>, taken: Option<Taken<'_>>) -> Result<()> {
        self.r_projected.swap(0, 1);
        let (length, descent) = taken.as_ref().map_or((0.0, 0.0), |taken| (taken.length, taken.descent));
        let arrays = match &taken {
            Some(Taken { step, before, .. }) => [&step.s, &step.image, &before.s, &before.image, r, r_image],
            None => [r, r_image, r, r_image, r, r_image],
        };
        let views = arrays.map(|array| array.view());
        let [d, d_image, old_r, old_image, r, image] = &views;
        let change = Change {
            length,
            direction: [row_major("s", d)?, row_major("K̃s", d_image)?],
            before: [row_major("r", old_r)?, row_major("K̃r", old_image)?],
            now: [row_major("r", r)?, row_major("K̃r", image)?],
        };
        if self.history.make_room() {
            self.sy.forget_first();
            self.yy.forget_first();
            self.products.s.remove(0);
            self.products.y.remove(0);
            self.y_projected.drain(..1.min(self.y_projected.len()));
        }
        let before = std::mem::take(&mut self.products);
        let [s_now, cross, now] = self.look(&change);
        // y = r before − r now; all inner products with it are differences of known ones, but for those with itself.
        let (s_now, old) = (length * s_now, std::mem::replace(&mut self.norm, now));
        let (sy, yy) = (length * descent - s_now, old - 2.0 * cross + now);
        if sy.is_nan() || sy <= CURVATURE * yy || yy <= 0.0 {
            return Ok(());
        }
        let last = self.history.len();
        self.history.remember();
        for i in 0..last {
            self.sy[(i, last)] = before.s[i] - self.products.s[i];
            self.yy[(i, last)] = before.y[i] - self.products.y[i];
            self.yy[(last, i)] = self.yy[(i, last)];
        }
        self.sy[(last, last)] = sy;
        self.yy[(last, last)] = yy;
        self.products.s.push(s_now);
        self.products.y.push(cross - now);
        self.scale = sy / yy;
        if let Some(metric) = &self.metric {
            let [now, before] = &self.r_projected;
            let change = before.iter().zip(now).map(|(before, now)| before - now).collect();
            self.y_projected.push(Projected::new(metric, change)?);
        }
        Ok(())
    }

    /// Inner products with r, and Eᵀ K̃ r, after a step.
    fn look(&mut self, change: &Change<'_>) -> [f64; 3] {
        let Some(metric) = &mut self.metric else {
            return self.history.look(change, &mut self.products, &mut [(); PARTS], |(), _, _| ());
        };
        let mut sums = metric.take_sums();
        let projected = &*metric;
        let found = self.history.look(
            change,
            &mut self.products,
            &mut sums,
            #[inline(always)]
            |sums, first, image| projected.project_rows(sums, first, image),
        );
        metric.total(&mut self.r_projected[0], sums);
        found
    }

    /// d = H r, with its image, and what is known of Φ along it.
    fn direction<L: Likelihood>(&self, iterate: &Iterate<'_, L>, step: &mut Step) -> Result<Course> {
        let (c, m) = (self.scale, self.history.len());
        let r_projected = match &self.metric {
            Some(metric) => Some(Projected::new(metric, self.r_projected[0].clone())?),
            None => None,
        };
        // yᵢᵀ K̃ E G Eᵀ K̃ yⱼ, or with r for yⱼ.
        let extra = |i: usize, j: usize| match (self.y_projected.get(i), self.y_projected.get(j), &r_projected) {
            (Some(y), Some(other), _) | (Some(y), None, Some(other)) => y.product(other, c),
            _ => 0.0,
        };
        let p = self.sy.solve_upper(&self.products.s, m);
        let mut a: Vec<f64> = (0..m)
            .map(|i| {
                let row: f64 = (0..m).map(|j| (c * self.yy[(i, j)] + extra(i, j)) * p[j]).sum();
                self.sy[(i, i)] * p[i] + row - c * self.products.y[i] - extra(i, m)
            })
            .collect();
        self.sy.solve_upper_transposed(&mut a);
        let minus_p: Vec<f64> = p.iter().map(|p| -p).collect();
        let mut x = Vec::new();
        if let Some(metric) = &self.metric {
            x.resize(metric.len(), 0.0);
            for (factor, from) in minus_p.iter().zip(&self.y_projected).chain(r_projected.iter().map(|r| (&1.0, r))) {
                let parts = from.curved.iter().zip(&from.plain);
                x.iter_mut().zip(parts).for_each(|(x, (curved, plain))| *x += factor * (curved - c * plain));
            }
        }
        let addition = self.metric.as_ref().map(|metric| metric.addition(&x)).transpose()?;
        let classes = step.s.ncols();
        let views = [&iterate.alpha, &iterate.r, &iterate.r_image].map(|array| array.view());
        let [alpha, r, image] = &views;
        let (alpha, r, image) = (row_major("α", alpha)?, row_major("r", r)?, row_major("K̃r", image)?);
        let out = [slice_mut(&mut step.s)?, slice_mut(&mut step.image)?];
        let told = self.history.combine(
            c,
            ([r, image], &minus_p),
            &a,
            out,
            #[inline(always)]
            |block, [d, d_image]| {
                if let Some(addition) = &addition {
                    addition.add(block.start / classes, d, d_image);
                }
                let (alpha, r) = (&alpha[block.clone()], &r[block]);
                [dot_sequential(alpha, d_image), dot_sequential(d, d_image), dot_sequential(r, d_image)]
            },
        );
        Ok(iterate.course_of(told))
    }
}

/// A small square matrix of which the leading corner is used.
struct Square {
    size: usize,
    entries: Vec<f64>,
}

impl Square {
    fn new(size: usize) -> Self {
        Self { size, entries: vec![0.0; size * size] }
    }

    /// Drops the first row and column.
    fn forget_first(&mut self) {
        for i in 1..self.size {
            for j in 1..self.size {
                self.entries[(i - 1) * self.size + j - 1] = self.entries[i * self.size + j];
            }
        }
    }

    /// Solves R x = b for the upper triangle of the leading corner.
    fn solve_upper(&self, b: &[f64], m: usize) -> Vec<f64> {
        let mut x = b.to_vec();
        for i in (0..m).rev() {
            let known: f64 = (i + 1..m).map(|j| self[(i, j)] * x[j]).sum();
            x[i] = (x[i] - known) / self[(i, i)];
        }
        x
    }

    /// Solves Rᵀ x = b in place.
    fn solve_upper_transposed(&self, x: &mut [f64]) {
        for i in 0..x.len() {
            let known: f64 = (0..i).map(|j| self[(j, i)] * x[j]).sum();
            x[i] = (x[i] - known) / self[(i, i)];
        }
    }
}

impl std::ops::Index<(usize, usize)> for Square {
    type Output = f64;
    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        &self.entries[i * self.size + j]
    }
}

impl std::ops::IndexMut<(usize, usize)> for Square {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        &mut self.entries[i * self.size + j]
    }
}
