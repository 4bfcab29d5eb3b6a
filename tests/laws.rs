//! Every kernel, mixing and likelihood keeps the laws.

#![allow(clippy::unwrap_used)]

mod support;

use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, s};
use nuptse::data::Inputs;
use nuptse::kernel::{
    Block, Covariance, DenseOperator, KernelOperator, Linear, OnColumns, Parameter, PointwiseCovariance, Precision,
    Precomputed, Rbf, Shuffle, WeightedLinear,
};
use nuptse::likelihood::{Along, Likelihood, Softmax};
use nuptse::model::ModelSpec;
use nuptse::prior::Flat;
use nuptse::workspace::Workspace;
use nuptse::{Context, Error, Result};
use std::sync::Arc;
use support::laws::{check_kernel_operator_laws, check_likelihood_laws, check_mixing_laws, check_products};
use support::{Random, context, max_difference};

const SIZES: [usize; 6] = [1, 2, 63, 64, 65, 257];
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

/// The same function, never stored.
#[derive(Debug, Clone)]
struct MatrixFree<F>(F);

impl<F: Covariance + PointwiseCovariance> Covariance for MatrixFree<F> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.0.parameters()
    }

    fn with_parameters(&self, values: &[f64]) -> Result<Arc<dyn Covariance>> {
        self.0.with_parameters(values)
    }

    fn operator(&self, _: &Context, x: &Inputs, _: Precision) -> Result<Box<dyn KernelOperator>> {
        Ok(Box::new(DenseOperator::matrix_free(self.0.clone(), x)))
    }

    fn cross_apply(
        &self,
        context: &Context,
        out: ArrayViewMut2<'_, f64>,
        test: &Inputs,
        train: &Inputs,
        s: ArrayView2<'_, f64>,
    ) -> Result<()> {
        self.0.cross_apply(context, out, test, train, s)
    }
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
        for k in 1..=33 {
            check_products(&context(), covariance, &x, &reference, k);
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
fn rbf_that_is_never_stored() {
    let rbf = Rbf::isotropic(1.7).unwrap();
    check_all(&MatrixFree(rbf.clone()), |random, n| random.dense(n, 3), gaussian(&[1.7; 3]));
    // A thin product takes the same steps, so it has the same bits.
    let (x, s) = (Random::new(1).dense(257, 3), Random::new(2).array((257, 10)));
    let apply = |operator: &dyn KernelOperator| {
        let mut out = Array2::zeros((257, 10));
        operator.apply(&context(), &mut Workspace::default(), out.view_mut(), s.view()).unwrap();
        out
    };
    let stored = rbf.operator(&context(), &x, Precision::Double).unwrap();
    assert_eq!(apply(stored.as_ref()), apply(&DenseOperator::matrix_free(rbf, &x)));
}

#[test]
fn products_are_rough_only_where_that_is_allowed_and_arithmetic_binds() {
    let rbf = Rbf::isotropic(1.7).unwrap();
    let changes = |points: usize, columns: usize| {
        let (x, s) = (Random::new(1).dense(points, 3), Random::new(2).array((points, columns)));
        let operator = rbf.operator(&context(), &x, Precision::Single).unwrap();
        let apply = |rough: bool| {
            let context = context().with_rough_products(rough);
            let mut out = Array2::zeros((points, columns));
            operator.apply(&context, &mut Workspace::default(), out.view_mut(), s.view()).unwrap();
            out
        };
        apply(true) != apply(false)
    };
    assert!(changes(257, 1) && changes(257, 10) && changes(257, 70));
    assert!(changes(2500, 8));
    assert!(!changes(2500, 5), "memory binds there");
}

#[test]
fn what_is_negligible_is_zero_in_single_precision() {
    let x = Inputs::dense(ndarray::array![[0.0], [1.0], [8.0], [10.0]]).unwrap();
    let column = |precision| {
        let operator = Rbf::isotropic(1.0).unwrap().operator(&context(), &x, precision).unwrap();
        let mut column = [f64::NAN; 4];
        operator.column(&context(), &mut Workspace::default(), 0, &mut column).unwrap();
        column
    };
    let [double, single] = [Precision::Double, Precision::Single].map(column);
    assert!(double[2] > 1e-14 && (single[2] / double[2] - 1.0).abs() < 1e-6);
    assert!(double[3] > 0.0 && double[3] < 1e-21);
    assert_eq!(single[3].to_bits(), 0);
}

#[test]
fn a_matrix_that_does_not_fit_is_not_stored() {
    let x = Random::new(1).dense(4000, 2);
    let rbf = Rbf::isotropic(1.0).unwrap();
    let representation = |limit: u64| {
        let context = context().with_memory_limit(Some(limit));
        rbf.operator(&context, &x, Precision::Double).unwrap().representation()
    };
    assert_eq!(representation(80_000_000), "stored in double precision");
    assert_eq!(representation(40_000_000), "stored in single precision");
    assert_eq!(representation(20_000_000), "matrix-free");
    let smaller = context().with_memory_limit(Some(1_000_000));
    assert!(matches!(
        rbf.operator(&smaller, &x, Precision::Double),
        Err(Error::MemoryLimit { allowed: 1_000_000, .. })
    ));
}

#[test]
fn all_matrices_of_a_model_have_to_fit_together() {
    let x = Random::new(1).dense(640, 2);
    let widths = [1.0, 2.0, 3.0];
    let covariances = widths.iter().map(|&width| Arc::new(Rbf::isotropic(width).unwrap()) as Arc<dyn Covariance>);
    let blocks = (0..3).map(|matrix| Block { matrix, variance: 1.0 }).collect();
    let mixing = Arc::new(Flat::new(3));
    let spec = ModelSpec { covariances: covariances.collect(), blocks, mixing, intercept_variance: 1.0 };
    // A matrix takes 1.8 MB in double precision.
    let prior = |limit: u64| spec.prior(&context().with_memory_limit(Some(limit)), &x, Precision::Double);
    let kept = |limit: u64| {
        prior(limit).unwrap().blocks().matrices().iter().map(|one| one.representation()).collect::<Vec<_>>()
    };
    let (double, single) = ("stored in double precision", "stored in single precision");
    assert_eq!(kept(6_000_000), [double, double, double]);
    assert_eq!(kept(4_800_000), [double, double, single]);
    // Without storing it, a product would need more than is left.
    assert!(matches!(prior(3_800_000), Err(Error::MemoryLimit { .. })));
}

#[test]
fn a_linear_kernel_that_cannot_be_stored_goes_by_its_rows() {
    let x = Random::new(1).dense(100, 300);
    let representation = |context: &Context| Linear.operator(context, &x, Precision::Double).unwrap().representation();
    assert_eq!(representation(&context()), "stored in double precision");
    assert_eq!(representation(&context().with_memory_limit(Some(1000))), "dense rows");
}

#[test]
fn folds_side_by_side_give_what_each_gives_alone() {
    let (n, classes, folds) = (70, 3, 4);
    let mut random = Random::new(4);
    let spec = ModelSpec::shared(classes, Rbf::isotropic(1.0).unwrap(), 2.0);
    let mut prior = spec.prior(&context(), &random.dense(n, 2), Precision::Double).unwrap();
    let fold_of_point: Vec<usize> = (0..n).map(|i| i * 7 % folds).collect();
    let mut s = random.array((n, classes * folds));
    for (i, &fold) in fold_of_point.iter().enumerate() {
        s.slice_mut(s![i, fold * classes..(fold + 1) * classes]).fill(0.0);
    }
    let mut work = Workspace::default();
    let mut together = Array2::zeros(s.raw_dim());
    prior.apply_masked(&context(), &mut work, together.view_mut(), s.view(), &fold_of_point).unwrap();
    for fold in 0..folds {
        let held_out: Vec<usize> = (0..n).filter(|&i| fold_of_point[i] == fold).collect();
        let shuffle = Shuffle::holding_out(&held_out, n).unwrap();
        let kept = &shuffle.order(n)[..shuffle.kept()];
        let columns = s![.., fold * classes..(fold + 1) * classes];
        let corner = s.slice(columns).select(Axis(0), kept);
        let mut alone = Array2::zeros(corner.raw_dim());
        prior.shuffle(&shuffle);
        prior.apply(&context(), &mut work, alone.view_mut(), corner.view()).unwrap();
        prior.shuffle(&shuffle);
        assert!(max_difference(&alone, &together.slice(columns).select(Axis(0), kept)) < 1e-12);
        assert!(together.slice(columns).select(Axis(0), &held_out).iter().all(|value| *value == 0.0));
    }
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
fn a_kernel_of_some_columns_is_that_of_inputs_which_have_no_others() {
    let columns = vec![4, 0, 2];
    let pick = |row: &[f64]| -> Vec<f64> { columns.iter().map(|&column| row[column]).collect() };
    let widths = [0.4, 2.0, 1.1];
    let rbf = OnColumns::new(columns.clone(), Arc::new(Rbf::per_input(widths.to_vec()).unwrap()));
    let linear = OnColumns::new(columns.clone(), Arc::new(Linear));
    for x in [Random::new(7).dense(65, 5), Random::new(8).sparse(65, 5)] {
        let reference = matrix(&x, |a, b| gaussian(&widths)(&pick(a), &pick(b)));
        check_kernel_operator_laws(&context(), &rbf, &x, &reference, 3);
        let reference = matrix(&x, |a, b| inner(&pick(a), &pick(b)));
        check_kernel_operator_laws(&context(), &linear, &x, &reference, 3);
        let wrong = OnColumns::new(vec![0, 5], Arc::new(Linear)).operator(&context(), &x, Precision::Double);
        assert_eq!(wrong.unwrap_err(), Error::UnknownColumn { column: 5, columns: 5 });
    }
}

#[test]
fn linear_with_a_weight_for_every_group_of_inputs() {
    let groups = vec![1, 0, 1, 2, 0];
    let weights = [0.3, 2.0, 1.4];
    let kernel = WeightedLinear::new(groups.clone(), weights.to_vec()).unwrap();
    for x in [Random::new(7).dense(65, 5), Random::new(8).sparse(65, 5)] {
        let entry = |a: &[f64], b: &[f64]| (0..5).map(|j| weights[groups[j]] * a[j] * b[j]).sum();
        let reference = matrix(&x, entry);
        for k in [1, 3, 150] {
            check_kernel_operator_laws(&context(), &kernel, &x, &reference, k);
        }
    }
    assert_eq!(WeightedLinear::new(vec![0, 2], vec![1.0; 2]), Err(Error::UnknownGroup { group: 2, groups: 2 }));
    assert!(matches!(WeightedLinear::new(vec![0], vec![0.0]), Err(Error::InvalidParameter { .. })));
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

/// Softmax, with what the trait has for likelihoods that bring no pass of their own.
#[derive(Debug)]
struct Plain(Softmax);

impl Likelihood for Plain {
    type Curvature = <Softmax as Likelihood>::Curvature;

    fn points(&self) -> usize {
        self.0.points()
    }

    fn classes(&self) -> usize {
        self.0.classes()
    }

    fn new_curvature(&self) -> Self::Curvature {
        self.0.new_curvature()
    }

    fn evaluate(&self, u: ArrayView2<'_, f64>, g: ArrayViewMut2<'_, f64>, w: &mut Self::Curvature) -> Result<f64> {
        self.0.evaluate(u, g, w)
    }

    fn apply_curvature(&self, w: &Self::Curvature, out: ArrayViewMut2<'_, f64>, b: ArrayView2<'_, f64>) -> Result<()> {
        self.0.apply_curvature(w, out, b)
    }

    fn along(&self, u: ArrayView2<'_, f64>, direction: ArrayView2<'_, f64>, step: f64) -> Result<Along> {
        self.0.along(u, direction, step)
    }

    fn diagonal_part(&self, w: &Self::Curvature) -> Option<Array2<f64>> {
        self.0.diagonal_part(w)
    }

    fn pooled_diagonal(&self, w: &Self::Curvature, weights: ArrayView2<'_, f64>) -> Option<Array2<f64>> {
        self.0.pooled_diagonal(w, weights)
    }
}

#[test]
fn a_likelihood_without_passes_of_its_own() {
    let mut random = Random::new(11);
    let likelihood = Plain(Softmax::new(random.targets(300, 40, false, true)));
    check_likelihood_laws(&likelihood, &mut random);
}
