//! Points of which only a set of classes is known.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use ndarray::{Array1, Array2};
use nuptse::data::{Inputs, Targets};
use nuptse::kernel::Rbf;
use nuptse::likelihood::{Likelihood, Softmax};
use nuptse::model::{FitOptions, Model, ModelSpec, Solver};
use nuptse::solve::{SolveInfo, SolveParams};
use proptest::prelude::*;
use support::{Random, context, max_difference};

const SOLVERS: [Solver; 3] = [Solver::NewtonCg, Solver::NewtonCgSymmetric, Solver::Lbfgs];

/// Every class alone, and some sets; about half of the points have one of these.
fn sets(random: &mut Random, points: usize, classes: usize) -> (Vec<usize>, Vec<Vec<usize>>) {
    let mut sets: Vec<Vec<usize>> = (0..classes).map(|class| vec![class]).collect();
    sets.push((0..classes).collect());
    sets.push((0..classes / 2).collect());
    sets.push((classes / 2..classes).collect());
    let of_point = (0..points).map(|i| if i < classes || i % 2 == 0 { i % classes } else { random.below(sets.len()) });
    (of_point.collect(), sets)
}

fn random_targets(random: &mut Random, points: usize, classes: usize, weighted: bool) -> (Targets, Vec<Vec<usize>>) {
    let (of_point, sets) = sets(random, points, classes);
    let targets = Targets::from_sets(&of_point, &sets, classes).unwrap();
    let of_point = of_point.into_iter().map(|set| sets[set].clone()).collect();
    if !weighted {
        return (targets, of_point);
    }
    let weights = Array1::from_shape_simple_fn(points, || 0.2 + 2.0 * random.uniform());
    (targets.with_weights(weights).unwrap(), of_point)
}

fn fit(spec: &ModelSpec, x: &Inputs, targets: &Targets, solver: Solver, tol: f64) -> (Model, SolveInfo) {
    let solve = SolveParams { tol, max_products: 5000, ..SolveParams::default() };
    let options = FitOptions { solver, solve, ..FitOptions::default() };
    let (model, info) = spec.fit(&context(), x, targets.clone(), &options).unwrap();
    (model, info.solve)
}

/// π and the loss Σ w (−log Σ_{c∈I} π_c), as the formulas have them.
fn naive(u: &Array2<f64>, sets: &[Vec<usize>], weight: impl Fn(usize) -> f64) -> (Array2<f64>, f64) {
    let mut pi = u.mapv(f64::exp);
    let mut loss = 0.0;
    for (i, mut row) in pi.outer_iter_mut().enumerate() {
        let sum = row.sum();
        row.mapv_inplace(|p| p / sum);
        loss -= weight(i) * sets[i].iter().map(|&class| row[class]).sum::<f64>().ln();
    }
    (pi, loss)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn the_gradient_is_that_of_the_likelihood_and_the_curvature_at_least_its_own(
        seed in any::<u64>(), classes in 2_usize..7, weighted in any::<bool>(),
    ) {
        let mut random = Random::new(seed);
        let points = 20;
        let (targets, sets) = random_targets(&mut random, points, classes, weighted);
        let likelihood = Softmax::new(targets.clone());
        let (u, direction) = (random.array((points, classes)) * 2.0, random.array((points, classes)));
        let mut g = Array2::zeros((points, classes));
        let mut curvature = likelihood.new_curvature();
        let value = likelihood.evaluate(u.view(), g.view_mut(), &mut curvature).unwrap();
        let loss = |u: &Array2<f64>| naive(u, &sets, |i| targets.weight(i)).1;
        prop_assert!((value - loss(&u)).abs() < 1e-10 * value);
        let h = 1e-4;
        let (above, below) = (loss(&(&u + &(&direction * h))), loss(&(&u - &(&direction * h))));
        prop_assert!(((above - below) / (2.0 * h) - (&g * &direction).sum()).abs() < 1e-5);
        let mut w = Array2::zeros((points, classes));
        likelihood.apply_curvature(&curvature, w.view_mut(), direction.view()).unwrap();
        let second = (above - 2.0 * value + below) / (h * h);
        prop_assert!((&w * &direction).sum() >= second - 1e-4);
        let along = likelihood.along(u.view(), direction.view(), 0.7).unwrap();
        let there = &u + &(&direction * 0.7);
        prop_assert!((along.value - loss(&there)).abs() < 1e-10 * (1.0 + along.value));
    }

    #[test]
    fn every_solver_ends_where_the_gradient_vanishes_and_goes_down_all_the_way(
        seed in any::<u64>(), classes in 2_usize..6, weighted in any::<bool>(),
    ) {
        let mut random = Random::new(seed);
        let points = 40;
        let (targets, sets) = random_targets(&mut random, points, classes, weighted);
        let x = random.dense(points, 2);
        let spec = ModelSpec::shared(classes, Rbf::isotropic(2.0).unwrap(), 5.0);
        for solver in SOLVERS {
            // The reference loses accuracy to its diagonal preconditioner.
            let tol = if solver == Solver::NewtonCgSymmetric { 1e-5 } else { 1e-7 };
            let (model, info) = fit(&spec, &x, &targets, solver, tol);
            prop_assert!(info.converged, "{} stopped at {:e}", info.solver, info.residual);
            for pair in info.trace.windows(2) {
                let rise = pair[1].objective / pair[0].objective - 1.0;
                // The step α ← −g at the very end is made for the sake of max|α + g|, which it brings below tol; and there
                // u is computed afresh, which L-BFGS has carried along to single precision.
                let at_the_end = if solver == Solver::Lbfgs { f64::from(f32::EPSILON) } else { 1e-8 };
                prop_assert!(rise <= if pair[0].residual < 10.0 * tol { at_the_end } else { 1e-12 }, "{} went up by {rise:e} at {:e}", info.solver, pair[0].residual);
            }
            // α = w (q − π), q ∝ π on the set of the point.
            let pi = naive(&model.decision_function(&context(), &x).unwrap(), &sets, |i| targets.weight(i)).0;
            let expected = Array2::from_shape_fn((points, classes), |(i, c)| {
                let mass: f64 = sets[i].iter().map(|&class| pi[[i, class]]).sum();
                let q = if sets[i].contains(&c) { pi[[i, c]] / mass } else { 0.0 };
                targets.weight(i) * (q - pi[[i, c]])
            });
            prop_assert!(max_difference(&model.alpha().to_owned(), &expected) < 10.0 * tol);
        }
    }
}

