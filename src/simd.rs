//! What depends on the processor: instruction sets chosen at run time, and the only unsafe code of the crate.

#![allow(unsafe_code)]

use pulp::Arch;

/// The best instruction set of this machine (AVX-512, AVX2 with FMA, NEON, or none), found once.
pub(crate) fn best() -> Arch {
    Arch::new()
}

/// Every instruction set that this machine has, for tests.
#[cfg(test)]
pub(crate) fn all() -> Vec<Arch> {
    #[cfg(target_arch = "x86_64")]
    let older = pulp::x86::V3::try_new().map(Arch::V3);
    #[cfg(not(target_arch = "x86_64"))]
    let older = None;
    [Some(best()), older, Some(Arch::Scalar)].into_iter().flatten().collect()
}

/// Runs plain loops compiled for the best instruction set. Sums must be kept apart by hand, as in
/// [`crate::parallel::dot_sequential`]: then they have the same bits in every one.
#[inline(always)]
pub(crate) fn widest<R>(work: impl FnOnce() -> R) -> R {
    best().dispatch(work)
}

/// Asks the processor to fetch the cache line `bytes` after the start of a slice, which may lie outside of it.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // The address is never dereferenced.
        let address = slice.as_ptr().cast::<i8>().wrapping_add(bytes);
        // SAFETY: a prefetch is a hint: it reads nothing the program can see and does not fault, whatever the address.
        // SSE, which it needs, is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, bytes);
}

/// Replaces every x by exp(factor · x), to a relative accuracy of 4e-16; below −708 the result is 0.
pub fn exp(values: &mut [f64], factor: f64) {
    widest(
        #[inline(always)]
        || exp_within(values, factor),
    );
}

/// The same inside of [`widest`]: to choose the instruction set for every short row would take as long as the row.
#[inline(always)]
pub(crate) fn exp_within(values: &mut [f64], factor: f64) {
    // A plain loop without branches: the compiler makes it as wide as the instruction set allows.
    values.iter_mut().for_each(|x| *x = exp_one(factor * *x));
}

/// exp(x) = 2ⁿ exp(r), n the whole number next to x / ln 2, |r| ≤ ln 2 / 2, exp(r) by its Taylor series.
#[inline(always)]
fn exp_one(x: f64) -> f64 {
    /// Adding it rounds to a whole number, which then stands in the lowest bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    /// ln 2 in two parts; the first has zeros at the end, so that n times it is exact.
    const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let clamped = x.clamp(-708.0, 709.0);
    let shifted = clamped * std::f64::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (clamped - n * LN2_HIGH) - n * LN2_LOW;
    let mut series = 1.0 / 6_227_020_800.0;
    for inverse_factorial in INVERSE_FACTORIALS {
        series = series * r + inverse_factorial;
    }
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    if x < -708.0 { 0.0 } else { series * power }
}

/// 1/12!, 1/11!, …, 1/0!.
const INVERSE_FACTORIALS: [f64; 13] = [
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
    1.0,
    1.0,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_agrees_with_the_standard_library() {
        let mut worst = 0.0_f64;
        for i in 0..200_000 {
            let x = -708.0 + 1416.0 * f64::from(i) / 199_999.0;
            let mut value = [x];
            exp(&mut value, 1.0);
            worst = worst.max((value[0] / x.exp() - 1.0).abs());
        }
        assert!(worst < 4.5e-16, "{worst}");
    }

    #[test]
    fn exp_at_the_ends_of_its_range() {
        let mut values = [0.0, -708.5, -1e9, -0.0, 1e-300];
        exp(&mut values, 1.0);
        assert_eq!(values.map(f64::to_bits), [1.0, 0.0, 0.0, 1.0, 1.0].map(f64::to_bits));
    }

    #[test]
    fn a_prefetch_changes_nothing_wherever_it_points() {
        for bytes in [0, 64, 1 << 40, usize::MAX] {
            prefetch(&[1.0], bytes);
        }
    }
}
