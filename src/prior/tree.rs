//! Classes that are the leaves of a tree: a class function is the sum of the functions along its path (ANOVA prior).

use super::Mixing;
use super::children::Children;
use crate::data::{check_shape, row_major, row_major_mut};
use crate::error::{Error, Result};
use crate::parallel::part_len;
use ndarray::{ArrayView2, ArrayViewMut2};
use rayon::prelude::*;
use std::ops::Range;

/// mix[c, p] = 1 where node p lies on the path from below the root to leaf c, else 0 (seed 000, section 4).
///
/// Every node but the root has a function. Functions are numbered breadth first: parents before children, and the
/// children of a node side by side, in the order of their nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The node of every function.
    nodes: Vec<usize>,
    /// The function above every function; none below the root.
    parents: Vec<Option<usize>>,
    /// The depth of every function, 1 below the root.
    levels: Vec<usize>,
    /// The function of the leaf of every class.
    leaves: Vec<usize>,
    /// The functions below the root.
    top: Range<usize>,
    /// Every function that has children, breadth first.
    families: Vec<Family>,
    /// For every function a class below it; for a leaf its own.
    class_below: Vec<usize>,
}

/// A function and those of its children.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Family {
    parent: usize,
    children: Range<usize>,
}

impl Tree {
    /// The tree in which node i lies below `parents[i]` (the root below none), and class c is the leaf `leaves[c]`.
    ///
    /// Nodes and classes may come in any order. Every node without children must be a class: a function that no class
    /// uses would cost products, and its hyperparameters could not be learned.
    pub fn new(parents: &[Option<usize>], leaves: &[usize]) -> Result<Self> {
        let children = Children::new(parents)?;
        let root = children.root();
        let mut tree = Self {
            nodes: children.of(root).to_vec(),
            parents: vec![None; children.of(root).len()],
            levels: vec![1; children.of(root).len()],
            leaves: Vec::new(),
            top: 0..children.of(root).len(),
            families: Vec::new(),
            class_below: Vec::new(),
        };
        let mut parent = 0;
        while parent < tree.nodes.len() {
            let below = children.of(tree.nodes[parent]);
            if !below.is_empty() {
                let start = tree.nodes.len();
                tree.nodes.extend_from_slice(below);
                tree.parents.resize(start + below.len(), Some(parent));
                tree.levels.resize(start + below.len(), tree.levels[parent] + 1);
                tree.families.push(Family { parent, children: start..start + below.len() });
            }
            parent += 1;
        }
        tree.place_classes(leaves, &children)?;
        Ok(tree)
    }

    /// Finds the function of every class, and a class below every function.
    fn place_classes(&mut self, leaves: &[usize], children: &Children) -> Result<()> {
        let nodes = self.nodes.len() + 1;
        let mut function_of_node = vec![0; nodes]; // the root has none, and is no leaf
        self.nodes.iter().enumerate().for_each(|(p, &node)| function_of_node[node] = p);
        let mut class_of_leaf = vec![None; self.nodes.len()];
        for (class, &node) in leaves.iter().enumerate() {
            let function = *function_of_node.get(node).ok_or(Error::TreeUnknownLeaf { class, node, nodes })?;
            if let Some(&child) = children.of(node).first() {
                return Err(Error::TreeInnerLeaf { class, node, child });
            }
            if let Some(first) = class_of_leaf[function].replace(class) {
                return Err(Error::TreeLeafTwice { node, first, second: class });
            }
            self.leaves.push(function);
        }
        let mut first_child: Vec<Option<usize>> = vec![None; self.nodes.len()];
        self.families.iter().for_each(|family| first_child[family.parent] = Some(family.children.start));
        self.class_below = vec![0; self.nodes.len()];
        for p in (0..self.nodes.len()).rev() {
            self.class_below[p] = match (class_of_leaf[p], first_child[p]) {
                (Some(class), _) => class,
                (None, Some(child)) => self.class_below[child],
                (None, None) => return Err(Error::TreeUnusedLeaf { node: self.nodes[p] }),
            };
        }
        Ok(())
    }

    /// What [`Tree::new`] was given: the parent of every node, and the leaf of every class.
    #[must_use]
    pub fn description(&self) -> (Vec<Option<usize>>, Vec<usize>) {
        let mut is_root = vec![true; self.nodes.len() + 1];
        self.nodes.iter().for_each(|&node| is_root[node] = false);
        let root = is_root.iter().position(|is_root| *is_root).unwrap_or_default();
        let mut parents = vec![None; is_root.len()];
        for (&node, above) in self.nodes.iter().zip(&self.parents) {
            parents[node] = Some(above.map_or(root, |function| self.nodes[function]));
        }
        (parents, self.leaves.iter().map(|&function| self.nodes[function]).collect())
    }

    /// The node of every function.
    #[must_use]
    pub fn nodes(&self) -> &[usize] {
        &self.nodes
    }

