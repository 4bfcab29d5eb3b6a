//! The iterative and the exact solver, and a dense reference that knows nothing of either, agree.

#![allow(clippy::unwrap_used)]

mod support;

use ndarray::{Array2, array};
use nuptse::data::{Inputs, Targets};
use nuptse::kernel::{Block, Covariance, Linear, Rbf};
use nuptse::likelihood::{Likelihood, Softmax};
use nuptse::model::{FitOptions, Model, ModelSpec, Solver};
use nuptse::prior::Flat;
use nuptse::solve::{PreconditionerUse, SolveParams};
use nuptse::{Context, Error};
use proptest::prelude::*;
use std::sync::Arc;
use support::{Random, context, max_difference};

fn fit(context: &Context, spec: &ModelSpec, x: &Inputs, targets: &Targets, solver: Solver, tol: f64) -> Model {
    let solve = SolveParams { tol, ..SolveParams::default() };
    fit_with(context, spec, x, targets, solver, &solve)
}

fn fit_with(
    context: &Context,
    spec: &ModelSpec,
    x: &Inputs,
    targets: &Targets,
    solver: Solver,
    solve: &SolveParams,
) -> Model {
    let tol = solve.tol;
    let options = FitOptions { solver, solve: *solve, ..FitOptions::default() };
    let (model, info) = spec.fit(context, x, targets.clone(), &options).unwrap();
    assert!(info.solve.converged, "{} stopped at {:e}", info.solve.solver, info.solve.residual);
    assert!(info.solve.residual <= tol);
    model
}

/// A random flat model: separate or shared kernels, of different kinds, with different variances.
fn random_spec(random: &mut Random, classes: usize, separate: bool) -> ModelSpec {
    let covariances: Vec<Arc<dyn Covariance>> = if separate {
        let rbf = |w| Arc::new(Rbf::isotropic(w).unwrap());
        vec![rbf(0.5), Arc::new(Linear), rbf(4.0)]
    } else {
        vec![Arc::new(Rbf::isotropic(1.5).unwrap())]
    };
    let count = covariances.len();
    let block = |c| Block { matrix: c % count, variance: 0.2 + 4.0 * random.uniform() };
    ModelSpec {
        blocks: (0..classes).map(block).collect(),
        covariances,
        mixing: Arc::new(Flat::new(classes)),
        intercept_variance: random.below(2) as f64 * 0.7,
    }
}

/// max|α + g| computed densely from α alone.
fn dense_residual(spec: &ModelSpec, x: &Inputs, targets: &Targets, alpha: &Array2<f64>) -> f64 {
    let context = context();
    let prior = spec.prior(&context, x, nuptse::kernel::Precision::Double).unwrap();
    let mut u = Array2::zeros(alpha.raw_dim());
    for (class, block) in spec.blocks.iter().enumerate() {
        let k = prior.blocks().matrices()[block.matrix].to_dense(&context).unwrap() * block.variance;
        let column = (k + spec.intercept_variance).dot(&alpha.column(class));
        u.column_mut(class).assign(&column);
    }
    let likelihood = Softmax::new(targets.clone());
    let mut g = Array2::zeros(alpha.raw_dim());
    likelihood.evaluate(u.view(), g.view_mut(), &mut likelihood.new_curvature()).unwrap();
    max_difference(alpha, &-g)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn iterative_and_exact_agree(
        seed in 0_u64..1_000_000,
        classes in 2_usize..=6,
        points in 8_usize..40,
        (separate, soft, weighted) in (any::<bool>(), any::<bool>(), any::<bool>()),
    ) {
        let context = context();
        let mut random = Random::new(seed);
        let x = random.dense(points, 3);
        let targets = random.targets(points, classes, soft, weighted);
        let spec = random_spec(&mut random, classes, separate);
        let iterative = fit(&context, &spec, &x, &targets, Solver::NewtonCg, 1e-10).alpha().to_owned();
        let exact = fit(&context, &spec, &x, &targets, Solver::Exact, 1e-10).alpha().to_owned();
        let lbfgs = fit(&context, &spec, &x, &targets, Solver::Lbfgs, 1e-10).alpha().to_owned();
        prop_assert!(max_difference(&iterative, &exact) <= 1e-8);
        prop_assert!(max_difference(&lbfgs, &exact) <= 1e-8);
        let reference = fit(&context, &spec, &x, &targets, Solver::NewtonCgSymmetric, 1e-8).alpha().to_owned();
        prop_assert!(max_difference(&reference, &exact) <= 1e-6);
        let solve = SolveParams { tol: 1e-10, preconditioner: PreconditionerUse::On, ..SolveParams::default() };
        let preconditioned = fit_with(&context, &spec, &x, &targets, Solver::NewtonCg, &solve).alpha().to_owned();
        prop_assert!(max_difference(&preconditioned, &exact) <= 1e-8);
        prop_assert!(dense_residual(&spec, &x, &targets, &exact) <= 1e-9);
        prop_assert!(iterative.outer_iter().all(|row| row.sum().abs() < 1e-9), "rows of α must sum to zero");
    }
}

