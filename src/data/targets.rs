//! Targets (labels, distributions over the classes, or sets of them) and sample weights.

use super::check_shape;
use crate::error::{Error, Result};
use ndarray::{Array1, Array2, ArrayView1, Axis};

/// How far from one a target distribution may sum.
const SUM_TOLERANCE: f64 = 1e-6;

/// The ways of giving targets. Labels are kept as such: n × C zeros and ones would cost a pass over memory.
#[derive(Debug, Clone, PartialEq)]
pub enum TargetsKind {
    /// The class of every point.
    Labels(Vec<u32>),
    /// y, n × C: a distribution over the classes for every point.
    Distributions(Array2<f64>),
    /// For every point a set of classes, of which its own is one (seed 000, section 7.3).
    Sets(ClassSets),
}

/// Sets of classes, each for any number of points.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassSets {
    /// The set of every point.
    of_point: Vec<u32>,
    /// The classes of every set.
    members: Vec<Vec<u32>>,
}

/// The target of one point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target<'a> {
    /// A class.
    Class(usize),
    /// A distribution over the classes.
    Distribution(ArrayView1<'a, f64>),
    /// One of these classes.
    OneOf(&'a [u32]),
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

    /// For every point the set that its class is in, by its place in `sets`.
    ///
    /// Where all sets have one class, this is [`Targets::from_labels`]. A point whose set holds all classes says nothing.
    pub fn from_sets(of_point: &[usize], sets: &[Vec<usize>], classes: usize) -> Result<Self> {
        if let Some(row) = of_point.iter().position(|&set| sets.get(set).is_none_or(Vec::is_empty)) {
            return Err(Error::EmptyClassSet { row });
        }
        if of_point.iter().all(|&set| sets[set].len() == 1) {
            let labels: Vec<usize> = of_point.iter().map(|&set| sets[set][0]).collect();
            return Self::from_labels(&labels, classes);
        }
        if classes < 2 {
            return Err(Error::TooFewClasses { classes });
        }
        // An unused set is named by no point, so its classes are given with the first point there is.
        let row_of = |set: usize| of_point.iter().position(|&used| used == set).unwrap_or(0);
        let small = |set: usize, class: usize| match u32::try_from(class) {
            Ok(small) if class < classes => Ok(small),
            _ => Err(Error::InvalidLabel { row: row_of(set), label: class, classes }),
        };
        let mut members = Vec::with_capacity(sets.len());
        for (number, set) in sets.iter().enumerate() {
            let mut set = set.iter().map(|&class| small(number, class)).collect::<Result<Vec<_>>>()?;
            set.sort_unstable();
            set.dedup();
            members.push(set);
        }
        let too_many =
            |_| Error::ShapeMismatch { what: "sets of classes", expected: u32::MAX as usize, found: sets.len() };
        let of_point = of_point.iter().map(|&set| u32::try_from(set).map_err(too_many)).collect::<Result<_>>()?;
        Ok(Self { kind: TargetsKind::Sets(ClassSets { of_point, members }), classes, weights: None })
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

    /// The targets of some of the points, in the given order. Fails where none of them counts.
    pub fn select(&self, rows: &[usize]) -> Result<Self> {
        let kind = match &self.kind {
            TargetsKind::Labels(labels) => TargetsKind::Labels(rows.iter().map(|&row| labels[row]).collect()),
            TargetsKind::Distributions(y) => TargetsKind::Distributions(y.select(Axis(0), rows)),
            TargetsKind::Sets(sets) => TargetsKind::Sets(ClassSets {
                of_point: rows.iter().map(|&row| sets.of_point[row]).collect(),
                members: sets.members.clone(),
            }),
        };
        let selected = Self { kind, classes: self.classes, weights: None };
        match &self.weights {
            Some(weights) => selected.with_weights(weights.select(Axis(0), rows)),
            None => Ok(selected),
        }
    }

    /// Number of points n.
    #[must_use]
    pub fn points(&self) -> usize {
        match &self.kind {
            TargetsKind::Labels(labels) => labels.len(),
            TargetsKind::Distributions(y) => y.nrows(),
            TargetsKind::Sets(sets) => sets.of_point.len(),
        }
    }

    /// Number of classes C.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Labels, distributions or sets.
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

    /// What a point counts as where classes are to be spread evenly: its most probable class, or else one for its set.
    #[must_use]
    pub fn stratum(&self, row: usize) -> usize {
        match self.of_point(row) {
            Target::Class(class) => class,
            Target::Distribution(y) => (0..y.len()).fold(0, |best, c| if y[c] > y[best] { c } else { best }),
            Target::OneOf(set) => self.classes + set[0] as usize,
        }
    }

    /// The target of one point.
    #[must_use]
    pub fn of_point(&self, row: usize) -> Target<'_> {
        match &self.kind {
            TargetsKind::Labels(labels) => Target::Class(labels[row] as usize),
            TargetsKind::Distributions(y) => Target::Distribution(y.row(row)),
            TargetsKind::Sets(sets) => match sets.members[sets.of_point[row] as usize].as_slice() {
                [class] => Target::Class(*class as usize),
                set => Target::OneOf(set),
            },
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
    fn rejects_sets_that_hold_no_class_or_one_that_is_not_there() {
        let sets = |of_point: &[usize], sets: &[&[usize]]| {
            Targets::from_sets(of_point, &sets.iter().map(|set| set.to_vec()).collect::<Vec<_>>(), 3)
        };
        assert_eq!(sets(&[0, 1], &[&[0, 1], &[]]), Err(Error::EmptyClassSet { row: 1 }));
        assert_eq!(sets(&[0, 2], &[&[0, 1], &[2]]), Err(Error::EmptyClassSet { row: 1 }));
        let error = sets(&[1, 0], &[&[0, 3], &[2]]);
        assert_eq!(error, Err(Error::InvalidLabel { row: 1, label: 3, classes: 3 }));
    }

    #[test]
    fn sets_of_one_class_are_labels() {
        let sets = Targets::from_sets(&[1, 0, 1], &[vec![2], vec![0]], 3).unwrap();
        assert_eq!(sets, Targets::from_labels(&[0, 2, 0], 3).unwrap());
        let mixed = Targets::from_sets(&[1, 0], &[vec![2, 1, 2], vec![0]], 3).unwrap();
        assert_eq!(mixed.of_point(0), Target::Class(0));
        assert_eq!(mixed.of_point(1), Target::OneOf(&[1, 2]));
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
