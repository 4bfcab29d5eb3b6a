//! Minimisation of an expensive function with its gradient: L-BFGS within bounds.
//!
//! Written here because value and gradient come together, every evaluation costs many fits, some may fail, and bounds and
//! an account of every evaluation are wanted; optimisers of other crates ask for value and gradient apart.

use crate::error::{Error, Result};
use std::collections::VecDeque;

/// A function to be minimised.
pub trait Objective {
    /// Value and gradient at x.
    fn evaluate(&mut self, x: &[f64]) -> Result<(f64, Vec<f64>)>;

    /// The share of the value that a step has to gain, or else it does not count at the accuracy of now. An entry of the
    /// gradient that is smaller than this share does not count either.
    fn tolerance(&self) -> f64;

    /// Makes evaluations more accurate, because there is nothing left to gain at the accuracy of now, or because (`stuck`)
    /// no lower point is found where there should be one. `false` where that is not worth it. What was evaluated before
    /// has to be right to well within the new tolerance, unless stuck: it is still made use of.
    fn refine(&mut self, stuck: bool) -> bool;
}

/// When to stop.
#[derive(Debug, Clone, PartialEq)]
pub struct MinimiserOptions {
    /// Largest number of evaluations.
    pub max_evaluations: usize,
    /// What the value may be wrong by, as a share of it.
    pub noise: f64,
    /// The largest change of an entry in one step.
    pub max_change: f64,
}

impl Default for MinimiserOptions {
    fn default() -> Self {
        Self { max_evaluations: 60, noise: 1e-8, max_change: 3.0 }
    }
}

/// Where the minimisation ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Minimum {
    /// The best x seen.
    pub x: Vec<f64>,
    /// Its value.
    pub value: f64,
    /// Evaluations made.
    pub evaluations: usize,
    /// Whether it ended because there was nothing left to gain.
    pub converged: bool,
    /// What was seen of the curvature of the function on the way.
    pub curvature: Curvature,
}

/// Pairs that are kept: with few entries, all that parts of the points have told of the curvature. With 10 in place of 30, a step
/// on satimage with a kernel for every class went too far now and then.
const PAIRS: usize = 30;
/// Share of the expected decrease that a step must bring (Armijo).
const DECREASE: f64 = 1e-4;
/// A step is made longer while the slope at its end is more than this share of that at its start.
const STILL_STEEP: f64 = 0.7;
/// Pairs from which on what they expect of a step is believed, or as many as there are entries.
const KNOWN: usize = 3;
/// A step that is expected to gain less than this share of what counts need not be tried.
const SURELY_LITTLE: f64 = 0.3;
/// So many steps in a row that gain less than counts end the search at the accuracy of now.
const ENOUGH_SMALL_STEPS: usize = 2;
const MOST_EXTENSIONS: usize = 3;
const MOST_REDUCTIONS: usize = 5;

