//! Hyperparameters learned by the gradient of the cross-validation criterion Ψ.

mod checkpoint;
mod learner;
mod optimiser;
mod parameters;

pub use learner::{Evaluation, LearnOptions, Learned, learn};
pub use optimiser::{MinimiserOptions, Minimum, Objective, minimise};
pub use parameters::ParameterLayout;
