//! Classes without structure: every class has a function of its own.

use super::Mixing;
use crate::data::check_shape;
use crate::error::Result;
use ndarray::{ArrayView2, ArrayViewMut2};

/// mix = I.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flat {
    classes: usize,
}

impl Flat {
    /// The flat structure of the given number of classes.
    #[must_use]
    pub fn new(classes: usize) -> Self {
        Self { classes }
    }
}

impl Mixing for Flat {
    fn classes(&self) -> usize {
        self.classes
    }

    fn functions(&self) -> usize {
        self.classes
    }

    fn to_functions(&self, mut out: ArrayViewMut2<'_, f64>, s: ArrayView2<'_, f64>) -> Result<()> {
        check_shape("the rows of the product must be those of S", s.nrows(), out.nrows())?;
        check_shape("the columns of the product must be those of S", s.ncols(), out.ncols())?;
        out.assign(&s);
        Ok(())
    }

    fn to_classes(&self, out: ArrayViewMut2<'_, f64>, r: ArrayView2<'_, f64>) -> Result<()> {
        self.to_functions(out, r)
    }

    fn diagonal(&self, out: ArrayViewMut2<'_, f64>, functions: ArrayView2<'_, f64>) -> Result<()> {
        self.to_functions(out, functions)
    }

    fn is_identity(&self) -> bool {
        true
    }
}
