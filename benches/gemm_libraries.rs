//! Which library multiplies dense matrices: faer against the matrixmultiply of ndarray, in the shapes that occur here.
//!
//! Both run on tiles, one task each on all cores, as the crate does it. `cargo bench --bench gemm_libraries`; the figures
//! that settled the choice are in `benches/results/gemm_libraries.md`.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2};
use rayon::prelude::*;
use std::hint::black_box;

/// Points, and rows of a task.
const POINTS: usize = 4435;
const ROWS: usize = 64;

fn array(rows: usize, columns: usize) -> Array2<f64> {
    Array2::from_shape_fn((rows, columns), |(i, j)| ((3 * i + 5 * j) % 11) as f64 * 0.1)
}

/// out = A S or A Bᵀ, a block of rows of A at a time.
fn blocks(
    out: &mut [f64],
    a: &[f64],
    columns: usize,
    inner: usize,
    multiply: impl Fn(&mut [f64], &[f64], usize) + Sync,
) {
    out.par_chunks_mut(ROWS * columns).zip(a.par_chunks(ROWS * inner)).for_each(|(out, a)| {
        multiply(out, a, a.len() / inner);
    });
}

/// K S: a kernel matrix times k columns.
fn kernel_products(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("kernel matrix (4435 points) times k columns");
    group.sample_size(10);
    let a = array(POINTS, POINTS);
    for k in [1, 5, 10, 30, 60] {
        let (s, mut out) = (array(POINTS, k), vec![0.0; POINTS * k]);
        let (a, s) = (a.as_slice().unwrap_or_default(), s.as_slice().unwrap_or_default());
        group.throughput(Throughput::Elements((2 * POINTS * POINTS * k) as u64));
        group.bench_with_input(BenchmarkId::new("faer", k), &k, |bencher, &k| {
            bencher.iter(|| {
                blocks(black_box(&mut out), a, k, POINTS, |out, a, rows| {
                    let a = MatRef::from_row_major_slice(a, rows, POINTS);
                    let s = MatRef::from_row_major_slice(s, POINTS, k);
                    matmul(MatMut::from_row_major_slice_mut(out, rows, k), Accum::Replace, a, s, 1.0, Par::Seq);
                });
            });
        });
        group.bench_with_input(BenchmarkId::new("matrixmultiply", k), &k, |bencher, &k| {
            bencher.iter(|| {
                blocks(black_box(&mut out), a, k, POINTS, |out, a, rows| {
                    let views = (
                        ArrayView2::from_shape((rows, POINTS), a),
                        ArrayView2::from_shape((POINTS, k), s),
                        ndarray::ArrayViewMut2::from_shape((rows, k), out),
                    );
                    if let (Ok(a), Ok(s), Ok(mut out)) = views {
                        general_mat_mul(1.0, &a, &s, 0.0, &mut out);
                    }
                });
            });
        });
    }
    group.finish();
}

/// X Xᵀ: inner products of the points, from which distances are made.
fn inner_products(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("inner products of 4435 points with d inputs");
    group.sample_size(10);
    for d in [10, 36, 784] {
        let x = array(POINTS, d);
        let mut out = vec![0.0; POINTS * POINTS];
        let x = x.as_slice().unwrap_or_default();
        group.throughput(Throughput::Elements((2 * POINTS * POINTS * d) as u64));
        group.bench_with_input(BenchmarkId::new("faer", d), &d, |bencher, &d| {
            bencher.iter(|| {
                blocks(black_box(&mut out), x, POINTS, d, |out, a, rows| {
                    let a = MatRef::from_row_major_slice(a, rows, d);
                    let b = MatRef::from_row_major_slice(x, POINTS, d).transpose();
                    matmul(MatMut::from_row_major_slice_mut(out, rows, POINTS), Accum::Replace, a, b, 1.0, Par::Seq);
                });
            });
        });
        group.bench_with_input(BenchmarkId::new("matrixmultiply", d), &d, |bencher, &d| {
            bencher.iter(|| {
                blocks(black_box(&mut out), x, POINTS, d, |out, a, rows| {
                    let views = (
                        ArrayView2::from_shape((rows, d), a),
                        ArrayView2::from_shape((POINTS, d), x),
                        ndarray::ArrayViewMut2::from_shape((rows, POINTS), out),
                    );
                    if let (Ok(a), Ok(b), Ok(mut out)) = views {
                        general_mat_mul(1.0, &a, &b.t(), 0.0, &mut out);
                    }
                });
            });
        });
    }
    group.finish();
}

criterion_group!(benches, kernel_products, inner_products);
criterion_main!(benches);
