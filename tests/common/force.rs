//! What operators do and see.

use quorate::{Admin, Error, HolderKind, LockKind, LockView};

/// To read, or to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    Read,
    Write,
}

/// Ends every hold of this kind; whether there was any.
pub async fn end_all(admin: &Admin, kind: HolderKind, name: &str) -> Result<bool, Error> {
    let lock = match kind {
        HolderKind::Read | HolderKind::Write => LockKind::RwLock,
        HolderKind::Permit => LockKind::Semaphore,
        HolderKind::Leader => LockKind::Election,
        _ => LockKind::Mutex,
    };
    let mut holders = admin.look(lock, name).await?.all_holders();
    holders.retain(|held| held.kind == kind);
    for held in &holders {
        match admin.end(lock, name, &held.hold).await {
            // It has ended meanwhile.
            Err(error) if error.is_not_holding() => {}
            ended => drop(ended?),
        }
    }
    Ok(!holders.is_empty())
}

/// How many wait for this.
pub fn waiting(seen: &LockView, kind: HolderKind) -> usize {
    seen.waiting.iter().filter(|waiting| waiting.kind == kind).count()
}
