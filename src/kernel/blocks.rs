//! K̆: independent blocks v_p M^(l_p), with matrices shared between blocks (seed 000, section 6.2).

use super::symmetric::check_corner;
use super::{KernelOperator, Parameter, Shuffle};
use crate::context::Context;
use crate::data::{check_shape, row_major, row_major_mut, view, view_mut};
use crate::error::{Error, Result};
use crate::parallel::part_len;
use crate::workspace::Workspace;
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use rayon::prelude::*;

/// One block v_p M^(l_p).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// l_p, the index of its matrix.
    pub matrix: usize,
    /// v_p, its variance.
    pub variance: f64,
}

/// The blocks of all P independent functions, and the matrices they share.
#[derive(Debug)]
pub struct KernelBlocks {
    matrices: Vec<Box<dyn KernelOperator>>,
    blocks: Vec<Block>,
    /// For every matrix the blocks that use it.
    users: Vec<Vec<usize>>,
    /// How many leading points take part; all of them where there is no number.
    leading: Option<usize>,
}

impl KernelBlocks {
    /// Blocks over matrices of the same size.
    pub fn new(matrices: Vec<Box<dyn KernelOperator>>, blocks: Vec<Block>) -> Result<Self> {
        let what = "a kernel matrix has other points than the first one";
        for matrix in matrices.iter().skip(1) {
            check_shape(what, matrices[0].points(), matrix.points())?;
        }
        let mut users = vec![Vec::new(); matrices.len()];
        for (p, block) in blocks.iter().enumerate() {
            Parameter::check("variance", block.variance)?;
            let found = users.len();
            let what = "a block names a kernel matrix that is not there; matrices needed";
            users
                .get_mut(block.matrix)
                .ok_or(Error::ShapeMismatch { what, expected: block.matrix + 1, found })?
                .push(p);
        }
        Ok(Self { matrices, blocks, users, leading: None })
    }

    /// Number of points n.
    #[must_use]
    pub fn points(&self) -> usize {
        self.leading.unwrap_or_else(|| self.matrices.first().map_or(0, |matrix| matrix.points()))
    }

    /// Lets these be the blocks of the given number of leading points, or of all of them again.
    pub(crate) fn lead(&mut self, points: Option<usize>) {
        self.leading = points;
    }

    /// Changes the variance of every block.
    pub(crate) fn set_variances(&mut self, variances: impl IntoIterator<Item = f64>) -> Result<()> {
        let mut blocks = self.blocks.clone();
        for (block, variance) in blocks.iter_mut().zip(variances) {
            Parameter::check("variance", variance)?;
            block.variance = variance;
        }
        self.blocks = blocks;
        Ok(())
    }

    /// For every matrix the blocks that use it.
    #[must_use]
    pub fn users(&self) -> &[Vec<usize>] {
        &self.users
    }

    /// Number of blocks P.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether there are no blocks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The blocks.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The matrices.
    #[must_use]
    pub fn matrices(&self) -> &[Box<dyn KernelOperator>] {
        &self.matrices
    }

    /// out = K̆(S): column p of S times v_p M^(l_p). S is n × P, or several such arrays side by side. All columns that
    /// share a matrix are multiplied at once.
    pub fn apply(
        &self,
        context: &Context,
        work: &mut Workspace,
        mut out: ArrayViewMut2<'_, f64>,
        s: ArrayView2<'_, f64>,
    ) -> Result<()> {
        let (n, width) = s.dim();
        check_corner(self.points(), n)?;
        check_shape("the columns of S must be the blocks, once or several times", 0, width % self.len().max(1))?;
        if let [matrix] = self.matrices.as_slice() {
            let p = self.len();
            return matrix.apply_scaled(context, work, out, s, &|column| self.blocks[column % p].variance);
        }
        let repeats = width / self.len().max(1);
        let s = row_major("S", &s)?;
        let out = row_major_mut("the product", &mut out)?;
        for (matrix, users) in self.matrices.iter().zip(&self.users) {
            let k = users.len() * repeats;
            if k == 0 {
                continue;
            }
            let columns: Vec<usize> =
                (0..repeats).flat_map(|r| users.iter().map(move |p| r * self.blocks.len() + p)).collect();
            let (mut gathered, mut product) = (work.take(n * k), work.take(n * k));
            gather(&mut gathered, s, &columns, width);
            let done = view((n, k), &gathered)
                .and_then(|gathered| matrix.apply(context, work, view_mut((n, k), &mut product)?, gathered));
            if done.is_ok() {
                let variances: Vec<f64> = columns.iter().map(|c| self.blocks[c % self.len()].variance).collect();
                scatter(out, &product, &columns, &variances, width);
            }
            work.give(gathered);
            work.give(product);
            done?;
        }
        Ok(())
    }

    /// Exchanges points in all matrices; the same call again undoes it.
    pub fn shuffle(&mut self, shuffle: &Shuffle) {
        self.matrices.iter_mut().for_each(|matrix| matrix.shuffle(shuffle));
    }

    /// v_p times the diagonal of M^(l_p) in column p.
    #[must_use]
    pub fn diagonal(&self) -> Array2<f64> {
        let diagonals: Vec<_> = self.matrices.iter().map(|matrix| matrix.diagonal()).collect();
        Array2::from_shape_fn((self.points(), self.len()), |(i, p)| {
            self.blocks[p].variance * diagonals[self.blocks[p].matrix][i]
        })
    }
}

/// Copies the given columns of an array of `width` columns side by side.
fn gather(out: &mut [f64], s: &[f64], columns: &[usize], width: usize) {
    let k = columns.len();
    let rows = part_len(s.len() / width);
    out.par_chunks_mut(rows * k).zip(s.par_chunks(rows * width)).for_each(|(out, s)| {
        for (out, s) in out.chunks_mut(k).zip(s.chunks(width)) {
            out.iter_mut().zip(columns).for_each(|(out, &column)| *out = s[column]);
        }
    });
}

/// Writes columns, each times its factor, to their places in an array of `width` columns.
fn scatter(out: &mut [f64], product: &[f64], columns: &[usize], factors: &[f64], width: usize) {
    let k = columns.len();
    let rows = part_len(out.len() / width);
    out.par_chunks_mut(rows * width).zip(product.par_chunks(rows * k)).for_each(|(out, product)| {
        for (out, product) in out.chunks_mut(width).zip(product.chunks(k)) {
            for ((&column, factor), value) in columns.iter().zip(factors).zip(product) {
                out[column] = factor * value;
            }
        }
    });
}
