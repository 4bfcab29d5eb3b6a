//! Errors of the crate as Python exceptions.

use crate::Error;
use crate::error::FileProblem;
use pyo3::exceptions::{
    PyFloatingPointError, PyKeyboardInterrupt, PyMemoryError, PyOSError, PyRuntimeError, PyValueError,
};
use pyo3::prelude::*;

pyo3::create_exception!(
    nuptse,
    MemoryLimitError,
    PyMemoryError,
    "Something large would not fit: `bytes_needed` says how large it is, `bytes_allowed` what may be used."
);

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Interrupted => PyKeyboardInterrupt::new_err(()),
            Error::MemoryLimit { needed, allowed, .. } => memory_limit(message, needed, allowed),
            Error::File { problem: FileProblem::NotWritten { .. } | FileProblem::NotRead { .. }, .. } => {
                PyOSError::new_err(message)
            }
            Error::File { problem: FileProblem::TooLarge { .. }, .. } => PyMemoryError::new_err(message),
            Error::Threads { .. } => PyRuntimeError::new_err(message),
            Error::NotFinite { .. } => PyFloatingPointError::new_err(message),
            _ => PyValueError::new_err(message),
        }
    }
}

/// The exception with its figures as attributes.
fn memory_limit(message: String, needed: u64, allowed: u64) -> PyErr {
    let error = MemoryLimitError::new_err(message);
    Python::attach(|py| {
        let value = error.value(py);
        match value.setattr("bytes_needed", needed).and_then(|()| value.setattr("bytes_allowed", allowed)) {
            Ok(()) => error,
            Err(other) => other,
        }
    })
}
