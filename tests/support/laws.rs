//! The laws that every operator must keep, each checked against a naive reference.

use super::{Random, max_difference};
use ndarray::{Array2, Axis, s};
use nuptse::Context;
use nuptse::data::Inputs;
use nuptse::kernel::{Covariance, KernelOperator, Precision, Shuffle};
use nuptse::likelihood::Likelihood;
use nuptse::prior::Mixing;
use nuptse::workspace::Workspace;

fn product(context: &Context, operator: &dyn KernelOperator, s: &Array2<f64>) -> Array2<f64> {
    // The result must not depend on what the output held before.
    let mut out = Array2::from_elem(s.raw_dim(), f64::NAN);
    let mut work = Workspace::default();
    context.install(|| operator.apply(context, &mut work, out.view_mut(), s.view())).unwrap();
    out
}

/// Symmetry, linearity, many columns = one at a time, diagonal, agreement with M itself and with prediction at the
/// training points, gradient = finite difference, single against double precision, rough products, any number of threads.
/// `reference` is M computed entry by entry.
pub fn check_kernel_operator_laws(
    context: &Context,
    covariance: &dyn Covariance,
    x: &Inputs,
    reference: &Array2<f64>,
    columns: usize,
) {
    let mut random = Random::new(x.rows() as u64 * 1000 + columns as u64);
    let n = x.rows();
    let scale = 1.0 + reference.iter().fold(0.0, |m: f64, v| m.max(v.abs())) * n as f64;
    let close = |a: &Array2<f64>, b: &Array2<f64>, tol: f64, law: &str| {
        let difference = max_difference(a, b);
        let name = covariance.name();
        assert!(difference <= tol * scale, "{name}, n = {n}, k = {columns}: {law} is off by {difference:e}");
    };
    let operator = covariance.operator(context, x, Precision::Double).unwrap();
    let operator = operator.as_ref();
    let (a, b) = (random.array((n, columns)), random.array((n, columns)));
    let (ma, mb) = (product(context, operator, &a), product(context, operator, &b));

    close(&ma, &reference.dot(&a), 1e-13, "agreement with the matrix");
    close(&operator.to_dense(context).unwrap(), reference, 1e-13, "the dense form");
    let diagonal = operator.diagonal().insert_axis(Axis(1));
    close(&diagonal, &reference.diag().to_owned().insert_axis(Axis(1)), 1e-13, "the diagonal");
    close(&b.t().dot(&ma), &mb.t().dot(&a), 1e-12, "symmetry");
    close(&product(context, operator, &(&a * 2.5 - &b)), &(&ma * 2.5 - &mb), 1e-12, "linearity");
    for column in 0..columns {
        let one = a.slice(s![.., column..=column]).as_standard_layout().into_owned();
        let expected = ma.slice(s![.., column..=column]).to_owned();
        close(&product(context, operator, &one), &expected, 1e-13, "one column at a time");
    }
    if columns > 0 {
        let mut predicted = Array2::from_elem((n, columns), f64::NAN);
        covariance.cross_apply(context, predicted.view_mut(), x, x, a.view()).unwrap();
        close(&predicted, &ma, 1e-12, "prediction at the training points");
    }
    let factor = |column: usize| 0.5 + column as f64;
    let mut scaled = Array2::from_elem((n, columns), f64::NAN);
    operator.apply_scaled(context, &mut Workspace::default(), scaled.view_mut(), a.view(), &factor).unwrap();
    let factors = ndarray::Array1::from_shape_fn(columns, factor);
    close(&scaled, &(&ma * &factors), 1e-13 * (1.0 + columns as f64), "every column times its factor");
    for threads in [1, 3] {
        let other = Context::new(Some(threads)).unwrap();
        assert_eq!(product(&other, operator, &a), ma, "{threads} threads give other bits");
        let rebuilt = covariance.operator(&other, x, Precision::Double).unwrap();
        assert_eq!(product(&other, rebuilt.as_ref(), &a), ma, "a matrix built by {threads} threads has other bits");
    }
    let single = covariance.operator(context, x, Precision::Single).unwrap();
    close(&product(context, single.as_ref(), &a), &ma, 1e-6, "single precision");
    let rough = product(&context.with_rough_products(true), single.as_ref(), &a);
    close(&rough, &ma, 1e-6, "a rough product");
    for threads in [1, 3] {
        let other = Context::new(Some(threads)).unwrap().with_rough_products(true);
        assert_eq!(product(&other, single.as_ref(), &a), rough, "{threads} threads give a rough product other bits");
        assert_eq!(product(&other, operator, &a), ma, "only single precision may be rough");
    }
    check_corners(context, covariance, x, reference, &a);
    check_kernel_gradient(context, covariance, x, &a, &b);
}

