//! How good predictions are: the scores of seed 000, sections 8.1 and 8.2, with log loss and reliability.
//!
//! Classes are numbers from 0; points may have weights. All scores are means over the points.

use crate::data::check_shape;
use crate::error::{Error, Result};
use crate::prior::{Mixing, Tree};
use ndarray::ArrayView2;

/// The share of points whose class was predicted.
pub fn accuracy(truth: &[usize], predicted: &[usize], weights: Option<&[f64]>) -> Result<f64> {
    check_predicted(truth, predicted)?;
    mean(truth.len(), weights, |i| indicator(truth[i] == predicted[i]))
}

/// The mean of one over the rank of the true class, which seed 000 calls precision.
///
/// Classes that are exactly as probable as the true one rank before it: who cannot tell classes apart gains nothing.
pub fn reciprocal_rank(truth: &[usize], probabilities: ArrayView2<'_, f64>, weights: Option<&[f64]>) -> Result<f64> {
    check_probabilities(truth, &probabilities)?;
    mean(truth.len(), weights, |i| {
        let row = probabilities.row(i);
        1.0 / row.iter().filter(|p| **p >= row[truth[i]]).count() as f64
    })
}

/// The mean of −log of the probability of the true class. Probabilities below 2⁻⁵² count as that, as in scikit-learn.
pub fn log_loss(truth: &[usize], probabilities: ArrayView2<'_, f64>, weights: Option<&[f64]>) -> Result<f64> {
    check_probabilities(truth, &probabilities)?;
    mean(truth.len(), weights, |i| -probabilities[[i, truth[i]]].max(f64::EPSILON).ln())
}

/// The mean of half the length of the path in the tree from the predicted to the true class.
pub fn taxonomic_loss(tree: &Tree, truth: &[usize], predicted: &[usize], weights: Option<&[f64]>) -> Result<f64> {
    check_leaves(tree, truth, predicted)?;
    mean(truth.len(), weights, |i| half_path(tree, truth[i], predicted[i]))
}

/// The share of points whose predicted class lies directly below the same node as the true one.
pub fn parent_accuracy(tree: &Tree, truth: &[usize], predicted: &[usize], weights: Option<&[f64]>) -> Result<f64> {
    check_leaves(tree, truth, predicted)?;
    let parent = |class: usize| tree.parents()[tree.leaves()[class]];
    mean(truth.len(), weights, |i| indicator(parent(truth[i]) == parent(predicted[i])))
}

/// Errors left when only the surest predictions are made (seed 000, footnote 11).
#[derive(Debug, Clone, PartialEq)]
pub struct RejectCurve {
    /// The share of all points that get a prediction, from 0 to 1.
    pub answered: Vec<f64>,
    /// The errors among these, as a share of all points.
    pub error: Vec<f64>,
}

/// The reject curve of predictions that are right or wrong, surest first. Among equally sure ones errors are spread
/// evenly, so that the order of the points does not matter.
pub fn reject_curve(correct: &[bool], confidence: &[f64], weights: Option<&[f64]>) -> Result<RejectCurve> {
    check_shape("there must be a confidence for every point", correct.len(), confidence.len())?;
    check_confidence(confidence)?;
    let total = total_weight(correct.len(), weights)?;
    let weight = |i: usize| weights.map_or(1.0, |w| w[i]);
    let mut order: Vec<usize> = (0..correct.len()).collect();
    order.sort_by(|&a, &b| confidence[b].total_cmp(&confidence[a]));
    let mut curve = RejectCurve { answered: vec![0.0], error: vec![0.0] };
    let (mut answered, mut error) = (0.0, 0.0);
    for group in order.chunk_by(|&a, &b| confidence[a].total_cmp(&confidence[b]).is_eq()) {
        let all: f64 = group.iter().map(|&i| weight(i)).sum();
        let wrong: f64 = group.iter().filter(|&&i| !correct[i]).map(|&i| weight(i)).sum();
        let mut within = 0.0;
        for &i in group {
            within += weight(i);
            curve.answered.push((answered + within) / total);
            curve.error.push((error + if all > 0.0 { wrong * within / all } else { 0.0 }) / total);
        }
        answered += all;
        error += wrong;
    }
    Ok(curve)
}

/// How often predictions are right, by how sure they are.
#[derive(Debug, Clone, PartialEq)]
pub struct Reliability {
    /// Where the bins begin and end, one entry more than there are bins.
    pub edges: Vec<f64>,
    /// The mean confidence in every bin; NaN where it is empty.
    pub confidence: Vec<f64>,
    /// The share of right predictions in every bin; NaN where it is empty.
    pub accuracy: Vec<f64>,
    /// The weight of the points in every bin.
    pub weight: Vec<f64>,
    /// The expected calibration error: the mean over the points of how far the two are apart in their bin.
    pub error: f64,
}

