//! Models: what is fitted to what, the fit, and predictions.

mod fit;
mod fitted;
mod spec;

pub use fit::{FitInfo, FitOptions, Solver};
pub use fitted::Model;
pub use spec::ModelSpec;
