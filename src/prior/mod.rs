//! The prior over class functions: independent functions, and how they are mixed.

mod children;
mod flat;
mod joint;
mod mixing;
mod tree;

pub use flat::Flat;
pub use joint::JointPrior;
pub use mixing::Mixing;
pub use tree::Tree;
