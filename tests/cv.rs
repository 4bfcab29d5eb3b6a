//! The cross-validation criterion: every way through the folds gives the same, and the gradient is that of differences.

#![allow(clippy::unwrap_used)]

mod support;

use ndarray::{Array1, Array2};
use nuptse::cv::{CrossValidation, CvOptions, FoldMethod, Folds, gradient};
use nuptse::data::{Inputs, Targets};
use nuptse::kernel::{Block, Covariance, Linear, Precision, Rbf};
use nuptse::learn::{LearnOptions, Learned, ParameterLayout, learn};
use nuptse::model::{FitOptions, ModelSpec, Solver};
use nuptse::prior::{Flat, Mixing, Tree};
use nuptse::solve::{PreconditionerUse, SolveParams};
use nuptse::{Context, Error};
use proptest::prelude::*;
use std::sync::Arc;
use support::{Random, context};

const POINTS: usize = 24;

struct Problem {
    spec: ModelSpec,
    x: Inputs,
    targets: Targets,
    folds: Folds,
}

/// A small problem with a Gaussian kernel, one width for every input, and a linear one.
fn problem(seed: u64, tree: bool, kernels: usize, soft: bool, weighted: bool) -> Problem {
    let mut random = Random::new(seed);
    let mixing: Arc<dyn Mixing> = if tree {
        let (parents, leaves) = random.tree_of_classes(8, 4, 3..=5);
        Arc::new(Tree::new(&parents, &leaves).unwrap())
    } else {
        Arc::new(Flat::new(3))
    };
    let mut covariances: Vec<Arc<dyn Covariance>> =
        vec![Arc::new(Rbf::per_input(vec![0.7, 2.0, 1.1]).unwrap()), Arc::new(Linear)];
    covariances.truncate(kernels);
    let block = |p: usize| Block { matrix: p % kernels, variance: 0.5 + 2.0 * random.uniform() };
    let blocks = (0..mixing.functions()).map(block).collect();
    let classes = mixing.classes();
    let x = random.dense(POINTS, 3);
    let targets = random.targets(POINTS, classes, soft, weighted);
    let folds = Folds::stratified(&targets, 3, seed).unwrap();
    let intercept_variance = 0.3 + random.uniform();
    Problem { spec: ModelSpec { covariances, blocks, mixing, intercept_variance }, x, targets, folds }
}

fn options(method: FoldMethod, solver: Solver, tol: f64) -> CvOptions {
    let solve = SolveParams { tol, max_products: 3000, ..SolveParams::default() };
    CvOptions { fit: FitOptions { solver, solve, ..FitOptions::default() }, method, accuracy: 0.1 * tol }
}

impl Problem {
    fn layout(&self) -> ParameterLayout {
        ParameterLayout::new(&self.spec, (0..self.spec.blocks.len()).collect(), true).unwrap()
    }

    /// Ψ and its gradient at some logarithms.
    fn evaluate(&self, context: &Context, logarithms: &[f64], options: &CvOptions) -> (f64, Vec<f64>) {
        let layout = self.layout();
        let spec = layout.with_logarithms(&self.spec, logarithms).unwrap();
        let mut prior = context.install(|| spec.prior(context, &self.x, Precision::Double)).unwrap();
        let mut cv = CrossValidation::new(self.targets.clone(), self.folds.clone()).unwrap();
        let found = cv.evaluate(context, &mut prior, options, true).unwrap();
        assert!(found.info.converged, "{options:?} did not converge");
        let f = found.f.unwrap();
        (found.value, layout.gradient(&gradient(context, &prior, &found.e, &f).unwrap()))
    }

    fn start(&self) -> Vec<f64> {
        self.layout().logarithms(&self.spec)
    }
}

