//! Weights of inputs and contributions of training points, against the predictions that they explain.

#![allow(clippy::unwrap_used)]

mod support;

use ndarray::{Array1, Array2, Axis};
use nuptse::Error;
use nuptse::data::{Inputs, Scaling};
use nuptse::kernel::{Block, Covariance, Linear, OnColumns, Precomputed, Rbf, WeightedLinear};
use nuptse::model::{FitOptions, Model, ModelSpec};
use nuptse::prior::{Flat, Mixing, Tree};
use proptest::prelude::*;
use std::sync::Arc;
use support::{Random, context, max_difference};

const INPUTS: usize = 6;

fn linear_kernels() -> Vec<Arc<dyn Covariance>> {
    vec![
        Arc::new(Linear),
        Arc::new(OnColumns::new(vec![4, 0, 1], Arc::new(Linear))),
        Arc::new(WeightedLinear::new(vec![0, 1, 1, 2, 0, 2], vec![0.7, 1.3, 0.2]).unwrap()),
        Arc::new(OnColumns::new(vec![5, 2], Arc::new(WeightedLinear::new(vec![1, 0], vec![2.0, 0.5]).unwrap()))),
    ]
}

/// A model that uses all of the kernels, flat or on a tree.
fn model(random: &mut Random, covariances: Vec<Arc<dyn Covariance>>, x: &Inputs, nodes: Option<usize>) -> Model {
    let mixing: Arc<dyn Mixing> = match nodes {
        None => Arc::new(Flat::new(4)),
        Some(nodes) => {
            let (parents, leaves) = random.tree_of_classes(nodes, 4, 2..=nodes);
            Arc::new(Tree::new(&parents, &leaves).unwrap())
        }
    };
    let block = |p| Block { matrix: p % covariances.len(), variance: 0.5 + p as f64 };
    let blocks = (0..mixing.functions()).map(block).collect();
    let targets = random.targets(x.rows(), mixing.classes(), false, true);
    let spec = ModelSpec { covariances, blocks, mixing, intercept_variance: 0.7 };
    spec.fit(&context(), x, targets, &FitOptions::default()).unwrap().0
}

fn dense(x: &Inputs) -> Array2<f64> {
    let mut out = Array2::zeros((x.rows(), x.columns()));
    (0..x.rows()).for_each(|row| x.for_row(row, |column, value| out[[row, column]] = value));
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn weights_of_inputs_give_the_predictions(
        seed in any::<u64>(), sparse in any::<bool>(), nodes in prop::option::of(6_usize..14)
    ) {
        let random = &mut Random::new(seed);
        let x = if sparse { random.sparse(30, INPUTS) } else { random.dense(30, INPUTS) };
        let model = model(random, linear_kernels(), &x, nodes);
        let test = random.dense(9, INPUTS);
        prop_assert!(model.is_linear());
        let by_function = dense(&test).dot(&model.function_weights(&context()).unwrap());
        prop_assert!(max_difference(&by_function, &model.function_values(&context(), &test).unwrap()) < 1e-10);
        let by_class = dense(&test).dot(&model.class_weights(&context()).unwrap()) + model.intercepts();
        prop_assert!(max_difference(&by_class, &model.decision_function(&context(), &test).unwrap()) < 1e-10);
    }

    #[test]
    fn contributions_of_training_points_give_the_predictions(
        seed in any::<u64>(), sparse in any::<bool>(), nodes in prop::option::of(6_usize..14), points in 1_usize..80
    ) {
        let random = &mut Random::new(seed);
        let x = if sparse { random.sparse(30, INPUTS) } else { random.dense(30, INPUTS) };
        let mut kernels = linear_kernels();
        kernels.push(Arc::new(Rbf::isotropic(0.8).unwrap()));
        let model = model(random, kernels, &x, nodes);
        let test = random.dense(points, INPUTS);
        let u = model.decision_function(&context(), &test).unwrap();
        let directions = random.array(u.dim());
        let found = model.contributions(&context(), &test, directions.view()).unwrap();
        prop_assert_eq!(found.dim(), (points, 30));
        let sums = found.sum_axis(Axis(1)) + directions.dot(model.intercepts());
        let expected: Array1<f64> = (&u * &directions).sum_axis(Axis(1));
        prop_assert!((sums - expected).mapv(f64::abs).into_iter().all(|difference| difference < 1e-9));
        // Only what a point adds to the classes that are asked for counts.
        let none = model.contributions(&context(), &test, Array2::zeros(u.dim()).view()).unwrap();
        prop_assert!(none.iter().all(|value| *value == 0.0));
    }
}

#[test]
fn given_kernel_matrices_have_contributions_too() {
    let random = &mut Random::new(3);
    let gram = random.gram(20);
    let model = model(random, vec![Arc::new(Precomputed)], &gram, None);
    let test = gram.slice(2..7);
    let u = model.decision_function(&context(), &test).unwrap();
    let directions = Array2::from_shape_fn(u.dim(), |(_, class)| f64::from(u8::from(class == 1)));
    let found = model.contributions(&context(), &test, directions.view()).unwrap();
    let sums = found.sum_axis(Axis(1)) + model.intercepts()[1];
    assert!((sums - u.column(1)).iter().all(|difference| difference.abs() < 1e-10));
    assert!(matches!(
        model.contributions(&context(), &random.dense(5, 19), directions.view()),
        Err(Error::ShapeMismatch { expected: 20, found: 19, .. })
    ));
}

#[test]
fn other_kernels_have_no_weights() {
    let random = &mut Random::new(4);
    let x = random.dense(20, INPUTS);
    let kernels: Vec<Arc<dyn Covariance>> = vec![Arc::new(Linear), Arc::new(Rbf::isotropic(1.0).unwrap())];
    let model = model(random, kernels, &x, None);
    assert!(!model.is_linear());
    assert_eq!(model.class_weights(&context()), Err(Error::NeedsLinear { kernel: "rbf" }));
}

#[test]
fn weights_of_standardised_inputs_become_those_of_the_inputs() {
    let scaling = Scaling::Standardise { mean: vec![1.0, 2.0], factor: vec![0.5, 4.0] };
    let mut weights = Array2::ones((2, 3));
    scaling.unscale_weights(&mut weights).unwrap();
    assert_eq!(weights.column(1).to_vec(), [0.5, 4.0]);
    assert!(scaling.unscale_weights(&mut Array2::ones((3, 3))).is_err());
}
