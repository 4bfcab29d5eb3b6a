//! Learning begins with a part of the points, where an evaluation takes little time, and hyperparameters and the curvature of Ψ
//! are about the same. On all points there is little left to do then. Tried on two
//! partitions of satimage, with a looser end than now: 7 to 10 s in place of 10 for one kernel, 26 to 27 s in place of 53 for a
//! kernel of every class; parts that grow by four took 9 to 13 s and 26 to 35 s. Fits start from those of the part.

use super::optimiser::Curvature;
use crate::cv::{CrossValidation, FoldState, Folds};
use crate::data::Inputs;
use crate::error::Result;
use crate::model::ModelSpec;
use ndarray::Array2;
use std::collections::HashMap;

/// Every part has so many times the points of the one before: fewer steps where the work grows with the points, as then a part
/// saves less.
const GROWTH: usize = 4;
const GROWTH_OF_PAIRS: usize = 2;

/// Where learning begins.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Beginning {
    /// The logarithms of the hyperparameters.
    pub logarithms: Vec<f64>,
    /// What is known of the curvature of Ψ there.
    pub curvature: Curvature,
}

/// The parts with which learning begins: of each, one point is taken of so many. None where the points cannot be taken apart.
pub(super) fn parts(spec: &ModelSpec, points: usize, smallest: Option<usize>) -> Vec<usize> {
    let Some(smallest) = smallest.filter(|_| spec.covariances.iter().all(|one| one.needs_training_points())) else {
        return Vec::new();
    };
    let pairwise = spec.covariances.iter().any(|one| one.is_pairwise());
    let growth = if pairwise { GROWTH_OF_PAIRS } else { GROWTH };
    let mut parts: Vec<usize> = std::iter::successors(Some(growth), |every| every.checked_mul(growth))
        .take_while(|every| points / every >= smallest.max(1))
        .collect();
    parts.reverse();
    parts
}

/// Some of the points.
pub(super) struct Part {
    /// Which.
    pub rows: Vec<usize>,
    pub x: Inputs,
    pub cv: CrossValidation,
}

/// One point of so many, of every class in every fold, by their order. None where the rest cannot be learned from.
pub(super) fn part(x: &Inputs, cv: &CrossValidation, every: usize) -> Option<Part> {
    let (targets, folds) = (cv.targets(), cv.folds().of_point());
    let mut seen: HashMap<(usize, usize), usize> = HashMap::new();
    let rows: Vec<usize> = (0..targets.points())
        .filter(|&row| {
            // Points without a weight say nothing.
            targets.weight(row) > 0.0 && {
                let before = seen.entry((folds[row], targets.stratum(row))).or_default();
                *before += 1;
                (*before - 1).is_multiple_of(every)
            }
        })
        .collect();
    let folds = Folds::from_assignment(rows.iter().map(|&row| folds[row]).collect()).ok()?;
    let cv = CrossValidation::new(targets.select(&rows).ok()?, folds).ok()?;
    Some(Part { x: x.select(&rows), cv, rows })
}

/// Lets the fits of a cross-validation start from those of a part of its points, given by their numbers among `rows`, or among
/// all points. What a part has found is closer to what all points say than nothing is.
pub(super) fn start_from_part(cv: &mut CrossValidation, rows: Option<&[usize]>, part: &Part) -> Result<()> {
    let shape = (cv.targets().points(), cv.targets().classes());
    let place = |row: usize| rows.map_or(Some(row), |rows| rows.binary_search(&row).ok());
    let state = |state: &Option<FoldState>| {
        state.as_ref().map(|state| {
            let mut alpha = Array2::zeros(shape);
            for (row, from) in part.rows.iter().zip(state.alpha.rows()) {
                if let Some(place) = place(*row) {
                    alpha.row_mut(place).assign(&from);
                }
            }
            FoldState { alpha, adjoint: None, pace: state.pace }
        })
    };
    let states = part.cv.states().iter().map(state).collect();
    cv.set_states(states)
}
