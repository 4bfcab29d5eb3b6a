//! Kernels: covariance functions, and the matrices they make of the training points.
//!
//! A [`Covariance`] is a function of two points with shape parameters; its variance v is kept apart, in
//! [`KernelBlocks`], so that one matrix M serves all classes that differ in v only (seed 000, section 6.2). Made of n
//! training points it becomes a [`KernelOperator`], which is all that fitting ever sees. A new covariance function is one
//! new file: a [`Profile`] where it is a function of the distance, a [`Covariance`] otherwise.

mod blocks;
mod columns;
mod covariance;
mod cross;
mod dense;
mod description;
mod linear;
mod linear_dense;
mod linear_groups;
mod linear_sparse;
mod number;
mod operator;
mod packed;
mod precomputed;
mod rbf;
mod shuffle;
mod stationary;
mod symmetric;
mod thin;
mod wide;

pub use blocks::{Block, KernelBlocks};
pub use columns::OnColumns;
pub use covariance::{Covariance, Parameter, PointwiseCovariance, TileBuffers};
pub use dense::DenseOperator;
pub use description::KernelDescription;
pub use linear::Linear;
pub use linear_dense::LinearDense;
pub use linear_groups::WeightedLinear;
pub use linear_sparse::LinearSparse;
pub use operator::KernelOperator;
pub use packed::Precision;
pub use precomputed::{Precomputed, StoredOperator};
pub use rbf::{Gaussian, Rbf};
pub use shuffle::Shuffle;
pub use stationary::{Profile, Stationary, Widths};
