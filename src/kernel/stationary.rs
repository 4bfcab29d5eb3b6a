//! Covariance functions of the distance between two points, with one width or one for every input.

use super::covariance::{PointwiseCovariance, TileBuffers};
use super::{Covariance, DenseOperator, KernelOperator, Parameter, Precision};
use crate::context::Context;
use crate::data::{Inputs, check_shape, inner_products, pack_rows, row_major, row_major_mut};
use crate::error::Result;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2};
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// The inverse squared widths w.
#[derive(Debug, Clone, PartialEq)]
pub enum Widths {
    /// One for all inputs.
    Shared(f64),
    /// One for every input (automatic relevance determination).
    PerInput(Vec<f64>),
}

/// M as a function of ρ = Σ_d (w_d / D) (x_d − x'_d)², D the number of inputs.
pub trait Profile: std::fmt::Debug + Clone + Send + Sync + 'static {
    /// The name of the covariance function.
    const NAME: &'static str;

    /// M(ρ); M(0) = 1.
    fn value(&self, rho: f64) -> f64;

    /// dM/dρ.
    fn slope(&self, rho: f64) -> f64;
}

/// A covariance function given by its [`Profile`] and its widths.
#[derive(Debug, Clone, PartialEq)]
pub struct Stationary<P> {
    profile: P,
    widths: Widths,
}

/// Rows of test points that a prediction takes at a time.
const TEST_ROWS: usize = 64;
/// Training points of a tile in a prediction.
const TRAIN_ROWS: usize = 256;

impl<P: Profile> Stationary<P> {
    /// The function with the given inverse widths.
    pub fn new(profile: P, widths: Widths) -> Result<Self> {
        match &widths {
            Widths::Shared(w) => Parameter::check("inverse_width", *w)?,
            Widths::PerInput(ws) => ws.iter().try_for_each(|w| Parameter::check("inverse_width", *w))?,
        }
        Ok(Self { profile, widths })
    }

    /// The widths.
    #[must_use]
    pub fn widths(&self) -> &Widths {
        &self.widths
    }

    fn check_inputs(&self, x: &Inputs) -> Result<()> {
        match &self.widths {
            Widths::Shared(_) => Ok(()),
            Widths::PerInput(w) => {
                check_shape("there must be one inverse width for every column of X", x.columns(), w.len())
            }
        }
    }

    /// w_d / D for every input.
    fn factors(&self, columns: usize) -> Cow<'_, [f64]> {
        let d = columns as f64;
        match &self.widths {
            Widths::Shared(w) => Cow::Owned(vec![w / d; columns]),
            Widths::PerInput(w) => Cow::Owned(w.iter().map(|w| w / d).collect()),
        }
    }

    /// Fills `out` with ρ. Distances come from inner products, about a point of the data: far from the origin those of
    /// neighbours would cancel otherwise.
    fn squared_distances(
        &self,
        out: &mut [f64],
        (a, rows): (&Inputs, Range<usize>),
        (b, columns): (&Inputs, Range<usize>),
        buffers: &mut TileBuffers,
    ) {
        let factors = self.factors(a.columns());
        let shift = shift(a, b);
        inner_products(out, (a, rows.clone()), (b, columns.clone()), (&factors, &shift), &mut buffers.inner);
        let square = |x: &Inputs, row| {
            let mut sum = 0.0;
            x.for_row(row, |d, value| sum += factors[d] * (value - shift[d]) * (value - shift[d]));
            sum
        };
        let same = std::ptr::eq(a, b);
        buffers.right.clear();
        buffers.right.extend(columns.clone().map(|row| square(b, row)));
        for (out, row) in out.chunks_mut(columns.len()).zip(rows) {
            let left = square(a, row);
            for ((rho, right), column) in out.iter_mut().zip(&buffers.right).zip(columns.clone()) {
                *rho = if same && row == column { 0.0 } else { (left + right - 2.0 * *rho).max(0.0) };
            }
        }
    }
}

/// A point about which inner products are taken: the first row where both sides are dense, else the origin.
fn shift<'a>(a: &Inputs, b: &'a Inputs) -> Cow<'a, [f64]> {
    match (a, b) {
        (Inputs::Dense(_), Inputs::Dense(b)) => {
            b.row(0).to_slice().map_or(Cow::Owned(b.row(0).to_vec()), Cow::Borrowed)
        }
        _ => Cow::Owned(vec![0.0; b.columns()]),
    }
}

/// An inverse width that suits the scale of the inputs: two over their mean variance, which for standardised inputs is
/// what scikit-learn calls `gamma="scale"`. It was the best single choice over nine tabular data sets.
#[must_use]
pub fn automatic_inverse_width(x: &Inputs, weights: Option<ArrayView1<'_, f64>>) -> f64 {
    let (_, variance) = x.column_moments(weights);
    let mean = variance.iter().sum::<f64>() / variance.len() as f64;
    let width = 2.0 / mean;
    if width > 0.0 && width.is_finite() { width } else { 1.0 }
}

impl<P: Profile> PointwiseCovariance for Stationary<P> {
    fn tile(&self, out: &mut [f64], a: (&Inputs, Range<usize>), b: (&Inputs, Range<usize>), buffers: &mut TileBuffers) {
        self.squared_distances(out, a, b, buffers);
        out.iter_mut().for_each(|m| *m = self.profile.value(*m));
    }