/// Minimises from `start` within the bounds (lower, upper) of every entry. `known` is what was seen of the curvature of a
/// function much like this one, if anything.
pub fn minimise(
    objective: &mut dyn Objective,
    start: &[f64],
    bounds: &[(f64, f64)],
    options: &MinimiserOptions,
    known: Curvature,
) -> Result<Minimum> {
    let mut search = Search { objective, bounds, options, evaluations: 0 };
    let mut x = search.clamp(start);
    let (mut value, mut gradient) = search.evaluate(&x)?;
    let mut pairs = known;
    let (mut steps, mut small_steps) = (0, 0);
    // Whether evaluations have become more accurate since the last one.
    let mut refined = false;
    let mut converged = false;
    while search.evaluations < options.max_evaluations {
        let free = search.free(&x, &gradient);
        let limit = search.objective.tolerance() * value.abs();
        let flat = free.iter().zip(&gradient).all(|(free, g)| !free || g.abs() <= limit);
        let mut direction = pairs.direction(&gradient, &free);
        // What is left to gain, as far as the pairs know the function; only those of this one are believed.
        let known = steps >= x.len().min(KNOWN) && pairs.list.len() >= x.len().min(KNOWN);
        let expected = if known { -0.5 * dot(&direction, &gradient) } else { limit };
        let little = (0.0..if small_steps > 0 { limit } else { SURELY_LITTLE * limit }).contains(&expected);
        if flat || little || small_steps >= ENOUGH_SMALL_STEPS {
            // There may be something to gain for all that once less of it counts: that is tried first, with the gradient
            // at hand, as to make this more accurate takes an evaluation.
            if search.objective.refine(false) {
                refined = true;
            } else if refined {
                refined = false;
                (value, gradient) = search.evaluate(&x)?;
            } else {
                converged = true;
                break;
            }
            small_steps = 0;
            continue;
        }
        if dot(&direction, &gradient).partial_cmp(&0.0) != Some(std::cmp::Ordering::Less) {
            pairs.list.clear();
            direction = pairs.direction(&gradient, &free);
        }
        // Without pairs nothing is known of the scale: no entry changes by more than a factor of e.
        let largest = direction.iter().fold(0.0, |m: f64, d| m.max(d.abs()));
        let most = options.max_change / largest;
        let first = if pairs.list.is_empty() { (1.0 / largest).min(most) } else { most.min(1.0) };
        let found = search.line(&x, (value, &gradient), &direction, first, most)?;
        if let Line::Little { beyond } = &found {
            pairs.observe(&x, &beyond.x, &gradient, &beyond.gradient);
            small_steps = ENOUGH_SMALL_STEPS;
            continue;
        }
        let Line::Lower { next, beyond } = found else {
            if search.evaluations >= options.max_evaluations {
                break;
            }
            // Nothing below: a gradient from before may be to blame, or pairs, or evaluations that are not accurate enough.
            if refined {
                refined = false;
                (value, gradient) = search.evaluate(&x)?;
            } else if !pairs.list.is_empty() {
                pairs.list.clear();
            } else if search.objective.refine(true) {
                refined = false;
                (value, gradient) = search.evaluate(&x)?;
            } else {
                converged = true;
                break;
            }
            continue;
        };
        refined = false;
        steps += 1;
        pairs.observe(&x, &next.x, &gradient, &next.gradient);
        if let Some(beyond) = beyond.filter(|beyond| beyond.value.is_finite()) {
            // How the slope changes from the next point on is seen beyond it.
            pairs.observe(&next.x, &beyond.x, &next.gradient, &beyond.gradient);
        }
        let gain = value - next.value;
        (x, value, gradient) = (next.x, next.value, next.gradient);
        small_steps = if gain <= search.objective.tolerance() * value.abs() { small_steps + 1 } else { 0 };
    }
    Ok(Minimum { x, value, evaluations: search.evaluations, converged, curvature: pairs })
}

struct Search<'a> {
    objective: &'a mut dyn Objective,
    bounds: &'a [(f64, f64)],
    options: &'a MinimiserOptions,
    evaluations: usize,
}

struct Point {
    x: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

/// What was found along a direction.
enum Line {
    /// A lower point, and the nearest one beyond it that was tried and is higher.
    Lower { next: Point, beyond: Option<Point> },
    /// A point that is too far away; what lies below on the way there is too little to count.
    Little { beyond: Point },
    /// Nothing, but there should be something.
    Nothing,
}

impl Search<'_> {
    fn evaluate(&mut self, x: &[f64]) -> Result<(f64, Vec<f64>)> {
        self.evaluations += 1;
        self.objective.evaluate(x)
    }

    fn clamp(&self, x: &[f64]) -> Vec<f64> {
        x.iter().zip(self.bounds).map(|(x, (lower, upper))| x.max(*lower).min(*upper)).collect()
    }

    /// Which entries may move downhill: not those at a bound that the gradient pushes against.
    fn free(&self, x: &[f64], gradient: &[f64]) -> Vec<bool> {
        let free = |((x, g), (lower, upper)): ((&f64, &f64), &(f64, f64))| {
            !(*x <= *lower && *g > 0.0 || *x >= *upper && *g < 0.0)
        };
        x.iter().zip(gradient).zip(self.bounds).map(free).collect()
    }

