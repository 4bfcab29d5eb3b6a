//! Trees: what they accept, their functions, and fits that agree with a dense reference which knows nothing of them.

#![allow(clippy::unwrap_used)]

mod support;

use ndarray::{Array2, ArrayView2};
use nuptse::data::{Inputs, Target, Targets};
use nuptse::kernel::{Block, Covariance, Linear, Rbf};
use nuptse::model::{FitOptions, ModelSpec, Solver};
use nuptse::prior::{Mixing, Tree};
use nuptse::solve::{PreconditionerUse, SolveParams};
use nuptse::{Context, Error};
use proptest::prelude::*;
use std::sync::Arc;
use support::laws::check_mixing_laws;
use support::{Random, context, dense_mix, max_difference};

// Structure

fn check(parents: &[Option<usize>], leaves: &[usize]) -> Tree {
    let tree = Tree::new(parents, leaves).unwrap();
    let mix = dense_mix(parents, leaves, tree.nodes());
    check_mixing_laws(&tree, &mix);
    let mut expected_parent = 0;
    for (p, &node) in tree.nodes().iter().enumerate() {
        let parent = tree.parents()[p].map(|q| tree.nodes()[q]);
        assert_eq!(parent, parents[node].filter(|above| parents[*above].is_some()));
        assert_eq!(tree.levels()[p], tree.parents()[p].map_or(1, |q| tree.levels()[q] + 1));
        // Parents before children, and the children of a node side by side.
        let position = tree.parents()[p].map_or(0, |q| q + 1);
        assert!(position >= expected_parent && position <= p);
        expected_parent = position;
    }
    for (class, path) in tree.paths().enumerate() {
        let path: Vec<usize> = path.collect();
        assert_eq!(tree.nodes()[path[0]], leaves[class]);
        assert_eq!((path[0], path.len()), (tree.leaves()[class], tree.levels()[path[0]]));
        assert!(path.iter().all(|&p| mix[[class, p]] > 0.0));
    }
    tree
}

proptest! {
    #[test]
    fn products_agree_with_the_dense_matrix(seed in any::<u64>(), nodes in 2_usize..60, width in 1_usize..60) {
        let (parents, leaves) = Random::new(seed).tree(nodes, width);
        check(&parents, &leaves);
    }

    #[test]
    fn no_input_panics(
        parents in prop::collection::vec(prop::option::weighted(0.8, 0_usize..7), 0..6),
        leaves in prop::collection::vec(0_usize..7, 0..6),
    ) {
        if let Ok(tree) = Tree::new(&parents, &leaves) {
            prop_assert_eq!(tree.functions() + 1, parents.len());
            check(&parents, &leaves);
        }
    }
}

#[test]
fn functions_are_breadth_first_and_classes_in_any_order() {
    //       6
    //    0     4
    //  5  2    3
    //    1 7
    let parents = [Some(6), Some(2), Some(0), Some(4), Some(6), Some(0), None, Some(2)];
    let tree = check(&parents, &[3, 7, 5, 1]);
    assert_eq!(tree.nodes(), [0, 4, 2, 5, 3, 1, 7]);
    assert_eq!(tree.parents(), [None, None, Some(0), Some(0), Some(1), Some(2), Some(2)]);
    assert_eq!(tree.levels(), [1, 1, 2, 2, 2, 3, 3]);
    assert_eq!(tree.leaves(), [4, 6, 3, 5]);
    let paths: Vec<Vec<usize>> = tree.paths().map(Iterator::collect).collect();
    assert_eq!(paths, [vec![4, 1], vec![6, 2, 0], vec![3, 0], vec![5, 2, 0]]);
}

#[test]
fn one_level_is_flat_where_the_classes_are_in_order() {
    let parents = [Some(1), None, Some(1), Some(1)];
    assert!(check(&parents, &[0, 2, 3]).is_identity());
    assert!(!check(&parents, &[2, 0, 3]).is_identity());
}

#[test]
fn a_chain_is_one_class_with_many_functions() {
    let tree = check(&[Some(1), Some(2), Some(3), None], &[0]);
    assert_eq!(tree.nodes(), [2, 1, 0]);
    assert!(!tree.is_identity());
}

