//! Which locks there are on the voters.

use std::{collections::BTreeSet, time::Duration};

use super::Quorate;
use crate::{
    proto::{Cause, FoundLock, Verdict, VoterReport},
    voter::{KeySearch, KeysFound},
};

/// How long a voter may take to name its locks.
const PATIENCE: Duration = Duration::from_secs(30);

/// The locks that were found on the voters, as [`Quorate::find_locks`] found them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundLocks {
    /// Each lock once, by name.
    pub locks: Vec<FoundLock>,
    /// False if the voters that answered know more locks than `limit`.
    pub is_complete: bool,
    /// Voters that could not be asked, and why.
    pub missing: Vec<VoterReport>,
}

impl Quorate {
    /// Looks for locks that somebody holds or waits for, on all voters. For operators: every server
    /// is asked for all of its keys, by `SCAN`. This needs the right `+scan`; nothing else does.
    ///
    /// `names` is a pattern as `SCAN` takes it: `*` finds all locks, `invoice:*` those whose names
    /// begin so. Embedded voters know no signs but a `*` at the end. At most `limit` locks are
    /// found; none of [Redisson](crate::Redisson), whose names have nothing in common.
    ///
    /// What is found may have been released since: see [`inspect`](crate::Mutex::inspect).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let guard = quorum.mutex("invoice:42").lock().await?;
    /// let found = quorum.find_locks("invoice:*", 100).await;
    /// assert_eq!(found.locks[0].name, "invoice:42");
    /// assert!(found.is_complete && found.missing.is_empty());
    /// # guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn find_locks(&self, names: &str, limit: usize) -> FoundLocks {
        let coordinator = self.coordinator();
        let clock = coordinator.clock();
        let keys = coordinator.settings().keys.clone();
        let search = KeySearch { keys, names: names.into(), limit };
        let voters = &coordinator.panel().voters;
        // All are asked before the first is waited for.
        let asked: Vec<_> = voters.iter().map(|voter| voter.search(search.clone())).collect();
        let due = clock.now() + PATIENCE;
        let (mut locks, mut is_complete, mut missing) = (BTreeSet::new(), true, Vec::new());
        for (at, (voter, found)) in voters.iter().zip(asked).enumerate() {
            let found = tokio::select! {
                biased;
                found = found => found,
                () = clock.sleep_until(due) => Err(Cause::TimedOut(PATIENCE)),
            };
            match found {
                Ok(KeysFound { locks: more, is_complete: all }) => {
                    locks.extend(more);
                    is_complete &= all;
                }
                Err(cause) => {
                    let side = coordinator.panel().quorum.side(at);
                    let report = VoterReport::new(&**voter.label(), Verdict::Unknown(cause));
                    missing.push(VoterReport { side, ..report });
                }
            }
        }
        is_complete &= locks.len() <= limit;
        FoundLocks { locks: locks.into_iter().take(limit).collect(), is_complete, missing }
    }
}