    /// Looks for a lower point along the direction.
    fn line(
        &mut self,
        x: &[f64],
        (value, gradient): (f64, &[f64]),
        direction: &[f64],
        first: f64,
        most: f64,
    ) -> Result<Line> {
        let slope = dot(direction, gradient);
        let noise = self.options.noise * value.abs();
        let mut length = first;
        let (mut best, mut too_far): (Option<Point>, Option<Point>) = (None, None);
        let (mut extensions, mut reductions) = (0, 0);
        while self.evaluations < self.options.max_evaluations {
            let along: Vec<f64> = x.iter().zip(direction).map(|(x, d)| x + length * d).collect();
            let there = self.clamp(&along);
            let found = match self.evaluate(&there) {
                Ok((value, gradient)) => Point { x: there, value, gradient },
                // Too far: hyperparameters at which nothing can be fitted.
                Err(Error::NotFinite { .. } | Error::NotPositiveDefinite { .. }) => {
                    Point { x: there, value: f64::INFINITY, gradient: vec![0.0; x.len()] }
                }
                Err(error) => return Err(error),
            };
            let moved: f64 = found.x.iter().zip(x).zip(gradient).map(|((a, b), g)| (a - b) * g).sum();
            let lower = |best: &Point| found.value < best.value;
            if let Some(best) = best.take_if(|best| !lower(best)) {
                return Ok(Line::Lower { next: best, beyond: Some(found) }); // the extension went too far
            }
            // What is lower than a point that would do does as well.
            if best.is_some() || found.value <= value + DECREASE * moved + noise {
                let steep = dot(direction, &found.gradient) < STILL_STEEP * slope;
                if steep && extensions < MOST_EXTENSIONS && reductions == 0 && 2.0 * length <= most {
                    extensions += 1;
                    length = (4.0 * length).min(most);
                    best = Some(found);
                    continue;
                }
                return Ok(Line::Lower { next: found, beyond: too_far });
            }
            reductions += 1;
            if reductions > MOST_REDUCTIONS {
                break;
            }
            let (next, gain) = shorter(length, slope, found.value - value, dot(direction, &found.gradient));
            if gain <= SURELY_LITTLE * self.objective.tolerance() * value.abs() {
                return Ok(Line::Little { beyond: found });
            }
            length = next;
            too_far = Some(found);
        }
        Ok(best.map_or(Line::Nothing, |next| Line::Lower { next, beyond: None }))
    }
}

/// The minimum of the cubic through value and slope at both ends, kept between a tenth and a half of the length; and how far
/// below the start that cubic gets.
fn shorter(length: f64, slope: f64, rise: f64, end_slope: f64) -> (f64, f64) {
    let mean = rise / length;
    let d = slope + end_slope - 3.0 * mean;
    let root = (d * d - slope * end_slope).max(0.0).sqrt();
    let minimum = length * (1.0 - (end_slope + root - d) / (end_slope - slope + 2.0 * root));
    if !minimum.is_finite() {
        return (0.25 * length, f64::INFINITY);
    }
    let share = minimum / length;
    let (square, cube) = (3.0 * mean - 2.0 * slope - end_slope, slope + end_slope - 2.0 * mean);
    let gain = -minimum * (slope + share * (square + share * cube));
    (minimum.clamp(0.1 * length, 0.5 * length), gain)
}

/// What has been seen of the curvature of a function: steps, and how the gradient changed over each.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Curvature {
    list: VecDeque<(Vec<f64>, Vec<f64>)>,
}

impl Curvature {
    /// What would have been seen of so many times the function.
    #[must_use]
    pub fn times(mut self, factor: f64) -> Self {
        self.list.iter_mut().flat_map(|(_, y)| y).for_each(|y| *y *= factor);
        self
    }

