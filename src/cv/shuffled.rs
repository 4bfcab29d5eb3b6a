//! One fold by covariance shuffling (seed 000, D.1): the points kept come first, and the fit works on the leading corner.

use super::CvOptions;
use super::fold::{AdjointSystem, FINEST, FoldResult, MOST_REFINEMENTS, loss_and_gradient};
use crate::context::Context;
use crate::data::Targets;
use crate::error::Result;
use crate::kernel::Shuffle;
use crate::likelihood::Softmax;
use crate::prior::JointPrior;
use crate::solve::minimise;
use crate::workspace::Workspace;
use ndarray::{Array2, ArrayView2, Axis, s};

/// Works on a fold; the prior is as it was when this returns.
pub(super) fn shuffled(
    context: &Context,
    prior: &mut JointPrior,
    targets: &Targets,
    held_out: &[usize],
    start: Option<ArrayView2<'_, f64>>,
    options: &CvOptions,
    wants_gradient: bool,
) -> Result<FoldResult> {
    let shuffle = Shuffle::holding_out(held_out, targets.points())?;
    prior.shuffle(&shuffle);
    let order = shuffle.order(targets.points());
    let result = on_corner(context, prior, targets, (&order, shuffle.kept()), start, options, wants_gradient);
    prior.lead(None);
    prior.shuffle(&shuffle);
    result.map(|result| FoldResult {
        e: in_order(&result.e, &order),
        f: result.f.map(|f| in_order(&f, &order)),
        ..result
    })
}

/// Works with the points in the given order, of which the first ones are kept; so are the rows of what it returns.
fn on_corner(
    context: &Context,
    prior: &mut JointPrior,
    targets: &Targets,
    (order, kept): (&[usize], usize),
    start: Option<ArrayView2<'_, f64>>,
    options: &CvOptions,
    wants_gradient: bool,
) -> Result<FoldResult> {
    let (n, classes) = (order.len(), prior.classes());
    let likelihood = Softmax::new(targets.select(&order[..kept])?);
    let held_out = Softmax::new(targets.select(&order[kept..])?);
    let start = start.map(|start| start.select(Axis(0), &order[..kept]));
    prior.lead(Some(kept));
    let (solver, mut params) = options.solver(context, prior);
    let mut work = Workspace::default();
    let mut found = minimise(context, prior, &likelihood, start.as_ref().map(|a| a.view()), solver, &params, None)?;
    let mut products = found.info.products;
    let mut refinements = 0;
    loop {
        let converged = found.info.converged;
        let (mut e, mut image) = (Array2::zeros((n, classes)), Array2::zeros((n, classes)));
        e.slice_mut(s![..kept, ..]).assign(&found.alpha);
        prior.lead(None);
        prior.apply(context, &mut work, image.view_mut(), e.view())?;
        let (value, g) = loss_and_gradient(&held_out, &image.slice(s![kept.., ..]).to_owned())?;
        products += 1;
        if !wants_gradient {
            return Ok(FoldResult { e, f: None, value, products, converged });
        }
        let mut f = Array2::zeros((n, classes));
        f.slice_mut(s![kept.., ..]).assign(&g);
        prior.apply(context, &mut work, image.view_mut(), f.view())?;
        let of_held_out = (&g * &image.slice(s![kept.., ..])).sum();
        let image = image.slice(s![..kept, ..]);
        prior.lead(Some(kept));
        let limit = options.accuracy * value;
        let system = AdjointSystem { prior, kept: &likelihood, found: &found, image, limit };
        let adjoint = system.solve(context, &mut work, solver, None, options)?;
        products += 1 + adjoint.products;
        let needed = adjoint.refinement(of_held_out, image, limit);
        if refinements == MOST_REFINEMENTS || !converged || needed >= 1.0 || params.tol <= FINEST {
            let value = adjoint.corrected(value, image, converged);
            let converged = converged && adjoint.converged;
            f.slice_mut(s![..kept, ..]).assign(&-adjoint.step.s);
            return Ok(FoldResult { e, f: Some(f), value, products, converged });
        }
        params.tol = (params.tol * needed).max(FINEST);
        found = minimise(context, prior, &likelihood, Some(found.alpha.view()), solver, &params, None)?;
        products += found.info.products;
        refinements += 1;
    }
}

/// Rows back to their points.
fn in_order(rows: &Array2<f64>, order: &[usize]) -> Array2<f64> {
    let mut back = Array2::zeros(rows.raw_dim());
    for (row, &point) in rows.outer_iter().zip(order) {
        back.row_mut(point).assign(&row);
    }
    back
}
