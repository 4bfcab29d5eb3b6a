//! Decisions and scores on trees, against what the definitions say, one pair of classes at a time.

#![allow(clippy::unwrap_used)]

mod support;

use ndarray::Array2;
use nuptse::Error;
use nuptse::metrics::{
    accuracy, log_loss, parent_accuracy, reciprocal_rank, reject_curve, reliability, taxonomic_loss,
};
use nuptse::model::{Loss, decide, node_masses};
use nuptse::prior::Tree;
use proptest::prelude::*;
use support::{Random, dense_mix, max_difference};

/// A tree with what the definitions need of it.
struct Problem {
    parents: Vec<Option<usize>>,
    leaves: Vec<usize>,
    tree: Tree,
}

impl Problem {
    fn new(random: &mut Random, nodes: usize, width: usize) -> Self {
        let (parents, leaves) = random.tree(nodes, width);
        let tree = Tree::new(&parents, &leaves).unwrap();
        Self { parents, leaves, tree }
    }

    /// The nodes from a leaf to the root.
    fn path(&self, class: usize) -> Vec<usize> {
        std::iter::successors(Some(self.leaves[class]), |&node| self.parents[node]).collect()
    }

    fn half_path(&self, a: usize, b: usize) -> f64 {
        let (a, b) = (self.path(a), self.path(b));
        let common = a.iter().filter(|node| b.contains(node)).count();
        (a.len() + b.len() - 2 * common) as f64 / 2.0
    }

    fn same_parent(&self, a: usize, b: usize) -> bool {
        self.parents[self.leaves[a]] == self.parents[self.leaves[b]]
    }

    fn expected(&self, p: &[f64], loss: impl Fn(&Self, usize, usize) -> f64, decision: usize) -> f64 {
        p.iter().enumerate().map(|(class, p)| p * loss(self, decision, class)).sum()
    }
}

fn probabilities(random: &mut Random, points: usize, classes: usize) -> Array2<f64> {
    let mut p = Array2::from_shape_simple_fn((points, classes), || random.uniform().powi(4));
    for mut row in p.outer_iter_mut() {
        let sum = row.sum();
        row.mapv_inplace(|p| p / sum);
    }
    p
}