/// The product alone, for many sizes: agreement with the matrix in both precisions, and where it is rough.
pub fn check_products(
    context: &Context,
    covariance: &dyn Covariance,
    x: &Inputs,
    reference: &Array2<f64>,
    columns: usize,
) {
    let n = x.rows();
    let s = Random::new(n as u64 * 1000 + columns as u64).array((n, columns));
    let expected = reference.dot(&s);
    let scale = 1.0 + reference.iter().fold(0.0, |m: f64, v| m.max(v.abs())) * n as f64;
    for (precision, rough, tol) in
        [(Precision::Double, false, 1e-13), (Precision::Single, false, 1e-6), (Precision::Single, true, 1e-6)]
    {
        let context = &context.with_rough_products(rough);
        let operator = covariance.operator(context, x, precision).unwrap();
        let difference = max_difference(&product(context, operator.as_ref(), &s), &expected);
        let name = operator.representation();
        assert!(difference <= tol * scale, "{name}, n = {n}, k = {columns}: off by {difference:e}");
    }
}

/// A corner is the matrix of the leading points; shuffled, of the kept points; shuffled twice, all is as it was, to the bit.
fn check_corners(context: &Context, covariance: &dyn Covariance, x: &Inputs, reference: &Array2<f64>, a: &Array2<f64>) {
    let n = x.rows();
    let scale = 1.0 + reference.iter().fold(0.0, |m: f64, v| m.max(v.abs())) * n as f64;
    for precision in [Precision::Double, Precision::Single] {
        let tol = if precision == Precision::Double { 1e-13 } else { 1e-6 };
        let mut operator = covariance.operator(context, x, precision).unwrap();
        let before = product(context, operator.as_ref(), a);
        let held_out: Vec<usize> = (0..n).filter(|i| i % 3 == 1 || *i == n / 2).collect();
        let shuffle = Shuffle::holding_out(&held_out, n).unwrap();
        for shuffled in [false, true] {
            let order = if shuffled { shuffle.order(n) } else { (0..n).collect() };
            let corner = &order[..shuffle.kept()];
            let s = a.slice(s![..corner.len(), ..]).as_standard_layout().into_owned();
            let expected = reference.select(Axis(0), corner).select(Axis(1), corner).dot(&s);
            let difference = max_difference(&product(context, operator.as_ref(), &s), &expected);
            assert!(difference <= tol * scale, "n = {n}, shuffled {shuffled}: a corner is off by {difference:e}");
            let diagonal = operator.diagonal();
            assert!((0..n).all(|i| (diagonal[i] - reference[[order[i], order[i]]]).abs() <= tol * scale));
            let j = n / 3;
            for len in [n, corner.len()].into_iter().filter(|&len| j < len) {
                let mut column = vec![f64::NAN; len];
                operator.column(context, &mut Workspace::default(), j, &mut column).unwrap();
                assert!((0..len).all(|i| (column[i] - reference[[order[i], order[j]]]).abs() <= tol * scale));
            }
            operator.shuffle(&shuffle);
        }
        assert_eq!(product(context, operator.as_ref(), a), before, "shuffling twice must change nothing");
    }
}

/// gradient = finite difference of Σ_p e_pᵀ M f_p in the logarithm of every parameter.
fn check_kernel_gradient(context: &Context, covariance: &dyn Covariance, x: &Inputs, e: &Array2<f64>, f: &Array2<f64>) {
    let value = |parameters: &[f64]| {
        let covariance = covariance.with_parameters(parameters).unwrap();
        let operator = covariance.operator(context, x, Precision::Double).unwrap();
        (e * &product(context, operator.as_ref(), f)).sum()
    };
    let parameters: Vec<f64> = covariance.parameters().iter().map(|parameter| parameter.value).collect();
    let operator = covariance.operator(context, x, Precision::Double).unwrap();
    let gradient = operator.gradient(context, e.view(), f.view()).unwrap();
    assert_eq!(gradient.len(), parameters.len());
    let scale = 1.0 + (e * e).sum().sqrt() * (f * f).sum().sqrt();
    for (i, derivative) in gradient.iter().enumerate() {
        let shifted = |h: f64| {
            let mut parameters = parameters.clone();
            parameters[i] *= h.exp();
            value(&parameters)
        };
        let h = 1e-4;
        let difference = (shifted(h) - shifted(-h)) / (2.0 * h);
        assert!((derivative - difference).abs() <= 1e-6 * scale, "parameter {i}: {derivative} against {difference}");
    }
}

