//! dΨ = Σ_k ⟨E_k, (dK̃) F_k⟩ for every hyperparameter (seed 000, eq. 7).

use crate::context::Context;
use crate::data::{check_shape, row_major};
use crate::error::Result;
use crate::parallel::part_len;
use crate::prior::JointPrior;
use crate::workspace::Workspace;
use ndarray::{Array2, ArrayView2};
use rayon::prelude::*;

/// Derivatives of Ψ with respect to the logarithms of the hyperparameters.
#[derive(Debug, Clone, PartialEq)]
pub struct CvGradient {
    /// For every function its variance v_p.
    pub variances: Vec<f64>,
    /// For every kernel matrix its shape parameters.
    pub shapes: Vec<Vec<f64>>,
    /// The intercept variance σ².
    pub intercept: f64,
}

/// The gradient, from E and F of every fold. It takes one product for each fold, and the derivative products of the kernel
/// matrices.
pub fn gradient(context: &Context, prior: &JointPrior, e: &[Array2<f64>], f: &[Array2<f64>]) -> Result<CvGradient> {
    check_shape("there must be an F for every E", e.len(), f.len())?;
    let functions = prior.mixing().functions();
    let mut total = CvGradient { variances: vec![0.0; functions], shapes: vec![], intercept: 0.0 };
    context.install(|| {
        let mut work = Workspace::default();
        let (mut mixed_e, mut mixed_f) = (Vec::with_capacity(e.len()), Vec::with_capacity(e.len()));
        for (e, f) in e.iter().zip(f) {
            total.intercept += prior.intercept_variance()
                * e.columns().into_iter().zip(f.columns()).map(|(e, f)| e.sum() * f.sum()).sum::<f64>();
            let (e, f) = (to_functions(prior, e.view())?, to_functions(prior, f.view())?);
            // Column p of K̆F̃ is v_p M f̃_p.
            let mut product = Array2::zeros(f.raw_dim());
            prior.blocks().apply(context, &mut work, product.view_mut(), f.view())?;
            add_column_products(&mut total.variances, &e, &product)?;
            mixed_e.push(e);
            mixed_f.push(f);
        }
        for (matrix, users) in prior.blocks().matrices().iter().zip(prior.blocks().users()) {
            if matrix.parameter_count() == 0 {
                total.shapes.push(vec![]);
                continue;
            }
            let scaled = |p: usize| prior.blocks().blocks()[p].variance;
            let (e, f) = (gather(&mixed_e, users, scaled), gather(&mixed_f, users, |_| 1.0));
            total.shapes.push(matrix.gradient(context, e.view(), f.view())?);
        }
        Ok(total)
    })
}

fn to_functions(prior: &JointPrior, s: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
    let mut out = Array2::zeros((s.nrows(), prior.mixing().functions()));
    prior.mixing().to_functions(out.view_mut(), s)?;
    Ok(out)
}

/// The columns of the given functions, each times its factor, of all folds side by side.
fn gather(folds: &[Array2<f64>], functions: &[usize], factor: impl Fn(usize) -> f64) -> Array2<f64> {
    let (points, width) = (folds.first().map_or(0, Array2::nrows), functions.len());
    Array2::from_shape_fn((points, width * folds.len()), |(i, column)| {
        let p = functions[column % width];
        factor(p) * folds[column / width][[i, p]]
    })
}

/// Adds aᵀb of every column.
fn add_column_products(sums: &mut [f64], a: &Array2<f64>, b: &Array2<f64>) -> Result<()> {
    let width = sums.len();
    let rows = part_len(a.nrows());
    let (a, b) = (a.view(), b.view());
    let (a, b) = (row_major("Ẽ", &a)?, row_major("K̆F̃", &b)?);
    let parts: Vec<Vec<f64>> = (a.par_chunks(rows * width).zip(b.par_chunks(rows * width)))
        .map(|(a, b)| {
            let mut sums = vec![0.0; width];
            for (a, b) in a.chunks(width).zip(b.chunks(width)) {
                sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
            }
            sums
        })
        .collect();
    for part in &parts {
        sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
    }
    Ok(())
}
