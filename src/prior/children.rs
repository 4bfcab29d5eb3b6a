//! From the parent of every node to the children of every node.

use crate::error::{Error, Result};

/// The children of every node of a tree, in the order of the nodes.
pub(super) struct Children {
    root: usize,
    offsets: Vec<usize>,
    nodes: Vec<usize>,
}

impl Children {
    /// Fails unless the nodes form one tree, with something below its root.
    pub(super) fn new(parents: &[Option<usize>]) -> Result<Self> {
        let count = parents.len();
        let mut offsets = vec![0; count + 1];
        for (node, parent) in edges(parents) {
            if parent >= count {
                return Err(Error::TreeUnknownParent { node, parent, nodes: count });
            }
            offsets[parent + 1] += 1;
        }
        for node in 0..count {
            offsets[node + 1] += offsets[node];
        }
        let mut next = offsets.clone();
        let mut nodes = vec![0; offsets[count]];
        for (node, parent) in edges(parents) {
            nodes[next[parent]] = node;
            next[parent] += 1;
        }
        let children = Self { root: root(parents)?, offsets, nodes };
        children.check_connected(parents)?;
        Ok(children)
    }

    /// The node without a parent.
    pub(super) fn root(&self) -> usize {
        self.root
    }

    /// The children of a node.
    pub(super) fn of(&self, node: usize) -> &[usize] {
        &self.nodes[self.offsets[node]..self.offsets[node + 1]]
    }

    /// Nodes that cannot be reached from the root lie on cycles or below them.
    fn check_connected(&self, parents: &[Option<usize>]) -> Result<()> {
        let mut reached = vec![false; parents.len()];
        let mut open = vec![self.root];
        while let Some(node) = open.pop() {
            reached[node] = true;
            open.extend_from_slice(self.of(node));
        }
        match reached.iter().position(|reached| !reached) {
            Some(node) => Err(Error::TreeCycle { node: node_on_cycle(parents, node) }),
            None => Ok(()),
        }
    }
}

/// Every node that has a parent, with it.
fn edges(parents: &[Option<usize>]) -> impl Iterator<Item = (usize, usize)> {
    parents.iter().enumerate().filter_map(|(node, parent)| parent.map(|parent| (node, parent)))
}

/// The one node without a parent.
fn root(parents: &[Option<usize>]) -> Result<usize> {
    let mut roots = (0..parents.len()).filter(|&node| parents[node].is_none());
    match (roots.next(), roots.next()) {
        (Some(first), Some(second)) => Err(Error::TreeSecondRoot { first, second }),
        (None, _) if parents.len() > 1 => Err(Error::TreeCycle { node: node_on_cycle(parents, 0) }),
        (Some(root), None) if parents.len() > 1 => Ok(root),
        _ => Err(Error::TreeTooSmall { nodes: parents.len() }),
    }
}

/// Goes up from a node that is not connected to the root until it must have come round.
fn node_on_cycle(parents: &[Option<usize>], start: usize) -> usize {
    (0..parents.len()).fold(start, |node, _| parents[node].unwrap_or(node))
}
