//! Folds that are worked on side by side meet for their products, so that one pass over the kernel matrices serves all.
//!
//! Every fold runs in a thread of its own, through the same code as a single fit; only its [`Context`] knows that its
//! products are shared. A product waits until every fold that is still at work has asked for one; then the last to come
//! multiplies for all, on all threads. Which products meet depends on their number alone, so the results are always the
//! same. Between products as many folds run at once as there are threads to be used.

use crate::context::Context;
use crate::data::{check_shape, row_major, row_major_mut, view, view_mut};
use crate::error::{Error, Result};
use crate::parallel::{put_beside, take_from_beside};
use crate::prior::JointPrior;
use crate::workspace::Workspace;
use ndarray::{ArrayView2, ArrayViewMut2};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Where folds meet.
pub(super) struct Meeting {
    /// With the threads on which products are made.
    context: Context,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Folds that are still at work.
    present: usize,
    /// Folds that run between products, and how many may.
    running: usize,
    most_running: usize,
    /// What every fold wants to have multiplied, and then the product.
    requests: Vec<Option<Vec<f64>>>,
    /// Whether some of them may not be rough.
    exactly: bool,
    answers: Vec<Option<Result<Vec<f64>>>>,
    work: Workspace,
}

impl Meeting {
    pub(super) fn new(context: &Context, folds: usize) -> Arc<Self> {
        let state = State {
            present: folds,
            running: 0,
            most_running: context.threads(),
            requests: (0..folds).map(|_| None).collect(),
            exactly: false,
            answers: (0..folds).map(|_| None).collect(),
            work: Workspace::default(),
        };
        Arc::new(Self { context: context.clone(), state: Mutex::new(state), changed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something has changed.
    fn wait<'a>(&'a self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for leave to run.
    fn begin_to_run<'a>(&'a self, mut state: MutexGuard<'a, State>) {
        while state.running >= state.most_running {
            state = self.wait(state);
        }
        state.running += 1;
    }
}

/// A fold at a meeting.
#[derive(Clone)]
pub(crate) struct Member {
    meeting: Arc<Meeting>,
    fold: usize,
}

impl Member {
    pub(super) fn new(meeting: &Arc<Meeting>, fold: usize) -> Self {
        Self { meeting: Arc::clone(meeting), fold }
    }

    /// Leaves without having come, so that the others do not wait.
    fn stay_away(&self, prior: &JointPrior) {
        let mut state = self.meeting.lock();
        state.present -= 1;
        state.multiply_if_all_are_there(&self.meeting.context, prior);
        self.meeting.changed.notify_all();
    }

    /// Runs the work of the fold; whatever comes of it, the others need not wait for this one any more.
    pub(super) fn run<T>(&self, prior: &JointPrior, work: impl FnOnce() -> T) -> T {
        struct Leave<'a>(&'a Member, &'a JointPrior);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                self.0.meeting.lock().running -= 1;
                self.0.stay_away(self.1);
            }
        }
        self.meeting.begin_to_run(self.meeting.lock());
        let leave = Leave(self, prior);
        let result = work();
        drop(leave);
        result
    }

    /// out = K̃ S, together with the products of all others.
    pub(crate) fn multiply(
        &self,
        prior: &JointPrior,
        mut out: ArrayViewMut2<'_, f64>,
        s: ArrayView2<'_, f64>,
        may_be_rough: bool,
    ) -> Result<()> {
        check_shape("the columns of S must be the classes", prior.classes(), s.ncols())?;
        let mut state = self.meeting.lock();
        state.running -= 1;
        let mut request = state.work.take(s.len());
        request.copy_from_slice(row_major("S", &s)?);
        state.requests[self.fold] = Some(request);
        state.exactly |= !may_be_rough;
        state.multiply_if_all_are_there(&self.meeting.context, prior);
        self.meeting.changed.notify_all();
        let answer = loop {
            if let Some(answer) = state.answers[self.fold].take() {
                break answer;
            }
            state = self.meeting.wait(state);
        };
        let copied = answer.and_then(|answer| {
            row_major_mut("the product", &mut out)?.copy_from_slice(&answer);
            state.work.give(answer);
            Ok(())
        });
        self.meeting.begin_to_run(state);
        copied
    }
}

impl State {
    /// Makes the products of all folds, once every one that is still at work has asked.
    fn multiply_if_all_are_there(&mut self, context: &Context, prior: &JointPrior) {
        let asking: Vec<usize> = (0..self.requests.len()).filter(|&fold| self.requests[fold].is_some()).collect();
        if asking.is_empty() || asking.len() < self.present {
            return;
        }
        let exactly = std::mem::take(&mut self.exactly);
        let context = &context.with_rough_products(context.has_rough_products() && !exactly);
        let done = context.install(|| self.multiply(context, prior, &asking));
        if let Err(error) = done {
            asking.iter().for_each(|&fold| self.answers[fold] = Some(Err(error.clone())));
        }
        self.requests.iter_mut().for_each(|request| *request = None);
    }

    fn multiply(&mut self, context: &Context, prior: &JointPrior, asking: &[usize]) -> Result<()> {
        let (n, classes) = (prior.points(), prior.classes());
        let width = classes * asking.len();
        let (mut together, mut product) = (self.work.take(n * width), self.work.take(n * width));
        for (place, &fold) in asking.iter().enumerate() {
            let Some(request) = self.requests[fold].take() else { continue };
            put_beside(&mut together, &request, classes, place, asking.len());
            self.work.give(request);
        }
        let done = view((n, width), &together)
            .and_then(|s| prior.apply(context, &mut self.work, view_mut((n, width), &mut product)?, s));
        if done.is_ok() {
            for (place, &fold) in asking.iter().enumerate() {
                let mut answer = self.work.take(n * classes);
                take_from_beside(&mut answer, &product, classes, place, asking.len());
                self.answers[fold] = Some(Ok(answer));
            }
        }
        self.work.give(together);
        self.work.give(product);
        done
    }
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member").field("fold", &self.fold).finish_non_exhaustive()
    }
}

/// Runs the work of every fold side by side, each on a thread of its own, and returns what they return.
pub(super) fn side_by_side<T: Send>(
    context: &Context,
    prior: &JointPrior,
    folds: usize,
    work: impl Fn(&Context, usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let meeting = Meeting::new(context, folds);
    // One thread each: inside a fold loops run in place, while its thread may wait for the others.
    let contexts = (0..folds).map(|fold| context.alone_at(Member::new(&meeting, fold))).collect::<Result<Vec<_>>>()?;
    let run = &|fold: usize| {
        let context: &Context = &contexts[fold];
        Member::new(&meeting, fold).run(prior, || context.install(|| work(context, fold)))
    };
    let results = std::thread::scope(|scope| {
        let start = |fold| std::thread::Builder::new().spawn_scoped(scope, move || run(fold));
        let threads: Vec<_> = (0..folds).map(start).collect();
        // Those that could not be started are not waited for.
        (0..folds).filter(|&fold| threads[fold].is_err()).for_each(|fold| Member::new(&meeting, fold).stay_away(prior));
        let join = |thread: std::io::Result<std::thread::ScopedJoinHandle<'_, Result<T>>>| match thread {
            Ok(thread) => thread.join().map_err(|_| Error::Panicked)?,
            Err(error) => Err(Error::Threads { threads: folds, reason: error.to_string() }),
        };
        threads.into_iter().map(join).collect::<Vec<_>>()
    });
    results.into_iter().collect()
}
