//! Every kind of lock on voters that forget: whoever holds it holds it alone.

use std::fmt;

use quorate::{Error, Lockable, Quorate, embedded::Machine};
use tokio::time::sleep;

use crate::amnesia::inside::{LEASE, TRUSTED, client, client_on, cut_off, heal, old_voters};
use quorate_tests::fixture::{Stopwatch, ms, secs};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    Mutex,
    FairMutex,
    Write,
    Permit,
    /// Two of three.
    Permits,
    Lead,
    /// Two mutexes and a read/write lock.
    All,
}

const ALL: [Taken; 7] = [
    Taken::Mutex,
    Taken::FairMutex,
    Taken::Write,
    Taken::Permit,
    Taken::Permits,
    Taken::Lead,
    Taken::All,
];

/// A guard of any kind.
struct Held(Box<dyn Fn() -> bool + Send>);

impl Held {
    fn is_held(&self) -> bool {
        self.0()
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Held").field(&self.is_held()).finish()
    }
}

impl Taken {
    async fn try_take(self, quorum: &Quorate) -> Result<Option<Held>, Error> {
        macro_rules! held {
            ($tried:expr) => {
                $tried.await?.map(|guard| Held(Box::new(move || guard.is_held())))
            };
        }
        Ok(match self {
            Self::Mutex => held!(quorum.mutex("a").try_lock()),
            Self::FairMutex => held!(quorum.fair_mutex("a").try_lock()),
            Self::Write => held!(quorum.rw_lock("a").try_write()),
            Self::Permit => held!(quorum.semaphore("a", 1).try_acquire()),
            Self::Permits => held!(quorum.semaphore("a", 3).try_acquire_many(2)),
            Self::Lead => held!(quorum.election("a").try_campaign(b"")),
            Self::All => {
                let lock = quorum.rw_lock("c");
                let all: [Lockable; 3] =
                    [quorum.mutex("a").into(), quorum.fair_mutex("b").into(), lock.writing()];
                held!(quorum.lock_all(all).try_lock())
            }
        })
    }
}

/// Ada holds by the first two of three voters, and the second comes back empty. She does not tell
/// it again. Ben has seen the restart, and Cleo comes then.
async fn is_held_by_one(taken: Taken) {
    let voters = old_voters(3);
    let machine = Machine::new("ada");
    let (ada, ben) = (client_on(&machine, &voters).await, client(&voters).await);
    cut_off(&voters[2], &machine);
    let watch = Stopwatch::start();
    let held = taken.try_take(&ada).await.expect("two answer").expect("it is free");
    sleep(secs(1)).await;
    voters[1].restart_empty();
    for voter in &voters {
        cut_off(voter, &machine);
    }
    let cleo = client(&voters).await;
    while watch.time() + secs(1) < TRUSTED {
        assert!(held.is_held(), "{taken:?}: after {:?}", watch.time());
        for other in [&ben, &cleo] {
            let tried = taken.try_take(other).await;
            assert!(!matches!(tried, Ok(Some(_))), "{taken:?}: two have it");
        }
        sleep(secs(1)).await;
    }
    sleep(secs(3)).await;
    assert!(!held.is_held(), "{taken:?}");
    heal(&voters);
    let mut entered = None;
    while entered.is_none() {
        assert!(watch.time() < 2 * LEASE + secs(5), "{taken:?}: nobody gets it any more");
        entered = taken.try_take(&ben).await.ok().flatten();
        sleep(ms(200)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_voter_that_comes_back_empty_gives_no_kind_of_lock_to_a_second() {
    for taken in ALL {
        is_held_by_one(taken).await;
    }
}