#[test]
fn threads_do_not_change_a_bit_of_a_fit() {
    let mut random = Random::new(11);
    let x = random.dense(200, 3);
    let targets = random.targets(200, 4, false, true);
    let spec = random_spec(&mut random, 4, true);
    let with = |threads| {
        let context = Context::new(Some(threads)).unwrap();
        let model = fit(&context, &spec, &x, &targets, Solver::NewtonCg, 1e-8);
        (model.alpha().to_owned(), model.predict_proba(&context, &x).unwrap())
    };
    assert_eq!(with(1), with(2));
    assert_eq!(with(1), with(5));
}

/// Points far from each other, and a variance so large that after one step all probabilities are next to 0 or 1, and W is
/// next to nothing. A step that is right to first order in W alone would throw away all that was reached.
#[test]
fn sure_probabilities_are_not_given_up() {
    let mut random = Random::new(3);
    let x = random.dense(75, 5);
    let labels: Vec<usize> = (0..75).map(|i| i % 25).collect();
    let targets = Targets::from_labels(&labels, 25).unwrap();
    for variance in [1e3, 1e4, 1e5] {
        let spec = ModelSpec::shared(25, Rbf::isotropic(8.0).unwrap(), variance);
        for solver in [Solver::Exact, Solver::NewtonCg, Solver::Lbfgs] {
            let model = fit(&context(), &spec, &x, &targets, solver, 1e-3);
            let probabilities = model.predict_proba(&context(), &x).unwrap();
            let worst = labels.iter().enumerate().map(|(i, &label)| probabilities[[i, label]]).fold(1.0, f64::min);
            assert!(worst > 0.9, "{solver:?}, variance {variance}: {worst}");
        }
    }
}

#[test]
fn a_weight_counts_like_a_repetition() {
    let mut random = Random::new(5);
    let Inputs::Dense(x) = random.dense(30, 2) else { unreachable!() };
    let labels = random.labels(30, 3);
    let weights: Vec<usize> = (0..30).map(|i| i % 3).collect();
    let repeated: Vec<usize> = (0..30).flat_map(|i| std::iter::repeat_n(i, weights[i])).collect();
    let context = context();
    let spec = ModelSpec::shared(3, Rbf::isotropic(2.0).unwrap(), 3.0);
    let weighted = Targets::from_labels(&labels, 3).unwrap();
    let weighted = weighted.with_weights(weights.iter().map(|w| *w as f64).collect()).unwrap();
    let inputs = Inputs::dense(x.to_owned()).unwrap();
    let model = fit(&context, &spec, &inputs, &weighted, Solver::NewtonCg, 1e-11);
    let rows = Inputs::dense(x.select(ndarray::Axis(0), &repeated)).unwrap();
    let repeated_labels: Vec<usize> = repeated.iter().map(|i| labels[*i]).collect();
    let plain = Targets::from_labels(&repeated_labels, 3).unwrap();
    let other = fit(&context, &spec, &rows, &plain, Solver::NewtonCg, 1e-11);
    let difference = max_difference(
        &model.predict_proba(&context, &inputs).unwrap(),
        &other.predict_proba(&context, &inputs).unwrap(),
    );
    assert!(difference < 1e-9, "{difference}");
}