/// Reliability in bins of equal width. The confidence is the probability of the predicted class.
pub fn reliability(correct: &[bool], confidence: &[f64], bins: usize, weights: Option<&[f64]>) -> Result<Reliability> {
    check_shape("there must be a confidence for every point", correct.len(), confidence.len())?;
    check_confidence(confidence)?;
    if bins == 0 {
        return Err(Error::InvalidParameter { name: "bins", value: 0.0, requirement: "at least 1" });
    }
    let total = total_weight(correct.len(), weights)?;
    let (mut sure, mut right, mut weight) = (vec![0.0; bins], vec![0.0; bins], vec![0.0; bins]);
    for (i, (&correct, &confidence)) in correct.iter().zip(confidence).enumerate() {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // negative ones become 0
        let bin = ((confidence * bins as f64) as usize).min(bins - 1);
        let w = weights.map_or(1.0, |w| w[i]);
        sure[bin] += w * confidence;
        right[bin] += w * indicator(correct);
        weight[bin] += w;
    }
    let error = sure.iter().zip(&right).map(|(sure, right)| (sure - right).abs()).sum::<f64>() / total;
    let per_point = |sums: Vec<f64>| sums.iter().zip(&weight).map(|(sum, w)| sum / w).collect();
    Ok(Reliability {
        edges: (0..=bins).map(|edge| edge as f64 / bins as f64).collect(),
        confidence: per_point(sure),
        accuracy: per_point(right),
        weight,
        error,
    })
}

/// Half the length of the shortest path between two leaves.
fn half_path(tree: &Tree, a: usize, b: usize) -> f64 {
    let (mut a, mut b) = (Some(tree.leaves()[a]), Some(tree.leaves()[b]));
    let level = |p: Option<usize>| p.map_or(0, |p| tree.levels()[p]);
    let mut edges = 0;
    while a != b {
        // The deeper of the two goes up; both meet at the root at the latest, which is no function.
        let deeper = if level(a) >= level(b) { &mut a } else { &mut b };
        *deeper = deeper.and_then(|p| tree.parents()[p]);
        edges += 1;
    }
    f64::from(edges) / 2.0
}

fn indicator(condition: bool) -> f64 {
    f64::from(u8::from(condition))
}

/// The weighted mean of a score over the points.
fn mean(points: usize, weights: Option<&[f64]>, score: impl Fn(usize) -> f64) -> Result<f64> {
    let total = total_weight(points, weights)?;
    let weighted = |i: usize| weights.map_or(1.0, |w| w[i]) * score(i);
    Ok((0..points).map(weighted).sum::<f64>() / total)
}

fn total_weight(points: usize, weights: Option<&[f64]>) -> Result<f64> {
    if points == 0 {
        return Err(Error::EmptyInput { rows: 0, columns: 1 });
    }
    let Some(weights) = weights else { return Ok(points as f64) };
    check_shape("the number of sample weights must be that of the points", points, weights.len())?;
    if let Some(row) = weights.iter().position(|w| !(w.is_finite() && *w >= 0.0)) {
        return Err(Error::InvalidWeight { row, value: weights[row] });
    }
    let total: f64 = weights.iter().sum();
    if total > 0.0 { Ok(total) } else { Err(Error::AllWeightsZero) }
}

fn check_predicted(truth: &[usize], predicted: &[usize]) -> Result<()> {
    check_shape("there must be a prediction for every point", truth.len(), predicted.len())
}

fn check_classes(labels: &[usize], classes: usize) -> Result<()> {
    match labels.iter().position(|&label| label >= classes) {
        Some(row) => Err(Error::InvalidLabel { row, label: labels[row], classes }),
        None => Ok(()),
    }
}

fn check_leaves(tree: &Tree, truth: &[usize], predicted: &[usize]) -> Result<()> {
    check_predicted(truth, predicted)?;
    check_classes(truth, tree.classes())?;
    check_classes(predicted, tree.classes())
}

fn check_probabilities(truth: &[usize], probabilities: &ArrayView2<'_, f64>) -> Result<()> {
    check_shape("there must be a row of probabilities for every point", truth.len(), probabilities.nrows())?;
    check_classes(truth, probabilities.ncols())?;
    let outside = |((row, class), &value): ((usize, usize), &f64)| {
        (!(0.0..=1.0 + 1e-6).contains(&value)).then_some(Error::InvalidTarget { row, class, value })
    };
    probabilities.indexed_iter().find_map(outside).map_or(Ok(()), Err)
}

fn check_confidence(confidence: &[f64]) -> Result<()> {
    match confidence.iter().find(|value| value.is_nan()) {
        Some(&value) => Err(Error::InvalidParameter { name: "a confidence", value, requirement: "a number" }),
        None => Ok(()),
    }
}
