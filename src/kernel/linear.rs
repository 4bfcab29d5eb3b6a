//! The linear kernel M = X Xᵀ.

use super::covariance::{PointwiseCovariance, TileBuffers};
use super::cross::check_cross;
use super::linear_dense::{LinearDense, dense_multiply, transposed_multiply};
use super::linear_sparse::{LinearSparse, sparse_multiply};
use super::packed::PackedSymmetric;
use super::{Covariance, DenseOperator, KernelOperator, Parameter, Precision};
use crate::context::Context;
use crate::data::{Inputs, PreparedRows, check_shape, inner_products, squared_norms};
use crate::error::Result;
use crate::workspace::Workspace;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut2};
use std::ops::Range;
use std::sync::Arc;

/// The inner product of the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Linear;

/// Nanoseconds that a product takes for each column, on one machine of two cores (`benches/results/products.md`); only
/// their ratios matter.
mod cost {
    /// An entry of a stored symmetric matrix, per point squared.
    pub(super) const STORED: f64 = 0.032;
    /// An entry of dense rows, which is used in both halves of the product.
    pub(super) const DENSE: f64 = 0.060;
    /// An entry of sparse rows, likewise.
    pub(super) const SPARSE: f64 = 0.22;
}

impl Linear {
    /// Whether X Xᵀ is multiplied faster once it is there than by way of X.
    fn pays_to_store(x: &Inputs) -> bool {
        let n = x.rows() as f64;
        let by_rows = match x {
            Inputs::Dense(x) => cost::DENSE * x.len() as f64,
            Inputs::Sparse(x) => cost::SPARSE * x.entries() as f64,
        };
        cost::STORED * n * n < by_rows
    }
}

impl Covariance for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn parameters(&self) -> Vec<Parameter> {
        Vec::new()
    }

    fn with_parameters(&self, values: &[f64]) -> Result<Arc<dyn Covariance>> {
        check_shape("the number of shape parameters", 0, values.len())?;
        Ok(Arc::new(*self))
    }

    fn is_pairwise(&self) -> bool {
        false
    }

    fn is_linear(&self) -> bool {
        true
    }

    fn mean_variance(&self, x: &Inputs, weights: Option<ArrayView1<'_, f64>>) -> Result<f64> {
        let norms = squared_norms(x);
        let weights = weights.map_or_else(|| Array1::ones(norms.len()), |weights| weights.to_owned());
        check_shape("there must be a weight for every point", norms.len(), weights.len())?;
        Ok(norms.dot(&weights) / weights.sum())
    }

    fn operator(&self, context: &Context, x: &Inputs, precision: Precision) -> Result<Box<dyn KernelOperator>> {
        if Self::pays_to_store(x) && context.has_room(PackedSymmetric::bytes(x.rows(), precision)) {
            return Ok(Box::new(DenseOperator::new(context, *self, x, precision)?));
        }
        Ok(match x {
            Inputs::Dense(x) => Box::new(LinearDense::new(x)),
            Inputs::Sparse(x) => Box::new(LinearSparse::new(x)),
        })
    }

    fn cross_apply(
        &self,
        context: &Context,
        out: ArrayViewMut2<'_, f64>,
        test: &Inputs,
        train: &Inputs,
        s: ArrayView2<'_, f64>,
    ) -> Result<()> {
        check_cross(&out, test, train.columns(), train, &s)?;
        let needed = (train.columns() as u64).saturating_mul((s.ncols() * size_of::<f64>()) as u64);
        context.plan_memory("the weights of all inputs", needed)?;
        let mut weights = Array2::zeros((train.columns(), s.ncols()));
        match train {
            Inputs::Dense(x) => {
                transposed_multiply(context, &mut Workspace::default(), weights.view_mut(), x.view(), s)?;
            }
            Inputs::Sparse(x) => sparse_multiply(context, weights.view_mut(), &x.transpose(), s)?,
        }
        match test {
            Inputs::Dense(x) => dense_multiply(context, out, x.view(), weights.view()),
            Inputs::Sparse(x) => sparse_multiply(context, out, x, weights.view()),
        }
    }
}

/// Entry by entry, for when X Xᵀ is stored.
impl PointwiseCovariance for Linear {
    fn prepare(&self, x: &Inputs, _origin: &[f64]) -> PreparedRows {
        PreparedRows::plain(x)
    }

    fn tile(
        &self,
        out: &mut [f64],
        (a, rows): (&PreparedRows, Range<usize>),
        (b, columns): (&PreparedRows, Range<usize>),
        buffers: &mut TileBuffers,
    ) {
        inner_products(out, (a.rows(), rows), (b.rows(), columns), &mut buffers.inner);
    }

    fn tile_gradient(
        &self,
        _gradient: &mut [f64],
        _t: &mut [f64],
        _x: &PreparedRows,
        _rows: Range<usize>,
        _columns: Range<usize>,
        _buffers: &mut TileBuffers,
    ) {
    }

    fn parameter_count(&self) -> usize {
        0
    }

    fn diagonal(&self, x: &PreparedRows) -> Array1<f64> {
        squared_norms(x.rows())
    }
}
