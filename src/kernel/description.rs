//! Covariance functions by name and numbers: what files, and other languages, say of them.

use super::{Covariance, Linear, OnColumns, Precomputed, Rbf, WeightedLinear, Widths};
use crate::data::Inputs;
use crate::error::{Error, Result};
use ndarray::ArrayView1;
use std::sync::Arc;

/// A covariance function as it can be written down.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "python", derive(pyo3::FromPyObject, pyo3::IntoPyObject), pyo3(from_item_all))]
pub struct KernelDescription {
    /// Its name, e.g. `rbf`.
    pub name: String,
    /// Its shape parameters; none for automatic ones.
    pub parameters: Option<Vec<f64>>,
    /// Whether there is one for every input.
    pub per_input: bool,
    /// The columns of the inputs that it sees; none for all.
    pub columns: Option<Vec<usize>>,
    /// The group of each of these, where a linear kernel has weights by group.
    pub groups: Option<Vec<usize>>,
}

impl KernelDescription {
    /// The description of a covariance function.
    #[must_use]
    pub fn of(covariance: &dyn Covariance) -> Self {
        let parameters = covariance.parameters();
        Self {
            name: covariance.name().to_owned(),
            per_input: parameters.iter().any(|parameter| parameter.name.ends_with(']')),
            parameters: Some(parameters.iter().map(|parameter| parameter.value).collect()),
            columns: covariance.columns().map(<[usize]>::to_vec),
            groups: covariance.groups().map(<[usize]>::to_vec),
        }
    }

    /// The covariance function that is meant; x and the weights of its points settle what is automatic.
    pub fn covariance(&self, x: &Inputs, weights: Option<ArrayView1<'_, f64>>) -> Result<Arc<dyn Covariance>> {
        let Some(columns) = &self.columns else { return self.on_all_columns(x, weights) };
        let inner = self.on_all_columns(&x.select_columns(columns)?, weights)?;
        Ok(Arc::new(OnColumns::new(columns.clone(), inner)))
    }

    fn on_all_columns(&self, x: &Inputs, weights: Option<ArrayView1<'_, f64>>) -> Result<Arc<dyn Covariance>> {
        let Self { name, parameters, per_input, groups, .. } = self;
        match name.as_str() {
            "linear" => match groups {
                None => Ok(Arc::new(Linear)),
                Some(groups) => {
                    let count = groups.iter().max().map_or(0, |largest| largest.saturating_add(1)).min(groups.len());
                    let weights = parameters.clone().unwrap_or_else(|| vec![1.0; count]);
                    Ok(Arc::new(WeightedLinear::new(groups.clone(), weights)?))
                }
            },
            "precomputed" => Ok(Arc::new(Precomputed)),
            "rbf" => {
                let widths = match parameters {
                    None => Rbf::automatic(x, weights)?.widths().clone(),
                    Some(values) if values.len() == 1 => Widths::Shared(values[0]),
                    Some(values) => Widths::PerInput(values.clone()),
                };
                Ok(Arc::new(match widths {
                    Widths::Shared(width) if *per_input => Rbf::per_input(vec![width; x.columns()])?,
                    Widths::Shared(width) => Rbf::isotropic(width)?,
                    Widths::PerInput(widths) => Rbf::per_input(widths)?,
                }))
            }
            _ => {
                Err(Error::UnknownName { what: "kernel", found: name.clone(), known: "'rbf', 'linear', 'precomputed'" })
            }
        }
    }
}
