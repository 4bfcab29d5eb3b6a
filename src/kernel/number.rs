//! What products are summed up in: numbers of either precision, and their registers.

use super::packed::TILE;
use pulp::{Arch, Simd, WithSimd, bytemuck};

/// A number that a register holds several of.
pub(crate) trait Number: bytemuck::Pod + Default + Send + Sync + faer::traits::ComplexField {
    /// A register of them.
    type Register<S: Simd>: Copy;

    /// How many a register holds.
    fn lanes<S: Simd>() -> usize;
    /// Rounds to it.
    fn narrow(value: f64) -> Self;
    /// The same, to be multiplied with entries of a matrix.
    fn factor(value: f64) -> Self;
    /// Back to double precision.
    fn widen(self) -> f64;

    /// The whole registers of a slice.
    fn registers<S: Simd>(values: &[Self]) -> &[Self::Register<S>];
    /// The same, to be written.
    fn registers_mut<S: Simd>(values: &mut [Self]) -> &mut [Self::Register<S>];
    /// A register of one value.
    fn splat<S: Simd>(simd: S, value: Self) -> Self::Register<S>;
    /// a + b.
    fn add_registers<S: Simd>(simd: S, a: Self::Register<S>, b: Self::Register<S>) -> Self::Register<S>;
    /// a b + c.
    fn mul_add<S: Simd>(simd: S, a: Self::Register<S>, b: Self::Register<S>, c: Self::Register<S>)
    -> Self::Register<S>;
    /// The sum of all lanes.
    fn sum_lanes<S: Simd>(simd: S, a: Self::Register<S>) -> Self;

    /// Whether sums over all tiles are of higher precision, so that a tile needs numbers of its own.
    const NEEDS_OWN: bool;
    /// Where a tile adds its part to `sums`: there, or in numbers of its own, which are cleared.
    fn place<'a>(sums: &'a mut [f64], own: &'a mut [Self]) -> &'a mut [Self];
    /// Adds what has been summed up in numbers of its own.
    fn settle(arch: Arch, sums: &mut [f64], own: &[Self]);
}

/// What is multiplied with entries of a matrix counts as zero in single precision if it is smaller than this; see
/// [`super::packed::NEGLIGIBLE`].
const LEAST_FACTOR: f64 = 1.355_252_715_606_880_5e-20; // 2⁻⁶⁶

/// Numbers in a register.
pub(crate) fn lanes<N: Number>(arch: Arch) -> usize {
    struct Lanes<N>(std::marker::PhantomData<N>);
    impl<N: Number> WithSimd for Lanes<N> {
        type Output = usize;

        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> usize {
            N::lanes::<S>()
        }
    }
    arch.dispatch(Lanes::<N>(std::marker::PhantomData))
}

/// A buffer of doubles as a buffer of so many numbers; see [`doubles_for`].
pub(crate) fn numbers<N: Number>(buffer: &mut [f64]) -> &mut [N] {
    bytemuck::cast_slice_mut(buffer)
}

/// Doubles that take the room of some numbers.
pub(crate) fn doubles_for<N: Number>(count: usize) -> usize {
    (count * size_of::<N>()).div_ceil(size_of::<f64>())
}

impl Number for f64 {
    type Register<S: Simd> = S::f64s;

    #[inline(always)]
    fn lanes<S: Simd>() -> usize {
        S::F64_LANES
    }