#[test]
fn sparse_and_dense_rows_give_the_same_model() {
    let mut random = Random::new(9);
    let sparse = random.sparse(50, 12);
    let mut rows = Array2::zeros((50, 12));
    (0..50).for_each(|i| sparse.for_row(i, |j, value| rows[[i, j]] = value));
    let dense = Inputs::dense(rows).unwrap();
    let targets = random.targets(50, 3, false, false);
    let context = context();
    let rbf: Arc<dyn Covariance> = Arc::new(Rbf::isotropic(1.0).unwrap());
    for covariance in [Arc::new(Linear), rbf] {
        let mut spec = ModelSpec::shared(3, Linear, 2.0);
        spec.covariances = vec![covariance];
        let a = fit(&context, &spec, &sparse, &targets, Solver::NewtonCg, 1e-10);
        let b = fit(&context, &spec, &dense, &targets, Solver::NewtonCg, 1e-10);
        // Also across: trained on one kind, asked with the other.
        for x in [&sparse, &dense] {
            let (a, b) = (a.predict_proba(&context, x).unwrap(), b.predict_proba(&context, x).unwrap());
            assert!(max_difference(&a, &b) < 1e-9);
        }
    }
}

#[test]
fn bad_specifications_are_refused() {
    let context = context();
    let x = Inputs::dense(array![[0.0], [1.0]]).unwrap();
    let targets = || Targets::from_labels(&[0, 1], 2).unwrap();
    let fit = |spec: &ModelSpec, options: &FitOptions| spec.fit(&context, &x, targets(), options).unwrap_err();
    let spec = || ModelSpec::shared(2, Linear, 1.0);
    let options = FitOptions::default();
    assert!(matches!(Rbf::isotropic(0.0), Err(Error::InvalidParameter { name: "inverse_width", .. })));
    let error = fit(&ModelSpec::shared(2, Linear, -1.0), &options);
    assert!(matches!(error, Error::InvalidParameter { name: "variance", .. }));
    let error = fit(&ModelSpec { intercept_variance: f64::NAN, ..spec() }, &options);
    assert!(matches!(error, Error::InvalidParameter { name: "intercept_variance", .. }));
    let solve = SolveParams { tol: 0.0, ..SolveParams::default() };
    assert!(matches!(fit(&spec(), &FitOptions { solve, ..options }), Error::InvalidParameter { name: "tol", .. }));
    assert!(matches!(fit(&ModelSpec::shared(3, Linear, 1.0), &options), Error::ShapeMismatch { expected: 3, .. }));
    let error = fit(&ModelSpec::shared(2, nuptse::kernel::Precomputed, 1.0), &options);
    assert!(matches!(error, Error::ShapeMismatch { .. }), "not square");
    let small = Context::new(Some(1)).unwrap().with_memory_limit(Some(1000));
    let spec = ModelSpec::shared(2, Rbf::isotropic(1.0).unwrap(), 1.0);
    let error = spec.fit(&small, &x, targets(), &options).unwrap_err();
    // What is left of the limit for the matrix, after the arrays of the fit.
    assert!(matches!(error, Error::MemoryLimit { allowed: 1..1000, .. }), "{error}");
}

#[test]
fn an_interrupted_fit_says_so() {
    let context = context();
    context.interrupt().set();
    let x = Random::new(1).dense(100, 2);
    let targets = Random::new(1).targets(100, 2, false, false);
    let spec = ModelSpec::shared(2, Rbf::isotropic(1.0).unwrap(), 1.0);
    assert_eq!(spec.fit(&context, &x, targets, &FitOptions::default()).unwrap_err(), Error::Interrupted);
}