#[test]
fn what_is_no_tree_is_refused() {
    let refused = |parents: &[Option<usize>], leaves: &[usize]| Tree::new(parents, leaves).unwrap_err();
    assert_eq!(refused(&[], &[]), Error::TreeTooSmall { nodes: 0 });
    assert_eq!(refused(&[None], &[0]), Error::TreeTooSmall { nodes: 1 });
    assert_eq!(refused(&[None, Some(0), None], &[1, 2]), Error::TreeSecondRoot { first: 0, second: 2 });
    let far = usize::MAX;
    assert_eq!(refused(&[None, Some(far)], &[1]), Error::TreeUnknownParent { node: 1, parent: far, nodes: 2 });
    assert_eq!(refused(&[Some(1), Some(0)], &[0]), Error::TreeCycle { node: 0 });
    // Node 1 is found first; it lies below the cycle 2, 3.
    let error = refused(&[None, Some(2), Some(3), Some(2), Some(0)], &[4, 1]);
    assert!(matches!(error, Error::TreeCycle { node: 2 | 3 }), "{error}");
    assert_eq!(refused(&[None, Some(1), Some(0)], &[2]), Error::TreeCycle { node: 1 });
    let tree = [None, Some(0), Some(0), Some(1)];
    assert_eq!(refused(&tree, &[2, 3, 4]), Error::TreeUnknownLeaf { class: 2, node: 4, nodes: 4 });
    assert_eq!(refused(&tree, &[2, 1]), Error::TreeInnerLeaf { class: 1, node: 1, child: 3 });
    assert_eq!(refused(&tree, &[0]), Error::TreeInnerLeaf { class: 0, node: 0, child: 1 });
    assert_eq!(refused(&tree, &[3, 2, 3]), Error::TreeLeafTwice { node: 3, first: 0, second: 2 });
    assert_eq!(refused(&tree, &[3]), Error::TreeUnusedLeaf { node: 2 });
    assert_eq!(refused(&tree, &[]), Error::TreeUnusedLeaf { node: 3 });
}

// Fits

fn probabilities(u: &Array2<f64>) -> Array2<f64> {
    let mut pi = u.clone();
    for mut row in pi.outer_iter_mut() {
        let largest = row.iter().fold(f64::NEG_INFINITY, |m, &v| m.max(v));
        row.mapv_inplace(|v| (v - largest).exp());
        let sum = row.sum();
        row.mapv_inplace(|v| v / sum);
    }
    pi
}

/// A problem as the formulas have it.
struct Dense {
    /// K̃, point after point, the classes of a point side by side.
    k: Array2<f64>,
    y: Array2<f64>,
    weights: Vec<f64>,
}

impl Dense {
    /// `correlations[l]` is M^(l).
    fn new(mix: &Array2<f64>, spec: &ModelSpec, correlations: &[Array2<f64>], targets: &Targets) -> Self {
        let (n, classes) = (targets.points(), targets.classes());
        let entry = |(row, column): (usize, usize)| {
            let ((i, c), (j, d)) = ((row / classes, row % classes), (column / classes, column % classes));
            let function = |(p, block): (usize, &Block)| {
                mix[[c, p]] * mix[[d, p]] * block.variance * correlations[block.matrix][[i, j]]
            };
            let intercept = if c == d { spec.intercept_variance } else { 0.0 };
            spec.blocks.iter().enumerate().map(function).sum::<f64>() + intercept
        };
        let y = Array2::from_shape_fn((n, classes), |(i, c)| match targets.of_point(i) {
            Target::Class(class) => f64::from(u8::from(c == class)),
            Target::Distribution(y) => y[c],
            Target::OneOf(_) => unreachable!("not made here"),
        });
        let k = Array2::from_shape_fn((n * classes, n * classes), entry);
        Self { k, y, weights: (0..n).map(|i| targets.weight(i)).collect() }
    }

    fn image(&self, alpha: &Array2<f64>) -> Array2<f64> {
        let flat = alpha.clone().into_shape_with_order(alpha.len()).unwrap();
        self.k.dot(&flat).into_shape_with_order(alpha.raw_dim()).unwrap()
    }

    /// Φ and α + g.
    fn objective(&self, alpha: &Array2<f64>) -> (f64, Array2<f64>) {
        let u = self.image(alpha);
        let pi = probabilities(&u);
        let mut gradient = alpha.clone();
        let mut value = 0.5 * (alpha * &u).sum();
        for (i, weight) in self.weights.iter().enumerate() {
            let largest = u.row(i).iter().fold(f64::NEG_INFINITY, |m, &v| m.max(v));
            let total = largest + u.row(i).mapv(|v| (v - largest).exp()).sum().ln();
            value += weight * (total - self.y.row(i).dot(&u.row(i)));
            gradient.row_mut(i).scaled_add(*weight, &(&pi.row(i) - &self.y.row(i)));
        }
        (value, gradient)
    }

