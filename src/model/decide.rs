//! Decisions: from class probabilities to the class whose expected loss is smallest.

use crate::data::{check_shape, row_major};
use crate::error::Result;
use crate::parallel::part_len;
use crate::prior::{Mixing, Tree};
use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2, Axis};
use rayon::prelude::*;

/// What a wrong decision costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Loss {
    /// One, whatever the classes.
    #[default]
    ZeroOne,
    /// Half the length of the path in the tree between the class decided for and the true one.
    Taxonomic,
    /// One, unless both classes lie directly below the same node.
    Parent,
}

impl Loss {
    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ZeroOne => "zero_one",
            Self::Taxonomic => "taxonomic",
            Self::Parent => "parent",
        }
    }
}

/// The most probable class of every point; of equal ones the first.
#[must_use]
pub fn most_probable(probabilities: ArrayView2<'_, f64>) -> Vec<usize> {
    probabilities.axis_iter(Axis(0)).map(largest).collect()
}

/// For every point the leaf with the smallest expected loss, in O(P) each, for P nodes.
pub fn decide(tree: &Tree, probabilities: ArrayView2<'_, f64>, loss: Loss) -> Result<Vec<usize>> {
    let (points, classes) = probabilities.dim();
    check_shape("the columns of the probabilities must be the classes", tree.classes(), classes)?;
    let siblings = match loss {
        Loss::ZeroOne => return Ok(most_probable(probabilities)),
        Loss::Taxonomic => None,
        Loss::Parent => Some(Siblings::new(tree)),
    };
    let probabilities = row_major("the probabilities", &probabilities)?;
    let rows = part_len(points);
    let parts: Vec<Vec<usize>> = (probabilities.par_chunks(rows * classes))
        .map(|part| {
            let mut buffers = Buffers { functions: vec![0.0; tree.functions()], classes: vec![0.0; classes] };
            let of_point = |p| match &siblings {
                Some(siblings) => siblings.decide(p, &mut buffers.classes),
                None => taxonomic(tree, p, &mut buffers),
            };
            part.chunks(classes).map(of_point).collect()
        })
        .collect();
    Ok(parts.concat())
}

/// The mass of every node of the tree, in the order of its nodes; out has one column a node, the root included.
pub fn node_masses(tree: &Tree, mut out: ArrayViewMut2<'_, f64>, probabilities: ArrayView2<'_, f64>) -> Result<()> {
    let classes = probabilities.ncols();
    check_shape("the columns of the probabilities must be the classes", tree.classes(), classes)?;
    check_shape("there must be a row for every point", probabilities.nrows(), out.nrows())?;
    check_shape("there must be a column for every node", tree.functions() + 1, out.ncols())?;
    let mut functions = vec![0.0; tree.functions()];
    // The root is the node that is no function's.
    out.fill(1.0);
    for (mut out, p) in out.outer_iter_mut().zip(row_major("the probabilities", &probabilities)?.chunks(classes)) {
        tree.sum_upwards(&mut functions, p);
        functions.iter().zip(tree.nodes()).for_each(|(&mass, &node)| out[node] = mass);
    }
    Ok(())
}

/// Room for one point.
struct Buffers {
    functions: Vec<f64>,
    classes: Vec<f64>,
}

/// The leaf with the smallest expected half path length.
///
/// With levels l, half the path between leaves c and c' is (l_c + l_c')/2 less the number of nodes that lie on the paths
/// of both. So the expectation over c' is, but for a constant, l_c/2 less the sum of the masses on the path of c: the sum
/// along that path of ½ − mass. Two passes over the tree give it for all leaves.
fn taxonomic(tree: &Tree, p: &[f64], buffers: &mut Buffers) -> usize {
    tree.sum_upwards(&mut buffers.functions, p);
    buffers.functions.iter_mut().for_each(|mass| *mass -= 0.5);
    tree.sum_downwards(&mut buffers.classes, &buffers.functions);
    largest(ArrayView1::from(&buffers.classes))
}

/// Which classes lie below the same node.
struct Siblings {
    /// For every class the number of its parent among those nodes that have leaves below them.
    parent: Vec<usize>,
    parents: usize,
}

impl Siblings {
    fn new(tree: &Tree) -> Self {
        // The root comes first, then the functions.
        let mut number = vec![None; tree.functions() + 1];
        let mut parents = 0;
        let of_class = |&leaf: &usize| {
            *number[tree.parents()[leaf].map_or(0, |p| p + 1)].get_or_insert_with(|| {
                parents += 1;
                parents - 1
            })
        };
        let parent = tree.leaves().iter().map(of_class).collect();
        Self { parent, parents }
    }

    /// The most probable leaf below the node whose leaves have the largest mass together (seed 000, footnote 12).
    fn decide(&self, p: &[f64], mass: &mut [f64]) -> usize {
        let mass = &mut mass[..self.parents];
        mass.fill(0.0);
        self.parent.iter().zip(p).for_each(|(&parent, p)| mass[parent] += p);
        let best = largest(ArrayView1::from(&*mass));
        let below = (0..p.len()).filter(|&class| self.parent[class] == best);
        below.reduce(|best, class| if p[class] > p[best] { class } else { best }).unwrap_or_default()
    }
}

/// The place of the largest entry; of equal ones the first.
fn largest(values: ArrayView1<'_, f64>) -> usize {
    (0..values.len()).fold(0, |best, i| if values[i] > values[best] { i } else { best })
}
