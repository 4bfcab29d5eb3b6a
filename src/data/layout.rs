//! Views of row-major arrays as plain slices, and shape checks.

use crate::error::{Error, Result};
use ndarray::{ArrayView2, ArrayViewMut2};

/// The entries of a row-major array, row after row.
pub(crate) fn row_major<'a>(what: &'static str, array: &'a ArrayView2<'_, f64>) -> Result<&'a [f64]> {
    array.as_slice().ok_or(Error::NotRowMajor { what })
}

/// The same for an array that is written.
pub(crate) fn row_major_mut<'a>(what: &'static str, array: &'a mut ArrayViewMut2<'_, f64>) -> Result<&'a mut [f64]> {
    array.as_slice_mut().ok_or(Error::NotRowMajor { what })
}

/// Fails unless `found` is `expected`.
pub(crate) fn check_shape(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::ShapeMismatch { what, expected, found }) }
}

/// A slice as a row-major array.
pub(crate) fn view(shape: (usize, usize), values: &[f64]) -> Result<ArrayView2<'_, f64>> {
    let (expected, found) = (shape.0 * shape.1, values.len());
    ArrayView2::from_shape(shape, values).map_err(|_| Error::ShapeMismatch {
        what: "entries of an array",
        expected,
        found,
    })
}

/// A slice as a row-major array that is written.
pub(crate) fn view_mut(shape: (usize, usize), values: &mut [f64]) -> Result<ArrayViewMut2<'_, f64>> {
    let (expected, found) = (shape.0 * shape.1, values.len());
    ArrayViewMut2::from_shape(shape, values).map_err(|_| Error::ShapeMismatch {
        what: "entries of an array",
        expected,
        found,
    })
}
