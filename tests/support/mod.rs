//! Random problems and the laws that every operator must keep.
#![allow(dead_code)] // every test file uses a part of it
#![allow(missing_docs, clippy::cast_possible_truncation, clippy::cast_sign_loss)]

pub mod laws;

use std::ops::RangeInclusive;

use ndarray::{Array1, Array2};
use nuptse::Context;
use nuptse::data::{CsrRows, Inputs, Targets};

/// A small random number generator (SplitMix64), so that a seed names a problem on every machine.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5851_F42D_4C95_7F2D)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Roughly normal: twelve uniform numbers less six.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.uniform() * limit as f64) as usize
    }

    pub fn array(&mut self, shape: (usize, usize)) -> Array2<f64> {
        Array2::from_shape_simple_fn(shape, || self.normal())
    }

    pub fn dense(&mut self, points: usize, inputs: usize) -> Inputs {
        Inputs::dense(self.array((points, inputs))).unwrap()
    }

    /// Sparse rows with about a third of the entries, some rows empty.
    pub fn sparse(&mut self, points: usize, inputs: usize) -> Inputs {
        let (mut offsets, mut indices, mut values) = (vec![0], vec![], vec![]);
        for row in 0..points {
            for column in 0..inputs {
                if row % 7 != 3 && self.uniform() < 0.33 {
                    indices.push(column as u32);
                    values.push(self.normal());
                }
            }
            offsets.push(values.len());
        }
        Inputs::sparse(CsrRows::new(offsets, indices, values, inputs).unwrap()).unwrap()
    }

    /// A positive semidefinite matrix as inputs of a precomputed kernel.
    pub fn gram(&mut self, points: usize) -> Inputs {
        let factor = self.array((points, 5));
        Inputs::dense(factor.dot(&factor.t())).unwrap()
    }

    /// A number for each of `count` things, in random order.
    pub fn permutation(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        (1..count).for_each(|i| order.swap(i, self.below(i + 1)));
        order
    }

    /// The parents and the leaves of a ragged tree, nodes and leaves in random order. Small `width` makes long chains.
    pub fn tree(&mut self, nodes: usize, width: usize) -> (Vec<Option<usize>>, Vec<usize>) {
        let name = self.permutation(nodes);
        let mut parents = vec![None; nodes];
        let mut inner = vec![false; nodes];
        for node in 1..nodes {
            let above = node - 1 - self.below(width.min(node));
            parents[name[node]] = Some(name[above]);
            inner[name[above]] = true;
        }
        let leaves: Vec<usize> = (0..nodes).filter(|&node| !inner[node]).collect();
        let order = self.permutation(leaves.len());
        (parents, order.into_iter().map(|i| leaves[i]).collect())
    }

    /// A `tree` with that many leaves: of a chain, which is one class, there is nothing to fit.
    pub fn tree_of_classes(
        &mut self,
        nodes: usize,
        width: usize,
        classes: RangeInclusive<usize>,
    ) -> (Vec<Option<usize>>, Vec<usize>) {
        loop {
            let (parents, leaves) = self.tree(nodes, width);
            if classes.contains(&leaves.len()) {
                return (parents, leaves);
            }
        }
    }

    pub fn labels(&mut self, points: usize, classes: usize) -> Vec<usize> {
        (0..points).map(|i| if i < classes { i } else { self.below(classes) }).collect()
    }

    /// Labels or distributions, with or without weights (some of them zero), as `soft` and `weighted` say.
    pub fn targets(&mut self, points: usize, classes: usize, soft: bool, weighted: bool) -> Targets {
        let targets = if soft {
            let mut y = Array2::from_shape_simple_fn((points, classes), || self.uniform().powi(3));
            for mut row in y.outer_iter_mut() {
                let sum = row.sum();
                row.mapv_inplace(|y| y / sum);
            }
            Targets::from_distributions(y).unwrap()
        } else {
            Targets::from_labels(&self.labels(points, classes), classes).unwrap()
        };
        if !weighted {
            return targets;
        }
        let weight = |i| if i % 5 == 4 { 0.0 } else { 0.2 + 3.0 * self.uniform() };
        targets.with_weights((0..points).map(weight).collect::<Array1<f64>>()).unwrap()
    }
}

/// mix of a tree, entry by entry: its functions are the nodes in `order`.
pub fn dense_mix(parents: &[Option<usize>], leaves: &[usize], order: &[usize]) -> Array2<f64> {
    let mut mix = Array2::zeros((leaves.len(), order.len()));
    for (class, &leaf) in leaves.iter().enumerate() {
        let mut node = leaf;
        while let Some(parent) = parents[node] {
            mix[[class, order.iter().position(|other| *other == node).unwrap()]] = 1.0;
            node = parent;
        }
    }
    mix
}

pub fn context() -> Context {
    Context::new(Some(2)).unwrap()
}

pub fn max_difference(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    assert_eq!(a.dim(), b.dim());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}
