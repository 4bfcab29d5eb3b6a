//! The description of a model, before any data.

use crate::context::Context;
use crate::data::Inputs;
use crate::error::Result;
use crate::kernel::{Block, Covariance, KernelBlocks, Precision};
use crate::prior::{Flat, JointPrior, Mixing};
use std::sync::Arc;

/// Arrays of n × C doubles that Newton's method has at once.
const FIT_ARRAYS: usize = 14;

/// Kernels, how the classes share them, and the class structure.
#[derive(Debug, Clone)]
pub struct ModelSpec {
    /// The covariance functions M^(l).
    pub covariances: Vec<Arc<dyn Covariance>>,
    /// For every function of the prior its covariance function and variance.
    pub blocks: Vec<Block>,
    /// The class structure.
    pub mixing: Arc<dyn Mixing>,
    /// σ², the variance of the intercepts; 0 for none.
    pub intercept_variance: f64,
}

impl ModelSpec {
    /// Flat classes which all share one kernel v M, with an intercept of variance 1.
    #[must_use]
    pub fn shared(classes: usize, covariance: impl Covariance + 'static, variance: f64) -> Self {
        Self {
            covariances: vec![Arc::new(covariance)],
            blocks: vec![Block { matrix: 0, variance }; classes],
            mixing: Arc::new(Flat::new(classes)),
            intercept_variance: 1.0,
        }
    }

    /// Bytes of the arrays that a fit of so many points has beside the kernel matrices, with the solver that takes the least.
    pub(crate) fn vector_bytes(&self, points: usize) -> u64 {
        let width = FIT_ARRAYS * self.mixing.classes() + 2 * self.mixing.functions();
        (points as u64).saturating_mul(width as u64).saturating_mul(size_of::<f64>() as u64)
    }

    /// The prior over the training points x.
    pub fn prior(&self, context: &Context, x: &Inputs, precision: Precision) -> Result<JointPrior> {
        // All of them have to fit, not each.
        let mut left = context.clone();
        let mut operators = Vec::with_capacity(self.covariances.len());
        for covariance in &self.covariances {
            let operator = covariance.operator(&left, x, precision)?;
            left = left.after_taking(operator.stored_bytes());
            operators.push(operator);
        }
        let blocks = KernelBlocks::new(operators, self.blocks.clone())?;
        JointPrior::new(blocks, Arc::clone(&self.mixing), self.intercept_variance)
    }

    /// The same for fits of several folds side by side, with room left for these.
    pub(crate) fn prior_for_folds(
        &self,
        context: &Context,
        x: &Inputs,
        precision: Precision,
        folds: usize,
    ) -> Result<JointPrior> {
        let needed = self.vector_bytes(x.rows()).saturating_mul(folds as u64);
        let for_matrices = context.set_aside("the folds of the cross-validation", needed)?;
        context.install(|| self.prior(&for_matrices, x, precision))
    }
}