    /// (I + W K̃) s = −(α + g), solved entry by entry.
    fn newton_step(&self, alpha: &Array2<f64>) -> Array2<f64> {
        let (n, classes) = alpha.dim();
        let pi = probabilities(&self.image(alpha));
        let w = Array2::from_shape_fn((n * classes, n * classes), |(row, column)| {
            let (i, c, d) = (row / classes, row % classes, column % classes);
            let diagonal = if row == column { pi[[i, c]] } else { 0.0 };
            if column / classes == i { self.weights[i] * (diagonal - pi[[i, c]] * pi[[i, d]]) } else { 0.0 }
        });
        let system = w.dot(&self.k) + Array2::<f64>::eye(n * classes);
        let right = -self.objective(alpha).1.into_shape_with_order(n * classes).unwrap();
        let step = eliminate(system, right.to_vec());
        Array2::from_shape_vec((n, classes), step).unwrap()
    }

    /// The minimum of Φ, by Newton's method with halved steps.
    fn minimum(&self) -> Array2<f64> {
        let mut alpha = Array2::zeros(self.y.raw_dim());
        for _ in 0..60 {
            let (value, gradient) = self.objective(&alpha);
            if gradient.iter().all(|g| g.abs() <= 1e-13) {
                break;
            }
            let mut step = self.newton_step(&alpha);
            for _ in 0..30 {
                if self.objective(&(&alpha + &step)).0 <= value + 1e-12 * value.abs() {
                    break;
                }
                step *= 0.5;
            }
            alpha += &step;
        }
        alpha
    }
}

/// Gaussian elimination with the largest pivot of every column.
fn eliminate(mut a: Array2<f64>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[[i, k]].abs().total_cmp(&a[[j, k]].abs())).unwrap();
        (0..n).for_each(|j| a.swap([k, j], [pivot, j]));
        b.swap(k, pivot);
        for i in k + 1..n {
            let factor = a[[i, k]] / a[[k, k]];
            (k..n).for_each(|j| a[[i, j]] -= factor * a[[k, j]]);
            b[i] -= factor * b[k];
        }
    }
    for k in (0..n).rev() {
        b[k] = (b[k] - (k + 1..n).map(|j| a[[k, j]] * b[j]).sum::<f64>()) / a[[k, k]];
    }
    b
}

fn gaussian(x: ArrayView2<'_, f64>, width: f64) -> Array2<f64> {
    let (n, d) = x.dim();
    Array2::from_shape_fn((n, n), |(i, j)| {
        let squares = (&x.row(i) - &x.row(j)).mapv(|v| v * v).sum();
        (-0.5 * width / d as f64 * squares).exp()
    })
}

/// A tree prior with a Gaussian and a linear kernel, or the former alone.
fn random_spec(random: &mut Random, tree: Tree, kernels: usize) -> ModelSpec {
    let mut covariances: Vec<Arc<dyn Covariance>> = vec![Arc::new(Rbf::isotropic(1.5).unwrap()), Arc::new(Linear)];
    covariances.truncate(kernels);
    let block = |p| Block { matrix: p % kernels, variance: 0.2 + 3.0 * random.uniform() };
    ModelSpec {
        blocks: (0..tree.functions()).map(block).collect(),
        covariances,
        mixing: Arc::new(tree),
        intercept_variance: random.below(2) as f64 * 0.7,
    }
}

fn fit(context: &Context, spec: &ModelSpec, x: &Inputs, targets: &Targets) -> nuptse::model::Model {
    fit_by(context, spec, x, targets, Solver::NewtonCg, PreconditionerUse::Off)
}