proptest! {
    #[test]
    fn decisions_have_the_smallest_expected_loss(seed in any::<u64>(), nodes in 2_usize..40, width in 1_usize..30) {
        let mut random = Random::new(seed);
        let problem = Problem::new(&mut random, nodes, width);
        let classes = problem.leaves.len();
        let p = probabilities(&mut random, 70, classes);
        let zero_one = |_: &Problem, a: usize, b: usize| f64::from(u8::from(a != b));
        let parent = |problem: &Problem, a: usize, b: usize| f64::from(u8::from(!problem.same_parent(a, b)));
        for loss in [Loss::ZeroOne, Loss::Taxonomic, Loss::Parent] {
            let decisions = decide(&problem.tree, p.view(), loss).unwrap();
            for (&decision, p) in decisions.iter().zip(p.outer_iter()) {
                let p = p.to_vec();
                let cost = |decision| match loss {
                    Loss::ZeroOne => problem.expected(&p, zero_one, decision),
                    Loss::Taxonomic => problem.expected(&p, Problem::half_path, decision),
                    Loss::Parent => problem.expected(&p, parent, decision),
                };
                let best = (0..classes).map(cost).fold(f64::INFINITY, f64::min);
                prop_assert!(cost(decision) <= best + 1e-12, "{loss:?}: {} against {best}", cost(decision));
            }
        }
    }

    #[test]
    fn the_mass_of_a_node_is_that_of_the_classes_below(seed in any::<u64>(), nodes in 2_usize..40) {
        let mut random = Random::new(seed);
        let problem = Problem::new(&mut random, nodes, 10);
        let p = probabilities(&mut random, 5, problem.leaves.len());
        let mut masses = Array2::zeros((5, nodes));
        node_masses(&problem.tree, masses.view_mut(), p.view()).unwrap();
        let order: Vec<usize> = (0..nodes).filter(|&node| problem.parents[node].is_some()).collect();
        let below = p.dot(&dense_mix(&problem.parents, &problem.leaves, &order));
        let mut expected = Array2::ones((5, nodes));
        order.iter().enumerate().for_each(|(column, &node)| expected.column_mut(node).assign(&below.column(column)));
        prop_assert!(max_difference(&masses, &expected) < 1e-14);
    }

    #[test]
    fn scores_of_a_tree_follow_its_paths(seed in any::<u64>(), nodes in 2_usize..40, width in 1_usize..30) {
        let mut random = Random::new(seed);
        let problem = Problem::new(&mut random, nodes, width);
        let classes = problem.leaves.len();
        let [truth, predicted]: [Vec<usize>; 2] = std::array::from_fn(|_| (0..9).map(|_| random.below(classes)).collect());
        let weights: Vec<f64> = (0..9).map(|_| 0.1 + random.uniform()).collect();
        let mean = |score: &dyn Fn(usize, usize) -> f64| {
            (0..9).map(|i| weights[i] * score(truth[i], predicted[i])).sum::<f64>() / weights.iter().sum::<f64>()
        };
        let found = taxonomic_loss(&problem.tree, &truth, &predicted, Some(&weights)).unwrap();
        prop_assert!((found - mean(&|a, b| problem.half_path(a, b))).abs() < 1e-12);
        let found = parent_accuracy(&problem.tree, &truth, &predicted, Some(&weights)).unwrap();
        prop_assert!((found - mean(&|a, b| f64::from(u8::from(problem.same_parent(a, b))))).abs() < 1e-12);
    }

    #[test]
    fn a_reject_curve_rises_to_the_error_whatever_the_order(seed in any::<u64>(), points in 1_usize..40) {
        let mut random = Random::new(seed);
        let correct: Vec<bool> = (0..points).map(|_| random.uniform() < 0.7).collect();
        let sure: Vec<f64> = (0..points).map(|_| random.below(6) as f64 / 5.0).collect();
        let curve = reject_curve(&correct, &sure, None).unwrap();
        prop_assert!(curve.error.windows(2).all(|pair| pair[0] <= pair[1] + 1e-15));
        let wrong = correct.iter().filter(|correct| !**correct).count() as f64;
        prop_assert!((curve.error[points] - wrong / points as f64).abs() < 1e-12);
        prop_assert!((curve.answered[points] - 1.0).abs() < 1e-12);
        let order = random.permutation(points);
        let again: Vec<bool> = order.iter().map(|&i| correct[i]).collect();
        let sure: Vec<f64> = order.iter().map(|&i| sure[i]).collect();
        let shuffled = reject_curve(&again, &sure, None).unwrap();
        prop_assert!(curve.error.iter().zip(&shuffled.error).all(|(a, b)| (a - b).abs() < 1e-12));
    }
}

#[test]
fn the_surest_predictions_come_first() {
    let curve = reject_curve(&[false, true, true, false], &[0.5, 0.9, 0.8, 0.6], None).unwrap();
    assert_eq!(curve.error, [0.0, 0.0, 0.0, 0.25, 0.5]);
    assert_eq!(curve.answered, [0.0, 0.25, 0.5, 0.75, 1.0]);
    let weighted = reject_curve(&[false, true], &[0.5, 0.9], Some(&[3.0, 1.0])).unwrap();
    assert_eq!(weighted.error, [0.0, 0.0, 0.75]);
}

