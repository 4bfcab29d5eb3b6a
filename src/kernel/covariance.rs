//! What a covariance function is.

use super::{KernelOperator, Precision};
use crate::context::Context;
use crate::data::{Inputs, PreparedRows};
use crate::error::{Error, Result};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut2};
use std::ops::Range;
use std::sync::Arc;

/// A positive hyperparameter, learned as its logarithm.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// What it is called, e.g. `inverse_width` or `inverse_width[3]`.
    pub name: String,
    /// Its value, not the logarithm.
    pub value: f64,
    /// What suits n points goes with n to this power, as far as is known: learning carries it from the points that folds
    /// keep to all of them.
    pub growth: f64,
}

impl Parameter {
    /// Fails unless `value` is positive and finite.
    pub fn check(name: &'static str, value: f64) -> Result<()> {
        if value > 0.0 && value.is_finite() {
            Ok(())
        } else {
            Err(Error::InvalidParameter { name, value, requirement: "positive and finite" })
        }
    }
}

/// A covariance function without its variance.
pub trait Covariance: std::fmt::Debug + Send + Sync {
    /// Its name, e.g. `rbf`.
    fn name(&self) -> &'static str;

    /// The shape parameters.
    fn parameters(&self) -> Vec<Parameter>;

    /// The same function with other values of its parameters, in the order of [`Covariance::parameters`].
    fn with_parameters(&self, values: &[f64]) -> Result<Arc<dyn Covariance>>;

    /// The columns of the inputs that it sees; all of them where there is none.
    fn columns(&self) -> Option<&[usize]> {
        None
    }

    /// The group of every input, where inputs have weights by group.
    fn groups(&self) -> Option<&[usize]> {
        None
    }

    /// The mean of M(x, x) over the points, by their weights: what a function of variance one varies by.
    fn mean_variance(&self, _x: &Inputs, _weights: Option<ArrayView1<'_, f64>>) -> Result<f64> {
        Ok(1.0)
    }

    /// Whether a product takes work for every pair of points, and not for every entry of the inputs only.
    fn is_pairwise(&self) -> bool {
        true
    }

    /// Whether functions are weighted sums of the inputs, without a constant.
    fn is_linear(&self) -> bool {
        false
    }

    /// Whether predictions need the training points, or their number only.
    fn needs_training_points(&self) -> bool {
        true
    }

    /// The matrix over the training points x.
    fn operator(&self, context: &Context, x: &Inputs, precision: Precision) -> Result<Box<dyn KernelOperator>>;

    /// out = M(X*, X) S: values at the points of `test` of functions given by their coefficients S at those of `train`.
    fn cross_apply(
        &self,
        context: &Context,
        out: ArrayViewMut2<'_, f64>,
        test: &Inputs,
        train: &Inputs,
        s: ArrayView2<'_, f64>,
    ) -> Result<()>;

    /// M(X, X*): one row for every point of `train`, one column for every point of `test`, of which there should be few.
    fn cross_matrix(&self, context: &Context, test: &Inputs, train: &Inputs) -> Result<Array2<f64>> {
        // M is symmetric, so test points may have coefficients too: each is the one point of a function of its own.
        let mut out = Array2::zeros((train.rows(), test.rows()));
        self.cross_apply(context, out.view_mut(), train, test, Array2::eye(test.rows()).view())?;
        Ok(out)
    }
}

/// A covariance function that is evaluated entry by entry, a tile at a time; its matrix is stored, or made anew for every
/// product.
pub trait PointwiseCovariance: std::fmt::Debug + Clone + Send + Sync + 'static {
    /// The points as the tiles need them. `origin` is a point about which inner products may be taken: far from it the
    /// distances of neighbours would be lost to rounding.
    fn prepare(&self, x: &Inputs, origin: &[f64]) -> PreparedRows;

    /// Fills `out`, row-major, with M for the given rows of `a` and of `b`.
    fn tile(
        &self,
        out: &mut [f64],
        a: (&PreparedRows, Range<usize>),
        b: (&PreparedRows, Range<usize>),
        buffers: &mut TileBuffers,
    );

    /// Adds to the gradient, for every parameter θ, Σ_ij t_ij ∂M_ij/∂log θ over one tile of the training matrix; `t` may
    /// be overwritten.
    fn tile_gradient(
        &self,
        gradient: &mut [f64],
        t: &mut [f64],
        x: &PreparedRows,
        rows: Range<usize>,
        columns: Range<usize>,
        buffers: &mut TileBuffers,
    );

    /// Number of shape parameters.
    fn parameter_count(&self) -> usize;

    /// M of every point with itself.
    fn diagonal(&self, x: &PreparedRows) -> Array1<f64>;
}

/// Buffers of one thread for the tiles of a [`PointwiseCovariance`].
#[derive(Debug, Default)]
pub struct TileBuffers {
    pub(crate) inner: Vec<f64>,
    pub(crate) left: Vec<f64>,
    pub(crate) right: Vec<f64>,
    pub(crate) values: Vec<f64>,
    pub(crate) product: Vec<f64>,
}