    /// All steps and changes, one after the other.
    pub(super) fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.list.iter().flat_map(|(s, y)| [s.as_slice(), y.as_slice()])
    }

    /// From what [`Curvature::rows`] gave, for so many entries.
    pub(super) fn from_rows(rows: &[f64], entries: usize) -> Self {
        let pair = |pair: &[f64]| (pair[..entries].to_vec(), pair[entries..].to_vec());
        Self { list: rows.chunks_exact((2 * entries).max(1)).map(pair).collect() }
    }

    fn observe(&mut self, x: &[f64], next: &[f64], gradient: &[f64], next_gradient: &[f64]) {
        let difference = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>();
        let (s, y) = (difference(next, x), difference(next_gradient, gradient));
        if dot(&s, &y) > 1e-10 * dot(&y, &y) {
            if self.list.len() == PAIRS {
                self.list.pop_front();
            }
            self.list.push_back((s, y));
        }
    }

    /// −H g by the two-loop recursion, among the free entries.
    fn direction(&self, gradient: &[f64], free: &[bool]) -> Vec<f64> {
        let restrict = |v: &mut [f64]| v.iter_mut().zip(free).filter(|(_, free)| !**free).for_each(|(v, _)| *v = 0.0);
        let mut q = gradient.to_vec();
        restrict(&mut q);
        let mut used = Vec::with_capacity(self.list.len());
        for (s, y) in self.list.iter().rev() {
            let factor = dot(s, &q) / dot(s, y);
            q.iter_mut().zip(y).for_each(|(q, y)| *q -= factor * y);
            used.push(factor);
        }
        if let Some((s, y)) = self.list.back() {
            let scale = dot(s, y) / dot(y, y);
            q.iter_mut().for_each(|q| *q *= scale);
        }
        for ((s, y), factor) in self.list.iter().zip(used.iter().rev()) {
            let change = factor - dot(y, &q) / dot(s, y);
            q.iter_mut().zip(s).for_each(|(q, s)| *q += change * s);
        }
        restrict(&mut q);
        q.iter_mut().for_each(|q| *q = -*q);
        q
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function, and what counts of it.
    struct Function<F>(F, f64);

    const TIGHT: f64 = 1e-11;

    impl<F: FnMut(&[f64]) -> Result<(f64, Vec<f64>)>> Objective for Function<F> {
        fn evaluate(&mut self, x: &[f64]) -> Result<(f64, Vec<f64>)> {
            (self.0)(x)
        }

        fn tolerance(&self) -> f64 {
            self.1
        }

        fn refine(&mut self, _: bool) -> bool {
            false
        }
    }

    fn rosenbrock(x: &[f64]) -> (f64, Vec<f64>) {
        let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
        (1.0 + a * a + 100.0 * b * b, vec![-2.0 * a - 400.0 * x[0] * b, 200.0 * b])
    }

    fn options() -> MinimiserOptions {
        MinimiserOptions { max_evaluations: 200, noise: 0.0, ..Default::default() }
    }

    const FREE: [(f64, f64); 2] = [(f64::NEG_INFINITY, f64::INFINITY); 2];

    #[test]
    fn finds_the_bottom_of_a_curved_valley() {
        let found = minimise(
            &mut Function(|x: &[f64]| Ok(rosenbrock(x)), TIGHT),
            &[-1.2, 1.0],
            &FREE,
            &options(),
            Curvature::default(),
        )
        .unwrap();
        assert!(found.converged && found.evaluations < 100, "{found:?}");
        assert!((found.x[0] - 1.0).abs() < 1e-4 && (found.x[1] - 1.0).abs() < 1e-4);
    }

    #[test]
    fn stays_within_bounds_and_ends_at_them() {
        let bounds = [(-2.0, 0.5), (-2.0, 2.0)];
        let found = minimise(
            &mut Function(|x: &[f64]| Ok(rosenbrock(x)), TIGHT),
            &[-1.2, 1.0],
            &bounds,
            &options(),
            Curvature::default(),
        )
        .unwrap();
        assert!((found.x[0] - 0.5).abs() < 1e-12 && (found.x[1] - 0.25).abs() < 1e-4, "{found:?}");
    }

    #[test]
    fn goes_round_where_the_function_cannot_be_evaluated() {
        let mut function = Function(
            |x: &[f64]| {
                if x[0] > 1.5 { Err(Error::NotFinite { steps: 0, variance: 1.0 }) } else { Ok(rosenbrock(x)) }
            },
            TIGHT,
        );
        let found = minimise(&mut function, &[-1.2, 1.0], &FREE, &options(), Curvature::default()).unwrap();
        assert!((found.x[0] - 1.0).abs() < 1e-4, "{found:?}");
        let mut broken = Function(|_: &[f64]| Err(Error::Interrupted), TIGHT);
        assert_eq!(
            minimise(&mut broken, &[0.0, 0.0], &FREE, &options(), Curvature::default()),
            Err(Error::Interrupted)
        );
    }

    #[test]
    fn keeps_to_its_budget() {
        let mut calls = 0;
        let mut function = Function(
            |x: &[f64]| {
                calls += 1;
                Ok(rosenbrock(x))
            },
            TIGHT,
        );
        let few = MinimiserOptions { max_evaluations: 7, ..options() };
        let found = minimise(&mut function, &[-1.2, 1.0], &FREE, &few, Curvature::default()).unwrap();
        assert_eq!((found.evaluations, calls, found.converged), (7, 7, false));
    }

    /// A function that is off by a little until it is made accurate, and keeps count of where it was evaluated.
    struct Rough {
        error: f64,
        seen: Vec<Vec<f64>>,
    }

    impl Objective for Rough {
        fn evaluate(&mut self, x: &[f64]) -> Result<(f64, Vec<f64>)> {
            self.seen.push(x.to_vec());
            let (value, mut gradient) = rosenbrock(x);
            gradient[0] += self.error;
            Ok((value, gradient))
        }

        fn tolerance(&self) -> f64 {
            if self.error > 0.0 { 1e-2 } else { 1e-6 }
        }

        fn refine(&mut self, _: bool) -> bool {
            std::mem::take(&mut self.error) > 0.0
        }
    }

    #[test]
    fn does_not_evaluate_again_where_it_is_only_because_evaluations_become_more_accurate() {
        let mut function = Rough { error: 1e-4, seen: vec![] };
        let found = minimise(&mut function, &[0.5, 0.5], &FREE, &options(), Curvature::default()).unwrap();
        assert!(found.converged && (found.x[0] - 1.0).abs() < 1e-2, "{found:?}");
        let again = (1..function.seen.len()).filter(|&i| function.seen[..i].contains(&function.seen[i])).count();
        assert_eq!(again, 0, "{:?}", function.seen);
    }

    #[test]
    fn a_point_tried_beyond_a_step_tells_how_long_the_next_one_may_be() {
        // Nearly straight at first, then steep: the slope says nothing of what is to come.
        let mut calls = 0;
        let mut function = Function(
            |x: &[f64]| {
                calls += 1;
                Ok((2.0 - x[0] + (4.0 * (x[0] - 2.5)).exp(), vec![-1.0 + 4.0 * (4.0 * (x[0] - 2.5)).exp()]))
            },
            TIGHT,
        );
        let found = minimise(&mut function, &[0.0], &FREE[..1], &options(), Curvature::default()).unwrap();
        assert!(found.converged && (found.x[0] - (2.5 - 4.0_f64.ln() / 4.0)).abs() < 1e-4, "{found:?}");
        assert!(calls < 20, "{calls}");
    }

    #[test]
    fn a_longer_step_that_gains_too_little_for_its_length_is_lower_all_the_same() {
        // Falls by next to nothing over a long way, however steep it is said to be.
        let plain =
            |x: &[f64]| Ok(if x[0] < 2.0 { (1000.0 - 3e-3, vec![-20.0]) } else { (1000.0 - 4e-3, vec![-120.0]) });
        let (mut function, options) = (Function(plain, 1e-2), options());
        let mut search = Search { objective: &mut function, bounds: &FREE[..1], options: &options, evaluations: 0 };
        let found = search.line(&[0.0], (1000.0, &[-20.0]), &[20.0], 0.05, 5.0).unwrap();
        assert!(matches!(found, Line::Lower { next, .. } if (next.x[0] - 4.0).abs() < 1e-12));
    }

    #[test]
    fn does_not_look_closer_for_what_would_not_count() {
        // What is known beforehand makes the first step far too long; it shows that less is to be gained than counts.
        let known = Curvature::from_rows(&[1.0, 0.1], 1);
        let mut calls = 0;
        let mut function = Function(
            |x: &[f64]| {
                calls += 1;
                Ok((1000.0 + 2.0 * x[0] * x[0], vec![4.0 * x[0]]))
            },
            1e-3,
        );
        let found = minimise(&mut function, &[0.35], &FREE[..1], &options(), known).unwrap();
        assert!(found.converged && (found.value - 1000.245).abs() < 1e-12, "{found:?}");
        assert_eq!(calls, 2);
    }
}
