//! Many systems (I + W K̃) x = b at once.

#![allow(clippy::unwrap_used)]

mod support;

use ndarray::Array2;
use nuptse::Context;
use nuptse::kernel::{Precision, Rbf};
use nuptse::likelihood::{Likelihood, Softmax};
use nuptse::model::ModelSpec;
use nuptse::prior::JointPrior;
use nuptse::solve::{LinearSystem, LowRankPrior, PreconditionerUse, solve_systems};
use nuptse::workspace::Workspace;
use support::{Random, context, max_difference};

const POINTS: usize = 60;
const CLASSES: usize = 4;

/// Likelihood, curvature and right-hand side.
type Fold = (Softmax, Vec<f64>, Array2<f64>);

/// A prior, and for every fold a likelihood without its points and the curvature at some u.
fn folds(random: &mut Random, folds: usize) -> (JointPrior, Vec<Fold>) {
    let x = random.dense(POINTS, 3);
    let labels = random.labels(POINTS, CLASSES);
    let spec = ModelSpec::shared(CLASSES, Rbf::isotropic(2.0).unwrap(), 5.0);
    let prior = spec.prior(&context(), &x, Precision::Double).unwrap();
    let one = |fold: usize| {
        let held_out = |i: usize| i % folds == fold;
        let weights = (0..POINTS).map(|i| f64::from(u8::from(!held_out(i)))).collect();
        let targets = nuptse::data::Targets::from_labels(&labels, CLASSES).unwrap().with_weights(weights).unwrap();
        let likelihood = Softmax::new(targets);
        let mut curvature = likelihood.new_curvature();
        let u = random.array((POINTS, CLASSES));
        likelihood.evaluate(u.view(), Array2::zeros(u.raw_dim()).view_mut(), &mut curvature).unwrap();
        let mut b = random.array((POINTS, CLASSES));
        (0..POINTS).filter(|i| held_out(*i)).for_each(|i| b.row_mut(i).fill(0.0));
        (likelihood, curvature, b)
    };
    let parts = (0..folds).map(one).collect();
    (prior, parts)
}

fn systems<'a>(parts: &'a [Fold], accuracy: &[f64]) -> Vec<LinearSystem<'a, Softmax>> {
    let one = |((likelihood, curvature, b), accuracy): (&'a Fold, &f64)| LinearSystem {
        likelihood,
        curvature,
        b: b.view(),
        accuracy: *accuracy,
        most_left: f64::INFINITY,
    };
    parts.iter().zip(accuracy).map(one).collect()
}

#[test]
fn every_solution_solves_its_system() {
    let (prior, parts) = folds(&mut Random::new(3), 5);
    let context = context();
    let approximation =
        LowRankPrior::new(&context, &mut Workspace::default(), &prior, PreconditionerUse::Auto).unwrap().unwrap();
    let plain = check(&context, &prior, &parts, None);
    let preconditioned = check(&context, &prior, &parts, Some(&approximation));
    assert!(preconditioned < plain, "{preconditioned} steps with a preconditioner, {plain} without");
}

/// Solves all systems, checks the solutions, and returns the steps taken.
fn check(context: &Context, prior: &JointPrior, parts: &[Fold], approximation: Option<&LowRankPrior>) -> usize {
    let solved =
        solve_systems(context, &mut Workspace::default(), prior, &systems(parts, &[1e-12; 5]), approximation, 500)
            .unwrap();
    for (fold, ((likelihood, curvature, b), (x, info))) in parts.iter().zip(&solved).enumerate() {
        assert!(info.converged);
        let (mut image, mut left) = (Array2::zeros(b.raw_dim()), Array2::zeros(b.raw_dim()));
        prior.apply(context, &mut Workspace::default(), image.view_mut(), x.s.view()).unwrap();
        assert!(max_difference(&image, &x.image) < 1e-9, "the image is not K̃x");
        likelihood.apply_curvature(curvature, left.view_mut(), image.view()).unwrap();
        assert!(max_difference(&(&left + &x.s), b) < 1e-8, "fold {fold}");
        assert!((fold..POINTS).step_by(5).all(|i| x.s.row(i).iter().all(|x| *x == 0.0)), "a point held out takes part");
    }
    solved.iter().map(|(_, info)| info.steps).sum()
}

#[test]
fn systems_side_by_side_are_solved_as_each_alone() {
    let (prior, parts) = folds(&mut Random::new(4), 3);
    let context = context();
    let accuracy = [1e-2, 1e-10, 1e-5];
    let systems = systems(&parts, &accuracy);
    let together = solve_systems(&context, &mut Workspace::default(), &prior, &systems, None, 500).unwrap();
    // Each stops when it is done, whatever the others do.
    assert!(together[0].1.steps < together[2].1.steps && together[2].1.steps < together[1].1.steps);
    for (system, (x, info)) in systems.iter().zip(&together) {
        let alone = std::slice::from_ref(system);
        let alone = solve_systems(&context, &mut Workspace::default(), &prior, alone, None, 500).unwrap();
        assert_eq!(info.steps, alone[0].1.steps);
        assert!(max_difference(&x.s, &alone[0].0.s) < 1e-10);
    }
}

#[test]
fn a_budget_that_is_too_small_is_told() {
    let (prior, parts) = folds(&mut Random::new(5), 2);
    let systems = systems(&parts, &[0.9, 1e-12]);
    let solved = solve_systems(&context(), &mut Workspace::default(), &prior, &systems, None, 3).unwrap();
    assert!(!solved[1].1.converged);
    assert_eq!(solved[1].1.steps, 3);
    assert!(solved[1].1.residual > 0.0);
}
