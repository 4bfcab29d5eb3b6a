//! Kernel classification with many, structured classes, tuned by itself, with honest probabilities.
//!
//! ```text
//! independent functions        mixing            class functions        coupling
//! ŭ_p ~ GP(0, v_p M^(l_p))  ──────────────▶   u_c = Σ_p mix[c,p] ŭ_p  ──────────▶  likelihood P(y | u)
//!      kernel blocks         flat: identity                              softmax
//!                            tree: sums along paths
//! ```
//!
//! Three traits carry the model, and everything else is written once on top of them:
//!
//! | trait | what it is | where |
//! |---|---|---|
//! | [`KernelOperator`](kernel::KernelOperator) | products with the matrix of a covariance function | [`kernel`] |
//! | [`Mixing`](prior::Mixing) | how independent functions become class functions | [`prior`] |
//! | [`Likelihood`](likelihood::Likelihood) | how class functions explain the targets | [`likelihood`] |
//!
//! The other modules: [`cv`] (the cross-validation criterion and its gradient), [`learn`] (hyperparameters from it),
//! [`data`] (inputs, targets, scaling), [`solve`] (Newton's method, L-BFGS, linear systems), [`model`]
//! (description, fit, prediction, decisions), [`metrics`] (scores of predictions), [`context`] (threads, interrupts, progress), [`parallel`] (sums in a fixed order),
//! [`error`].
//!
//! Vectors over (point, class) are n × C arrays, row-major: the classes of one point lie side by side. The model is
//! fitted by minimising Φ(α) = Σ_i w_i ℓ_i(u_i) + ½⟨α, u⟩ with u = K̃α, where K̃(S) = K̆(S·mix)·mixᵀ + σ² 1 1ᵀ S and K̆
//! multiplies column p by v_p M^(l_p). Equations are named as in M. Seeger, "Cross-Validation Optimization for Structured
//! Hessian Kernel Methods" (2006), called seed 000.
//!
//! ```
//! use ndarray::array;
//! use nuptse::data::{Inputs, Targets};
//! use nuptse::kernel::Rbf;
//! use nuptse::model::{FitOptions, ModelSpec};
//!
//! let context = nuptse::Context::new(None)?;
//! let x = Inputs::dense(array![[0.0], [0.2], [1.0], [1.2], [2.0], [2.2]])?;
//! let y = Targets::from_labels(&[0, 0, 1, 1, 2, 2], 3)?;
//! let spec = ModelSpec::shared(3, Rbf::automatic(&x, None)?, 10.0);
//! let (model, info) = spec.fit(&context, &x, y, &FitOptions::default())?;
//! assert!(info.solve.converged);
//! assert_eq!(model.predict(&context, &x)?, [0, 0, 1, 1, 2, 2]);
//! # Ok::<(), nuptse::Error>(())
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used))]

/// The programs of the pages are tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../README.md")]
    mod readme {}
    #[doc = include_str!("../docs/tutorials/rust.md")]
    mod tutorial {}
}

mod archive;
pub mod context;
pub mod cv;
pub mod data;
pub mod error;
pub mod kernel;
pub mod learn;
pub mod likelihood;
mod memory;
pub mod metrics;
pub mod model;
pub mod parallel;
pub mod prior;
#[doc(hidden)] // for the benchmarks
pub mod simd;
pub mod solve;
pub mod workspace;

#[cfg(feature = "python")]
mod python;

pub use context::Context;
pub use error::{Error, Result};