#[test]
fn the_decision_may_leave_the_most_probable_class() {
    // Below one node two classes of 0.3 each, below the other one of 0.4.
    let tree = Tree::new(&[None, Some(0), Some(0), Some(1), Some(1), Some(2)], &[3, 4, 5]).unwrap();
    let p = Array2::from_shape_vec((1, 3), vec![0.29, 0.31, 0.4]).unwrap();
    let decision = |loss| decide(&tree, p.view(), loss).unwrap()[0];
    assert_eq!(decision(Loss::ZeroOne), 2);
    assert_eq!(decision(Loss::Taxonomic), 1);
    assert_eq!(decision(Loss::Parent), 1);
}

#[test]
fn scores_without_a_tree() {
    let p = Array2::from_shape_vec((3, 3), vec![0.5, 0.3, 0.2, 0.2, 0.2, 0.6, 0.0, 0.5, 0.5]).unwrap();
    let truth = [1, 1, 0];
    assert!((accuracy(&truth, &[1, 2, 0], None).unwrap() - 2.0 / 3.0).abs() < 1e-15);
    assert!((accuracy(&truth, &[1, 2, 2], Some(&[2.0, 1.0, 1.0])).unwrap() - 0.5).abs() < 1e-15);
    // The second point has two classes that are as probable, so the true one ranks third.
    let expected = (0.5 + 1.0 / 3.0 + 1.0 / 3.0) / 3.0;
    assert!((reciprocal_rank(&truth, p.view(), None).unwrap() - expected).abs() < 1e-15);
    let expected = -(0.3_f64.ln() + 0.2_f64.ln() + f64::EPSILON.ln()) / 3.0;
    assert!((log_loss(&truth, p.view(), None).unwrap() - expected).abs() < 1e-14);
}

#[test]
fn reliability_compares_confidence_with_accuracy() {
    let found = reliability(&[true, false, true, true], &[0.9, 0.8, 0.2, 1.0], 2, None).unwrap();
    assert_eq!(found.edges, [0.0, 0.5, 1.0]);
    assert_eq!(found.weight, [1.0, 3.0]);
    assert!((found.confidence[1] - 0.9).abs() < 1e-15 && (found.accuracy[1] - 2.0 / 3.0).abs() < 1e-15);
    assert!((found.error - (0.8 + 0.7) / 4.0).abs() < 1e-15);
    assert!(reliability(&[true], &[0.9], 3, None).unwrap().accuracy[0].is_nan());
}

#[test]
fn scores_refuse_what_makes_no_sense() {
    let p = Array2::from_elem((2, 2), 0.5);
    assert!(matches!(accuracy(&[], &[], None), Err(Error::EmptyInput { .. })));
    assert!(matches!(accuracy(&[0, 1], &[0], None), Err(Error::ShapeMismatch { expected: 2, found: 1, .. })));
    assert!(matches!(accuracy(&[0], &[0], Some(&[-1.0])), Err(Error::InvalidWeight { row: 0, .. })));
    assert!(matches!(accuracy(&[0], &[0], Some(&[0.0])), Err(Error::AllWeightsZero)));
    assert!(matches!(log_loss(&[0, 2], p.view(), None), Err(Error::InvalidLabel { row: 1, label: 2, .. })));
    let wild = Array2::from_elem((1, 2), 1.5);
    assert!(matches!(log_loss(&[0], wild.view(), None), Err(Error::InvalidTarget { .. })));
    assert!(matches!(reject_curve(&[true], &[f64::NAN], None), Err(Error::InvalidParameter { .. })));
    assert!(matches!(reliability(&[true], &[0.5], 0, None), Err(Error::InvalidParameter { .. })));
    let tree = Tree::new(&[None, Some(0), Some(0)], &[1, 2]).unwrap();
    assert!(matches!(taxonomic_loss(&tree, &[0], &[2], None), Err(Error::InvalidLabel { label: 2, .. })));
    assert!(matches!(decide(&tree, p.view(), Loss::Parent).map(|d| d.len()), Ok(2)));
    let three = Array2::from_elem((2, 3), 0.3);
    assert!(matches!(decide(&tree, three.view(), Loss::Taxonomic), Err(Error::ShapeMismatch { .. })));
}
