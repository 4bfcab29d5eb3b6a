//! Learning that goes on where it was stopped.
//!
//! The optimiser is a function of the values it is told, so the record of all evaluations is its whole state: a run that goes
//! on is told the recorded values until they end, and makes its own from there. With every fold where it stood, these are
//! the values it would have got without the interruption, to the bit.

use super::learner::Evaluation;
use super::optimiser::Curvature;
use super::parts::Beginning;
use crate::archive::{Archive, error};
use crate::cv::{CrossValidation, FoldState, Pace};
use crate::data::{Inputs, Target, Targets};
use crate::error::{FileProblem, Result};
use ndarray::Array2;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use xxhash_rust::xxh3::Xxh3;

const KIND: &str = "checkpoint";
const VERSION: u32 = 2;
/// Writing may take this share of the time.
const SHARE_OF_TIME: u32 = 20;

/// A file in which learning keeps its state.
#[derive(Debug)]
pub(super) struct Checkpoint {
    path: PathBuf,
    fingerprint: u64,
    /// Where the first of all evaluations was made.
    beginning: Option<Beginning>,
    /// What is still to be told.
    recorded: VecDeque<Evaluation>,
    /// Where every fold stood after the last of these.
    states: Vec<Option<FoldState>>,
    /// Whether the file could be read or written before.
    worked: bool,
    /// When the last file was written, and what that took.
    written: Option<(Instant, Duration)>,
}

impl Checkpoint {
    /// Takes what the file holds, if there is one.
    pub(super) fn open(path: PathBuf, fingerprint: u64, cv: &CrossValidation) -> Result<Self> {
        let mut checkpoint = Self {
            path,
            fingerprint,
            beginning: None,
            recorded: VecDeque::new(),
            states: Vec::new(),
            worked: false,
            written: None,
        };
        if checkpoint.path.exists() {
            let (archive, _) = Archive::load(&checkpoint.path, KIND, VERSION)?;
            checkpoint.read(archive, cv).map_err(|problem| error(&checkpoint.path, problem))?;
            checkpoint.worked = true;
        }
        Ok(checkpoint)
    }

    fn read(&mut self, mut archive: Archive, cv: &CrossValidation) -> std::result::Result<(), FileProblem> {
        let corrupt = |what: &str| FileProblem::Corrupt { reason: format!("its {what} make no sense") };
        let number = |name: &str| archive.header.get(name).and_then(Value::as_u64);
        if number("fingerprint") != Some(self.fingerprint) {
            return Err(FileProblem::OtherWork);
        }
        let size = |name: &str| number(name).and_then(|n| usize::try_from(n).ok()).ok_or_else(|| corrupt(name));
        let (count, parameters, pairs) = (size("evaluations")?, size("parameters")?, size("pairs")?);
        let folds: Vec<u64> = (archive.header.get("folds").and_then(Value::as_array))
            .map(|folds| folds.iter().map(|fold| fold.as_u64().unwrap_or_default()).collect())
            .ok_or_else(|| corrupt("folds"))?;
        if folds.len() != cv.folds().count() {
            return Err(corrupt("folds"));
        }
        let (logarithms, gradients) =
            (archive.take("logarithms", &[count, parameters])?, archive.take("gradients", &[count, parameters])?);
        self.beginning = Some(Beginning {
            logarithms: archive.take("beginning", &[parameters])?,
            curvature: Curvature::from_rows(
                &archive.take("pairs", &[pairs.saturating_mul(2), parameters])?,
                parameters,
            ),
        });
        let columns = archive.take("evaluations", &[count, COLUMNS])?;
        let seconds = |value: f64| Duration::try_from_secs_f64(value).map_err(|_| corrupt("times"));
        for i in 0..count {
            let row = i * parameters..(i + 1) * parameters;
            let of_row = &columns[i * COLUMNS..(i + 1) * COLUMNS];
            let &[value, products, converged, kernel, fold, gradient, at] = of_row else {
                return Err(corrupt("evaluations"));
            };
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a number of products
            let products = products as usize;
            self.recorded.push_back(Evaluation {
                logarithms: logarithms[row.clone()].to_vec(),
                value,
                gradient: gradients[row].to_vec(),
                products,
                converged: converged > 0.0,
                kernel_time: seconds(kernel)?,
                fold_time: seconds(fold)?,
                gradient_time: seconds(gradient)?,
                at: seconds(at)?,
            });
        }
        let paces = archive.take("paces", &[folds.len(), 2])?;
        let pace = |pace: &[f64]| pace[0].is_finite().then_some(Pace { enough: pace[0], share: pace[1] });
        let paces: Vec<Option<Pace>> = paces.chunks_exact(2).map(pace).collect();
        let shape = (cv.targets().points(), cv.targets().classes());
        for (k, arrays) in folds.into_iter().enumerate() {
            let mut array = |name: &str| {
                let values = archive.take(&format!("{name} {k}"), &[shape.0, shape.1])?;
                Array2::from_shape_vec(shape, values).map_err(|_| corrupt("folds"))
            };
            self.states.push(match arrays {
                0 => None,
                1 => Some(FoldState { alpha: array("alpha")?, adjoint: None, pace: None }),
                _ => Some(FoldState { alpha: array("alpha")?, adjoint: Some(array("adjoint")?), pace: paces[k] }),
            });
        }
        Ok(())
    }

    /// Where a run that goes on has begun.
    pub(super) fn beginning(&self) -> Option<&Beginning> {
        self.beginning.as_ref()
    }

    /// Keeps in mind where learning has begun.
    pub(super) fn begin_at(&mut self, beginning: Beginning) {
        self.beginning = Some(beginning);
    }

