//! The description of a model, before any data.

use crate::context::Context;
use crate::data::Inputs;
use crate::error::Result;
use crate::kernel::{Block, Covariance, KernelBlocks, Precision};
use crate::prior::{Flat, JointPrior, Mixing};
use std::sync::Arc;

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

    /// The prior over the training points x.
    pub fn prior(&self, context: &Context, x: &Inputs, precision: Precision) -> Result<JointPrior> {
        let operators = self.covariances.iter().map(|covariance| covariance.operator(context, x, precision));
        let blocks = KernelBlocks::new(operators.collect::<Result<_>>()?, self.blocks.clone())?;
        JointPrior::new(blocks, Arc::clone(&self.mixing), self.intercept_variance)
    }
}
