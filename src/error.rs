//! The one error type of the crate: every variant carries the figures, every message says what to do.

/// What can go wrong. Nothing is changed or lost when an error is returned.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The inputs hold NaN or an infinity.
    #[error("X contains NaN or infinity: X[{row}, {column}] is {value}; remove the row, or impute the value first")]
    NonFiniteInput {
        /// Row of the first such value.
        row: usize,
        /// Column of the first such value.
        column: usize,
        /// The value.
        value: f64,
    },
    /// There is nothing to learn from.
    #[error("X has {rows} rows and {columns} columns; at least one of each is needed")]
    EmptyInput {
        /// Number of rows found.
        rows: usize,
        /// Number of columns found.
        columns: usize,
    },
    /// Two things that belong together differ in size.
    #[error("{what}: expected {expected}, found {found}")]
    ShapeMismatch {
        /// Which dimension of which array.
        what: &'static str,
        /// The size that fits.
        expected: usize,
        /// The size that was given.
        found: usize,
    },
    /// An array handed to an operator is not row-major and contiguous.
    #[error("{what} must be row-major and contiguous; call `as_standard_layout` on it first")]
    NotRowMajor {
        /// Which array.
        what: &'static str,
    },
    /// Compressed rows that do not describe a matrix.
    #[error("the sparse matrix is not valid at row {row}: {reason}; rebuild it, e.g. with `sum_duplicates`")]
    InvalidSparse {
        /// The first row that is wrong.
        row: usize,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A classifier needs two classes.
    #[error("the targets have {classes} class; a classifier needs at least 2 classes")]
    TooFewClasses {
        /// Number of classes found.
        classes: usize,
    },
    /// A label is not below the number of classes.
    #[error("label {label} of point {row} is not below the number of classes, {classes}")]
    InvalidLabel {
        /// The point.
        row: usize,
        /// Its label.
        label: usize,
        /// The number of classes.
        classes: usize,
    },
    /// A target is not a probability.
    #[error("target {value} of point {row}, class {class} is not a probability; targets must lie between 0 and 1")]
    InvalidTarget {
        /// The point.
        row: usize,
        /// The class.
        class: usize,
        /// The value found.
        value: f64,
    },
    /// A target distribution does not sum to one.
    #[error("the targets of point {row} sum to {sum}, not to 1; divide each row by its sum")]
    TargetSum {
        /// The point.
        row: usize,
        /// The sum found.
        sum: f64,
    },
    /// A point whose class could be none.
    #[error("the set of classes of point {row} is empty or not there; name at least one class for every point")]
    EmptyClassSet {
        /// The point.
        row: usize,
    },
    /// An input is in a group that has no weight.
    #[error("an input is in group {group}, but there are {groups} weights; number the groups from 0")]
    UnknownGroup {
        /// The group.
        group: usize,
        /// The number of weights.
        groups: usize,
    },
    /// Not enough folds, or more than there are points.
    #[error(
        "{folds} fold(s) for {points} points; a cross-validation needs at least 2, and at most one for every point"
    )]
    TooFewFolds {
        /// The number of folds.
        folds: usize,
        /// The number of points.
        points: usize,
    },
    /// A fold without points.
    #[error("fold {fold} holds out no point; number the folds from 0, without gaps")]
    EmptyFold {
        /// The fold.
        fold: usize,
    },
    /// A defect of this crate.
    #[error("internal error: a thread has panicked; please report it")]
    Panicked,
    /// A decision that needs a tree over the classes.
    #[error("{what} needs classes that are the leaves of a tree; give the model a hierarchy")]
    NeedsTree {
        /// What was asked for.
        what: &'static str,
    },
    /// Something that only functions linear in the inputs have.
    #[error("inputs have weights only where all kernels are linear, but one is {kernel:?}; use linear kernels")]
    NeedsLinear {
        /// The name of the kernel that is not.
        kernel: &'static str,
    },
    /// A kernel names an input that is not there.
    #[error("a kernel is to use column {column}, but X has {columns} columns; number them from 0")]
    UnknownColumn {
        /// The column asked for.
        column: usize,
        /// The number of columns.
        columns: usize,
    },
    /// A sample weight is negative or not finite.
    #[error("sample weight {value} of point {row} must be finite and not negative")]
    InvalidWeight {
        /// The point.
        row: usize,
        /// The weight found.
        value: f64,
    },
    /// All sample weights are zero.
    #[error("all sample weights are zero; at least one point must count")]
    AllWeightsZero,
    /// A hyperparameter or option is out of its range.
    #[error("{name} is {value}, but must be {requirement}")]
    InvalidParameter {
        /// Its name.
        name: &'static str,
        /// The value found.
        value: f64,
        /// What it must be.
        requirement: &'static str,
    },
    /// A name that means nothing here.
    #[error("unknown {what} '{found}'; use one of {known}")]
    UnknownName {
        /// What it should name.
        what: &'static str,
        /// The name found.
        found: String,
        /// The names there are.
        known: &'static str,
    },
    /// A precomputed kernel matrix is not symmetric.
    #[error(
        "the precomputed kernel matrix is not symmetric: entries [{row}, {column}] and [{column}, {row}] differ by \
         {difference}; use (K + K.T) / 2 if that is rounding"
    )]
    NotSymmetric {
        /// Row of the worst pair.
        row: usize,
        /// Column of the worst pair.
        column: usize,
        /// How far apart the two entries are.
        difference: f64,
    },
    /// A precomputed kernel matrix cannot come as sparse rows.
    #[error("a precomputed kernel matrix must be dense; call .toarray() on it")]
    SparsePrecomputed,
    /// A tree without a node below its root.
    #[error("the tree has {nodes} node(s); it needs a root and at least one class below it")]
    TreeTooSmall {
        /// Number of nodes found.
        nodes: usize,
    },
    /// Two nodes of a tree have no parent.
    #[error("nodes {first} and {second} both have no parent, but a tree has one root; put them below a common node")]
    TreeSecondRoot {
        /// The first such node.
        first: usize,
        /// The second.
        second: usize,
    },
    /// The parent of a node is not there.
    #[error("the parent {parent} of node {node} is not there; the tree has nodes 0 to {}", nodes - 1)]
    TreeUnknownParent {
        /// The node.
        node: usize,
        /// The parent it names.
        parent: usize,
        /// Number of nodes.
        nodes: usize,
    },
    /// A node of a tree lies below itself.
    #[error("node {node} of the tree lies below itself; go up from it and take out the edge that leads back")]
    TreeCycle {
        /// A node on the cycle.
        node: usize,
    },
    /// The leaf of a class is not there.
    #[error("the leaf {node} of class {class} is not there; the tree has nodes 0 to {}", nodes - 1)]
    TreeUnknownLeaf {
        /// The class.
        class: usize,
        /// The leaf it names.
        node: usize,
        /// Number of nodes.
        nodes: usize,
    },
    /// The leaf of a class is an inner node.
    #[error("class {class} is node {node}, but that node has a child, {child}; classes are the leaves of the tree")]
    TreeInnerLeaf {
        /// The class.
        class: usize,
        /// The node.
        node: usize,
        /// A child of it.
        child: usize,
    },
    /// Two classes are the same leaf.
    #[error("classes {first} and {second} are both leaf {node}; give every class a leaf of its own")]
    TreeLeafTwice {
        /// The leaf.
        node: usize,
        /// The first class.
        first: usize,
        /// The second.
        second: usize,
    },
    /// A leaf of a tree is no class.
    #[error("leaf {node} of the tree is no class; add it to the classes, or take it out of the tree")]
    TreeUnusedLeaf {
        /// The leaf.
        node: usize,
    },
    /// Something large would not fit.
    #[error(
        "{what} needs {needed} bytes ({:.1} GB), but only {allowed} bytes ({:.1} GB) may be used; take fewer points, use \
         single precision or a linear kernel, or raise the memory limit",
        *needed as f64 / 1e9, *allowed as f64 / 1e9
    )]
    MemoryLimit {
        /// What would have been allocated.
        what: &'static str,
        /// Bytes it takes.
        needed: u64,
        /// Bytes that may be used.
        allowed: u64,
    },
    /// A solver was asked for a model it cannot do.
    #[error("{solver} works for {requirement} only; use the solver \"lbfgs\", which works for all")]
    SolverUnsupported {
        /// The solver.
        solver: &'static str,
        /// What it does work for.
        requirement: &'static str,
    },
    /// A Cholesky factorisation failed.
    #[error(
        "the kernel matrix of class {class} is not positive semidefinite: its Cholesky factorisation failed; check a \
         precomputed kernel for negative eigenvalues"
    )]
    NotPositiveDefinite {
        /// The class.
        class: usize,
    },
    /// The objective or its gradient left the range of floating point numbers.
    #[error(
        "the fit left the range of floating point numbers after {steps} steps; scale the inputs, or reduce the \
         variance (largest: {variance})"
    )]
    NotFinite {
        /// Newton steps done.
        steps: usize,
        /// The largest variance of the prior.
        variance: f64,
    },
    /// A file could not be written or read.
    #[error("{path}: {problem}")]
    File {
        /// The file.
        path: String,
        /// What is wrong.
        problem: FileProblem,
    },
    /// The work was interrupted by the user.
    #[error("interrupted")]
    Interrupted,
    /// The threads could not be started.
    #[error("could not start {threads} threads: {reason}; ask for fewer")]
    Threads {
        /// Number of threads asked for.
        threads: usize,
        /// The operating system's reason.
        reason: String,
    },
}

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileProblem {
    /// The operating system would not write it.
    #[error("could not be written: {reason}; what was there before is untouched")]
    NotWritten {
        /// The reason it gave.
        reason: String,
    },
    /// The operating system would not read it.
    #[error("could not be read: {reason}")]
    NotRead {
        /// The reason it gave.
        reason: String,
    },
    /// Another program wrote it.
    #[error("this is no file of nuptse")]
    Foreign,
    /// It is one of ours, but of another kind.
    #[error("this file of nuptse holds a {found}, not a {wanted}")]
    OtherKind {
        /// What it holds.
        found: String,
        /// What was wanted.
        wanted: String,
    },
    /// A later release wrote it.
    #[error("the file has format {version}, but this release knows formats up to {known}; use a newer release")]
    TooNew {
        /// Its version.
        version: u32,
        /// The latest known one.
        known: u32,
    },
    /// Its end is missing.
    #[error("the file is not complete: its end is missing; take another copy")]
    Truncated,
    /// Something in it has changed.
    #[error("the file is damaged: {reason}; take another copy")]
    Corrupt {
        /// What does not fit.
        reason: String,
    },
    /// What it holds does not fit into memory.
    #[error("what the file holds does not fit into memory: {reason}")]
    TooLarge {
        /// The figures.
        reason: String,
    },
    /// It belongs to other data or settings.
    #[error("this checkpoint is of other data or settings; delete it, or give another path")]
    OtherWork,
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
