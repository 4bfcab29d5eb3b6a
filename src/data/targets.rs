//! Targets (labels or distributions over the classes) and sample weights.

use super::check_shape;
use crate::error::{Error, Result};
use ndarray::{Array1, Array2, ArrayView1, Axis};

/// How far from one a target distribution may sum.
const SUM_TOLERANCE: f64 = 1e-6;

/// The two ways of giving targets. Labels are kept as such: n × C zeros and ones would cost a pass over memory.
#[derive(Debug, Clone, PartialEq)]
pub enum TargetsKind {
    /// The class of every point.
    Labels(Vec<u32>),
    /// y, n × C: a distribution over the classes for every point.
    Distributions(Array2<f64>),
}

/// What the model is to explain: y and the sample weights w, checked when made.
#[derive(Debug, Clone, PartialEq)]
pub struct Targets {
    kind: TargetsKind,
    classes: usize,
    weights: Option<Array1<f64>>,
}

impl Targets {
    /// A label below `classes` for every point.
    pub fn from_labels(labels: &[usize], classes: usize) -> Result<Self> {
        if classes < 2 {
            return Err(Error::TooFewClasses { classes });
        }
        let checked = labels.iter().enumerate().map(|(row, &label)| match u32::try_from(label) {
            Ok(small) if label < classes => Ok(small),
            _ => Err(Error::InvalidLabel { row, label, classes }),
        });
        Ok(Self { kind: TargetsKind::Labels(checked.collect::<Result<_>>()?), classes, weights: None })
    }

    /// A distribution over the classes for every point, one row each.
    pub fn from_distributions(y: Array2<f64>) -> Result<Self> {
        let classes = y.ncols();
        if classes < 2 {
            return Err(Error::TooFewClasses { classes });
        }
        for (row, target) in y.axis_iter(Axis(0)).enumerate() {
            if let Some(class) = target.iter().position(|p| !(0.0..=1.0 + SUM_TOLERANCE).contains(p)) {
                return Err(Error::InvalidTarget { row, class, value: target[class] });
            }
            let sum = target.sum();
            if (sum - 1.0).abs() > SUM_TOLERANCE {
                return Err(Error::TargetSum { row, sum });
            }
        }
        // Rows of α + g must be able to sum to zero exactly.
        let mut y = if y.is_standard_layout() { y } else { y.as_standard_layout().into_owned() };
        for mut target in y.axis_iter_mut(Axis(0)) {
            let sum = target.sum();
            target.mapv_inplace(|p| p / sum);
        }
        Ok(Self { kind: TargetsKind::Distributions(y), classes, weights: None })
    }

    /// Lets every point count as often as its weight says.
    pub fn with_weights(mut self, weights: Array1<f64>) -> Result<Self> {
        check_shape("the number of sample weights must be that of the points", self.points(), weights.len())?;
        if let Some(row) = weights.iter().position(|w| !(w.is_finite() && *w >= 0.0)) {
            return Err(Error::InvalidWeight { row, value: weights[row] });
        }
        if weights.iter().all(|w| *w == 0.0) {
            return Err(Error::AllWeightsZero);
        }
        self.weights = Some(weights);
        Ok(self)
    }

    /// Number of points n.
    #[must_use]
    pub fn points(&self) -> usize {
        match &self.kind {
            TargetsKind::Labels(labels) => labels.len(),
            TargetsKind::Distributions(y) => y.nrows(),
        }
    }

    /// Number of classes C.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Labels or distributions.
    #[must_use]
    pub fn kind(&self) -> &TargetsKind {
        &self.kind
    }

    /// The weights, where they were given.
    #[must_use]
    pub fn weights(&self) -> Option<ArrayView1<'_, f64>> {
        self.weights.as_ref().map(|weights| weights.view())
    }

    /// The weight w of one point.
    #[must_use]
    pub fn weight(&self, row: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |w| w[row])
    }

    /// Calls `visit(c, y_c)` for the classes of a point with positive target.
    pub fn for_row(&self, row: usize, mut visit: impl FnMut(usize, f64)) {
        match &self.kind {
            TargetsKind::Labels(labels) => visit(labels[row] as usize, 1.0),
            TargetsKind::Distributions(y) => {
                y.row(row).iter().enumerate().filter(|(_, y)| **y > 0.0).for_each(|(c, &y)| visit(c, y));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn rejects_targets_that_are_no_distributions() {
        assert!(matches!(Targets::from_labels(&[0, 0], 1), Err(Error::TooFewClasses { classes: 1 })));
        assert!(matches!(Targets::from_labels(&[0, 2], 2), Err(Error::InvalidLabel { row: 1, label: 2, .. })));
        let y = Targets::from_distributions(array![[0.5, 0.5], [1.5, -0.5]]);
        assert!(matches!(y, Err(Error::InvalidTarget { row: 1, class: 0, .. })));
        let y = Targets::from_distributions(array![[0.5, 0.5], [0.5, 0.4]]);
        assert!(matches!(y, Err(Error::TargetSum { row: 1, .. })));
        let y = Targets::from_distributions(array![[0.5, f64::NAN]]);
        assert!(matches!(y, Err(Error::InvalidTarget { row: 0, class: 1, .. })));
    }

    #[test]
    fn rejects_weights_that_cannot_count() {
        let targets = || Targets::from_labels(&[0, 1], 2).unwrap();
        assert!(matches!(targets().with_weights(array![1.0, -1.0]), Err(Error::InvalidWeight { row: 1, .. })));
        assert!(matches!(targets().with_weights(array![f64::NAN, 1.0]), Err(Error::InvalidWeight { row: 0, .. })));
        assert!(matches!(targets().with_weights(array![0.0, 0.0]), Err(Error::AllWeightsZero)));
        assert!(matches!(targets().with_weights(array![1.0]), Err(Error::ShapeMismatch { expected: 2, found: 1, .. })));
    }
}