fn relative_difference(a: &[f64], b: &[f64]) -> f64 {
    let scale = a.iter().fold(1e-3, |m: f64, a| m.max(a.abs()));
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / scale
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn the_gradient_is_that_of_differences(
        seed in any::<u64>(), tree in any::<bool>(), kernels in 1_usize..=2,
        (soft, weighted) in (any::<bool>(), any::<bool>()),
    ) {
        let problem = problem(seed, tree, kernels, soft, weighted);
        let context = context();
        let options = options(FoldMethod::Batched, Solver::NewtonCg, 1e-12);
        let start = problem.start();
        let (_, gradient) = problem.evaluate(&context, &start, &options);
        let h = 1e-4;
        let moved = |i: usize, by: f64| {
            let mut there = start.clone();
            there[i] += by;
            problem.evaluate(&context, &there, &options).0
        };
        // Of fourth order, so that the differences are better than what they are to show.
        let differences: Vec<f64> = (0..start.len())
            .map(|i| (8.0 * (moved(i, h) - moved(i, -h)) - (moved(i, 2.0 * h) - moved(i, -2.0 * h))) / (12.0 * h))
            .collect();
        let error = relative_difference(&differences, &gradient);
        prop_assert!(error < 1e-6, "{error:e}: {differences:?} against {gradient:?}");
    }

    #[test]
    fn rough_products_change_nothing_that_counts(seed in any::<u64>(), tree in any::<bool>(), soft in any::<bool>()) {
        let problem = problem(seed, tree, 1, soft, false);
        for method in [FoldMethod::Batched, FoldMethod::Shuffled] {
            let options = CvOptions { accuracy: 1e-4, ..options(method, Solver::NewtonCg, 1e-4) };
            let evaluate = |threads: usize, rough: bool| {
                let context = Context::new(Some(threads)).unwrap().with_rough_products(rough);
                let mut prior = problem.spec.prior(&context, &problem.x, Precision::Single).unwrap();
                let mut cv = CrossValidation::new(problem.targets.clone(), problem.folds.clone()).unwrap();
                let found = cv.evaluate(&context, &mut prior, &options, true).unwrap();
                assert!(found.info.converged);
                let gradient = gradient(&context, &prior, &found.e, &found.f.unwrap()).unwrap();
                (found.value, problem.layout().gradient(&gradient))
            };
            let (exact, rough) = (evaluate(2, false), evaluate(2, true));
            prop_assert!((exact.0 - rough.0).abs() <= 1e-5 * exact.0, "{} against {}", exact.0, rough.0);
            let most = 1e-3 * exact.0;
            prop_assert!(exact.1.iter().zip(&rough.1).all(|(a, b)| (a - b).abs() <= most), "{exact:?} {rough:?}");
            prop_assert_eq!(evaluate(1, true), rough);
        }
    }

    #[test]
    fn all_ways_through_the_folds_agree(
        seed in any::<u64>(), tree in any::<bool>(), kernels in 1_usize..=2,
        (soft, weighted) in (any::<bool>(), any::<bool>()),
    ) {
        let problem = problem(seed, tree, kernels, soft, weighted);
        let context = context();
        let start = problem.start();
        let (value, gradient) =
            problem.evaluate(&context, &start, &options(FoldMethod::Batched, Solver::NewtonCg, 1e-11));
        let mut others = vec![
            (FoldMethod::Shuffled, Solver::NewtonCg),
            (FoldMethod::Shuffled, Solver::Lbfgs),
            (FoldMethod::InPlace, Solver::NewtonCg),
            (FoldMethod::Batched, Solver::Lbfgs),
        ];
        if !tree {
            others.push((FoldMethod::InPlace, Solver::Exact));
        }
        for (method, solver) in others {
            // L-BFGS has its pairs in single precision, and gets no further.
            let (tol, near) = if solver == Solver::Lbfgs { (1e-6, 1e-4) } else { (1e-11, 1e-9) };
            let (other, other_gradient) = problem.evaluate(&context, &start, &options(method, solver, tol));
            prop_assert!((value - other).abs() <= near * value, "{method:?}, {solver:?}: {value} against {other}");
            let difference = relative_difference(&gradient, &other_gradient);
            prop_assert!(difference <= near, "{method:?}, {solver:?}: gradients differ by {difference:e}");
        }
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    let problem = problem(3, true, 2, false, true);
    for method in [FoldMethod::Batched, FoldMethod::Shuffled] {
        let options = options(method, Solver::NewtonCg, 1e-6);
        let with = |threads| problem.evaluate(&Context::new(Some(threads)).unwrap(), &problem.start(), &options);
        assert_eq!(with(1), with(3));
        assert_eq!(with(2), with(2));
    }
}

#[test]
fn a_preconditioner_changes_nothing() {
    let problem = problem(5, false, 1, false, false);
    for method in [FoldMethod::Batched, FoldMethod::Shuffled] {
        let plain = options(method, Solver::NewtonCg, 1e-11);
        let mut preconditioned = plain;
        preconditioned.fit.solve.preconditioner = PreconditionerUse::On;
        let (a, b) = (
            problem.evaluate(&context(), &problem.start(), &plain),
            problem.evaluate(&context(), &problem.start(), &preconditioned),
        );
        assert!((a.0 - b.0).abs() < 1e-9 * a.0);
        assert!(relative_difference(&a.1, &b.1) < 1e-8);
    }
}

#[test]
fn loose_fits_give_the_criterion_to_second_order() {
    let problem = problem(7, false, 1, false, false);
    let value =
        |tol| problem.evaluate(&context(), &problem.start(), &options(FoldMethod::Batched, Solver::NewtonCg, tol)).0;
    let exact = value(1e-12);
    assert!((value(1e-2) - exact).abs() < 1e-3 * exact);
    assert!((value(1e-3) - exact).abs() < 1e-5 * exact);
}

#[test]
fn fits_start_where_the_last_ones_ended() {
    let problem = problem(8, false, 1, false, false);
    let context = context();
    let mut prior = context.install(|| problem.spec.prior(&context, &problem.x, Precision::Double)).unwrap();
    let mut cv = CrossValidation::new(problem.targets.clone(), problem.folds.clone()).unwrap();
    let options = options(FoldMethod::Batched, Solver::NewtonCg, 1e-6);
    let first = cv.evaluate(&context, &mut prior, &options, true).unwrap();
    let again = cv.evaluate(&context, &mut prior, &options, true).unwrap();
    assert!(again.info.products < first.info.products / 2, "{} after {}", again.info.products, first.info.products);
    assert!((again.value - first.value).abs() < 1e-8 * first.value);
    // What is held out has no coefficient.
    for (k, e) in again.e.iter().enumerate() {
        assert!(problem.folds.held_out(k).iter().all(|&i| e.row(i).iter().all(|a| *a == 0.0)));
    }
}

#[test]
fn a_class_that_is_missing_from_a_training_part_has_no_example_there() {
    let mut random = Random::new(9);
    let mut labels: Vec<usize> = (0..POINTS).map(|i| i % 2).collect();
    labels[5] = 2; // the only one of its class
    let targets = Targets::from_labels(&labels, 3).unwrap();
    let folds = Folds::stratified(&targets, 3, 0).unwrap();
    let problem = Problem {
        spec: ModelSpec::shared(3, Rbf::isotropic(1.0).unwrap(), 2.0),
        x: random.dense(POINTS, 2),
        targets,
        folds,
    };
    let (value, gradient) =
        problem.evaluate(&context(), &problem.start(), &options(FoldMethod::Batched, Solver::NewtonCg, 1e-8));
    assert!(value.is_finite() && gradient.iter().all(|g| g.is_finite()));
}

#[test]
fn points_that_may_be_of_several_classes_are_left_out() {
    let mut random = Random::new(10);
    let x = random.dense(POINTS, 2);
    let labels = random.labels(POINTS, 3);
    let spec = ModelSpec::shared(3, Rbf::isotropic(1.0).unwrap(), 2.0);
    let mut of_point = labels.clone();
    of_point[20..].fill(3);
    let sets = [vec![0], vec![1], vec![2], vec![0, 1]];
    let vague = Targets::from_sets(&of_point, &sets, 3).unwrap();
    let weights = (0..POINTS).map(|i| if i < 20 { 1.0 } else { 0.0 }).collect();
    let known = Targets::from_labels(&labels, 3).unwrap().with_weights(weights).unwrap();
    let folds = Folds::from_assignment((0..POINTS).map(|i| i % 3).collect()).unwrap();
    let value = |targets| {
        let problem = Problem { spec: spec.clone(), x: x.clone(), targets, folds: folds.clone() };
        problem.evaluate(&context(), &problem.start(), &options(FoldMethod::Batched, Solver::NewtonCg, 1e-8))
    };
    assert_eq!(value(vague), value(known));
}

#[test]
fn an_interrupt_ends_all_folds() {
    let problem = problem(4, false, 1, false, false);
    let context = context();
    let mut prior = context.install(|| problem.spec.prior(&context, &problem.x, Precision::Double)).unwrap();
    context.interrupt().set();
    let mut cv = CrossValidation::new(problem.targets.clone(), problem.folds.clone()).unwrap();
    for method in [FoldMethod::Batched, FoldMethod::Shuffled] {
        let options = options(method, Solver::NewtonCg, 1e-6);
        assert_eq!(cv.evaluate(&context, &mut prior, &options, true).unwrap_err(), Error::Interrupted);
    }
}

// Learning

/// Three classes side by side, which overlap; the second input says nothing.
fn stripes(random: &mut Random, points: usize) -> (Inputs, Targets) {
    let mut rows = Array2::zeros((points, 2));
    let mut labels = vec![0; points];
    for i in 0..points {
        labels[i] = i % 3;
        rows[[i, 0]] = [-1.0, 0.0, 1.0][i % 3] + 0.6 * random.normal();
        rows[[i, 1]] = 3.0 * random.normal();
    }
    (Inputs::dense(rows).unwrap(), Targets::from_labels(&labels, 3).unwrap())
}

fn learned(start_variance: f64, width: f64) -> (f64, Vec<f64>, usize) {
    let mut random = Random::new(11);
    let (x, targets) = stripes(&mut random, 120);
    let folds = Folds::stratified(&targets, 4, 0).unwrap();
    let spec = ModelSpec::shared(3, Rbf::per_input(vec![width; 2]).unwrap(), start_variance);
    let layout = ParameterLayout::new(&spec, vec![0; 3], false).unwrap();
    let mut cv = CrossValidation::new(targets, folds).unwrap();
    let found = learn(&context(), &spec, &layout, &x, &mut cv, &LearnOptions::default()).unwrap();
    assert!(!found.interrupted);
    assert!(found.value < found.history[0].value);
    (found.value, layout.logarithms(&found.spec), found.history.len())
}

#[test]
fn learning_finds_the_input_that_matters_from_far_off_too() {
    let (value, logarithms, _) = learned(10.0, 1.0);
    assert!(logarithms[1] > logarithms[2] + 2.0, "the width of the input that matters: {logarithms:?}");
    for (variance, width) in [(1e4, 1.0), (1e-2, 1.0), (10.0, 100.0), (10.0, 0.01)] {
        let (other, _, evaluations) = learned(variance, width);
        assert!((other - value).abs() < 0.01 * value, "{other} from {variance}, {width} in {evaluations}, not {value}");
    }
}

#[test]
fn a_learned_model_is_fitted_as_accurately_as_its_folds_were() {
    let mut random = Random::new(13);
    let (x, targets) = stripes(&mut random, 120);
    let folds = Folds::stratified(&targets, 4, 0).unwrap();
    let spec = ModelSpec::shared(3, Rbf::isotropic(0.1).unwrap(), 10.0);
    let layout = ParameterLayout::new(&spec, vec![0; 3], false).unwrap();
    let mut cv = CrossValidation::new(targets.clone(), folds).unwrap();
    assert_eq!(cv.tol_for_all(1.0), None, "no evaluation has told yet");
    let found = learn(&context(), &spec, &layout, &x, &mut cv, &LearnOptions::default()).unwrap();
    let tol = found.tol.unwrap();
    // Whatever is asked for, no fit is less accurate than those of the folds, and none than what was asked for.
    for asked in [1e6 * tol, 1e-3 * tol] {
        let options =
            FitOptions { solve: SolveParams { tol: asked, ..SolveParams::default() }, ..FitOptions::default() };
        let (_, info) = found.fit(&context(), &x, targets.clone(), &options).unwrap();
        assert!(info.solve.converged && info.solve.residual <= tol.min(asked));
        assert!((info.tol - tol.min(asked)).abs() < 1e-12 * tol);
    }
}

#[test]
fn a_fit_that_begins_roughly_ends_as_accurately() {
    let mut random = Random::new(14);
    let (x, targets) = stripes(&mut random, 1000);
    let folds = Folds::stratified(&targets, 3, 0).unwrap();
    let spec = ModelSpec::shared(3, Rbf::isotropic(0.5).unwrap(), 10.0);
    let layout = ParameterLayout::new(&spec, vec![0; 3], false).unwrap();
    let mut cv = CrossValidation::new(targets.clone(), folds.clone()).unwrap();
    let options = LearnOptions { max_evaluations: 1, ..LearnOptions::default() };
    let mut found = learn(&context(), &spec, &layout, &x, &mut cv, &options).unwrap();
    assert!(found.begins_roughly);
    let fit_options = |precision| FitOptions {
        solve: SolveParams { tol: 1e-7, ..SolveParams::default() },
        precision,
        ..FitOptions::default()
    };
    let fit = |found: &Learned, precision| {
        let (model, info) = found.fit(&context(), &x, targets.clone(), &fit_options(precision)).unwrap();
        assert!(info.solve.converged && info.solve.residual <= 1e-7);
        (model.alpha().to_owned(), info)
    };
    let (alpha, info) = fit(&found, Precision::Double);
    let (_, single) = fit(&found, Precision::Single);
    found.begins_roughly = false;
    let (plain, plain_info) = fit(&found, Precision::Double);
    assert!((alpha - &plain).iter().all(|difference| difference.abs() < 1e-6));
    assert_eq!(info.representations, plain_info.representations);
    assert!(info.solve.trace.is_sorted_by_key(|point| (point.products, point.time)), "both fits count");
    assert!(info.solve.products > info.solve.trace.last().unwrap().products.max(plain_info.solve.products));
    assert_eq!(single.representations, ["stored in single precision"]);
    let few = FitOptions { solve: SolveParams { max_products: 12, ..SolveParams::default() }, ..FitOptions::default() };
    found.begins_roughly = true;
    let (_, info) = found.fit(&context(), &x, targets.clone(), &few).unwrap();
    assert!(info.solve.products <= 13, "{} products", info.solve.products);

    // What has no large matrix begins as it goes on.
    let spec = ModelSpec::shared(3, Linear, 1.0);
    let layout = ParameterLayout::new(&spec, vec![0; 3], false).unwrap();
    let mut cv = CrossValidation::new(targets.clone(), folds).unwrap();
    assert!(!learn(&context(), &spec, &layout, &x, &mut cv, &options).unwrap().begins_roughly);
}

#[test]
fn what_is_learned_suits_all_points_and_its_folds_the_points_that_they_keep() {
    let mut random = Random::new(15);
    let (x, targets) = stripes(&mut random, 90);
    let spec = ModelSpec::shared(3, Rbf::isotropic(1.0).unwrap(), 5.0);
    let layout = ParameterLayout::new(&spec, vec![0; 3], true).unwrap();
    let carried = layout.for_share(&spec, &[1.0, 2.0, 3.0], 0.5);
    assert_eq!((carried[0], carried[2]), (1.0, 3.0), "variances are not about how much is known");
    assert!((carried[1] - (2.0 - 0.25 * 2.0_f64.ln())).abs() < 1e-12, "{carried:?}");

    let fit = options(FoldMethod::Auto, Solver::Auto, 1e-7);
    for count in [2, 5] {
        let folds = Folds::stratified(&targets, count, 0).unwrap();
        let problem = Problem { x: x.clone(), targets: targets.clone(), folds, spec: spec.clone() };
        let mut cv = CrossValidation::new(targets.clone(), problem.folds.clone()).unwrap();
        let layout = problem.layout();
        let around = |(i, &log): (usize, &f64)| if i == 3 { (log - 9.0, log + 9.0) } else { (log, log) };
        let bounds = layout.logarithms(&spec).iter().enumerate().map(around).collect();
        let accurate = LearnOptions { cv: fit, tolerance: 1e-7, bounds, ..LearnOptions::default() };
        let found = learn(&context(), &spec, &layout, &x, &mut cv, &accurate).unwrap();
        let of_all = layout.logarithms(&found.spec);
        let of_folds = layout.for_share(&spec, &of_all, 1.0 - 1.0 / count as f64);
        let (value, slopes) = problem.evaluate(&context(), &of_folds, &fit);
        assert!((value - found.value).abs() < 1e-6 * value, "{value} and {}", found.value);
        assert!(slopes[3].abs() < 1e-4 * value, "{slopes:?}");
        // With the width of all points, the folds do worse.
        assert!(problem.evaluate(&context(), &of_all, &fit).0 > value);
    }
}

#[test]
fn bounds_and_priors_on_hyperparameters_are_kept() {
    let mut random = Random::new(12);
    let (x, targets) = stripes(&mut random, 90);
    let folds = Folds::stratified(&targets, 3, 0).unwrap();
    let spec = ModelSpec::shared(3, Rbf::isotropic(1.0).unwrap(), 5.0);
    let layout = ParameterLayout::new(&spec, vec![0; 3], false).unwrap();
    let run = |options: LearnOptions| {
        let mut cv = CrossValidation::new(targets.clone(), folds.clone()).unwrap();
        let found = learn(&context(), &spec, &layout, &x, &mut cv, &options).unwrap();
        layout.logarithms(&found.spec)
    };
    let fixed =
        run(LearnOptions { bounds: vec![(5.0_f64.ln(), 5.0_f64.ln()), (-9.0, 9.0)], ..LearnOptions::default() });
    assert!((fixed[0] - 5.0_f64.ln()).abs() < 1e-12);
    let narrow = run(LearnOptions { bounds: vec![(-9.0, 9.0), (0.5, 0.5)], ..LearnOptions::default() });
    assert!((narrow[1] - 0.5).abs() < 1e-12, "bounds are of the model, not of its folds: {narrow:?}");
    let tight = run(LearnOptions { prior: vec![(7.0, 1e-3), (0.0, 10.0)], ..LearnOptions::default() });
    assert!((tight[0] - 7.0).abs() < 0.01, "{tight:?}");
}

#[test]
fn an_interrupt_keeps_the_best_so_far_if_asked() {
    let mut random = Random::new(13);
    let (x, targets) = stripes(&mut random, 90);
    let folds = Folds::stratified(&targets, 3, 0).unwrap();
    let spec = ModelSpec::shared(3, Rbf::isotropic(1.0).unwrap(), 5.0);
    let layout = ParameterLayout::new(&spec, vec![0; 3], false).unwrap();
    for keep_on_interrupt in [true, false] {
        let context = context();
        let interrupt = context.interrupt();
        let context = context.with_listener(move |progress| {
            if matches!(progress, nuptse::context::Progress::Evaluation { evaluation: 3, .. }) {
                interrupt.set();
            }
        });
        let mut cv = CrossValidation::new(targets.clone(), folds.clone()).unwrap();
        let options = LearnOptions { keep_on_interrupt, ..LearnOptions::default() };
        let found = learn(&context, &spec, &layout, &x, &mut cv, &options);
        if keep_on_interrupt {
            let found = found.unwrap();
            assert!(found.interrupted && found.history.len() == 3);
            assert!(found.value <= found.history[0].value);
        } else {
            assert_eq!(found.unwrap_err(), Error::Interrupted);
        }
    }
}

#[test]
fn kernel_matrices_are_used_again_where_only_variances_are_learned() {
    let mut random = Random::new(14);
    let (x, targets) = stripes(&mut random, 90);
    let folds = Folds::stratified(&targets, 3, 0).unwrap();
    let spec = ModelSpec::shared(3, Linear, 0.01);
    let layout = ParameterLayout::new(&spec, vec![0, 1, 2], true).unwrap();
    assert!(layout.keeps_matrices());
    let mut cv = CrossValidation::new(targets.clone(), folds.clone()).unwrap();
    let accurate = LearnOptions { cv: options(FoldMethod::Auto, Solver::Auto, 1e-8), ..LearnOptions::default() };
    let found = learn(&context(), &spec, &layout, &x, &mut cv, &accurate).unwrap();
    // The same from a prior made afresh.
    let mut prior = context().install(|| found.spec.prior(&context(), &x, Precision::Double)).unwrap();
    let mut cv = CrossValidation::new(targets, folds).unwrap();
    let fresh = cv.evaluate(&context(), &mut prior, &options(FoldMethod::Auto, Solver::Auto, 1e-8), false).unwrap();
    assert!((fresh.value - found.value).abs() < 1e-6 * found.value, "{} against {}", fresh.value, found.value);
    assert!(fresh.f.is_none());
}

#[test]
fn learning_that_begins_with_a_part_of_the_points_ends_where_learning_from_all_of_them_does() {
    let mut random = Random::new(16);
    let (x, targets) = stripes(&mut random, 480);
    let weights: Array1<f64> = (0..480).map(|i| if i % 5 == 0 { 0.0 } else { 1.0 + f64::from(i % 3) }).collect();
    let folds = Folds::stratified(&targets, 3, 0).unwrap();
    let spec = ModelSpec::shared(3, Rbf::per_input(vec![1.0; 2]).unwrap(), 5.0);
    let layout = ParameterLayout::new(&spec, vec![0; 3], true).unwrap();
    for targets in [targets.clone(), targets.with_weights(weights).unwrap()] {
        let run = |smallest_part| {
            let mut cv = CrossValidation::new(targets.clone(), folds.clone()).unwrap();
            let sizes = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
            let seen = sizes.clone();
            let context = context().with_listener(move |progress| {
                if let nuptse::context::Progress::Evaluation { points, .. } = progress {
                    seen.lock().unwrap().push(points);
                }
            });
            let options = LearnOptions { smallest_part, ..LearnOptions::default() };
            let found = learn(&context, &spec, &layout, &x, &mut cv, &options).unwrap();
            assert!(found.converged);
            drop(context);
            let sizes = sizes.lock().unwrap().clone();
            (found.value, sizes)
        };
        let (whole, sizes) = run(None);
        assert!(sizes.iter().all(|&points| points == 480));
        let (value, sizes) = run(Some(100));
        // Not worse; on a problem with a long flat valley like this one it may be better.
        assert!(value < 1.002 * whole, "{value} and {whole}");
        assert!(sizes.is_sorted() && sizes[0] < 130 && sizes.contains(&480), "{sizes:?}");
    }
}

#[test]
fn a_run_that_was_stopped_ends_as_if_it_had_not_been() {
    for smallest_part in [None, Some(20)] {
        a_stop_changes_nothing(smallest_part);
    }
}

fn a_stop_changes_nothing(smallest_part: Option<usize>) {
    let mut random = Random::new(15);
    let (x, targets) = stripes(&mut random, 90);
    let folds = Folds::stratified(&targets, 3, 0).unwrap();
    let spec = ModelSpec::shared(3, Rbf::isotropic(1.0).unwrap(), 5.0);
    let layout = ParameterLayout::new(&spec, vec![0, 1, 2], false).unwrap();
    let run = |x: &Inputs, options: &LearnOptions| {
        let mut cv = CrossValidation::new(targets.clone(), folds.clone()).unwrap();
        learn(&context(), &spec, &layout, x, &mut cv, options)
    };
    let told = |found: &nuptse::learn::Learned| -> Vec<(u64, Vec<u64>, usize)> {
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect();
        found.history.iter().map(|one| (one.value.to_bits(), bits(&one.gradient), one.products)).collect()
    };
    let usual = LearnOptions { smallest_part, ..LearnOptions::default() };
    let whole = run(&x, &usual).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint");
    let stopped_at =
        |max_evaluations| LearnOptions { max_evaluations, checkpoint: Some(path.clone()), ..usual.clone() };
    for evaluations in [1, 2, 5, 60] {
        let part = run(&x, &stopped_at(evaluations)).unwrap();
        assert!(whole.history.len() > 2 && path.exists());
        assert_eq!(told(&part), told(&whole)[..part.history.len()]);
    }
    let again = run(&x, &stopped_at(60)).unwrap();
    assert_eq!((again.value, told(&again)), (whole.value, told(&whole)));
    // It is not for other data, and not for other settings.
    let (other, _) = stripes(&mut random, 90);
    let refused = |found: nuptse::Result<nuptse::learn::Learned>| {
        assert!(matches!(found.unwrap_err(), Error::File { problem: nuptse::error::FileProblem::OtherWork, .. }));
    };
    refused(run(&other, &stopped_at(60)));
    refused(run(&x, &LearnOptions { tolerance: 1e-3, ..stopped_at(60) }));
    // A file that is damaged is told, and left alone.
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let damaged = run(&x, &stopped_at(60)).unwrap_err();
    assert!(matches!(damaged, Error::File { problem: nuptse::error::FileProblem::Corrupt { .. }, .. }), "{damaged}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}
