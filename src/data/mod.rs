//! What a model is fitted to: inputs (dense or sparse rows), targets and weights, and the scaling of inputs.

mod csr;
mod inner;
mod inputs;
mod layout;
mod scaling;
mod targets;

pub use csr::CsrRows;
pub use inputs::Inputs;
pub use scaling::Scaling;
pub use targets::{ClassSets, Target, Targets, TargetsKind};

pub use inner::PreparedRows;
pub(crate) use inner::{inner_products, pack_rows, squared_norms};
pub(crate) use layout::{check_shape, row_major, row_major_mut, view, view_mut};
