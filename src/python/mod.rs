//! The Python extension module `nuptse._core`: conversion only, no numerics.

mod convert;
mod door;
mod errors;
mod interpret;
mod learning;
mod matrix;
mod metrics;
mod model;

use pyo3::prelude::*;

/// The compiled core of nuptse.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::errors::MemoryLimitError;
    #[pymodule_export]
    use super::interpret::{class_weights, contributions, function_weights, is_linear};
    #[pymodule_export]
    use super::learning::cv_criterion;
    #[pymodule_export]
    use super::matrix::KernelMatrix;
    #[pymodule_export]
    use super::metrics::{
        accuracy, decide, log_loss, parent_accuracy, reciprocal_rank, reject_curve, reliability, taxonomic_loss,
    };
    #[pymodule_export]
    use super::model::{FittedModel, fit, hyperparameters, load, restore};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
