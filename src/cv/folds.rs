//! Which points are held out together.

use crate::data::Targets;
use crate::error::{Error, Result};

/// A partition of the points into folds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folds {
    of_point: Vec<usize>,
    count: usize,
}

impl Folds {
    /// The fold of every point. There must be two or more, and none may be empty.
    pub fn from_assignment(of_point: Vec<usize>) -> Result<Self> {
        let count = of_point.iter().max().map_or(0, |largest| largest.saturating_add(1));
        if count < 2 || count > of_point.len() {
            return Err(Error::TooFewFolds { folds: count, points: of_point.len() });
        }
        let mut used = vec![false; count];
        of_point.iter().for_each(|&fold| used[fold] = true);
        match used.iter().position(|used| !used) {
            Some(fold) => Err(Error::EmptyFold { fold }),
            None => Ok(Self { of_point, count }),
        }
    }

    /// Folds of equal size in which the points of every class are spread as evenly as can be. The same seed gives the same
    /// folds. A class with fewer points than there are folds is missing from none of the kept parts but, where it has one
    /// point only, from that in which this point is held out: it has no positive example there, and that is all.
    ///
    /// Where points of a class lie is not looked at. Dealing out close ones to different folds makes Ψ depend less on the draw
    /// (on satimage its standard deviation fell from 17 to 8), but also too low, as every point that is held out then finds
    /// its neighbours: log loss on test points rose by 0.010, 0.005 and 0.003 on vehicle, segment and vowel.
    pub fn stratified(targets: &Targets, count: usize, seed: u64) -> Result<Self> {
        let points = targets.points();
        if count < 2 || count > points {
            return Err(Error::TooFewFolds { folds: count, points });
        }
        let mut random = Random(seed);
        let mut order: Vec<(usize, u64, usize)> =
            (0..points).map(|row| (targets.stratum(row), random.next(), row)).collect();
        order.sort_unstable();
        // Dealing goes on from class to class, so that the sizes differ by one at most.
        let mut of_point = vec![0; points];
        order.iter().enumerate().for_each(|(i, &(_, _, row))| of_point[row] = i % count);
        Self::from_assignment(of_point)
    }

    /// Number of folds q.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Number of points n.
    #[must_use]
    pub fn points(&self) -> usize {
        self.of_point.len()
    }

    /// The fold of every point.
    #[must_use]
    pub fn of_point(&self) -> &[usize] {
        &self.of_point
    }

    /// The points of a fold.
    #[must_use]
    pub fn held_out(&self, fold: usize) -> Vec<usize> {
        (0..self.points()).filter(|&point| self.of_point[point] == fold).collect()
    }
}

/// SplitMix64: a seed names the same folds on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_class_is_spread_evenly(
            labels in prop::collection::vec(0_usize..4, 8..60), count in 2_usize..6, seed in any::<u64>(),
        ) {
            let targets = Targets::from_labels(&labels, 4).unwrap();
            let folds = Folds::stratified(&targets, count, seed).unwrap();
            let size = |fold: usize, class: Option<usize>| {
                let counts = |i: &usize| class.is_none_or(|class| labels[*i] == class);
                folds.held_out(fold).iter().filter(|i| counts(i)).count()
            };
            for class in [None, Some(0), Some(1), Some(2), Some(3)] {
                let sizes: Vec<usize> = (0..count).map(|fold| size(fold, class)).collect();
                prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
            }
            prop_assert_eq!(Folds::stratified(&targets, count, seed).unwrap(), folds);
        }
    }

    #[test]
    fn rejects_what_is_no_partition() {
        assert!(matches!(Folds::from_assignment(vec![]), Err(Error::TooFewFolds { folds: 0, points: 0 })));
        assert!(matches!(Folds::from_assignment(vec![0, 0]), Err(Error::TooFewFolds { folds: 1, .. })));
        assert!(matches!(Folds::from_assignment(vec![0, 2, 0]), Err(Error::EmptyFold { fold: 1 })));
        assert!(matches!(Folds::from_assignment(vec![usize::MAX - 1]), Err(Error::TooFewFolds { .. })));
        let targets = Targets::from_labels(&[0, 1], 2).unwrap();
        assert!(matches!(Folds::stratified(&targets, 3, 0), Err(Error::TooFewFolds { folds: 3, points: 2 })));
    }
}
