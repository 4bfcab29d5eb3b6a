//! A kernel over some of the inputs.

use super::{Covariance, KernelOperator, Parameter, Precision};
use crate::context::Context;
use crate::data::Inputs;
use crate::error::Result;
use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2};
use std::sync::Arc;

/// A covariance function that sees the given columns of the inputs only: titles apart from abstracts, or at the lower
/// levels of a tree what tells classes apart only there (seed 000, end of section 4).
#[derive(Debug, Clone)]
pub struct OnColumns {
    columns: Vec<usize>,
    inner: Arc<dyn Covariance>,
}

impl OnColumns {
    /// The kernel `inner` of the given columns, in that order.
    #[must_use]
    pub fn new(columns: Vec<usize>, inner: Arc<dyn Covariance>) -> Self {
        Self { columns, inner }
    }
}

impl Covariance for OnColumns {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.inner.parameters()
    }

    fn with_parameters(&self, values: &[f64]) -> Result<Arc<dyn Covariance>> {
        Ok(Arc::new(Self::new(self.columns.clone(), self.inner.with_parameters(values)?)))
    }

    fn columns(&self) -> Option<&[usize]> {
        Some(&self.columns)
    }

    fn groups(&self) -> Option<&[usize]> {
        self.inner.groups()
    }

    fn is_pairwise(&self) -> bool {
        self.inner.is_pairwise()
    }

    fn is_linear(&self) -> bool {
        self.inner.is_linear()
    }

    fn mean_variance(&self, x: &Inputs, weights: Option<ArrayView1<'_, f64>>) -> Result<f64> {
        self.inner.mean_variance(&x.select_columns(&self.columns)?, weights)
    }

    fn needs_training_points(&self) -> bool {
        self.inner.needs_training_points()
    }

    fn operator(&self, context: &Context, x: &Inputs, precision: Precision) -> Result<Box<dyn KernelOperator>> {
        self.inner.operator(context, &x.select_columns(&self.columns)?, precision)
    }

    fn cross_apply(
        &self,
        context: &Context,
        out: ArrayViewMut2<'_, f64>,
        test: &Inputs,
        train: &Inputs,
        s: ArrayView2<'_, f64>,
    ) -> Result<()> {
        let (test, train) = (test.select_columns(&self.columns)?, train.select_columns(&self.columns)?);
        self.inner.cross_apply(context, out, &test, &train, s)
    }
}
