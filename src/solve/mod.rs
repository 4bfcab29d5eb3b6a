//! Solvers for the fit at fixed hyperparameters: minimise Φ(α) = Σ_i w_i ℓ_i(u_i) + ½⟨α, u⟩, u = K̃α.
//!
//! Newton's method ([`newton`]) is written once; how its linear systems (I + W K̃) s = r are solved is a
//! [`NewtonDirection`]: conjugate gradients in the inner product of K̃ ([`ConjugateGradients`]) or Cholesky factors
//! ([`ExactDirection`]).

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
mod metric;
mod newton;
mod preconditioned;
mod preconditioner;
mod root;
mod symmetrised;
mod systems;

pub use cg::ConjugateGradients;
pub use direction::{DirectionInfo, NewtonDirection, NewtonPoint, Step};
pub use exact::ExactDirection;
pub use info::{PreconditionerUse, Solution, SolveInfo, SolveParams, TracePoint};
pub use lbfgs::lbfgs;
pub use newton::newton;
pub use preconditioned::PreconditionedCg;
pub use preconditioner::LowRankPrior;
pub use symmetrised::SymmetrisedCg;
pub use systems::{LinearSystem, SystemInfo, solve_systems};