    /// For every function the one above it; none for those below the root.
    #[must_use]
    pub fn parents(&self) -> &[Option<usize>] {
        &self.parents
    }

    /// The level of every function: 1 below the root.
    #[must_use]
    pub fn levels(&self) -> &[usize] {
        &self.levels
    }

    /// The function of the leaf of every class.
    #[must_use]
    pub fn leaves(&self) -> &[usize] {
        &self.leaves
    }

    /// For every class its path: the functions of which its own is the sum, from the leaf up.
    #[must_use]
    pub fn paths(&self) -> impl ExactSizeIterator<Item = impl Iterator<Item = usize>> {
        self.leaves.iter().map(|&leaf| std::iter::successors(Some(leaf), |&p| self.parents[p]))
    }

    /// Seed 000, Algorithm 2, for one point: the function of every node is the sum of those of its children.
    pub(crate) fn sum_upwards(&self, functions: &mut [f64], classes: &[f64]) {
        self.leaves.iter().zip(classes).for_each(|(&leaf, &value)| functions[leaf] = value);
        for family in self.families.iter().rev() {
            functions[family.parent] = sum(&functions[family.children.clone()]);
        }
    }

    /// Seed 000, Algorithm 1, for one point: the sum of the path of a node goes to all of its children.
    ///
    /// The sum of an inner node waits in the place of one class below it. It is safe there: before the node has been
    /// visited, nothing else is written to the places of the classes below it.
    pub(crate) fn sum_downwards(&self, classes: &mut [f64], functions: &[f64]) {
        for p in self.top.clone() {
            classes[self.class_below[p]] = functions[p];
        }
        for family in &self.families {
            let above = classes[self.class_below[family.parent]];
            let children = family.children.clone();
            for (&class, function) in self.class_below[children.clone()].iter().zip(&functions[children]) {
                classes[class] = above + function;
            }
        }
    }

    /// Fails unless arrays over functions and over classes, given by their shapes, belong together.
    fn check_shapes(&self, functions: (usize, usize), classes: (usize, usize)) -> Result<()> {
        check_shape("the classes and the functions must be given at the same points", classes.0, functions.0)?;
        check_shape("the columns must be the classes, once or several times", 0, classes.1 % self.classes())?;
        let width = classes.1 / self.classes() * self.functions();
        check_shape("the columns must be the functions, as often as the classes", width, functions.1)
    }
}

impl Mixing for Tree {
    fn classes(&self) -> usize {
        self.leaves.len()
    }

    fn functions(&self) -> usize {
        self.nodes.len()
    }

    fn to_functions(&self, mut out: ArrayViewMut2<'_, f64>, s: ArrayView2<'_, f64>) -> Result<()> {
        self.check_shapes(out.dim(), s.dim())?;
        let (out, s) = (row_major_mut("the product", &mut out)?, row_major("S", &s)?);
        for_each_row(out, self.functions(), s, self.classes(), |out, s| self.sum_upwards(out, s));
        Ok(())
    }

    fn to_classes(&self, mut out: ArrayViewMut2<'_, f64>, r: ArrayView2<'_, f64>) -> Result<()> {
        self.check_shapes(r.dim(), out.dim())?;
        let (out, r) = (row_major_mut("the product", &mut out)?, row_major("R", &r)?);
        for_each_row(out, self.classes(), r, self.functions(), |out, r| self.sum_downwards(out, r));
        Ok(())
    }

    fn diagonal(&self, out: ArrayViewMut2<'_, f64>, functions: ArrayView2<'_, f64>) -> Result<()> {
        self.to_classes(out, functions) // 0² = 0 and 1² = 1
    }

    fn tree(&self) -> Option<&Tree> {
        Some(self)
    }

    /// One level, with the classes in the order of the nodes.
    fn is_identity(&self) -> bool {
        self.families.is_empty() && self.leaves.iter().enumerate().all(|(class, &leaf)| class == leaf)
    }
}

/// Calls `work` for matching rows of two arrays, of which the first is written.
fn for_each_row(
    out: &mut [f64],
    out_width: usize,
    read: &[f64],
    read_width: usize,
    work: impl Fn(&mut [f64], &[f64]) + Sync,
) {
    let rows = part_len(read.len() / read_width);
    out.par_chunks_mut(rows * out_width).zip(read.par_chunks(rows * read_width)).for_each(|(out, read)| {
        out.chunks_exact_mut(out_width).zip(read.chunks_exact(read_width)).for_each(|(out, read)| work(out, read));
    });
}

/// The sum, with four running sums so that an addition need not wait for the one before.
fn sum(values: &[f64]) -> f64 {
    let (blocks, rest) = values.as_chunks::<4>();
    let mut sums = [0.0; 4];
    for block in blocks {
        sums.iter_mut().zip(block).for_each(|(sum, value)| *sum += value);
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest.iter().sum::<f64>()
}
