//! Products with one kernel matrix, for benchmarks and tests from Python.

use super::convert::{InputsArgument, copied, precision};
use super::door::{Settings, enter};
use crate::kernel::{KernelDescription, KernelOperator};
use crate::workspace::Workspace;
use ndarray::Array2;
use numpy::{IntoPyArray, PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;
use std::sync::Arc;
use std::time::Instant;

/// The matrix of a kernel over the rows of x.
#[pyclass(frozen, module = "nuptse._core")]
#[derive(Debug)]
pub(super) struct KernelMatrix {
    operator: Arc<dyn KernelOperator>,
    threads: Option<usize>,
    build_seconds: f64,
}

#[pymethods]
impl KernelMatrix {
    #[new]
    fn new(
        py: Python<'_>,
        x: InputsArgument<'_>,
        kernel: KernelDescription,
        precision: &str,
        n_threads: Option<usize>,
        memory_limit: Option<u64>,
    ) -> PyResult<Self> {
        let (x, precision) = (x.copy()?, self::precision(precision)?);
        let settings = Settings { threads: n_threads, memory_limit, ..Settings::default() };
        let (operator, build_seconds) = enter(py, &settings, |context| {
            let covariance = kernel.covariance(&x, None)?;
            let start = Instant::now();
            let operator = context.install(|| covariance.operator(context, &x, precision))?;
            Ok((operator, start.elapsed().as_secs_f64()))
        })?;
        Ok(Self { operator: operator.into(), threads: n_threads, build_seconds })
    }

    /// How the matrix is kept.
    #[getter]
    fn representation(&self) -> &'static str {
        self.operator.representation()
    }

    /// Seconds it took to make.
    #[getter]
    fn build_seconds(&self) -> f64 {
        self.build_seconds
    }

    /// The product with s.
    fn multiply<'py>(&self, py: Python<'py>, s: PyReadonlyArray2<'py, f64>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        Ok(self.repeat(py, &s, 1)?.0.into_pyarray(py))
    }

    /// Seconds that each of several products with s takes, without the way from Python and back.
    fn seconds<'py>(&self, py: Python<'py>, s: PyReadonlyArray2<'py, f64>, repeats: usize) -> PyResult<Vec<f64>> {
        Ok(self.repeat(py, &s, repeats)?.1)
    }
}

impl KernelMatrix {
    fn repeat(
        &self,
        py: Python<'_>,
        s: &PyReadonlyArray2<'_, f64>,
        repeats: usize,
    ) -> PyResult<(Array2<f64>, Vec<f64>)> {
        let s = copied(s.as_array(), |&value| value);
        let settings = Settings { threads: self.threads, ..Settings::default() };
        enter(py, &settings, |context| {
            context.install(|| {
                let mut out = Array2::zeros(s.raw_dim());
                let mut work = Workspace::default();
                let mut one = || {
                    let start = Instant::now();
                    self.operator.apply(context, &mut work, out.view_mut(), s.view())?;
                    Ok(start.elapsed().as_secs_f64())
                };
                let times = (0..repeats).map(|_| one()).collect::<crate::Result<_>>()?;
                Ok((out, times))
            })
        })
    }
}