/// The products agree with the dense matrix, work side by side, and refuse other shapes.
pub fn check_mixing_laws(mixing: &dyn Mixing, reference: &Array2<f64>) {
    let mut random = Random::new(7);
    let (classes, functions) = (mixing.classes(), mixing.functions());
    assert_eq!(reference.dim(), (classes, functions));
    for repeats in [1, 3] {
        let (s, r) = (random.array((5, classes * repeats)), random.array((5, functions * repeats)));
        let mut to_functions = Array2::from_elem(r.raw_dim(), f64::NAN);
        let mut to_classes = Array2::from_elem(s.raw_dim(), f64::NAN);
        mixing.to_functions(to_functions.view_mut(), s.view()).unwrap();
        mixing.to_classes(to_classes.view_mut(), r.view()).unwrap();
        let mut diagonal = Array2::from_elem(s.raw_dim(), f64::NAN);
        mixing.diagonal(diagonal.view_mut(), r.view()).unwrap();
        for repeat in 0..repeats {
            let c = s![.., repeat * classes..(repeat + 1) * classes];
            let p = s![.., repeat * functions..(repeat + 1) * functions];
            let expected = s.slice(c).dot(reference);
            assert!(max_difference(&to_functions.slice(p).to_owned(), &expected) < 1e-12);
            let expected = r.slice(p).dot(&reference.t());
            assert!(max_difference(&to_classes.slice(c).to_owned(), &expected) < 1e-12);
            let expected = r.slice(p).dot(&reference.mapv(|mix| mix * mix).t());
            assert!(max_difference(&diagonal.slice(c).to_owned(), &expected) < 1e-12);
        }
        assert!(mixing.to_functions(to_functions.slice_mut(s![1.., ..]), s.view()).is_err());
        assert!(mixing.to_classes(to_classes.view_mut(), r.slice(s![.., 1..])).is_err());
    }
    let is_identity = classes == functions && max_difference(reference, &Array2::eye(classes)) == 0.0;
    assert_eq!(mixing.is_identity(), is_identity);
}

/// g is the derivative of the value, W that of g; W is symmetric and positive semidefinite; the function along a line is
/// the function itself; what is done in one pass is what is done step by step; any number of threads gives the same bits.
pub fn check_likelihood_laws<L: Likelihood>(likelihood: &L, random: &mut Random) {
    let shape = (likelihood.points(), likelihood.classes());
    let u = random.array(shape) * 2.0;
    let (a, b) = (random.array(shape), random.array(shape));
    let evaluate = |u: &Array2<f64>| {
        let mut g = Array2::from_elem(shape, f64::NAN);
        let mut curvature = likelihood.new_curvature();
        let value = likelihood.evaluate(u.view(), g.view_mut(), &mut curvature).unwrap();
        (value, g, curvature)
    };
    let (value, g, curvature) = evaluate(&u);
    let apply = |b: &Array2<f64>| {
        let mut out = Array2::from_elem(shape, f64::NAN);
        likelihood.apply_curvature(&curvature, out.view_mut(), b.view()).unwrap();
        out
    };
    let h = 1e-5;
    let (above, below) = (evaluate(&(&u + &(&a * h))), evaluate(&(&u - &(&a * h))));
    let scale = 1.0 + value.abs();
    assert!(((above.0 - below.0) / (2.0 * h) - (&g * &a).sum()).abs() < 1e-8 * scale, "g is not the gradient");
    let wa = apply(&a);
    assert!(max_difference(&((above.1 - below.1) / (2.0 * h)), &wa) < 1e-8, "W is not the derivative of g");
    assert!(((&b * &wa).sum() - (&a * &apply(&b)).sum()).abs() < 1e-10 * scale, "W is not symmetric");
    assert!((&a * &wa).sum() >= 0.0, "W is not positive semidefinite");
    for step in [0.0, 0.3, -1.7] {
        let along = likelihood.along(u.view(), a.view(), step).unwrap();
        let (value, g, _) = evaluate(&(&u + &(&a * step)));
        assert!((along.value - value).abs() < 1e-11 * scale);
        assert!((along.slope - (&g * &a).sum()).abs() < 1e-11 * scale);
        let slope = |step| likelihood.along(u.view(), a.view(), step).unwrap().slope;
        let difference = (slope(step + h) - slope(step - h)) / (2.0 * h);
        assert!((along.curvature - difference).abs() < 1e-7 * scale);
    }
    if let Some(d) = likelihood.diagonal_part(&curvature) {
        for ((d, a), wa) in d.outer_iter().zip(a.outer_iter()).zip(wa.outer_iter()) {
            let sum = d.sum();
            let mean = if sum > 0.0 { d.dot(&a) / sum } else { 0.0 };
            let expected = &d * &(&a - mean);
            assert!(expected.iter().zip(wa).all(|(x, y)| (x - y).abs() < 1e-12), "D does not give W");
        }
    }
    check_fused_passes(likelihood, &curvature, random);
    for threads in [1, 3] {
        let (again, g_again, _) = Context::new(Some(threads)).unwrap().install(|| evaluate(&u));
        assert_eq!((again.to_bits(), g_again), (value.to_bits(), g.clone()), "{threads} threads give other bits");
    }
}

