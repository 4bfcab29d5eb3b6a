//! Models: what is fitted to what, the fit, predictions, their reasons, and decisions.

mod decide;
mod file;
mod fit;
mod fitted;
mod interpret;
mod spec;

pub use crate::solve::Solver;
pub use decide::{Loss, decide, most_probable, node_masses};
pub use file::SavedModel;
pub use fit::{FitInfo, FitOptions};
pub use fitted::Model;
pub use spec::ModelSpec;
