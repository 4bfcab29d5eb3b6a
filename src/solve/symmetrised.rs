//! The linear systems of seed 000 (eq. 6) as they stand there: symmetrised, with the diagonal preconditioner and the
//! safeguards of its appendix A. Kept as the reference; the other solvers need fewer products.
//!
//! Eq. 6 gives α' = V β, (I + Vᵀ K̃ V) β = Vᵀ u − D^{-½} g, started from β = D^{-½} α. In terms of s = α' − α and
//! δ = β − D^{-½} α that is (I + Vᵀ K̃ V) δ = D^{-½} r, s = V δ, started from zero, as V D^{-½} α = α.
//!
//! Where π is tiny, D^{-½} is not to be had. There D^½β ≈ y (appendix A), hence D^½δ = r: these entries are set, and the
//! system is solved for the others.

use super::iterate::{inner, slice_mut};
use super::root::CurvatureRoot;
use super::{DirectionInfo, NewtonDirection, NewtonPoint, Step};
use crate::context::Context;
use crate::data::{row_major, row_major_mut};
use crate::error::{Error, Result};
use crate::likelihood::Likelihood;
use crate::parallel::{axpy, update};
use crate::prior::JointPrior;
use crate::workspace::Workspace;
use ndarray::{Array2, Zip};

/// π below this is tiny: e^κ of appendix A.
const TINY: f64 = 1e-8;

/// Of the angle between a direction and the gradient, in the norm of K̃.
const LEAST_COSINE: f64 = 1e-3;

/// Newton directions by the symmetrised system.
#[derive(Debug)]
pub struct SymmetrisedCg {
    rho: Array2<f64>,
    z: Array2<f64>,
    p: Array2<f64>,
    root_p: Array2<f64>,
    image: Array2<f64>,
    q: Array2<f64>,
}

impl SymmetrisedCg {
    /// A solver for n points and C classes.
    #[must_use]
    pub fn new(points: usize, classes: usize) -> Self {
        let zeros = || Array2::zeros((points, classes));
        Self { rho: zeros(), z: zeros(), p: zeros(), root_p: zeros(), image: zeros(), q: zeros() }
    }
}

/// What does not change while one system is solved.
struct System {
    v: CurvatureRoot,
    /// Reciprocals of the diagonal of I + Vᵀ K̃ V; 0 at the entries that are set.
    preconditioner: Array2<f64>,
    any_tiny: bool,
}

impl System {
    fn new(prior: &JointPrior, d: Array2<f64>) -> Result<Self> {
        let mut preconditioner = system_diagonal(prior, &d)?;
        let mut any_tiny = false;
        for (mut diagonal, d) in preconditioner.outer_iter_mut().zip(d.outer_iter()) {
            let smallest = TINY * d.sum();
            for (diagonal, d) in diagonal.iter_mut().zip(d) {
                let tiny = *d <= smallest;
                any_tiny |= tiny;
                *diagonal = if tiny { 0.0 } else { 1.0 / *diagonal };
            }
        }
        Ok(Self { v: CurvatureRoot::new(d), preconditioner, any_tiny })
    }
}

/// The diagonal of I + Vᵀ K̃ V (appendix A): 1 + D_ic (K_ic − 2 w_ic + π_iᵀ w_i), w_i = K_i π_i, with K_i the covariance of
/// the classes at point i, intercepts included.
fn system_diagonal(prior: &JointPrior, d: &Array2<f64>) -> Result<Array2<f64>> {
    let mut pi = d.clone();
    for mut row in pi.outer_iter_mut() {
        let sum = row.sum();
        if sum > 0.0 {
            row /= sum;
        }
    }
    let functions = prior.blocks().diagonal();
    let mut variances = Array2::zeros(d.raw_dim());
    prior.mixing().diagonal(variances.view_mut(), functions.view())?;
    let mut mixed = Array2::zeros(functions.raw_dim());
    prior.mixing().to_functions(mixed.view_mut(), pi.view())?;
    mixed *= &functions;
    let mut w = Array2::zeros(d.raw_dim());
    prior.mixing().to_classes(w.view_mut(), mixed.view())?;
    let sigma2 = prior.intercept_variance();
    w.scaled_add(sigma2, &pi);
    for (((mut out, d), w), pi) in
        variances.outer_iter_mut().zip(d.outer_iter()).zip(w.outer_iter()).zip(pi.outer_iter())
    {
        let mean = pi.dot(&w);
        Zip::from(&mut out).and(&d).and(&w).for_each(|out, d, w| *out = 1.0 + d * (*out + sigma2 - 2.0 * w + mean));
    }
    Ok(variances)
}