/// Expectation maximisation as seed 000 has it: fits to targets q, and q anew from each fit.
#[test]
fn the_fit_is_a_fixed_point_of_expectation_maximisation() {
    let mut random = Random::new(5);
    let (points, classes) = (60, 4);
    let (targets, sets) = random_targets(&mut random, points, classes, false);
    let x = random.dense(points, 2);
    let spec = ModelSpec::shared(classes, Rbf::isotropic(1.0).unwrap(), 3.0);
    let (model, _) = fit(&spec, &x, &targets, Solver::NewtonCg, 1e-9);
    let mut q =
        Array2::from_shape_fn(
            (points, classes),
            |(i, c)| {
                if sets[i].contains(&c) { 1.0 / sets[i].len() as f64 } else { 0.0 }
            },
        );
    let mut last = f64::INFINITY;
    for round in 0..400 {
        let (m_step, info) = fit(&spec, &x, &Targets::from_distributions(q.clone()).unwrap(), Solver::NewtonCg, 1e-9);
        let (pi, loss) = naive(&m_step.decision_function(&context(), &x).unwrap(), &sets, |_| 1.0);
        let penalty = 0.5 * (&m_step.alpha() * &m_step.decision_function(&context(), &x).unwrap()).sum();
        assert!(loss + penalty <= last + 1e-7, "round {round} goes up: {} after {last}", loss + penalty);
        assert!(info.converged);
        last = loss + penalty;
        for (i, set) in sets.iter().enumerate() {
            let mass: f64 = set.iter().map(|&class| pi[[i, class]]).sum();
            (0..classes).for_each(|c| q[[i, c]] = if set.contains(&c) { pi[[i, c]] / mass } else { 0.0 });
        }
        if max_difference(&m_step.alpha().to_owned(), &model.alpha().to_owned()) < 1e-5 {
            return;
        }
    }
    panic!("expectation maximisation ends elsewhere, at {last}");
}

#[test]
fn sets_of_one_class_give_the_ordinary_fit_to_the_bit() {
    let mut random = Random::new(1);
    let x = random.dense(50, 3);
    let labels = random.labels(50, 4);
    let spec = ModelSpec::shared(4, Rbf::isotropic(1.0).unwrap(), 3.0);
    let sets: Vec<Vec<usize>> = (0..4).map(|class| vec![class]).collect();
    let alpha = |targets: Targets| fit(&spec, &x, &targets, Solver::Auto, 1e-6).0.alpha().to_owned();
    let as_sets = alpha(Targets::from_sets(&labels, &sets, 4).unwrap());
    assert_eq!(as_sets, alpha(Targets::from_labels(&labels, 4).unwrap()));
}

#[test]
fn a_point_that_may_be_anything_changes_nothing() {
    let mut random = Random::new(2);
    let rows = random.array((41, 3));
    let labels = random.labels(40, 3);
    let spec = ModelSpec::shared(3, Rbf::isotropic(1.0).unwrap(), 3.0);
    let known = Inputs::dense(rows.slice(ndarray::s![..40, ..]).to_owned()).unwrap();
    let plain = fit(&spec, &known, &Targets::from_labels(&labels, 3).unwrap(), Solver::NewtonCg, 1e-10).0;
    let mut of_point = labels;
    of_point.push(3);
    let sets = [vec![0], vec![1], vec![2], vec![0, 1, 2]];
    let targets = Targets::from_sets(&of_point, &sets, 3).unwrap();
    let more = fit(&spec, &Inputs::dense(rows).unwrap(), &targets, Solver::NewtonCg, 1e-10).0;
    let of_known = more.alpha().slice(ndarray::s![..40, ..]).to_owned();
    assert!(max_difference(&of_known, &plain.alpha().to_owned()) < 1e-8);
    assert!(more.alpha().row(40).iter().all(|a| a.abs() < 1e-9));
}
