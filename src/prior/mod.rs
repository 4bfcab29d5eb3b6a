//! The prior over class functions: independent functions, and how they are mixed.

mod flat;
mod joint;
mod mixing;

pub use flat::Flat;
pub use joint::JointPrior;
pub use mixing::Mixing;
