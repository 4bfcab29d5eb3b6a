//! Kernel matrices that the user computes.

use super::full::{FullOperator, dense, multiply};
use super::{Covariance, KernelOperator, Parameter, Precision};
use crate::context::Context;
use crate::data::{Inputs, check_shape};
use crate::error::Result;
use ndarray::{ArrayView2, ArrayViewMut2};
use std::sync::Arc;

/// The inputs are the kernel matrix itself: n × n for training, test points × n for prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Precomputed;

impl Covariance for Precomputed {
    fn name(&self) -> &'static str {
        "precomputed"
    }

    fn parameters(&self) -> Vec<Parameter> {
        Vec::new()
    }

    fn with_parameters(&self, values: &[f64]) -> Result<Arc<dyn Covariance>> {
        check_shape("the number of shape parameters", 0, values.len())?;
        Ok(Arc::new(*self))
    }

    fn operator(&self, _context: &Context, x: &Inputs, _precision: Precision) -> Result<Box<dyn KernelOperator>> {
        Ok(Box::new(FullOperator::new(dense(x)?.clone())?))
    }

    fn cross_apply(
        &self,
        context: &Context,
        out: ArrayViewMut2<'_, f64>,
        test: &Inputs,
        train: &Inputs,
        s: ArrayView2<'_, f64>,
    ) -> Result<()> {
        check_shape("the number of columns of X must be that of the training points", train.rows(), test.columns())?;
        multiply(context, out, dense(test)?.view(), s)
    }
}
