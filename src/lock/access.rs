//! How a read/write lock is asked for.

/// To read, among others, or to write, alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// With other readers.
    Read,
    /// With nobody else.
    Write,
}

/// Whom a reader of an [`RwLock`](crate::RwLock) lets pass. Writers come in the order of asking
/// among themselves in any case.
///
/// It is the reader's, and each reader goes by its own. Users of one lock should name the same one;
/// where they do not, they still never wait for each other in a circle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Preference {
    /// A reader waits only for the writer that holds: readers who come and go can keep a writer
    /// waiting for ever.
    Readers,
    /// A reader comes behind every writer that waits, whoever asked first: writers who come and go
    /// can keep a reader waiting for ever. The default.
    #[default]
    Writers,
    /// A reader comes behind the writers that asked before it, and before those that ask after it.
    /// Readers between two writers enter together. Nobody waits for ever, where all readers
    /// name it.
    Fair,
}
