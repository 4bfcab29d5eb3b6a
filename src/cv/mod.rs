//! Cross-validation: the criterion Ψ, the negative log likelihood of points held out, and its gradient with respect to all
//! hyperparameters (seed 000, sections 5 and 6.3).
//!
//! For each fold k with held-out points I and kept ones J, α^(k) minimises Φ on J; then u_I = K̃_{I,J} α^(k) and
//! Ψ = Σ_k Σ_{i∈I_k} w_i ℓ_i(u_i). With g_I = w(π_I − y_I) and x from (I + W_J K̃_J) x = W_J K̃_{J,I} g_I,
//!
//! dΨ = Σ_k ⟨E_k, (dK̃) F_k⟩, E_k = α on J and 0 on I, F_k = g_I on I and −x on J.
//!
//! Computing E and F does not depend on the number of hyperparameters; [`gradient`] does the rest. There are two ways
//! through the folds, which give the same figures: one after the other on the leading corner of shuffled kernel matrices,
//! or all at once in place, each in a thread of its own, where their products meet and share one pass over the matrices.

mod adjoint;
mod criterion;
mod fold;
mod folds;
mod gradient;
mod meeting;
mod shuffled;

pub use criterion::{CrossValidation, CvInfo, CvOptions, CvResult, FoldMethod};
pub use fold::{FoldState, Pace};
pub use folds::Folds;
pub use gradient::{CvGradient, gradient};
pub(crate) use meeting::Member;
