//! How independent functions become class functions.

use super::Tree;
use crate::error::Result;
use ndarray::{ArrayView2, ArrayViewMut2};

/// The C × P matrix `mix` with u_c = Σ_p mix[c, p] ŭ_p, given by its products; it is never stored.
///
/// Arrays have one row a point; their columns are the classes (or functions), once or several times side by side.
pub trait Mixing: std::fmt::Debug + Send + Sync {
    /// Number of classes C.
    fn classes(&self) -> usize;

    /// Number of independent functions P.
    fn functions(&self) -> usize;

    /// out = S·mix, from classes to functions.
    fn to_functions(&self, out: ArrayViewMut2<'_, f64>, s: ArrayView2<'_, f64>) -> Result<()>;

    /// out = R·mixᵀ, from functions to classes.
    fn to_classes(&self, out: ArrayViewMut2<'_, f64>, r: ArrayView2<'_, f64>) -> Result<()>;

    /// out = the variances of the class functions from those of the independent functions, Σ_p mix[c, p]² v_p: from the
    /// diagonal of K̆ to that of K̃ less σ².
    fn diagonal(&self, out: ArrayViewMut2<'_, f64>, functions: ArrayView2<'_, f64>) -> Result<()>;

    /// The tree whose leaves the classes are, where there is one: some decisions need it.
    fn tree(&self) -> Option<&Tree> {
        None
    }

    /// Whether `mix` is the identity, so that both products may be left out.
    fn is_identity(&self) -> bool {
        false
    }
}
