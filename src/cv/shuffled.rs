//! One fold by covariance shuffling (seed 000, D.1): the points kept come first, and the fit works on the leading corner.

use super::CvOptions;
use super::fold::{FoldParts, FoldResult, FoldStart, FoldState, HeldOut, loss_and_gradient, work_on};
use crate::context::Context;
use crate::data::Targets;
use crate::error::Result;
use crate::kernel::Shuffle;
use crate::likelihood::Softmax;
use crate::prior::JointPrior;
use crate::solve::Solution;
use crate::workspace::Workspace;
use ndarray::{Array2, Axis, s};

/// Works on a fold; the prior is as it was when this returns.
pub(super) fn shuffled(
    context: &Context,
    prior: &mut JointPrior,
    targets: &Targets,
    held_out: &[usize],
    before: Option<&FoldState>,
    options: &CvOptions,
    wants_gradient: bool,
) -> Result<FoldResult> {
    let shuffle = Shuffle::holding_out(held_out, targets.points())?;
    prior.shuffle(&shuffle);
    let order = shuffle.order(targets.points());
    let result = on_corner(context, prior, targets, (&order, shuffle.kept()), before, options, wants_gradient);
    prior.lead(None);
    prior.shuffle(&shuffle);
    result
}

/// Points in an order in which those kept come first; the prior leads with these, but while it says something of the others.
struct Corner<'a> {
    prior: &'a mut JointPrior,
    points: usize,
    first: usize,
    kept: Softmax,
    held_out: Softmax,
}

impl FoldParts for Corner<'_> {
    fn prior(&self) -> &JointPrior {
        self.prior
    }

    fn kept(&self) -> &Softmax {
        &self.kept
    }

    fn hold_out(
        &mut self,
        context: &Context,
        work: &mut Workspace,
        found: &Solution,
        wants_influence: bool,
    ) -> Result<HeldOut> {
        self.prior.lead(None);
        // As u, these are products from which all others start.
        let exact = context.with_rough_products(false);
        let result = self.with_all_points(&exact, work, found, wants_influence);
        self.prior.lead(Some(self.first));
        result
    }
}

impl Corner<'_> {
    fn with_all_points(
        &self,
        context: &Context,
        work: &mut Workspace,
        found: &Solution,
        wants_influence: bool,
    ) -> Result<HeldOut> {
        let shape = (self.points, found.alpha.ncols());
        let (mut all, mut image) = (Array2::zeros(shape), Array2::zeros(shape));
        all.slice_mut(s![..self.first, ..]).assign(&found.alpha);
        self.prior.apply(context, work, image.view_mut(), all.view())?;
        let (value, g) = loss_and_gradient(&self.held_out, &image.slice(s![self.first.., ..]).to_owned())?;
        if !wants_influence {
            return Ok(HeldOut { value, g, influence: None, products: 1 });
        }
        all.fill(0.0);
        all.slice_mut(s![self.first.., ..]).assign(&g);
        self.prior.apply(context, work, image.view_mut(), all.view())?;
        let of_held_out = (&g * &image.slice(s![self.first.., ..])).sum();
        let image = image.slice(s![..self.first, ..]).to_owned();
        Ok(HeldOut { value, g, influence: Some((image, of_held_out)), products: 2 })
    }
}

/// Works with the points in the given order, of which the first ones are kept.
fn on_corner(
    context: &Context,
    prior: &mut JointPrior,
    targets: &Targets,
    (order, first): (&[usize], usize),
    state: Option<&FoldState>,
    options: &CvOptions,
    wants_gradient: bool,
) -> Result<FoldResult> {
    let (points, classes) = (order.len(), prior.classes());
    let kept = Softmax::new(targets.select(&order[..first])?);
    let held_out = Softmax::new(targets.select(&order[first..])?);
    let leading = |rows: &Array2<f64>| rows.select(Axis(0), &order[..first]);
    let alpha = state.map(|state| leading(&state.alpha));
    let adjoint = state.and_then(|state| state.adjoint.as_ref()).map(leading);
    let pace = state.and_then(|state| state.pace);
    let start =
        FoldStart { alpha: alpha.as_ref().map(|a| a.view()), adjoint: adjoint.as_ref().map(|x| x.view()), pace };
    prior.lead(Some(first));
    let mut corner = Corner { prior, points, first, kept, held_out };
    let worked = work_on(context, &mut corner, start, None, options, wants_gradient)?;
    let mut e = Array2::zeros((points, classes));
    put_rows(&mut e, &worked.alpha, &order[..first]);
    let f = worked.derivative.map(|(g, x)| {
        let mut f = Array2::zeros((points, classes));
        put_rows(&mut f, &g, &order[first..]);
        put_rows(&mut f, &-x, &order[..first]);
        f
    });
    let (value, products, converged, pace) = (worked.value, worked.products, worked.converged, worked.pace);
    Ok(FoldResult { e, f, value, products, converged, pace })
}

/// Writes rows to their points.
fn put_rows(out: &mut Array2<f64>, rows: &Array2<f64>, points: &[usize]) {
    for (row, &point) in rows.outer_iter().zip(points) {
        out.row_mut(point).assign(&row);
    }
}
