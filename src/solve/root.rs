//! The root V of the curvature, W = V Vᵀ (seed 000, section 5): V_i = D_i^½ − D_i 1 1ᵀ D_i^½ / Σ_c D_ic.

use crate::data::{row_major, row_major_mut};
use crate::error::Result;
use crate::parallel::{dot_sequential, part_len};
use crate::simd::widest;
use ndarray::Array2;
use rayon::prelude::*;

/// V at one point of the iteration.
#[derive(Debug)]
pub(super) struct CurvatureRoot {
    /// D^½, n × C.
    root: Array2<f64>,
    /// 1/Σ_c D_ic, and 0 for a point without weight.
    inverse_sums: Vec<f64>,
}

impl CurvatureRoot {
    pub(super) fn new(mut diagonal: Array2<f64>) -> Self {
        let invert = |sum: f64| if sum > 0.0 { 1.0 / sum } else { 0.0 };
        let inverse_sums = diagonal.outer_iter().map(|d| invert(d.sum())).collect();
        diagonal.mapv_inplace(f64::sqrt);
        Self { root: diagonal, inverse_sums }
    }

    /// D^½.
    pub(super) fn root(&self) -> &Array2<f64> {
        &self.root
    }

    /// 1/Σ_c D_ic.
    pub(super) fn inverse_sums(&self) -> &[f64] {
        &self.inverse_sums
    }

    /// out = V b.
    pub(super) fn apply(&self, out: &mut Array2<f64>, b: &Array2<f64>) -> Result<()> {
        self.rows(
            out,
            b,
            #[inline(always)]
            |out, b, root, inverse_sum| {
                let mean = inverse_sum * dot_sequential(root, b);
                for ((out, b), root) in out.iter_mut().zip(b).zip(root) {
                    *out = root * (b - root * mean);
                }
            },
        )
    }

    /// out = Vᵀ b.
    pub(super) fn apply_transposed(&self, out: &mut Array2<f64>, b: &Array2<f64>) -> Result<()> {
        self.rows(
            out,
            b,
            #[inline(always)]
            |out, b, root, inverse_sum| {
                out.iter_mut().zip(b).zip(root).for_each(|((out, b), root)| *out = root * b);
                let mean = inverse_sum * dot_sequential(root, out);
                out.iter_mut().zip(root).for_each(|(out, root)| *out -= root * mean);
            },
        )
    }

    /// out = (I − D P_cls) t, so that V b is this of D^½ b.
    pub(super) fn remove_means(&self, out: &mut Array2<f64>, t: &Array2<f64>) {
        let rows = out.outer_iter_mut().zip(t.outer_iter()).zip(self.root.outer_iter()).zip(&self.inverse_sums);
        for (((mut out, t), root), inverse_sum) in rows {
            let mean = inverse_sum * t.sum();
            out.iter_mut().zip(t).zip(root).for_each(|((out, t), root)| *out = t - root * root * mean);
        }
    }

    /// Calls `work` for matching rows.
    fn rows(
        &self,
        out: &mut Array2<f64>,
        b: &Array2<f64>,
        work: impl Fn(&mut [f64], &[f64], &[f64], f64) + Sync,
    ) -> Result<()> {
        let classes = self.root.ncols();
        let rows = part_len(self.root.nrows());
        let (mut out, b, root) = (out.view_mut(), b.view(), self.root.view());
        let (out, b, root) = (row_major_mut("V b", &mut out)?, row_major("b", &b)?, row_major("D^½", &root)?);
        let len = rows * classes;
        let arrays = out.par_chunks_mut(len).zip(b.par_chunks(len)).zip(root.par_chunks(len));
        arrays.zip(self.inverse_sums.par_chunks(rows)).for_each(|(((out, b), root), inverse_sums)| {
            widest(
                #[inline(always)]
                || {
                    let points = out.chunks_mut(classes).zip(b.chunks(classes)).zip(root.chunks(classes));
                    for (((out, b), root), inverse_sum) in points.zip(inverse_sums) {
                        work(out, b, root, *inverse_sum);
                    }
                },
            );
        });
        Ok(())
    }
}
