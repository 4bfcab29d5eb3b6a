//! Exact Newton directions by Cholesky factors, O(Cn³) (seed 000, eq. 10).
//!
//! With D the diagonal part of W and E_c = D_c^½ A_c⁻¹ D_c^½, A_c = I + D_c^½ K̃_c D_c^½, the solution is
//!
//! s_c = r_c − E_c (K̃_c r_c − t), (Σ_c E_c) t = Σ_c E_c K̃_c r_c,
//!
//! which is eq. 10 with D^{-½} cancelled (A⁻¹ = I − D^½ … K̃): no division by small probabilities or weights is left.

use super::{DirectionInfo, NewtonDirection, NewtonPoint, Step};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::likelihood::Likelihood;
use crate::prior::JointPrior;
use crate::workspace::Workspace;
use faer::linalg::solvers::{Llt, Solve};
use faer::{Mat, Side};
use ndarray::{Array1, Array2, ArrayView1};
use rayon::prelude::*;

/// The exact solver, with the kernel matrix of every class in full.
#[derive(Debug)]
pub struct ExactDirection {
    /// M^(l) for every matrix.
    matrices: Vec<Array2<f64>>,
}

impl ExactDirection {
    /// Forms the kernel matrices; fails for class structures that are not flat.
    pub fn new(context: &Context, prior: &JointPrior) -> Result<Self> {
        if !prior.mixing().is_identity() {
            return Err(Error::SolverUnsupported {
                solver: "the solver \"exact\"",
                requirement: "classes without a hierarchy",
            });
        }
        let n = prior.points() as u64;
        let matrices = prior.blocks().matrices();
        let needed = n * n * 8 * (matrices.len() + prior.classes() + 3) as u64;
        context.plan_memory("the exact solver", needed)?;
        let matrices = matrices.iter().map(|matrix| matrix.to_dense(context)).collect::<Result<_>>()?;
        Ok(Self { matrices })
    }

    /// E_c for one class.
    fn block_inverse(&self, prior: &JointPrior, class: usize, d: ArrayView1<'_, f64>) -> Result<Mat<f64>> {
        let block = prior.blocks().blocks()[class];
        let matrix = &self.matrices[block.matrix];
        let n = matrix.nrows();
        let root: Array1<f64> = d.mapv(f64::sqrt);
        let a = Mat::from_fn(n, n, |i, j| {
            let k = block.variance * matrix[[i, j]] + prior.intercept_variance();
            root[i] * k * root[j] + f64::from(u8::from(i == j))
        });
        let factor = Llt::new(a.as_ref(), Side::Lower).map_err(|_| Error::NotPositiveDefinite { class })?;
        let mut inverse = factor.solve(Mat::<f64>::identity(n, n));
        for j in 0..n {
            for i in 0..n {
                inverse[(i, j)] *= root[i] * root[j];
            }
        }
        Ok(inverse)
    }
}

impl<L: Likelihood> NewtonDirection<L> for ExactDirection {
    fn name(&self) -> &'static str {
        "exact"
    }

    fn solve(
        &mut self,
        context: &Context,
        work: &mut Workspace,
        point: &NewtonPoint<'_, L>,
        step: &mut Step,
    ) -> Result<DirectionInfo> {
        let requirement = "the softmax likelihood";
        let d = point
            .likelihood
            .diagonal_part(point.curvature)
            .ok_or(Error::SolverUnsupported { solver: "the solver \"exact\"", requirement })?;
        let (n, classes) = d.dim();
        let inverses = (0..classes).into_par_iter().map(|class| {
            context.check()?;
            self.block_inverse(point.prior, class, d.column(class))
        });
        let inverses = inverses.collect::<Result<Vec<_>>>()?;
        let mut sum = Mat::<f64>::zeros(n, n);
        let mut t = Mat::<f64>::zeros(n, 1);
        for (class, inverse) in inverses.iter().enumerate() {
            sum += inverse;
            t += inverse * Mat::from_fn(n, 1, |i, _| point.r_image[[i, class]]);
        }
        for i in 0..n {
            // A point without weight has a row of zeros, and t = 0 there.
            if d.row(i).sum() == 0.0 {
                sum[(i, i)] = 1.0;
            }
        }
        let factor = Llt::new(sum.as_ref(), Side::Lower).map_err(|_| Error::NotPositiveDefinite { class: 0 })?;
        let t = factor.solve(t);
        for (class, inverse) in inverses.iter().enumerate() {
            let change = inverse * Mat::from_fn(n, 1, |i, _| point.r_image[[i, class]] - t[(i, 0)]);
            for i in 0..n {
                step.s[[i, class]] = point.r[[i, class]] - change[(i, 0)];
            }
        }
        point.prior.apply(context, work, step.image.view_mut(), step.s.view())?;
        Ok(DirectionInfo { products: 1, steps: 0, rank: 0 })
    }
}