    /// Whether the file could be read or written before.
    pub(super) fn has_worked(&self) -> bool {
        self.worked
    }

    /// The time that the recorded evaluations took.
    pub(super) fn elapsed(&self) -> Duration {
        self.recorded.back().map_or(Duration::ZERO, |last| last.at)
    }

    /// The next recorded evaluation; with the last of them, the folds are put where they were.
    pub(super) fn recall(&mut self, logarithms: &[f64], cv: &mut CrossValidation) -> Result<Option<Evaluation>> {
        let Some(evaluation) = self.recorded.pop_front() else { return Ok(None) };
        let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits();
        if evaluation.logarithms.len() != logarithms.len() || !evaluation.logarithms.iter().zip(logarithms).all(same) {
            return Err(error(&self.path, FileProblem::OtherWork));
        }
        if self.recorded.is_empty() {
            cv.set_states(std::mem::take(&mut self.states))?;
        }
        Ok(Some(evaluation))
    }

    /// Writes the file, unless the last time was so short a while ago that it would cost too much.
    pub(super) fn keep(&mut self, history: &[Evaluation], cv: &CrossValidation) -> Result<()> {
        if self.written.is_some_and(|(when, took)| when.elapsed() < SHARE_OF_TIME * took) {
            return Ok(());
        }
        let begun = Instant::now();
        let parameters = history.first().map_or(0, |first| first.logarithms.len());
        // So many arrays there are of every fold.
        let arrays =
            |state: &Option<FoldState>| state.as_ref().map_or(0, |state| 1 + u64::from(state.adjoint.is_some()));
        let folds: Vec<u64> = cv.states().iter().map(arrays).collect();
        let Beginning { logarithms, curvature } = self.beginning.clone().unwrap_or_default();
        let mut archive = Archive::new(json!({
            "fingerprint": self.fingerprint,
            "evaluations": history.len(),
            "parameters": parameters,
            "folds": folds,
            "pairs": curvature.rows().count() / 2,
        }));
        let rows: Vec<f64> = curvature.rows().flatten().copied().collect();
        archive.insert("pairs", &[curvature.rows().count(), parameters], rows);
        archive.insert("beginning", &[parameters], logarithms);
        let shape = [history.len(), parameters];
        archive.insert(
            "logarithms",
            &shape,
            history.iter().flat_map(|one| one.logarithms.iter().copied()).collect::<Vec<f64>>(),
        );
        archive.insert(
            "gradients",
            &shape,
            history.iter().flat_map(|one| one.gradient.iter().copied()).collect::<Vec<f64>>(),
        );
        archive.insert(
            "evaluations",
            &[history.len(), COLUMNS],
            history.iter().flat_map(columns).collect::<Vec<f64>>(),
        );
        let pace = |state: &Option<FoldState>| {
            state.as_ref().and_then(|state| state.pace).map_or([f64::NAN; 2], |pace| [pace.enough, pace.share])
        };
        archive.insert("paces", &[cv.states().len(), 2], cv.states().iter().flat_map(pace).collect::<Vec<f64>>());
        for (k, state) in cv.states().iter().enumerate() {
            let alpha = state.as_ref().map(|state| ("alpha", &state.alpha));
            let adjoint = state.as_ref().and_then(|state| state.adjoint.as_ref()).map(|adjoint| ("adjoint", adjoint));
            for (name, array) in alpha.into_iter().chain(adjoint) {
                archive.insert(format!("{name} {k}"), array.shape(), array.iter().copied().collect::<Vec<f64>>());
            }
        }
        archive.save(&self.path, KIND, VERSION)?;
        self.written = Some((Instant::now(), begun.elapsed()));
        self.worked = true;
        Ok(())
    }
}

const COLUMNS: usize = 7;

fn columns(one: &Evaluation) -> [f64; COLUMNS] {
    [
        one.value,
        one.products as f64,
        f64::from(u8::from(one.converged)),
        one.kernel_time.as_secs_f64(),
        one.fold_time.as_secs_f64(),
        one.gradient_time.as_secs_f64(),
        one.at.as_secs_f64(),
    ]
}

/// A number that tells one piece of work from another: inputs, targets, folds, and all settings as text.
pub(super) fn fingerprint(x: &Inputs, cv: &CrossValidation, settings: &str) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(settings.as_bytes());
    match x {
        Inputs::Dense(x) => {
            x.shape().iter().for_each(|&size| hash.update(&(size as u64).to_le_bytes()));
            x.iter().for_each(|value| hash.update(&value.to_le_bytes()));
        }
        Inputs::Sparse(x) => {
            let (starts, columns, values) = x.parts();
            hash.update(&(x.columns() as u64).to_le_bytes());
            starts.iter().for_each(|&start| hash.update(&(start as u64).to_le_bytes()));
            columns.iter().for_each(|column| hash.update(&column.to_le_bytes()));
            values.iter().for_each(|value| hash.update(&value.to_le_bytes()));
        }
    }
    add_targets(&mut hash, cv.targets());
    cv.folds().of_point().iter().for_each(|&fold| hash.update(&(fold as u64).to_le_bytes()));
    hash.digest()
}

fn add_targets(hash: &mut Xxh3, targets: &Targets) {
    for row in 0..targets.points() {
        hash.update(&targets.weight(row).to_le_bytes());
        match targets.of_point(row) {
            Target::Class(class) => hash.update(&(class as u64).to_le_bytes()),
            Target::Distribution(y) => y.iter().for_each(|y| hash.update(&y.to_le_bytes())),
            Target::OneOf(set) => set.iter().for_each(|class| hash.update(&class.to_le_bytes())),
        }
    }
}
