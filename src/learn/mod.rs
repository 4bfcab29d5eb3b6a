//! Hyperparameters learned by the gradient of the cross-validation criterion Ψ.

mod checkpoint;
mod criterion;
mod learner;
mod optimiser;
mod parameters;
mod parts;

pub use learner::{Evaluation, LearnOptions, Learned, learn};
pub use optimiser::{Curvature, MinimiserOptions, Minimum, Objective, minimise};
pub use parameters::ParameterLayout;
