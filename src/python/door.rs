//! The one door from Python into Rust: it lets go of the GIL, watches for Ctrl-C, hands on progress and turns errors.

use crate::context::Progress;
use crate::{Context, Error, Result};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

/// How often Python gets to look at signals.
const POLL: Duration = Duration::from_millis(50);

/// Threads, memory limit and listener of one call.
#[derive(Debug, Default)]
pub(super) struct Settings {
    pub threads: Option<usize>,
    pub memory_limit: Option<u64>,
    /// Called with (step, products, objective, residual) by fits, and with (evaluation, None, value, slope, points) while
    /// hyperparameters are learned.
    pub listener: Option<Py<PyAny>>,
    /// Whether work that ends well in spite of Ctrl-C may keep what it has.
    pub keep_on_interrupt: bool,
}

/// What the waiting thread hears from the working one.
enum Message<T> {
    Progress(Progress),
    Done(Result<T>),
}

/// Runs `work` on the threads of nuptse while this thread waits for it without the GIL.
pub(super) fn enter<T: Send + 'static>(
    py: Python<'_>,
    settings: &Settings,
    work: impl FnOnce(&Context) -> Result<T> + Send,
) -> PyResult<T> {
    let (sender, receiver) = channel();
    let mut context = context_for(settings.threads)?.with_memory_limit(settings.memory_limit);
    if settings.listener.is_some() {
        context = listen(context, sender.clone());
    }
    let interrupt = context.interrupt();
    py.detach(move || {
        std::thread::scope(|scope| {
            // The context goes with the work, and with it the last sender.
            let run = move || {
                let result = work(&context);
                drop(context);
                // The receiver outlives this thread.
                let _ = sender.send(Message::Done(result));
            };
            let worker = std::thread::Builder::new()
                .spawn_scoped(scope, run)
                .map_err(|error| Error::Threads { threads: 1, reason: error.to_string() })?;
            let mut raised = None;
            let mut raise = |outcome: PyResult<()>| {
                if let Err(error) = outcome {
                    interrupt.set();
                    raised.get_or_insert(error);
                }
            };
            let result = loop {
                match receiver.recv_timeout(POLL) {
                    Ok(Message::Done(result)) => break Some(result),
                    Ok(Message::Progress(progress)) => raise(Python::attach(|py| tell(py, settings, progress))),
                    Err(RecvTimeoutError::Timeout) => raise(look_at_signals()),
                    Err(RecvTimeoutError::Disconnected) => break None,
                }
            };
            // A panic is a defect of ours; Python gets an exception, not an abort.
            let panicked = worker.join().is_err();
            match (raised, result) {
                (Some(error), Some(Ok(kept))) if settings.keep_on_interrupt => {
                    let by_user = Python::attach(|py| error.is_instance_of::<PyKeyboardInterrupt>(py));
                    if by_user { Ok(kept) } else { Err(error) }
                }
                (Some(error), _) => Err(error),
                (None, Some(result)) if !panicked => Ok(result?),
                _ => Err(PyRuntimeError::new_err("internal error in nuptse (see stderr); please report it")),
            }
        })
    })
}

fn listen<T: Send + 'static>(context: Context, sender: Sender<Message<T>>) -> Context {
    context.with_listener(move |progress| {
        let _ = sender.send(Message::Progress(progress));
    })
}

/// Lets Python run its signal handlers; Ctrl-C raises here.
fn look_at_signals() -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        Ok(())
    })
}

/// Calls the Python listener.
fn tell(py: Python<'_>, settings: &Settings, progress: Progress) -> PyResult<()> {
    match (&settings.listener, progress) {
        (Some(listener), Progress::Step { step, products, objective, residual }) => {
            listener.call1(py, (step, products, objective, residual)).map(drop)
        }
        (Some(listener), Progress::Evaluation { evaluation, points, value, slope }) => {
            listener.call1(py, (evaluation, py.None(), value, slope, points)).map(drop)
        }
        (None, _) => Ok(()),
    }
}

/// The thread pools of a process by number of threads (`None`: the default at first use).
struct Pools {
    /// Threads do not survive a fork, so pools are known by process.
    process: u32,
    contexts: HashMap<Option<usize>, Context>,
}

static POOLS: Mutex<Option<Pools>> = Mutex::new(None);

/// A process that was forked while another thread held the lock never gets it: it makes its own threads each time then.
const LOCK_ATTEMPTS: usize = 1000;

fn lock_pools() -> Option<MutexGuard<'static, Option<Pools>>> {
    (0..LOCK_ATTEMPTS).find_map(|_| match POOLS.try_lock() {
        Ok(pools) => Some(pools),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => {
            std::thread::sleep(Duration::from_micros(100));
            None
        }
    })
}

fn context_for(threads: Option<usize>) -> Result<Context> {
    let Some(mut pools) = lock_pools() else { return Context::new(threads) };
    let process = std::process::id();
    if let Some(stale) = pools.take_if(|pools| pools.process != process) {
        // Their threads live in the parent; ending them here would wait for ever.
        std::mem::forget(stale);
    }
    let contexts = &mut pools.get_or_insert_with(|| Pools { process, contexts: HashMap::new() }).contexts;
    if let Some(context) = contexts.get(&threads) {
        return Ok(context.renewed());
    }
    let context = Context::new(threads)?;
    contexts.insert(threads, context.renewed());
    Ok(context)
}
