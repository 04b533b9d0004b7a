//! What a machine orders that asks voters and hears them.

use super::Moment;

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<End> {
    /// Nothing before this moment, unless an answer comes.
    Wait(Moment),
    /// Ask these voters again.
    AskAgain(Vec<usize>),
    /// It has come to this.
    End(End),
}
