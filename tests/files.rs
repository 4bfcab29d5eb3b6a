//! Models come back from their files to the bit, and nothing that is no model comes back at all.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use nuptse::data::{Inputs, Scaling, Targets};
use nuptse::error::FileProblem;
use nuptse::kernel::{Block, Covariance, Linear, OnColumns, Rbf, WeightedLinear};
use nuptse::model::{FitOptions, Model, ModelSpec, SavedModel};
use nuptse::prior::{Flat, Mixing, Tree};
use nuptse::{Error, Result};
use proptest::prelude::*;
use std::sync::Arc;
use support::{Random, context};

/// A model of some shape: dense or sparse inputs, flat or a tree, kernels of all kinds.
fn model(seed: u64, sparse: bool, tree: bool) -> (Model, Inputs) {
    let mut random = Random::new(seed);
    let x = if sparse { random.sparse(20, 4) } else { random.dense(20, 4) };
    let labels: Vec<usize> = (0..20).map(|i| i % 4).collect();
    let targets = Targets::from_labels(&labels, 4).unwrap();
    let mixing: Arc<dyn Mixing> = if tree {
        Arc::new(Tree::new(&[Some(4), Some(4), Some(5), Some(5), Some(6), Some(6), None], &[2, 0, 3, 1]).unwrap())
    } else {
        Arc::new(Flat::new(4))
    };
    let covariances: Vec<Arc<dyn Covariance>> = vec![
        Arc::new(Rbf::isotropic(0.3).unwrap()),
        Arc::new(Rbf::per_input(vec![0.1, 0.2, 0.3, 0.4]).unwrap()),
        Arc::new(OnColumns::new(vec![3, 1], Arc::new(Linear))),
        Arc::new(WeightedLinear::new(vec![0, 1, 1, 0], vec![0.7, 1.3]).unwrap()),
    ];
    let blocks = (0..mixing.functions()).map(|p| Block { matrix: p % 4, variance: 0.1 + p as f64 / 3.0 }).collect();
    let spec = ModelSpec { covariances, blocks, mixing, intercept_variance: 0.3 };
    let (model, _) = spec.fit(&context(), &x, targets, &FitOptions::default()).unwrap();
    (model, x)
}

fn scalings() -> [Scaling; 3] {
    [Scaling::None, Scaling::UnitNorm, Scaling::Standardise { mean: vec![0.1; 4], factor: vec![1.0 / 3.0; 4] }]
}

#[test]
fn a_model_comes_back_to_the_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    for (sparse, tree) in [(false, false), (true, false), (false, true), (true, true)] {
        let (model, x) = model(7, sparse, tree);
        for scaling in scalings() {
            model.save(&path, &scaling, "labels: 🏔").unwrap();
            let back = SavedModel::load(&path).unwrap();
            assert_eq!((&back.scaling, back.notes.as_str()), (&scaling, "labels: 🏔"));
            let predictions = |model: &Model| model.predict_proba(&context(), &x).unwrap();
            assert_eq!(predictions(&back.model), predictions(&model));
            let mixing = |model: &Model| model.spec().mixing.tree().cloned();
            assert_eq!(mixing(&back.model), mixing(&model));
            // What is written again is the same file.
            assert_eq!(back.model.to_bytes(&scaling, "labels: 🏔").unwrap(), std::fs::read(&path).unwrap());
        }
    }
}

fn problem(found: Result<SavedModel>) -> FileProblem {
    match found.unwrap_err() {
        Error::File { problem, .. } => problem,
        other => panic!("{other}"),
    }
}

#[test]
fn what_is_no_model_is_refused_with_its_reason() {
    let (model, _) = model(8, true, true);
    let bytes = model.to_bytes(&Scaling::None, "").unwrap();
    assert_eq!(problem(SavedModel::from_bytes(&bytes[..bytes.len() - 3])), FileProblem::Truncated);
    assert_eq!(problem(SavedModel::from_bytes(b"\x80\x04\x95 a pickle")), FileProblem::Foreign);
    let mut changed = bytes.clone();
    *changed.last_mut().unwrap() ^= 1;
    assert!(matches!(problem(SavedModel::from_bytes(&changed)), FileProblem::Corrupt { .. }));
    let missing = SavedModel::load(std::path::Path::new("no such file"));
    assert!(matches!(problem(missing), FileProblem::NotRead { .. }));
}

proptest! {
    #[test]
    fn a_file_with_changes_is_refused_or_says_the_same(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        end in any::<prop::sample::Index>(),
    ) {
        let (model, x) = model(9, true, true);
        let bytes = model.to_bytes(&Scaling::None, "").unwrap();
        let mut changed = bytes.clone();
        for (place, value) in &changes {
            changed[place.index(bytes.len())] = *value;
        }
        let cut = &changed[..end.index(bytes.len() + 1)];
        for candidate in [changed.as_slice(), cut] {
            if let Ok(back) = SavedModel::from_bytes(candidate) {
                let predictions = |model: &Model| model.predict_proba(&context(), &x).unwrap();
                prop_assert_eq!(predictions(&back.model), predictions(&model));
            }
        }
    }
}
