//! The linear kernel with a weight for every group of inputs: M = Σ_j θ_g(j) x_j x_jᵀ, x_j the column of input j.

use super::linear_dense::transposed_multiply;
use super::linear_sparse::sparse_multiply;
use super::{Covariance, KernelOperator, Linear, Parameter, Precision, Shuffle};
use crate::context::Context;
use crate::data::{CsrRows, Inputs, check_shape};
use crate::error::{Error, Result};
use crate::workspace::Workspace;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut2, s};
use std::sync::Arc;

/// The inner product of the inputs, each counted with the weight θ of its group.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightedLinear {
    /// The group of every input.
    groups: Arc<Vec<usize>>,
    /// θ of every group.
    weights: Vec<f64>,
}

impl WeightedLinear {
    /// A weight for every group; `groups` gives that of every input.
    pub fn new(groups: Vec<usize>, weights: Vec<f64>) -> Result<Self> {
        if let Some(&group) = groups.iter().find(|&&group| group >= weights.len()) {
            return Err(Error::UnknownGroup { group, groups: weights.len() });
        }
        weights.iter().try_for_each(|&weight| Parameter::check("weight", weight))?;
        Ok(Self { groups: Arc::new(groups), weights })
    }

    /// The inputs times the roots of their weights.
    fn weighted(&self, x: &Inputs) -> Result<Inputs> {
        check_shape("there must be a group for every input", x.columns(), self.groups.len())?;
        let factors: Vec<f64> = self.groups.iter().map(|&group| self.weights[group].sqrt()).collect();
        Ok(x.scale_columns(&factors))
    }
}

impl Covariance for WeightedLinear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn parameters(&self) -> Vec<Parameter> {
        let parameter =
            |(group, &value): (usize, &f64)| Parameter { name: format!("weight[{group}]"), value, growth: 0.0 };
        self.weights.iter().enumerate().map(parameter).collect()
    }

    fn with_parameters(&self, values: &[f64]) -> Result<Arc<dyn Covariance>> {
        check_shape("the number of weights", self.weights.len(), values.len())?;
        values.iter().try_for_each(|&weight| Parameter::check("weight", weight))?;
        Ok(Arc::new(Self { groups: Arc::clone(&self.groups), weights: values.to_vec() }))
    }

    fn groups(&self) -> Option<&[usize]> {
        Some(&self.groups)
    }

    fn is_pairwise(&self) -> bool {
        false
    }

    fn is_linear(&self) -> bool {
        true
    }

    fn mean_variance(&self, x: &Inputs, weights: Option<ArrayView1<'_, f64>>) -> Result<f64> {
        Linear.mean_variance(&self.weighted(x)?, weights)
    }

    fn operator(&self, context: &Context, x: &Inputs, precision: Precision) -> Result<Box<dyn KernelOperator>> {
        let x = self.weighted(x)?;
        let inner = Linear.operator(context, &x, precision)?;
        Ok(Box::new(Grouped { inner, x, groups: Arc::clone(&self.groups), count: self.weights.len() }))
    }

    fn cross_apply(
        &self,
        context: &Context,
        out: ArrayViewMut2<'_, f64>,
        test: &Inputs,
        train: &Inputs,
        s: ArrayView2<'_, f64>,
    ) -> Result<()> {
        Linear.cross_apply(context, out, &self.weighted(test)?, &self.weighted(train)?, s)
    }
}

/// The matrix of the weighted inputs, with what the derivatives need.
#[derive(Debug)]
struct Grouped {
    inner: Box<dyn KernelOperator>,
    /// The inputs times the roots of their weights.
    x: Inputs,
    groups: Arc<Vec<usize>>,
    count: usize,
}

/// Xᵀ, as its products take it.
enum Projection<'a> {
    Dense(ArrayView2<'a, f64>),
    Sparse(CsrRows),
}

/// Columns of E and F that are multiplied at once: fewer where there are so many inputs that their products would take much
/// memory.
const FEWEST: usize = 8;
const BLOCK: usize = 128;
const ENTRIES: usize = 1 << 24;

impl KernelOperator for Grouped {
    fn points(&self) -> usize {
        self.inner.points()
    }

    fn representation(&self) -> &'static str {
        self.inner.representation()
    }

    fn stored_bytes(&self) -> u64 {
        self.inner.stored_bytes()
    }

    fn apply(
        &self,
        context: &Context,
        work: &mut Workspace,
        out: ArrayViewMut2<'_, f64>,
        s: ArrayView2<'_, f64>,
    ) -> Result<()> {
        self.inner.apply(context, work, out, s)
    }

    fn shuffle(&mut self, shuffle: &Shuffle) {
        self.inner.shuffle(shuffle);
        self.x.shuffle(shuffle);
    }

    fn diagonal(&self) -> Array1<f64> {
        self.inner.diagonal()
    }

    fn parameter_count(&self) -> usize {
        self.count
    }

    /// θ_g Σ_{j∈g} Σ_p (x_jᵀ e_p) (x_jᵀ f_p) for every group, in one pass: the roots of θ are in X already.
    fn gradient(&self, context: &Context, e: ArrayView2<'_, f64>, f: ArrayView2<'_, f64>) -> Result<Vec<f64>> {
        check_shape("F must have the columns of E", e.ncols(), f.ncols())?;
        check_shape("E must have a row for every point", self.points(), e.nrows())?;
        let mut gradient = vec![0.0; self.count];
        let block = (ENTRIES / self.x.columns().max(1)).clamp(FEWEST, BLOCK);
        let needed = (2 * block * size_of::<f64>()) as u64 * self.x.columns() as u64;
        context.plan_memory("the products of all inputs", needed)?;
        let mut work = Workspace::default();
        let projection = match &self.x {
            Inputs::Dense(x) => Projection::Dense(x.view()),
            Inputs::Sparse(x) => Projection::Sparse(x.transpose()),
        };
        for start in (0..e.ncols()).step_by(block) {
            let columns = start..(start + block).min(e.ncols());
            let mut project = |s: &ArrayView2<'_, f64>| -> Result<Array2<f64>> {
                let s = s.slice(s![.., columns.clone()]).as_standard_layout().into_owned();
                let mut out = Array2::zeros((self.x.columns(), columns.len()));
                match &projection {
                    Projection::Dense(x) => transposed_multiply(context, &mut work, out.view_mut(), *x, s.view())?,
                    Projection::Sparse(transpose) => sparse_multiply(context, out.view_mut(), transpose, s.view())?,
                }
                Ok(out)
            };
            let (a, b) = (project(&e)?, project(&f)?);
            for ((a, b), &group) in a.outer_iter().zip(b.outer_iter()).zip(self.groups.iter()) {
                gradient[group] += a.dot(&b);
            }
        }
        Ok(gradient)
    }

    fn column(&self, context: &Context, work: &mut Workspace, j: usize, out: &mut [f64]) -> Result<()> {
        self.inner.column(context, work, j, out)
    }

    fn cost_per_column(&self) -> f64 {
        self.inner.cost_per_column()
    }

    fn to_dense(&self, context: &Context) -> Result<Array2<f64>> {
        self.inner.to_dense(context)
    }
}