    #[inline(always)]
    fn narrow(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn factor(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn widen(self) -> f64 {
        self
    }

    #[inline(always)]
    fn registers<S: Simd>(values: &[Self]) -> &[S::f64s] {
        S::as_simd_f64s(values).0
    }

    #[inline(always)]
    fn registers_mut<S: Simd>(values: &mut [Self]) -> &mut [S::f64s] {
        S::as_mut_simd_f64s(values).0
    }

    #[inline(always)]
    fn splat<S: Simd>(simd: S, value: Self) -> S::f64s {
        simd.splat_f64s(value)
    }

    #[inline(always)]
    fn add_registers<S: Simd>(simd: S, a: S::f64s, b: S::f64s) -> S::f64s {
        simd.add_f64s(a, b)
    }

    #[inline(always)]
    fn mul_add<S: Simd>(simd: S, a: S::f64s, b: S::f64s, c: S::f64s) -> S::f64s {
        simd.mul_add_e_f64s(a, b, c)
    }

    #[inline(always)]
    fn sum_lanes<S: Simd>(simd: S, a: S::f64s) -> Self {
        simd.reduce_sum_f64s(a)
    }

    const NEEDS_OWN: bool = false;

    #[inline(always)]
    fn place<'a>(sums: &'a mut [f64], _: &'a mut [Self]) -> &'a mut [Self] {
        sums
    }

    #[inline(always)]
    fn settle(_: Arch, _: &mut [f64], _: &[Self]) {}
}

impl Number for f32 {
    type Register<S: Simd> = S::f32s;

    #[inline(always)]
    fn lanes<S: Simd>() -> usize {
        S::F32_LANES
    }

    #[allow(clippy::cast_possible_truncation)]
    #[inline(always)]
    fn narrow(value: f64) -> Self {
        value as f32
    }

    #[inline(always)]
    fn factor(value: f64) -> Self {
        Self::narrow(if value.abs() < LEAST_FACTOR { 0.0 } else { value })
    }

    #[inline(always)]
    fn widen(self) -> f64 {
        f64::from(self)
    }

    #[inline(always)]
    fn registers<S: Simd>(values: &[Self]) -> &[S::f32s] {
        S::as_simd_f32s(values).0
    }

    #[inline(always)]
    fn registers_mut<S: Simd>(values: &mut [Self]) -> &mut [S::f32s] {
        S::as_mut_simd_f32s(values).0
    }

    #[inline(always)]
    fn splat<S: Simd>(simd: S, value: Self) -> S::f32s {
        simd.splat_f32s(value)
    }

    #[inline(always)]
    fn add_registers<S: Simd>(simd: S, a: S::f32s, b: S::f32s) -> S::f32s {
        simd.add_f32s(a, b)
    }

    #[inline(always)]
    fn mul_add<S: Simd>(simd: S, a: S::f32s, b: S::f32s, c: S::f32s) -> S::f32s {
        simd.mul_add_e_f32s(a, b, c)
    }

    #[inline(always)]
    fn sum_lanes<S: Simd>(simd: S, a: S::f32s) -> Self {
        simd.reduce_sum_f32s(a)
    }

    const NEEDS_OWN: bool = true;

    #[inline(always)]
    fn place<'a>(sums: &'a mut [f64], own: &'a mut [Self]) -> &'a mut [Self] {
        let own = &mut own[..sums.len()];
        own.fill(0.0);
        own
    }

    #[inline(always)]
    fn settle(arch: Arch, sums: &mut [f64], own: &[Self]) {
        arch.dispatch(
            #[inline(always)]
            || sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += f64::from(*own)),
        );
    }
}

/// An entry of a stored tile, as numbers of products.
pub(crate) trait Entry<N: Number>: Number {
    /// As a number of products.
    fn number(self) -> N;
    /// Some rows of a tile: themselves, or copied into the buffer.
    fn rows<'a, const R: usize>(rows: &'a [[Self; TILE]; R], buffer: &'a mut [[N; TILE]; R]) -> &'a [[N; TILE]; R];
}

impl<N: Number> Entry<N> for N {
    #[inline(always)]
    fn number(self) -> N {
        self
    }

    #[inline(always)]
    fn rows<'a, const R: usize>(rows: &'a [[N; TILE]; R], _: &'a mut [[N; TILE]; R]) -> &'a [[N; TILE]; R] {
        rows
    }
}

/// Copies some rows of a tile to numbers of another precision.
macro_rules! convert_rows {
    ($entry:ty, $number:ty) => {
        impl Entry<$number> for $entry {
            #[inline(always)]
            fn number(self) -> $number {
                <$number>::narrow(self.widen())
            }

            #[inline(always)]
            fn rows<'a, const R: usize>(
                rows: &'a [[Self; TILE]; R],
                buffer: &'a mut [[$number; TILE]; R],
            ) -> &'a [[$number; TILE]; R] {
                for (numbers, row) in buffer.iter_mut().zip(rows) {
                    numbers.iter_mut().zip(row).for_each(|(number, &entry)| *number = entry.number());
                }
                buffer
            }
        }
    };
}

convert_rows!(f32, f64);
convert_rows!(f64, f32);