impl<L: Likelihood> NewtonDirection<L> for SymmetrisedCg {
    fn name(&self) -> &'static str {
        "newton-cg-symmetric"
    }

    fn solve(
        &mut self,
        context: &Context,
        work: &mut Workspace,
        point: &NewtonPoint<'_, L>,
        step: &mut Step,
    ) -> Result<DirectionInfo> {
        let missing = || Error::SolverUnsupported {
            solver: "the solver \"newton-cg-symmetric\"",
            requirement: "the softmax likelihood",
        };
        let d = point.likelihood.diagonal_part(point.curvature).ok_or_else(missing)?;
        let System { v, preconditioner, any_tiny } = System::new(point.prior, d)?;
        let Self { rho, z, p, root_p, image, q } = self;
        let mut products = 0;
        step.s.fill(0.0);
        step.image.fill(0.0);
        Zip::from(&mut *rho).and(point.r).and(v.root()).and(&preconditioner).for_each(|rho, r, root, free| {
            *rho = if *free > 0.0 { r / root } else { 0.0 };
        });
        if any_tiny && point.max_steps > 0 {
            // t = r at the tiny entries gives s = A t there, with A = I − D P_cls, and moves to the right-hand side.
            Zip::from(&mut *q).and(point.r).and(&preconditioner).for_each(|t, r, free| {
                *t = if *free > 0.0 { 0.0 } else { *r };
            });
            v.remove_means(&mut step.s, q);
            point.prior.apply(context, work, step.image.view_mut(), step.s.view())?;
            products += 1;
            v.apply_transposed(z, &step.image)?;
            Zip::from(&mut *rho).and(&*z).and(&preconditioner).for_each(|rho, z, free| {
                *rho = if *free > 0.0 { *rho - z } else { 0.0 };
            });
        }
        precondition(z, rho, &preconditioner)?;
        p.assign(z);
        let mut rz = inner(rho, z)?;
        let goal = point.forcing * point.forcing * inner(rho, rho)?;
        let mut steps = 0;
        while steps + products < point.max_steps && rz > 0.0 && inner(rho, rho)? > goal {
            v.apply(root_p, p)?;
            point.prior.apply(context, work, image.view_mut(), root_p.view())?;
            steps += 1;
            v.apply_transposed(q, image)?;
            axpy(slice_mut(q)?, 1.0, row_major("p", &p.view())?);
            let energy = inner(p, q)?;
            if energy.is_nan() || energy <= 0.0 {
                break;
            }
            let length = rz / energy;
            step.add(length, root_p, image)?;
            axpy(slice_mut(rho)?, -length, row_major("q", &q.view())?);
            precondition(z, rho, &preconditioner)?;
            let next = inner(rho, z)?;
            crate::parallel::xpby(slice_mut(p)?, row_major("z", &z.view())?, next / rz);
            rz = next;
        }
        // With entries that are set, few steps can leave a direction along which Φ hardly falls, or not at all: every line
        // search ends sooner then, at a point that is no minimum. Along the gradient Φ falls fastest.
        let (descent, norms) =
            (inner(point.r, &step.image)?, inner(point.r, point.r_image)? * inner(&step.s, &step.image)?);
        if (descent / norms.sqrt()).partial_cmp(&LEAST_COSINE) != Some(std::cmp::Ordering::Greater) {
            step.s.assign(point.r);
            step.image.assign(point.r_image);
        }
        Ok(DirectionInfo { products: products + steps, steps, rank: 0 })
    }
}

/// z = P ρ and ρ = 0 where P is, at the entries that are set.
fn precondition(z: &mut Array2<f64>, rho: &mut Array2<f64>, preconditioner: &Array2<f64>) -> Result<()> {
    let diagonal = preconditioner.view();
    let diagonal = row_major("the preconditioner", &diagonal)?;
    let keep = |out: &mut [f64], [p]: [&[f64]; 1]| {
        out.iter_mut().zip(p).for_each(|(out, p)| *out = if *p > 0.0 { *out } else { 0.0 });
    };
    let mut view = rho.view_mut();
    update(row_major_mut("ρ", &mut view)?, [diagonal], keep);
    let (mut z, rho) = (z.view_mut(), rho.view());
    update(row_major_mut("z", &mut z)?, [row_major("ρ", &rho)?, diagonal], |z, [rho, p]| {
        z.iter_mut().zip(rho.iter().zip(p)).for_each(|(z, (rho, p))| *z = rho * p);
    });
    Ok(())
}
