//! What the machine can do, what a product has to do at least, and where it stands between the two.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Median time of a call, from calls that together take about half a second.
pub fn seconds(mut work: impl FnMut()) -> f64 {
    work();
    let (mut times, start) = (Vec::new(), Instant::now());
    while times.len() < 5 || (start.elapsed() < Duration::from_millis(500) && times.len() < 200) {
        let call = Instant::now();
        work();
        times.push(call.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// What the machine can do, per second, with all threads.
pub struct Limits {
    pub memory: f64,
    pub cache: f64,
    pub flops: f64,
    pub exponentials: f64,
}

fn sum(values: &[f64]) -> f64 {
    let mut lanes = [0.0; 32];
    for chunk in values.as_chunks::<32>().0 {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane += value);
    }
    lanes.iter().sum()
}

impl Limits {
    pub fn measure() -> Self {
        let long = vec![1.0_f64; 100_000_000];
        let memory = seconds(|| {
            black_box(long.par_chunks(1 << 20).map(sum).sum::<f64>());
        });
        let threads = rayon::current_num_threads();
        let short = vec![1.0_f64; 48_000];
        let cache = seconds(|| {
            (0..threads).into_par_iter().for_each(|_| {
                for _ in 0..1000 {
                    black_box(sum(black_box(&short)));
                }
            });
        });
        let n = 1536;
        let (a, mut c) = (vec![1.0; n * n], vec![0.0; n * n]);
        let multiply = seconds(|| {
            c.par_chunks_mut(n * 128).zip(a.par_chunks(n * 128)).for_each(|(c, rows)| {
                let height = rows.len() / n;
                let rows = MatRef::from_row_major_slice(rows, height, n);
                let a = MatRef::from_row_major_slice(&a[..], n, n);
                matmul(MatMut::from_row_major_slice_mut(c, height, n), Accum::Replace, rows, a, 1.0, Par::Seq);
            });
        });
        let values = vec![0.3; 4096];
        let exponentials = seconds(|| {
            (0..4000).into_par_iter().for_each_init(
                || values.clone(),
                |buffer, _| {
                    buffer.copy_from_slice(&values);
                    nuptse::simd::exp(black_box(buffer), -0.5);
                },
            );
        });
        Self {
            memory: 8.0 * long.len() as f64 / memory,
            cache: 8.0 * (threads * 1000 * short.len()) as f64 / cache,
            flops: 2.0 * (n as f64).powi(3) / multiply,
            exponentials: 4096.0 * 4000.0 / exponentials,
        }
    }
}

/// What a product has to do at least.
pub struct Work {
    pub bytes: f64,
    pub cached_bytes: f64,
    pub flops: f64,
    pub exponentials: f64,
}

impl Work {
    /// Seconds on this machine, and what takes them. Memory and arithmetic go on at the same time; exponentials are
    /// arithmetic too.
    fn bound(&self, limits: &Limits) -> (f64, &'static str) {
        let arithmetic = self.flops / limits.flops + self.exponentials / limits.exponentials;
        let bounds = [
            (arithmetic, "arithmetic"),
            (self.bytes / limits.memory, "memory"),
            (self.cached_bytes / limits.cache, "cache"),
        ];
        bounds.into_iter().fold((0.0, ""), |most, bound| if bound.0 > most.0 { bound } else { most })
    }
}

/// One product: how long it took, and what share of that it would take at the limit of the machine.
struct Standing {
    name: String,
    columns: String,
    time: f64,
    share: f64,
    bound_by: &'static str,
}

/// Where every product stands.
pub struct Standings<'a> {
    limits: &'a Limits,
    products: Vec<Standing>,
}

impl<'a> Standings<'a> {
    pub fn new(limits: &'a Limits) -> Self {
        Self { limits, products: Vec::new() }
    }

    /// Adds a product, and prints its row of the table.
    pub fn add(&mut self, name: &str, columns: &str, time: f64, work: &Work) {
        let (bound, bound_by) = work.bound(self.limits);
        println!(
            "| {name} | {columns} | {:.2} | {:.1} | {:.1} | {:.0} % |",
            1e3 * time,
            (work.bytes + work.cached_bytes) / time / 1e9,
            work.flops / time / 1e9,
            100.0 * bound / time
        );
        self.products.push(Standing {
            name: name.to_owned(),
            columns: columns.to_owned(),
            time,
            share: bound / time,
            bound_by,
        });
    }

    /// Shows all of them to whoever is watching; the table on standard output is for files.
    pub fn show(&self) {
        eprintln!("\nWhere every product stands, in percent of the machine's limit (above 100: out of the cache)\n");
        let mut last = "";
        for product in &self.products {
            if product.name != last {
                eprintln!("  {}", product.name);
                last = &product.name;
            }
            let columns = match product.columns.as_str() {
                "" => String::new(),
                "1" => "1 column".to_owned(),
                many => format!("{many} columns"),
            };
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let bar = "#".repeat((20.0 * product.share.clamp(0.0, 1.0)).round() as usize);
            eprintln!(
                "    {columns:>11}  {:>9.2} ms  {bar:.<20} {:>4.0} % of {}",
                1e3 * product.time,
                100.0 * product.share,
                product.bound_by
            );
        }
    }
}
