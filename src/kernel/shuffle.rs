//! Covariance shuffling (seed 000, D.1): bring a subset of the points to the front.

use crate::error::{Error, Result};

/// An exchange of points that puts the held-out ones last. It consists of swaps that do not touch each other, so doing it
/// twice changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shuffle {
    swaps: Vec<(usize, usize)>,
    kept: usize,
}

impl Shuffle {
    /// Moves the held-out points behind the others. Fails for a point that is not there, or named twice.
    pub fn holding_out(held_out: &[usize], points: usize) -> Result<Self> {
        let mut is_held_out = vec![false; points];
        for &point in held_out {
            match is_held_out.get_mut(point) {
                Some(seen) if !*seen => *seen = true,
                _ => {
                    let requirement = "a point that is there, named once";
                    return Err(Error::InvalidParameter { name: "a held-out point", value: point as f64, requirement });
                }
            }
        }
        let kept = points - held_out.len();
        let leaving = (0..kept).filter(|&point| is_held_out[point]);
        let coming = (kept..points).filter(|&point| !is_held_out[point]);
        Ok(Self { swaps: leaving.zip(coming).collect(), kept })
    }

    /// The points that change places.
    #[must_use]
    pub fn swaps(&self) -> &[(usize, usize)] {
        &self.swaps
    }

    /// Number of points that are not held out; they come first.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// The point at every place.
    #[must_use]
    pub fn order(&self, points: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..points).collect();
        self.swaps.iter().for_each(|&(a, b)| order.swap(a, b));
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn held_out_points_come_last_and_twice_is_nothing(held_out in prop::collection::btree_set(0_usize..50, 0..50)) {
            let held_out: Vec<usize> = held_out.into_iter().collect();
            let shuffle = Shuffle::holding_out(&held_out, 50).unwrap();
            let mut order = shuffle.order(50);
            prop_assert!(order[..shuffle.kept()].iter().all(|point| !held_out.contains(point)));
            prop_assert!(order[shuffle.kept()..].iter().all(|point| held_out.contains(point)));
            shuffle.swaps().iter().for_each(|&(a, b)| order.swap(a, b));
            prop_assert_eq!(order, (0..50).collect::<Vec<_>>());
        }
    }

    #[test]
    fn rejects_points_that_are_not_there_or_named_twice() {
        assert!(Shuffle::holding_out(&[3], 3).is_err());
        assert!(Shuffle::holding_out(&[1, 1], 3).is_err());
    }
}
