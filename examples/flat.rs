//! Fits a kernel classifier to three circles of points and predicts two new ones. Run with `cargo run --example flat`.

use ndarray::{Array2, array};
use nuptse::data::{Inputs, Targets};
use nuptse::kernel::Rbf;
use nuptse::model::{FitOptions, ModelSpec};

fn main() -> nuptse::Result<()> {
    let context = nuptse::Context::new(None)?;

    // 300 points on circles of radius 1, 2 and 3; the circle is the class.
    let labels: Vec<usize> = (0..300).map(|i| i % 3).collect();
    let x = Array2::from_shape_fn((300, 2), |(i, j)| {
        let (radius, angle) = (1.0 + labels[i] as f64, 2.4 * i as f64);
        radius * if j == 0 { angle.cos() } else { angle.sin() }
    });
    let x = Inputs::dense(x)?;

    let spec = ModelSpec::shared(3, Rbf::automatic(&x, None)?, 10.0);
    let (model, info) = spec.fit(&context, &x, Targets::from_labels(&labels, 3)?, &FitOptions::default())?;
    println!(
        "{} Newton steps, {} products, objective {:.3}",
        info.solve.steps, info.solve.products, info.solve.objective
    );

    let new = Inputs::dense(array![[0.0, 1.1], [-2.9, 0.2]])?;
    for (label, p) in model.predict(&context, &new)?.iter().zip(model.predict_proba(&context, &new)?.outer_iter()) {
        println!("circle {label}, probabilities {p:.3}");
    }
    Ok(())
}