/// Moving a pair, and the next direction of conjugate gradients, against their definitions.
fn check_fused_passes<L: Likelihood>(likelihood: &L, curvature: &L::Curvature, random: &mut Random) {
    let shape = (likelihood.points(), likelihood.classes());
    let [alpha, u, s, image, r, r_image, q, p_image] = std::array::from_fn(|_| random.array(shape));
    let scale = 1e-12 * (shape.0 * shape.1) as f64;
    for length in [None, Some(0.7)] {
        let far = length.unwrap_or(0.0);
        let (new_alpha, new_u) = (&alpha + &(&s * far), &u + &(&image * far));
        let mut g = Array2::zeros(shape);
        let mut expected_curvature = likelihood.new_curvature();
        let loss = likelihood.evaluate(new_u.view(), g.view_mut(), &mut expected_curvature).unwrap();
        let expected = -(&new_alpha + &g);
        let (mut moved, mut moved_u, mut left) = (alpha.clone(), u.clone(), Array2::from_elem(shape, f64::NAN));
        let mut there_curvature = likelihood.new_curvature();
        let step = length.map(|length| (length, [s.view(), image.view()]));
        let pair = [moved.view_mut(), moved_u.view_mut()];
        let there = likelihood.move_along(pair, step, left.view_mut(), &mut there_curvature).unwrap();
        assert!(max_difference(&moved, &new_alpha) < 1e-14 && max_difference(&moved_u, &new_u) < 1e-14);
        assert!(max_difference(&left, &expected) < 1e-13, "r is not −(α + g)");
        assert!((there.loss - loss).abs() < scale && (there.product - (&new_alpha * &new_u).sum()).abs() < scale);
        assert!((there.residual - expected.iter().fold(0.0, |m: f64, r| m.max(r.abs()))).abs() < 1e-13);
        let curved = |curvature: &L::Curvature| {
            let mut out = Array2::zeros(shape);
            likelihood.apply_curvature(curvature, out.view_mut(), s.view()).unwrap();
            out
        };
        assert!(max_difference(&curved(&there_curvature), &curved(&expected_curvature)) < 1e-13, "W is of another u");
    }
    let mut curved = Array2::zeros(shape);
    likelihood.apply_curvature(curvature, curved.view_mut(), r_image.view()).unwrap();
    let (b, mut next_q, mut next_image) = (0.3, q.clone(), p_image.clone());
    let direction = [next_q.view_mut(), next_image.view_mut()];
    let energy = likelihood.next_direction(curvature, [r.view(), r_image.view()], b, direction).unwrap();
    assert!(max_difference(&next_q, &(&r + &curved + &(&q * b))) < 1e-13, "q is not r + W K̃r + b q");
    assert!(max_difference(&next_image, &(&r_image + &(&p_image * b))) < 1e-13, "K̃p is not K̃r + b K̃p");
    assert!((energy - (&next_image * &next_q).sum()).abs() < scale, "not ⟨K̃p, q⟩");
}
