//! Covariance functions of the distance between two points, with one width or one for every input.

use super::covariance::{PointwiseCovariance, TileBuffers};
use super::cross::cross_multiply;
use super::{Covariance, DenseOperator, KernelOperator, Parameter, Precision};
use crate::context::Context;
use crate::data::{Inputs, PreparedRows, check_shape, inner_products, pack_rows};
use crate::error::Result;
use crate::parallel::dot_sequential;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use ndarray::{Array1, ArrayView1, ArrayView2, ArrayViewMut2};
use std::ops::Range;
use std::sync::Arc;

/// More points show finer structure, so widths fall with their number, as bandwidths do: as n^(−1/(4+D)) for smooth functions of
/// D inputs, which makes w grow as n^(2/(4+D)). This is that of four inputs, as points of many inputs mostly lie about something
/// of few; on the data sets of `benches/results/learning.md` the median of what was learned grew so.
const WIDTH_GROWTH: f64 = 0.25;

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

    /// Replaces every ρ by M(ρ); M(0) = 1.
    fn values(&self, rho: &mut [f64]);

    /// Replaces every ρ by dM/dρ.
    fn slopes(&self, rho: &mut [f64]);
}

/// A covariance function given by its [`Profile`] and its widths.
#[derive(Debug, Clone, PartialEq)]
pub struct Stationary<P> {
    profile: P,
    widths: Widths,
}

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

    /// √(w_d / D) for every input.
    fn factors(&self, columns: usize) -> Vec<f64> {
        let d = columns as f64;
        match &self.widths {
            Widths::Shared(w) => vec![(w / d).sqrt(); columns],
            Widths::PerInput(w) => w.iter().map(|w| (w / d).sqrt()).collect(),
        }
    }
}

/// Fills `out` with the squared distances of prepared rows, from their inner products.
fn squared_distances(
    out: &mut [f64],
    (a, rows): (&PreparedRows, Range<usize>),
    (b, columns): (&PreparedRows, Range<usize>),
    buffers: &mut TileBuffers,
) {
    inner_products(out, (a.rows(), rows.clone()), (b.rows(), columns.clone()), &mut buffers.inner);
    let right = &b.squared_norms()[columns.clone()];
    for (out, left) in out.chunks_mut(columns.len()).zip(&a.squared_norms()[rows.clone()]) {
        // Rounding may take the distance of equal points below zero.
        out.iter_mut().zip(right).for_each(|(rho, right)| *rho = (left + right - 2.0 * *rho).max(0.0));
    }
    if std::ptr::eq(a, b) {
        for i in rows.start.max(columns.start)..rows.end.min(columns.end) {
            out[(i - rows.start) * columns.len() + i - columns.start] = 0.0;
        }
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
    fn prepare(&self, x: &Inputs, origin: &[f64]) -> PreparedRows {
        PreparedRows::new(x, &self.factors(x.columns()), origin)
    }

    fn tile(
        &self,
        out: &mut [f64],
        a: (&PreparedRows, Range<usize>),
        b: (&PreparedRows, Range<usize>),
        buffers: &mut TileBuffers,
    ) {
        squared_distances(out, a, b, buffers);
        self.profile.values(out);
    }

    fn tile_gradient(
        &self,
        gradient: &mut [f64],
        t: &mut [f64],
        x: &PreparedRows,
        rows: Range<usize>,
        columns: Range<usize>,
        buffers: &mut TileBuffers,
    ) {
        let mut rho = std::mem::take(&mut buffers.values);
        rho.resize(t.len(), 0.0);
        squared_distances(&mut rho, (x, rows.clone()), (x, columns.clone()), buffers);
        match &self.widths {
            // ∂ρ/∂log w = ρ.
            Widths::Shared(_) => {
                t.iter_mut().zip(&rho).for_each(|(t, rho)| *t *= rho);
                self.profile.slopes(&mut rho);
                gradient[0] += dot_sequential(t, &rho);
            }
            // ∂ρ/∂log w_d = (z_d − z'_d)² for prepared rows z; with T ∘ M' in hand all inputs come from one product.
            Widths::PerInput(_) => {
                self.profile.slopes(&mut rho);
                t.iter_mut().zip(&rho).for_each(|(t, slope)| *t *= slope);
                squared_differences(gradient, t, x.rows(), rows, columns, buffers);
            }
        }
        buffers.values = rho;
    }

    fn parameter_count(&self) -> usize {
        match &self.widths {
            Widths::Shared(_) => 1,
            Widths::PerInput(w) => w.len(),
        }
    }

    fn diagonal(&self, x: &PreparedRows) -> Array1<f64> {
        let mut at_zero = [0.0];
        self.profile.values(&mut at_zero);
        Array1::from_elem(x.rows().rows(), at_zero[0])
    }
}

/// gradient[d] += Σ_ij t_ij (z_id − z_jd)², by Σ_i z_id² Σ_j t_ij + Σ_j z_jd² Σ_i t_ij − 2 Σ_i z_id (T Z)_id.
fn squared_differences(
    gradient: &mut [f64],
    t: &[f64],
    z: &Inputs,
    rows: Range<usize>,
    columns: Range<usize>,
    buffers: &mut TileBuffers,
) {
    let (height, width, d) = (rows.len(), columns.len(), z.columns());
    pack_rows(&mut buffers.left, z, rows);
    pack_rows(&mut buffers.right, z, columns);
    buffers.product.resize(height * d, 0.0);
    matmul(
        MatMut::from_row_major_slice_mut(&mut buffers.product[..], height, d),
        Accum::Replace,
        MatRef::from_row_major_slice(t, height, width),
        MatRef::from_row_major_slice(&buffers.right[..], width, d),
        1.0,
        Par::Seq,
    );
    for ((t, z), product) in t.chunks(width).zip(buffers.left.chunks(d)).zip(buffers.product.chunks(d)) {
        let sum: f64 = t.iter().sum();
        for c in 0..d {
            gradient[c] += z[c] * (z[c] * sum - 2.0 * product[c]);
        }
    }
    for (j, z) in buffers.right.chunks(d).enumerate() {
        let sum: f64 = t.iter().skip(j).step_by(width).sum();
        for c in 0..d {
            gradient[c] += z[c] * z[c] * sum;
        }
    }
}

impl<P: Profile> Covariance for Stationary<P> {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn parameters(&self) -> Vec<Parameter> {
        match &self.widths {
            Widths::Shared(w) => vec![Parameter { name: "inverse_width".into(), value: *w, growth: WIDTH_GROWTH }],
            Widths::PerInput(w) => {
                let parameter = |(d, &value): (usize, &f64)| Parameter {
                    name: format!("inverse_width[{d}]"),
                    value,
                    growth: WIDTH_GROWTH,
                };
                w.iter().enumerate().map(parameter).collect()
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
        out: ArrayViewMut2<'_, f64>,
        test: &Inputs,
        train: &Inputs,
        s: ArrayView2<'_, f64>,
    ) -> Result<()> {
        self.check_inputs(test)?;
        cross_multiply(context, out, self, test, train, s)
    }
}
