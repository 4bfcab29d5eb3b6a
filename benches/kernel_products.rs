//! How close every product comes to what the machine can do.
//!
//! `cargo bench --bench kernel_products` measures the machine (memory, cache, arithmetic, exponentials) and then every
//! representation with 1 to 60 columns, in the same run, and prints a table, and at the end where each of them stands.
//! Figures are medians; one thread and two are compared by the fastest of three. Rough products have twice as many numbers to
//! a register, so half of their arithmetic is counted.

mod support;

use ndarray::Array2;
use nuptse::data::{CsrRows, Inputs};
use nuptse::kernel::{Covariance, DenseOperator, KernelOperator, Linear, LinearSparse, Precision, Rbf};
use nuptse::workspace::Workspace;
use nuptse::{Context, Result};
use std::hint::black_box;
use std::sync::Arc;
use support::{Limits, Standings, Work, seconds};

const COLUMNS: [usize; 5] = [1, 5, 10, 30, 60];

fn random(rows: usize, columns: usize) -> Array2<f64> {
    let mut state = 88_172_645_463_325_252_u64;
    Array2::from_shape_simple_fn((rows, columns), || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
    })
}

/// Sparse rows like those of texts: few frequent words, many rare ones.
fn documents(rows: usize, columns: usize, words: usize) -> Result<Arc<CsrRows>> {
    let draws = random(rows, words);
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in draws.outer_iter() {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let mut words: Vec<u32> = row.iter().map(|u| ((u + 0.5).powi(4) * (columns - 1) as f64) as u32).collect();
        words.sort_unstable();
        words.dedup();
        values.extend(std::iter::repeat_n(1.0 / (words.len() as f64).sqrt(), words.len()));
        indices.extend(words);
        offsets.push(values.len());
    }
    Ok(Arc::new(CsrRows::new(offsets, indices, values, columns)?))
}

fn time_product(context: &Context, operator: &dyn KernelOperator, k: usize) -> f64 {
    let n = operator.points();
    let s = random(n, k);
    let (mut out, mut work) = (Array2::zeros((n, k)), Workspace::default());
    context.install(|| {
        seconds(|| {
            if let Err(error) = operator.apply(context, &mut work, out.view_mut(), s.view()) {
                eprintln!("{error}");
            }
        })
    })
}

fn main() -> Result<()> {
    let context = Context::new(None)?;
    eprintln!("measuring the machine ...");
    let limits = context.install(Limits::measure);
    println!("## Products against the limits of the machine\n");
    println!(
        "{} threads; limits measured in this run: memory {:.1} GB/s, second-level cache {:.0} GB/s, products {:.1} GF/s, \
         exponentials {:.2} G/s\n",
        context.threads(),
        limits.memory / 1e9,
        limits.cache / 1e9,
        limits.flops / 1e9,
        limits.exponentials / 1e9
    );
    println!("| representation | columns | ms | GB/s | GF/s | of the limit |\n|---|---|---|---|---|---|");
    let mut standings = Standings::new(&limits);
    let (n, d) = (4435, 36);
    let (nf, df) = (n as f64, d as f64);
    let x = Inputs::dense(random(n, d))?;
    let rbf = Rbf::automatic(&x, None)?;
    let kinds = [
        (Precision::Double, false, "double", 8.0),
        (Precision::Single, false, "single", 4.0),
        (Precision::Single, true, "single, rough", 4.0),
    ];
    for (precision, rough, name, bytes) in kinds {
        eprintln!("symmetric, {name} precision ...");
        let operator = rbf.operator(&context, &x, precision)?;
        let context = context.with_rough_products(rough);
        for k in COLUMNS {
            let work = Work {
                bytes: nf * nf / 2.0 * bytes,
                cached_bytes: 0.0,
                flops: if rough { 1.0 } else { 2.0 } * nf * nf * k as f64,
                exponentials: 0.0,
            };
            let time = time_product(&context, operator.as_ref(), k);
            standings.add(&format!("stored symmetric, {name}, n = {n}"), &k.to_string(), time, &work);
        }
    }
    eprintln!("building ...");
    let time = seconds(|| drop(black_box(context.install(|| rbf.operator(&context, &x, Precision::Double)))));
    let work = Work { bytes: nf * nf * 4.0, cached_bytes: 0.0, flops: nf * nf * df, exponentials: nf * nf / 2.0 };
    standings.add(&format!("building the RBF matrix, n = {n}, d = {d}"), "", time, &work);
    eprintln!("matrix-free ...");
    let large = Inputs::dense(random(20_000, d))?;
    let operator = DenseOperator::matrix_free(rbf.clone(), &large);
    for k in COLUMNS {
        let n = 20_000.0_f64;
        let flops = n * n * df + 2.0 * n * n * k as f64;
        let work = Work { bytes: 0.0, cached_bytes: 0.0, flops, exponentials: n * n / 2.0 };
        let time = time_product(&context, &operator, k);
        standings.add("matrix-free RBF, n = 20000, d = 36", &k.to_string(), time, &work);
    }
    eprintln!("linear ...");
    let operator = Linear.operator(&context, &Inputs::dense(random(20_000, 100))?, Precision::Double)?;
    for k in COLUMNS {
        let entries = 2e6;
        let work = Work { bytes: 8.0 * entries, cached_bytes: 0.0, flops: 4.0 * entries * k as f64, exponentials: 0.0 };
        let time = time_product(&context, operator.as_ref(), k);
        standings.add("linear, dense rows, n = 20000, d = 100", &k.to_string(), time, &work);
    }
    let rows = documents(7710, 13_497, 62)?;
    let operator = LinearSparse::new(&rows);
    for k in COLUMNS.into_iter().chain([521]) {
        let touched = 2.0 * rows.entries() as f64 * k as f64;
        let work = Work { bytes: 0.0, cached_bytes: 8.0 * touched, flops: 2.0 * touched, exponentials: 0.0 };
        let time = time_product(&context, &operator, k);
        standings.add("linear, sparse rows, 7710 documents", &k.to_string(), time, &work);
    }
    eprintln!("one thread against two ...");
    println!("\n| where arithmetic binds | 1 thread, ms | 2 threads, ms | ratio |\n|---|---|---|---|");
    let stored = rbf.operator(&context, &x, Precision::Double)?;
    let free = DenseOperator::matrix_free(rbf.clone(), &x);
    let operators: [(&str, &dyn KernelOperator, usize); 3] = [
        ("stored symmetric, 10 columns", stored.as_ref(), 10),
        ("stored symmetric, 60 columns", stored.as_ref(), 60),
        ("matrix-free, 10 columns", &free, 10),
    ];
    for (name, operator, k) in operators {
        // In turns, and the fastest of them: what else the machine does must not look like a loss of one of the two.
        let (mut one, mut two) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..3 {
            one = one.min(time_product(&Context::new(Some(1))?, operator, k));
            two = two.min(time_product(&Context::new(Some(2))?, operator, k));
        }
        println!("| {name} | {:.2} | {:.2} | {:.2} |", 1e3 * one, 1e3 * two, one / two);
    }
    standings.show();
    Ok(())
}
