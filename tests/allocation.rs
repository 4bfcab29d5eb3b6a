//! Conjugate gradients allocate nothing once they run.

#![allow(clippy::unwrap_used, unsafe_code)]

mod support;

use nuptse::Context;
use nuptse::data::{Inputs, Targets};
use nuptse::kernel::{Covariance, Linear, Rbf};
use nuptse::model::{FitOptions, ModelSpec, Solver};
use nuptse::solve::{PreconditionerUse, SolveParams};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::Random;

struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of a fit of one Newton step with so many steps of conjugate gradients.
fn allocations(
    spec: &ModelSpec,
    x: &Inputs,
    targets: &Targets,
    cg_steps: usize,
    preconditioner: PreconditionerUse,
) -> usize {
    // One thread: more of them make allocations of their own, now and then, when they steal work from each other.
    let context = Context::new(Some(1)).unwrap();
    let solve = SolveParams {
        tol: 1e-14,
        max_steps: 1,
        max_inner_steps: cg_steps,
        first_forcing: 1e-9,
        preconditioner,
        ..SolveParams::default()
    };
    let options = FitOptions { solver: Solver::NewtonCg, solve, ..FitOptions::default() };
    let before = COUNT.load(Ordering::Relaxed);
    let (_, info) = spec.fit(&context, x, targets.clone(), &options).unwrap();
    assert_eq!(info.solve.inner_steps, cg_steps);
    assert_eq!(info.solve.preconditioner_rank > 0, preconditioner == PreconditionerUse::On);
    COUNT.load(Ordering::Relaxed) - before
}

#[test]
fn more_cg_steps_take_no_more_allocations() {
    let mut random = Random::new(1);
    let (few_classes, many_classes) = (random.targets(300, 3, false, false), random.targets(300, 230, false, false));
    let (dense, sparse) = (random.dense(300, 30), random.sparse(300, 40));
    let rbf: Arc<dyn Covariance> = Arc::new(Rbf::isotropic(3.0).unwrap());
    let linear: Arc<dyn Covariance> = Arc::new(Linear);
    // The preconditioner couples few classes, and takes many one by one.
    for (covariance, x, targets, preconditioner) in [
        (&rbf, &dense, &few_classes, PreconditionerUse::Off),
        (&linear, &sparse, &few_classes, PreconditionerUse::Off),
        (&linear, &dense, &few_classes, PreconditionerUse::Off),
        (&linear, &dense, &few_classes, PreconditionerUse::On),
        (&linear, &dense, &many_classes, PreconditionerUse::On),
    ] {
        let mut spec = ModelSpec::shared(targets.classes(), Linear, 20.0);
        spec.covariances = vec![Arc::clone(covariance)];
        let smallest = |steps| (0..5).map(|_| allocations(&spec, x, targets, steps, preconditioner)).min().unwrap();
        let (few, many) = (smallest(2), smallest(9));
        // An allocation in the loop would show seven times; starting threads may make one or two at any time.
        assert!(many < few + 5, "7 steps more take {} allocations more", many - few);
    }
}
