//! A fitted model and its predictions.

use super::{Loss, ModelSpec, decide, most_probable, node_masses};
use crate::context::Context;
use crate::data::{Inputs, check_shape};
use crate::error::{Error, Result};
use crate::likelihood::Softmax;
use ndarray::{Array1, Array2, ArrayView2};

/// A fitted model: the training points with their coefficients α. It holds no kernel matrix.
#[derive(Debug, Clone)]
pub struct Model {
    spec: ModelSpec,
    train: Inputs,
    alpha: Array2<f64>,
    intercepts: Array1<f64>,
    /// v_p (α·mix)_p, grouped by covariance function: what predictions multiply.
    coefficients: Vec<(Vec<usize>, Array2<f64>)>,
}

impl Model {
    /// Puts a model together from its parts, as after loading one.
    pub fn new(spec: ModelSpec, train: Inputs, alpha: Array2<f64>, intercepts: Array1<f64>) -> Result<Self> {
        let (functions, classes) = (spec.mixing.functions(), spec.mixing.classes());
        check_shape("there must be one kernel block for every function of the prior", functions, spec.blocks.len())?;
        check_shape("α must have one row for every training point", train.rows(), alpha.nrows())?;
        check_shape("α must have one column for every class", classes, alpha.ncols())?;
        check_shape("there must be one intercept for every class", classes, intercepts.len())?;
        let train = if spec.covariances.iter().any(|covariance| covariance.needs_training_points()) {
            train
        } else {
            Inputs::dense(Array2::zeros((alpha.nrows(), 1)))?
        };
        // A file may be small, and yet ask for this.
        let entries = (alpha.nrows() as u64).saturating_mul(functions as u64);
        crate::memory::check("the coefficients of all functions", entries.saturating_mul(16))?;
        let alpha = if alpha.is_standard_layout() { alpha } else { alpha.as_standard_layout().into_owned() };
        let mut mixed = Array2::zeros((alpha.nrows(), functions));
        spec.mixing.to_functions(mixed.view_mut(), alpha.view())?;
        let mut coefficients = Vec::new();
        for matrix in 0..spec.covariances.len() {
            let users: Vec<usize> = (0..functions).filter(|&p| spec.blocks[p].matrix == matrix).collect();
            let of_users = |(i, k): (usize, usize)| spec.blocks[users[k]].variance * mixed[[i, users[k]]];
            let values = Array2::from_shape_fn((alpha.nrows(), users.len()), of_users);
            coefficients.push((users, values));
        }
        Ok(Self { spec, train, alpha, intercepts, coefficients })
    }

    /// The description of the model.
    #[must_use]
    pub fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    /// The training points; zeros where predictions do not need them.
    #[must_use]
    pub fn train(&self) -> &Inputs {
        &self.train
    }

    /// α, n × C.
    #[must_use]
    pub fn alpha(&self) -> ArrayView2<'_, f64> {
        self.alpha.view()
    }

    /// The intercepts b_c.
    #[must_use]
    pub fn intercepts(&self) -> &Array1<f64> {
        &self.intercepts
    }

    /// v_p (α·mix)_p, grouped by covariance function: the functions of each, and a column for each of them.
    pub(super) fn coefficients(&self) -> &[(Vec<usize>, Array2<f64>)] {
        &self.coefficients
    }

    /// The class functions u at other points, one row a point.
    pub fn decision_function(&self, context: &Context, x: &Inputs) -> Result<Array2<f64>> {
        let functions = self.function_values(context, x)?;
        Ok(context.install(|| self.to_classes(functions.view()))? + &self.intercepts)
    }

    /// The independent functions ŭ at other points, one row a point: those of the classes, or of the nodes of a tree.
    pub fn function_values(&self, context: &Context, x: &Inputs) -> Result<Array2<f64>> {
        let width = 2 * (self.spec.mixing.functions() + self.spec.mixing.classes());
        let needed = (x.rows() as u64).saturating_mul((width * size_of::<f64>()) as u64);
        context.plan_memory("the predictions, all at once,", needed)?;
        context.install(|| {
            let mut functions = Array2::zeros((x.rows(), self.spec.mixing.functions()));
            for (covariance, (users, coefficients)) in self.spec.covariances.iter().zip(&self.coefficients) {
                let mut values = Array2::zeros((x.rows(), users.len()));
                covariance.cross_apply(context, values.view_mut(), x, &self.train, coefficients.view())?;
                for (mut functions, values) in functions.outer_iter_mut().zip(values.outer_iter()) {
                    users.iter().zip(values).for_each(|(&p, value)| functions[p] = *value);
                }
            }
            Ok(functions)
        })
    }

    /// What the independent functions make of the classes, without their intercepts.
    pub(super) fn to_classes(&self, functions: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let mut classes = Array2::zeros((functions.nrows(), self.spec.mixing.classes()));
        self.spec.mixing.to_classes(classes.view_mut(), functions)?;
        Ok(classes)
    }

    /// Logarithms of the class probabilities at other points, one row a point.
    pub fn predict_log_proba(&self, context: &Context, x: &Inputs) -> Result<Array2<f64>> {
        let mut u = self.decision_function(context, x)?;
        Softmax::log_probabilities(&mut u);
        Ok(u)
    }

    /// Class probabilities at other points, one row a point.
    pub fn predict_proba(&self, context: &Context, x: &Inputs) -> Result<Array2<f64>> {
        Ok(self.predict_log_proba(context, x)?.mapv_into(f64::exp))
    }

    /// The most probable class of other points.
    pub fn predict(&self, context: &Context, x: &Inputs) -> Result<Vec<usize>> {
        Ok(most_probable(self.decision_function(context, x)?.view()))
    }

    /// For other points the class whose expected loss is smallest.
    pub fn decide(&self, context: &Context, x: &Inputs, loss: Loss) -> Result<Vec<usize>> {
        if loss == Loss::ZeroOne {
            return self.predict(context, x);
        }
        let tree = self.spec.mixing.tree().ok_or(Error::NeedsTree { what: loss.name() })?;
        let probabilities = self.predict_proba(context, x)?;
        context.install(|| decide(tree, probabilities.view(), loss))
    }

    /// The mass of every node of the tree at other points: the sum of the probabilities of the classes below it. One row
    /// a point, one column a node in the order of the tree's description; that of the root is 1.
    pub fn node_proba(&self, context: &Context, x: &Inputs) -> Result<Array2<f64>> {
        let tree = self.spec.mixing.tree().ok_or(Error::NeedsTree { what: "the mass of a node" })?;
        let probabilities = self.predict_proba(context, x)?;
        let mut masses = Array2::zeros((x.rows(), self.spec.mixing.functions() + 1));
        node_masses(tree, masses.view_mut(), probabilities.view())?;
        Ok(masses)
    }
}
