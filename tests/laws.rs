//! Every kernel, mixing and likelihood keeps the laws.

#![allow(clippy::unwrap_used)]

mod support;

use ndarray::Array2;
use nuptse::data::Inputs;
use nuptse::kernel::{Covariance, Linear, Precomputed, Rbf};
use nuptse::likelihood::Softmax;
use nuptse::prior::Flat;
use support::laws::{check_kernel_operator_laws, check_likelihood_laws, check_mixing_laws};
use support::{Random, context};

const SIZES: [usize; 6] = [1, 2, 63, 64, 65, 130];
const COLUMNS: [usize; 4] = [1, 2, 7, 33];

/// A row as a dense vector.
fn row(x: &Inputs, i: usize) -> Vec<f64> {
    let mut row = vec![0.0; x.columns()];
    x.for_row(i, |column, value| row[column] = value);
    row
}

/// M entry by entry, as the formula has it.
fn matrix(x: &Inputs, entry: impl Fn(&[f64], &[f64]) -> f64) -> Array2<f64> {
    let rows: Vec<_> = (0..x.rows()).map(|i| row(x, i)).collect();
    Array2::from_shape_fn((x.rows(), x.rows()), |(i, j)| entry(&rows[i], &rows[j]))
}

fn gaussian(widths: &[f64]) -> impl Fn(&[f64], &[f64]) -> f64 {
    let d = widths.len() as f64;
    move |a, b| (-0.5 / d * a.iter().zip(b).zip(widths).map(|((a, b), w)| w * (a - b).powi(2)).sum::<f64>()).exp()
}

fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn check_all(
    covariance: &dyn Covariance,
    make: impl Fn(&mut Random, usize) -> Inputs,
    entry: impl Fn(&[f64], &[f64]) -> f64,
) {
    for n in SIZES {
        let x = make(&mut Random::new(n as u64), n);
        let reference = matrix(&x, &entry);
        for k in COLUMNS {
            check_kernel_operator_laws(&context(), covariance, &x, &reference, k);
        }
    }
}

#[test]
fn rbf_on_dense_rows() {
    check_all(&Rbf::isotropic(1.7).unwrap(), |random, n| random.dense(n, 3), gaussian(&[1.7; 3]));
}

#[test]
fn rbf_on_sparse_rows() {
    check_all(&Rbf::isotropic(0.8).unwrap(), |random, n| random.sparse(n, 9), gaussian(&[0.8; 9]));
}

#[test]
fn rbf_with_a_width_for_every_input_on_dense_rows() {
    let widths = [0.5, 3.0, 1.0, 0.01];
    check_all(&Rbf::per_input(widths.to_vec()).unwrap(), |random, n| random.dense(n, 4), gaussian(&widths));
}

#[test]
fn rbf_with_a_width_for_every_input_on_sparse_rows() {
    let widths = [0.5, 3.0, 1.0, 0.01, 2.0];
    check_all(&Rbf::per_input(widths.to_vec()).unwrap(), |random, n| random.sparse(n, 5), gaussian(&widths));
}

#[test]
fn rbf_far_from_the_origin_loses_no_accuracy() {
    let near = Random::new(3).array((65, 3));
    let x = Inputs::dense(near + 1e6).unwrap();
    let reference = matrix(&x, gaussian(&[1.7; 3]));
    check_kernel_operator_laws(&context(), &Rbf::isotropic(1.7).unwrap(), &x, &reference, 3);
}

#[test]
fn linear_on_dense_rows_few_and_many_inputs() {
    check_all(&Linear, |random, n| random.dense(n, 4), inner);
    check_all(&Linear, |random, n| random.dense(n, 150), inner);
}

#[test]
fn linear_on_sparse_rows() {
    check_all(&Linear, |random, n| random.sparse(n, 40), inner);
}

#[test]
fn precomputed() {
    for n in SIZES {
        let x = Random::new(n as u64).gram(n);
        let Inputs::Dense(reference) = &x else { unreachable!() };
        for k in COLUMNS {
            check_kernel_operator_laws(&context(), &Precomputed, &x, &reference.to_owned(), k);
        }
    }
}

#[test]
fn flat_mixing_is_the_identity() {
    for classes in [1, 2, 5] {
        check_mixing_laws(&Flat::new(classes), &Array2::eye(classes));
    }
}

#[test]
fn softmax_with_labels_distributions_and_weights() {
    for (points, classes) in [(1, 2), (7, 3), (300, 40)] {
        for (soft, weighted) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut random = Random::new(points as u64);
            let likelihood = Softmax::new(random.targets(points, classes, soft, weighted));
            check_likelihood_laws(&likelihood, &mut random);
        }
    }
}
