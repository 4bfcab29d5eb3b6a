//! The vector of hyperparameters, as logarithms: variances by group, shape parameters by matrix, the intercept variance.

use crate::cv::CvGradient;
use crate::data::check_shape;
use crate::error::Result;
use crate::kernel::Block;
use crate::model::ModelSpec;

/// Which hyperparameters of a model are learned, and which functions share a variance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterLayout {
    /// The group of every function.
    variance_group: Vec<usize>,
    groups: usize,
    /// Number of shape parameters of every matrix.
    shapes: Vec<usize>,
    intercept: bool,
}

impl ParameterLayout {
    /// The layout of a model in which the functions of a group, numbered from 0, share their variance.
    pub fn new(spec: &ModelSpec, variance_group: Vec<usize>, intercept: bool) -> Result<Self> {
        check_shape("there must be a variance group for every function", spec.blocks.len(), variance_group.len())?;
        let groups = variance_group.iter().max().map_or(0, |largest| largest + 1);
        let shapes = spec.covariances.iter().map(|covariance| covariance.parameters().len()).collect();
        // An intercept that is not there has no logarithm.
        Ok(Self { variance_group, groups, shapes, intercept: intercept && spec.intercept_variance > 0.0 })
    }

    /// Number of hyperparameters.
    #[must_use]
    pub fn len(&self) -> usize {
        self.groups + self.shapes.iter().sum::<usize>() + usize::from(self.intercept)
    }

    /// Whether there is nothing to learn.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The logarithms of the hyperparameters of a model; a group has the variance of its first function.
    #[must_use]
    pub fn logarithms(&self, spec: &ModelSpec) -> Vec<f64> {
        let first = |group| self.variance_group.iter().position(|&other| other == group).unwrap_or_default();
        let mut values: Vec<f64> = (0..self.groups).map(|group| spec.blocks[first(group)].variance).collect();
        let parameters = spec.covariances.iter().flat_map(|covariance| covariance.parameters());
        values.extend(parameters.map(|parameter| parameter.value));
        if self.intercept {
            values.push(spec.intercept_variance);
        }
        values.into_iter().map(f64::ln).collect()
    }

    /// The model with other hyperparameters.
    pub fn with_logarithms(&self, spec: &ModelSpec, logarithms: &[f64]) -> Result<ModelSpec> {
        check_shape("the number of hyperparameters", self.len(), logarithms.len())?;
        let values: Vec<f64> = logarithms.iter().map(|log| log.exp()).collect();
        let block = |(block, &group): (&Block, &usize)| Block { variance: values[group], ..*block };
        let mut next = self.groups;
        let mut covariances = Vec::with_capacity(self.shapes.len());
        for (covariance, &count) in spec.covariances.iter().zip(&self.shapes) {
            covariances.push(covariance.with_parameters(&values[next..next + count])?);
            next += count;
        }
        Ok(ModelSpec {
            covariances,
            blocks: spec.blocks.iter().zip(&self.variance_group).map(block).collect(),
            intercept_variance: if self.intercept { values[next] } else { spec.intercept_variance },
            ..spec.clone()
        })
    }

    /// The vector that suits a share of the points, from that which suits all of them ([`Parameter::growth`]).
    ///
    /// [`Parameter::growth`]: crate::kernel::Parameter::growth
    #[must_use]
    pub fn for_share(&self, spec: &ModelSpec, logarithms: &[f64], share: f64) -> Vec<f64> {
        let mut carried = logarithms.to_vec();
        let shapes = spec.covariances.iter().flat_map(|covariance| covariance.parameters());
        // Variances and the intercept variance stay: they are about functions, not about what is known of them.
        for (log, shape) in carried.iter_mut().skip(self.groups).zip(shapes) {
            *log += shape.growth * share.ln();
        }
        carried
    }

    /// The derivatives of Ψ with respect to the vector.
    #[must_use]
    pub fn gradient(&self, of_all: &CvGradient) -> Vec<f64> {
        let mut gradient = vec![0.0; self.groups];
        self.variance_group.iter().zip(&of_all.variances).for_each(|(&group, part)| gradient[group] += part);
        gradient.extend(of_all.shapes.iter().flatten());
        if self.intercept {
            gradient.push(of_all.intercept);
        }
        gradient
    }

    /// Whether kernel matrices stay the same whatever is learned.
    #[must_use]
    pub fn keeps_matrices(&self) -> bool {
        self.shapes.iter().all(|&count| count == 0)
    }
}