fn fit_by(
    context: &Context,
    spec: &ModelSpec,
    x: &Inputs,
    targets: &Targets,
    solver: Solver,
    preconditioner: PreconditionerUse,
) -> nuptse::model::Model {
    let solve = SolveParams { tol: 1e-11, preconditioner, ..SolveParams::default() };
    let options = FitOptions { solver, solve, ..FitOptions::default() };
    let (model, info) = spec.fit(context, x, targets.clone(), &options).unwrap();
    assert!(info.solve.converged, "{} stopped at {:e}", info.solve.solver, info.solve.residual);
    model
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn a_fit_agrees_with_the_dense_reference(
        seed in any::<u64>(),
        (nodes, width) in (4_usize..10, 2_usize..6),
        (points, kernels) in (8_usize..16, 1_usize..=2),
        (soft, weighted) in (any::<bool>(), any::<bool>()),
    ) {
        let mut random = Random::new(seed);
        let (parents, leaves) = random.tree_of_classes(nodes, width, 2..=7);
        let tree = Tree::new(&parents, &leaves).unwrap();
        let mix = dense_mix(&parents, &leaves, tree.nodes());
        let spec = random_spec(&mut random, tree, kernels);
        let rows = random.array((points, 3));
        let targets = random.targets(points, leaves.len(), soft, weighted);
        let reference = Dense::new(&mix, &spec, &[gaussian(rows.view(), 1.5), rows.dot(&rows.t())], &targets);
        let alpha = reference.minimum();
        prop_assert!(reference.objective(&alpha).1.iter().all(|g| g.abs() <= 1e-12), "the reference is not exact");
        let x = Inputs::dense(rows).unwrap();
        let context = context();
        let model = fit(&context, &spec, &x, &targets);
        prop_assert!(max_difference(&model.alpha().to_owned(), &alpha) <= 1e-8);
        for solver in [Solver::NewtonCg, Solver::NewtonCgSymmetric, Solver::Lbfgs] {
            let model = fit_by(&context, &spec, &x, &targets, solver, PreconditionerUse::On);
            prop_assert!(max_difference(&model.alpha().to_owned(), &alpha) <= 1e-8);
        }
        let u = model.decision_function(&context, &x).unwrap();
        prop_assert!(max_difference(&u, &reference.image(&alpha)) <= 1e-7);
    }
}

#[test]
fn the_exact_solver_refuses_a_tree() {
    let mut random = Random::new(1);
    let x = random.dense(6, 2);
    let targets = random.targets(6, 2, false, false);
    let tree = Tree::new(&[None, Some(0), Some(0), Some(1)], &[2, 3]).unwrap();
    let spec = random_spec(&mut random, tree, 1);
    let options = FitOptions { solver: Solver::Exact, ..FitOptions::default() };
    let error = spec.fit(&context(), &x, targets, &options).unwrap_err();
    assert!(matches!(error, Error::SolverUnsupported { .. }));
}

#[test]
fn threads_do_not_change_a_bit() {
    let mut random = Random::new(3);
    let (parents, leaves) = random.tree(90, 40);
    let tree = Tree::new(&parents, &leaves).unwrap();
    let spec = random_spec(&mut random, tree, 2);
    let x = random.dense(200, 3);
    let targets = random.targets(200, leaves.len(), true, true);
    let with = |threads| fit(&Context::new(Some(threads)).unwrap(), &spec, &x, &targets).alpha().to_owned();
    assert_eq!(with(1), with(3));
}

#[test]
fn many_classes_are_preconditioned_one_by_one() {
    let mut random = Random::new(7);
    let (branches, of_branch) = (11, 20);
    let classes = branches * of_branch;
    // The root, its branches, and the classes.
    let branch_of = (0..classes).map(|class| Some(1 + class / of_branch));
    let parents: Vec<Option<usize>> =
        std::iter::once(None).chain((0..branches).map(|_| Some(0))).chain(branch_of).collect();
    let leaves: Vec<usize> = (1 + branches..parents.len()).collect();
    let tree = Tree::new(&parents, &leaves).unwrap();
    let context = support::context();
    let x = random.dense(50, 3);
    let targets = random.targets(50, classes, false, false);
    for spec in [random_spec(&mut random, tree, 1), ModelSpec::shared(classes, Rbf::isotropic(2.0).unwrap(), 5.0)] {
        let fit = |preconditioner| {
            let solve = SolveParams { tol: 1e-11, preconditioner, ..SolveParams::default() };
            let options = FitOptions { solver: Solver::NewtonCg, solve, ..FitOptions::default() };
            spec.fit(&context, &x, targets.clone(), &options).unwrap()
        };
        let ((plain, _), (preconditioned, info)) = (fit(PreconditionerUse::Off), fit(PreconditionerUse::On));
        assert!(info.solve.converged && info.solve.preconditioner_rank > 0);
        assert!(max_difference(&plain.alpha().to_owned(), &preconditioned.alpha().to_owned()) <= 1e-9);
        assert_eq!(fit(PreconditionerUse::Auto).1.solve.preconditioner_rank, 0);
    }
}
