//! Conjugate gradients for the symmetric form of (I + W K̃) x = b, with a low-rank preconditioner.
//!
//! With W = V Vᵀ, x = b − V β, where (I + Vᵀ K̃ V) β = Vᵀ K̃ b =: c. Unlike the form of seed 000 (eq. 6) this one has no
//! D^{-½}. Every iterate x is a descent direction where b = −(α + g), since ⟨c, β⟩ rises towards ⟨c, (I + VᵀK̃V)⁻¹ c⟩, and
//! K̃x comes from the products that are made anyway. With ρ the residual of this system, the quadratic model of Φ is within
//! ½‖ρ‖² of its minimum, and has fallen by at least ½(⟨b, K̃b⟩ − ⟨c, β⟩) when it gets there: that gives the stopping rule.

use super::LowRankPrior;
use super::iterate::{inner, slice_mut};
use super::preconditioner::Preconditioner;
use super::root::CurvatureRoot;
use super::{Step, SystemInfo};
use crate::context::Context;
use crate::data::row_major;
use crate::error::{Error, Result};
use crate::likelihood::Likelihood;
use crate::parallel::{axpy, xpby};
use ndarray::{Array2, ArrayView2};

/// One iteration with its vectors. The product of every step is left to the caller, who may have several systems to
/// multiply for.
#[derive(Debug)]
pub(super) struct LowRankCg {
    rho: Array2<f64>,
    z: Array2<f64>,
    p: Array2<f64>,
    /// V p, which is to be multiplied, and its image.
    pub(super) root_p: Array2<f64>,
    pub(super) image: Array2<f64>,
    q: Array2<f64>,
    /// ρᵀ z.
    rz: f64,
    /// ‖ρ‖², ⟨b, K̃b⟩ and ⟨c, β⟩.
    error: f64,
    norm: f64,
    gained: f64,
    accuracy: f64,
    most_left: f64,
    steps: usize,
}

/// V and the preconditioner at one curvature.
#[derive(Debug)]
pub(super) struct Curved {
    root: CurvatureRoot,
    preconditioner: Preconditioner,
}

impl Curved {
    pub(super) fn new<L: Likelihood>(
        context: &Context,
        approximation: &LowRankPrior,
        likelihood: &L,
        curvature: &L::Curvature,
    ) -> Result<Self> {
        let missing = || Error::SolverUnsupported {
            solver: "the preconditioner of \"newton-cg\"",
            requirement: "the softmax likelihood",
        };
        let root = CurvatureRoot::new(likelihood.diagonal_part(curvature).ok_or_else(missing)?);
        Ok(Self { preconditioner: Preconditioner::new(context, approximation, &root)?, root })
    }
}

impl LowRankCg {
    pub(super) fn new(points: usize, classes: usize) -> Self {
        let zeros = || Array2::zeros((points, classes));
        Self {
            rho: zeros(),
            z: zeros(),
            p: zeros(),
            root_p: zeros(),
            image: zeros(),
            q: zeros(),
            rz: 0.0,
            error: 0.0,
            norm: 0.0,
            gained: 0.0,
            accuracy: 0.0,
            most_left: f64::INFINITY,
            steps: 0,
        }
    }

    /// Steps made since [`LowRankCg::begin`].
    pub(super) fn steps(&self) -> usize {
        self.steps
    }

    /// How it went; the residual is a bound on how far x is from the solution, in the norm of K̃ + K̃WK̃.
    pub(super) fn info(&self) -> SystemInfo {
        SystemInfo { steps: self.steps, converged: self.is_done(), residual: self.error.sqrt() }
    }

    /// Whether the accuracy has been reached.
    pub(super) fn is_done(&self) -> bool {
        let relative = self.accuracy * self.accuracy * (self.norm - self.gained).max(0.0);
        self.error <= relative.min(self.most_left * self.most_left)
    }

    /// Starts from x = b, whose image is given, to a relative accuracy η, and until the error is no more than `most_left`.
    pub(super) fn begin(
        &mut self,
        approximation: &LowRankPrior,
        curved: &mut Curved,
        (b, b_image): (ArrayView2<'_, f64>, ArrayView2<'_, f64>),
        (accuracy, most_left): (f64, f64),
        step: &mut Step,
    ) -> Result<()> {
        step.s.assign(&b);
        step.image.assign(&b_image);
        self.norm = inner(&step.s, &step.image)?;
        curved.root.apply_transposed(&mut self.rho, &step.image)?;
        curved.preconditioner.apply(approximation, &curved.root, &mut self.z, &self.rho, &mut self.q)?;
        self.p.assign(&self.z);
        self.rz = inner(&self.rho, &self.z)?;
        self.error = inner(&self.rho, &self.rho)?;
        self.gained = 0.0;
        self.accuracy = accuracy;
        self.most_left = most_left;
        self.steps = 0;
        Ok(())
    }

    /// Gets V p ready; `false` if there is nothing left to gain. After `true`, its image is to be computed.
    pub(super) fn advance(&mut self, curved: &Curved) -> Result<bool> {
        if self.is_done() || self.rz.is_nan() || self.rz <= 0.0 {
            return Ok(false);
        }
        curved.root.apply(&mut self.root_p, &self.p)?;
        self.steps += 1;
        Ok(true)
    }

    /// Goes along p and takes the next direction, once the image of V p is there.
    pub(super) fn turn(&mut self, approximation: &LowRankPrior, curved: &mut Curved, step: &mut Step) -> Result<()> {
        curved.root.apply_transposed(&mut self.q, &self.image)?;
        axpy(slice_mut(&mut self.q)?, 1.0, row_major("p", &self.p.view())?);
        let energy = inner(&self.p, &self.q)?;
        // Rounding has eaten the direction: what has been gained so far is kept.
        if energy.is_nan() || energy <= 0.0 {
            self.rz = 0.0;
            return Ok(());
        }
        let length = self.rz / energy;
        self.gained += length * self.rz;
        step.add(-length, &self.root_p, &self.image)?;
        axpy(slice_mut(&mut self.rho)?, -length, row_major("q", &self.q.view())?);
        curved.preconditioner.apply(approximation, &curved.root, &mut self.z, &self.rho, &mut self.q)?;
        let next = inner(&self.rho, &self.z)?;
        self.error = inner(&self.rho, &self.rho)?;
        xpby(slice_mut(&mut self.p)?, row_major("z", &self.z.view())?, next / self.rz);
        self.rz = next;
        Ok(())
    }
}
