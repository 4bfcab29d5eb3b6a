//! Solvers for the fit at fixed hyperparameters: minimise Φ(α) = Σ_i w_i ℓ_i(u_i) + ½⟨α, u⟩, u = K̃α.
//!
//! [`newton`] is Newton's method; how its linear systems (I + W K̃) s = r are solved is a [`NewtonDirection`]:
//!
//! - [`ConjugateGradients`]: in the inner product of K̃;
//! - [`PreconditionedCg`]: the same or, where it pays, the symmetric form with a low-rank preconditioner;
//! - [`SymmetrisedCg`]: the system and the diagonal preconditioner of seed 000, for reference;
//! - [`ExactDirection`]: Cholesky factors, for checking.
//!
//! [`lbfgs`] is L-BFGS in the space of functions. [`solve_systems`] solves linear systems of several folds side by side. All
//! of them move a pair (α, u = K̃α) and share its stopping rules.

mod cg;
mod direction;
mod exact;
mod history;
mod info;
mod iterate;
mod lbfgs;
mod leading;
mod line_search;
mod low_rank;
mod low_rank_cg;
mod low_rank_prior;
mod metric;
mod newton;
mod preconditioned;
mod preconditioner;
mod root;
mod solver;
mod stages;
mod symmetrised;
mod systems;

pub use cg::ConjugateGradients;
pub use direction::{DirectionInfo, NewtonDirection, NewtonPoint, Step};
pub use exact::ExactDirection;
pub use info::{PreconditionerUse, Solution, SolveInfo, SolveParams, TracePoint};
pub use lbfgs::lbfgs;
pub use low_rank_prior::LowRankPrior;
pub use newton::newton;
pub use preconditioned::PreconditionedCg;
pub use solver::Solver;
pub(crate) use solver::minimise;
pub(crate) use stages::Stages;
pub use symmetrised::SymmetrisedCg;
pub use systems::{LinearSystem, SystemInfo, solve_systems};