    fn tile_gradient(
        &self,
        gradient: &mut [f64],
        t: &mut [f64],
        x: &Inputs,
        rows: Range<usize>,
        columns: Range<usize>,
        buffers: &mut TileBuffers,
    ) {
        let mut rho = std::mem::take(&mut buffers.product);
        rho.resize(t.len(), 0.0);
        self.squared_distances(&mut rho, (x, rows.clone()), (x, columns.clone()), buffers);
        match &self.widths {
            // ∂ρ/∂log w = ρ.
            Widths::Shared(_) => {
                gradient[0] += t.iter().zip(&rho).map(|(t, &rho)| t * self.profile.slope(rho) * rho).sum::<f64>();
            }
            // ∂ρ/∂log w_d = (w_d / D) (x_d − x'_d)²; with T ∘ M' in hand all inputs come from one product with X.
            Widths::PerInput(_) => {
                t.iter_mut().zip(&rho).for_each(|(t, &rho)| *t *= self.profile.slope(rho));
                squared_differences(gradient, t, x, rows, columns, &self.factors(x.columns()), buffers);
            }
        }
        buffers.product = rho;
    }

    fn parameter_count(&self) -> usize {
        match &self.widths {
            Widths::Shared(_) => 1,
            Widths::PerInput(w) => w.len(),
        }
    }

    fn at_zero(&self) -> f64 {
        self.profile.value(0.0)
    }
}

/// gradient[d] += factor_d Σ_ij t_ij (x_id − x_jd)², by Σ_i x_id² Σ_j t_ij + Σ_j x_jd² Σ_i t_ij − 2 Σ_i x_id (T X)_id.
fn squared_differences(
    gradient: &mut [f64],
    t: &[f64],
    x: &Inputs,
    rows: Range<usize>,
    columns: Range<usize>,
    factor: &[f64],
    buffers: &mut TileBuffers,
) {
    let (height, width, d) = (rows.len(), columns.len(), x.columns());
    let shift = shift(x, x);
    pack_rows(&mut buffers.left, x, rows, |column, value| value - shift[column]);
    pack_rows(&mut buffers.right, x, columns, |column, value| value - shift[column]);
    let mut product = vec![0.0; height * d];
    matmul(
        MatMut::from_row_major_slice_mut(&mut product[..], height, d),
        Accum::Replace,
        MatRef::from_row_major_slice(t, height, width),
        MatRef::from_row_major_slice(&buffers.right[..], width, d),
        1.0,
        Par::Seq,
    );
    for ((t, x), product) in t.chunks(width).zip(buffers.left.chunks(d)).zip(product.chunks(d)) {
        let sum: f64 = t.iter().sum();
        for c in 0..d {
            gradient[c] += factor[c] * x[c] * (x[c] * sum - 2.0 * product[c]);
        }
    }
    for (j, x) in buffers.right.chunks(d).enumerate() {
        let sum: f64 = t.iter().skip(j).step_by(width).sum();
        for c in 0..d {
            gradient[c] += factor[c] * x[c] * x[c] * sum;
        }
    }
}

impl<P: Profile> Covariance for Stationary<P> {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn parameters(&self) -> Vec<Parameter> {
        match &self.widths {
            Widths::Shared(w) => vec![Parameter { name: "inverse_width".into(), value: *w }],
            Widths::PerInput(w) => {
                let name = |d| format!("inverse_width[{d}]");
                w.iter().enumerate().map(|(d, w)| Parameter { name: name(d), value: *w }).collect()
            }
        }
    }

    fn with_parameters(&self, values: &[f64]) -> Result<Arc<dyn Covariance>> {
        check_shape("the number of shape parameters", self.parameter_count(), values.len())?;
        let widths = match &self.widths {
            Widths::Shared(_) => Widths::Shared(values[0]),
            Widths::PerInput(_) => Widths::PerInput(values.to_vec()),
        };
        Ok(Arc::new(Self::new(self.profile.clone(), widths)?))
    }

    fn operator(&self, context: &Context, x: &Inputs, precision: Precision) -> Result<Box<dyn KernelOperator>> {
        self.check_inputs(x)?;
        Ok(Box::new(DenseOperator::new(context, self.clone(), x, precision)?))
    }

    fn cross_apply(
        &self,
        context: &Context,
        mut out: ArrayViewMut2<'_, f64>,
        test: &Inputs,
        train: &Inputs,
        s: ArrayView2<'_, f64>,
    ) -> Result<()> {
        self.check_inputs(test)?;
        check_shape("the number of columns of X must be that of the training points", train.columns(), test.columns())?;
        check_shape("the rows of S must be the training points", train.rows(), s.nrows())?;
        check_shape("the rows of the product must be the test points", test.rows(), out.nrows())?;
        check_shape("the columns of the product must be those of S", s.ncols(), out.ncols())?;
        let (n, k) = s.dim();
        if k == 0 {
            return Ok(());
        }
        let s = row_major("S", &s)?;
        let make = || (TileBuffers::default(), vec![0.0; TEST_ROWS * TRAIN_ROWS]);
        row_major_mut("the product", &mut out)?.par_chunks_mut(TEST_ROWS * k).enumerate().try_for_each_init(
            make,
            |(buffers, tile), (block, out)| {
                let height = out.len() / k;
                let rows = block * TEST_ROWS..block * TEST_ROWS + height;
                let mut out = MatMut::from_row_major_slice_mut(out, height, k);
                for start in (0..n).step_by(TRAIN_ROWS) {
                    context.check()?;
                    let columns = start..(start + TRAIN_ROWS).min(n);
                    let tile = &mut tile[..height * columns.len()];
                    self.tile(tile, (test, rows.clone()), (train, columns.clone()), buffers);
                    let tile = MatRef::from_row_major_slice(&*tile, height, columns.len());
                    let s = MatRef::from_row_major_slice(&s[columns.start * k..columns.end * k], columns.len(), k);
                    let accumulate = if start == 0 { Accum::Replace } else { Accum::Add };
                    matmul(out.as_mut(), accumulate, tile, s, 1.0, Par::Seq);
                }
                Ok(())
            },
        )
    }
}
