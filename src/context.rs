//! What a piece of work carries along: its threads, its memory limit, the flag that interrupts it, and who listens.

use crate::cv::Member;
use crate::error::{Error, Result};
use crate::memory;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A report from work under way.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Progress {
    /// A solver has made an outer step.
    Step {
        /// Steps made so far.
        step: usize,
        /// Products with K̃ so far.
        products: usize,
        /// The penalised negative log likelihood Φ.
        objective: f64,
        /// max|α + g|, the measure of convergence.
        residual: f64,
    },
    /// The cross-validation criterion has been evaluated.
    Evaluation {
        /// Evaluations made so far.
        evaluation: usize,
        /// Points it was evaluated on; learning begins with a part of them.
        points: usize,
        /// Ψ.
        value: f64,
        /// The largest entry of its gradient.
        slope: f64,
    },
}

/// Asks work in another thread to stop; cloning gives another handle on the same flag.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Makes the work return [`Error::Interrupted`] at its next check, well within a second.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Takes the request back, once what was to be stopped has ended.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether it has been asked to stop.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

type Listener = Arc<dyn Fn(Progress) + Send + Sync>;

/// Threads, memory limit, interrupt flag and progress listener of one piece of work.
#[derive(Clone)]
pub struct Context {
    pool: Arc<rayon::ThreadPool>,
    interrupt: Interrupt,
    memory_limit: Option<u64>,
    listener: Option<Listener>,
    /// Where products of this piece of work meet those of others.
    member: Option<Member>,
    rough_products: bool,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("threads", &self.pool.current_num_threads())
            .field("memory_limit", &self.memory_limit)
            .finish_non_exhaustive()
    }
}

impl Context {
    /// A context with its own threads; `None` takes `NUPTSE_NUM_THREADS`, or else one per core.
    pub fn new(threads: Option<usize>) -> Result<Self> {
        let threads = match threads {
            Some(threads) => threads,
            None => default_threads()?,
        };
        if threads == 0 {
            return Err(Error::InvalidParameter { name: "n_threads", value: 0.0, requirement: "at least 1" });
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("nuptse-{i}"))
            .build()
            .map_err(|error| Error::Threads { threads, reason: error.to_string() })?;
        Ok(Self {
            pool: Arc::new(pool),
            interrupt: Interrupt::default(),
            memory_limit: None,
            listener: None,
            member: None,
            rough_products: false,
        })
    }

    /// The same threads for another piece of work, with its own interrupt flag, limit and listener.
    #[must_use]
    pub fn renewed(&self) -> Self {
        Self {
            interrupt: Interrupt::default(),
            memory_limit: None,
            listener: None,
            member: None,
            rough_products: false,
            ..self.clone()
        }
    }

    /// The same without anybody who listens.
    #[must_use]
    pub fn without_listener(&self) -> Self {
        Self { listener: None, ..self.clone() }
    }

    /// The same with products that may be rough, or not: those with matrices that are stored in single precision are then
    /// summed up in single precision within a tile, which takes half the time where arithmetic binds. Such a product is off
    /// by a millionth, at random; solvers take it for vectors that are getting smaller, and compute u = K̃α without it.
    #[must_use]
    pub fn with_rough_products(&self, rough: bool) -> Self {
        Self { rough_products: rough, ..self.clone() }
    }

    /// Whether products may be rough.
    #[must_use]
    pub fn has_rough_products(&self) -> bool {
        self.rough_products
    }

    /// A part of this work that runs on one thread of its own, and shares its products with others.
    pub(crate) fn alone_at(&self, member: Member) -> Result<Self> {
        Ok(Self { pool: Self::new(Some(1))?.pool, member: Some(member), listener: None, ..self.clone() })
    }

    /// Where products meet those of others.
    pub(crate) fn member(&self) -> Option<&Member> {
        self.member.as_ref()
    }

    /// Limits the bytes that large arrays may take; without it, a safe share of what the machine has left is the limit.
    #[must_use]
    pub fn with_memory_limit(mut self, bytes: Option<u64>) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// Reports progress to `listener`, from whichever thread does the work.
    #[must_use]
    pub fn with_listener(mut self, listener: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// A handle with which another thread may interrupt the work.
    #[must_use]
    pub fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// Number of threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// Runs `work` so that its parallel loops use the threads of this context.
    pub fn install<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.pool.install(work)
    }

    /// Fails if the work has been interrupted; cheap enough for every tile of a matrix.
    pub fn check(&self) -> Result<()> {
        if self.interrupt.is_set() { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Whether so many bytes may be used.
    #[must_use]
    pub fn has_room(&self, needed: u64) -> bool {
        needed <= self.allowance()
    }

    /// The same, less so many bytes of a limit that was given. What the machine has left falls by itself.
    #[must_use]
    pub(crate) fn after_taking(&self, bytes: u64) -> Self {
        Self { memory_limit: self.memory_limit.map(|limit| limit.saturating_sub(bytes)), ..self.clone() }
    }

    /// The same, with so many bytes set aside for what is to come. Fails where they are more than may be used.
    pub(crate) fn set_aside(&self, what: &'static str, needed: u64) -> Result<Self> {
        let allowed = self.allowance();
        let left = allowed.checked_sub(needed).ok_or(Error::MemoryLimit { what, needed, allowed })?;
        Ok(Self { memory_limit: Some(left), ..self.clone() })
    }

    fn allowance(&self) -> u64 {
        self.memory_limit.or_else(memory::allowance).unwrap_or(u64::MAX)
    }

    /// Fails if `needed` bytes for `what` are more than may be used.
    pub fn plan_memory(&self, what: &'static str, needed: u64) -> Result<()> {
        match self.memory_limit {
            Some(allowed) if needed > allowed => Err(Error::MemoryLimit { what, needed, allowed }),
            Some(_) => Ok(()),
            None => memory::check(what, needed),
        }
    }

    /// Tells the listener, if there is one.
    pub fn report(&self, progress: Progress) {
        if let Some(listener) = &self.listener {
            listener(progress);
        }
    }
}

/// The number of threads set by `NUPTSE_NUM_THREADS`, or else the number of cores this process may use.
fn default_threads() -> Result<usize> {
    match std::env::var("NUPTSE_NUM_THREADS") {
        Ok(text) => match text.trim().parse() {
            Ok(threads) if threads > 0 => Ok(threads),
            _ => Err(Error::InvalidParameter {
                name: "NUPTSE_NUM_THREADS",
                value: text.trim().parse().unwrap_or(f64::NAN),
                requirement: "a whole number of at least 1",
            }),
        },
        Err(_) => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
    }
}
