//! Leading eigenvectors of the kernel matrix, by a few products with a handful of columns.

use crate::context::Context;
use crate::data::row_major;
use crate::error::{Error, Result};
use crate::kernel::KernelOperator;
use crate::workspace::Workspace;
use faer::{Mat, MatRef, Side};
use ndarray::Array2;

/// Times the block is multiplied; the leading directions of kernel matrices stand out soon.
const ROUNDS: usize = 7;

/// Approximate leading eigenvectors q_j of M, one a column, orthonormal, with M q_j, also orthogonal to the other q.
#[derive(Debug)]
pub(super) struct LeadingVectors {
    pub vectors: Array2<f64>,
    pub images: Array2<f64>,
    /// λ_j = q_jᵀ M q_j, largest first.
    pub values: Vec<f64>,
    /// Columns that M was multiplied with.
    pub columns: usize,
}

impl LeadingVectors {
    /// Of the leading n points: subspace iteration with twice as many columns as are asked for, then Rayleigh and Ritz.
    pub(super) fn find(
        context: &Context,
        work: &mut Workspace,
        (matrix, n): (&dyn KernelOperator, usize),
        count: usize,
    ) -> Result<Self> {
        let width = (2 * count).min(n);
        let count = count.min(width);
        // The first column finds what all points have in common; the others are anything, always the same.
        let mut block = Mat::from_fn(n, width, |i, j| if j == 0 { 1.0 } else { scattered(i * width + j) });
        let mut image = Mat::zeros(n, width);
        for _ in 0..ROUNDS {
            orthonormalise(&mut block);
            multiply(context, work, matrix, &mut image, &block)?;
            block.copy_from(&image);
        }
        orthonormalise(&mut block);
        multiply(context, work, matrix, &mut image, &block)?;
        let small = block.transpose() * &image;
        let failed = |_| Error::NotPositiveDefinite { class: 0 };
        let eigen = small.self_adjoint_eigen(Side::Lower).map_err(failed)?;
        // Eigenvalues come in rising order.
        let order: Vec<usize> = (0..width).rev().take(count).collect();
        let (vectors, images) = (&block * eigen.U(), &image * eigen.U());
        let pick = |from: &Mat<f64>| Array2::from_shape_fn((n, count), |(i, j)| from[(i, order[j])]);
        Ok(Self {
            vectors: pick(&vectors),
            images: pick(&images),
            values: order.iter().map(|&j| eigen.S()[j]).collect(),
            columns: (ROUNDS + 1) * width,
        })
    }
}

/// Numbers without pattern between −½ and ½.
fn scattered(i: usize) -> f64 {
    let mixed = (i as u64).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed ^ (mixed >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
}

/// Replaces the columns by an orthonormal basis of what they span.
fn orthonormalise(block: &mut Mat<f64>) {
    let basis = block.qr().compute_thin_Q();
    block.copy_from(&basis);
}

fn multiply(
    context: &Context,
    work: &mut Workspace,
    matrix: &dyn KernelOperator,
    image: &mut Mat<f64>,
    block: &Mat<f64>,
) -> Result<()> {
    let shape = (block.nrows(), block.ncols());
    let s = Array2::from_shape_fn(shape, |(i, j)| block[(i, j)]);
    let mut out = Array2::zeros(shape);
    matrix.apply(context, work, out.view_mut(), s.view())?;
    image.copy_from(MatRef::from_row_major_slice(row_major("the product", &out.view())?, shape.0, shape.1));
    Ok(())
}
