//! Three voters, two clients, and every case of giving up.

use std::{future::Future, time::Duration};

use quorate::{
    Election, Error, FairMutex, HoldId, Mutex, MutexGuard, Preference, Quorate, RwLock, Semaphore,
    embedded::{self, EmbeddedVoter},
};
use tokio::{runtime, task::JoinHandle, time::sleep};

use crate::cancel::{
    check,
    polls::{Way, abandon},
    trouble::{Trouble, Troubled},
};

pub(crate) const LEASE: Duration = Duration::from_secs(10);
/// Lease and more: what would be renewed has been.
const LEASE_AND_MORE: Duration = Duration::from_secs(14);
/// For the retries of what a voter did not answer: clearly less than the lease, which would end
/// everything by itself.
const RETRIES: Duration = Duration::from_secs(3);
/// When a rival that holds the lock lets go of it.
const RIVAL_LEAVES: Duration = Duration::from_millis(50);
/// By then the place of one who waits is fixed.
const PLACED: Duration = Duration::from_millis(5);

/// Who else is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rivals {
    Nobody,
    /// Another client holds the lock, and lets go of it after a while.
    Holder,
    /// Another client holds it, and another task of this one stands before us in line.
    InLine,
    /// Another client holds it, and yet another task of that one stands before us in the queue.
    InQueue,
    /// Another client waits for the lock.
    Waiter,
    /// Another client reads, and leaves after a while.
    Reader,
    /// Another client writes, and leaves after a while.
    Writer,
    /// Another client reads, and yet another task of that one waits to write before us.
    WriterInQueue,
    /// Another client writes, and yet another task of that one waits to read before us.
    ReaderInQueue,
    /// Another client leads, and resigns after a while.
    Leader,
    /// Another client leads, and yet another task of that one is a candidate before us.
    CandidateInQueue,
    /// Another client is a candidate.
    WaitingCandidate,
    /// Another client waits to read.
    WaitingReader,
    /// Another client waits to write.
    WaitingWriter,
    /// Another client has all permits, and gives them back after a while.
    Permits,
    /// Another client has all permits, and yet another task of that one waits for one before us.
    PermitsInQueue,
    /// Another client waits for a permit.
    WaitingForPermits,
}

impl Rivals {
    /// Nobody is there but perhaps one who holds the lock.
    fn are_alone(self) -> bool {
        let alone =
            [Self::Nobody, Self::Holder, Self::Reader, Self::Writer, Self::Permits, Self::Leader];
        alone.contains(&self)
    }
}

/// One case, printed when it fails.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) polls: usize,
    pub(crate) way: Way,
    pub(crate) trouble: Trouble,
    /// At so many of the three voters.
    pub(crate) troubled: usize,
    pub(crate) rivals: Rivals,
}

/// What came of the future: it completed, or it was given up.
pub(crate) type Completed = bool;

/// Runs every case of one operation, each in a runtime of its own with a paused clock.
pub(crate) fn every<R: Future<Output = Result<Completed, String>>>(
    rivals: &[Rivals],
    run: impl Fn(Scene) -> R,
) {
    let mut given_up = 0;
    for &rivals in rivals {
        for trouble in Trouble::ALL {
            let scopes = if trouble == Trouble::Nothing { 0..=0 } else { 1..=2 };
            for troubled in scopes {
                for way in Way::ALL {
                    // Whoever stands before us keeps the client in any case.
                    if (way, rivals) == (Way::Leaving, Rivals::InLine) {
                        continue;
                    }
                    let case = Case { polls: 0, way, trouble, troubled, rivals };
                    given_up += every_poll(case, &run);
                }
            }
        }
    }
    assert!(given_up >= Trouble::ALL.len() * Way::ALL.len(), "only {given_up} cases");
}

/// Gives up before the first poll, after it, after the second, and so on to the end.
fn every_poll<R: Future<Output = Result<Completed, String>>>(
    case: Case,
    run: &impl Fn(Scene) -> R,
) -> usize {
    for polls in 0.. {
        let case = Case { polls, ..case };
        let mut runtime = runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
        let outcome = runtime.block_on(async { run(Scene::start(case).await).await });
        match outcome {
            Ok(true) => return polls,
            Ok(false) => assert!(polls < 10_000, "{case:?}: it never completes"),
            Err(why) => panic!("{case:?}: {why}"),
        }
    }
    unreachable!("some number of polls is enough")
}

/// The voters and clients of one case.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) case: Case,
    pub(crate) voters: Vec<EmbeddedVoter>,
    client: Option<Quorate>,
    pub(crate) other: Quorate,
}

impl Scene {
    async fn start(case: Case) -> Self {
        let voters = embedded::voters(3);
        let client = connect(&voters, 1).await;
        let other = connect(&voters, 2).await;
        Self { case, voters, client: Some(client), other }
    }

    pub(crate) fn client(&self) -> &Quorate {
        self.client.as_ref().expect("it has not left yet")
    }

    pub(crate) fn mutex(&self) -> Mutex {
        self.client().mutex("a")
    }

    pub(crate) fn rw_lock(&self) -> RwLock {
        self.client().rw_lock("a")
    }

    /// Of two permits.
    pub(crate) fn semaphore(&self) -> Semaphore {
        self.client().semaphore("a", 2)
    }

    pub(crate) fn election(&self) -> Election {
        self.client().election("a")
    }

    pub(crate) fn fair_mutex(&self) -> FairMutex {
        self.client().fair_mutex("a")
    }

    /// The client goes at once, where the case says so.
    pub(crate) fn leave_if_told(&mut self) {
        if self.case.way == Way::Leaving {
            self.client = None;
        }
    }

    /// Gives up the case's future, or drops what it came to (a guard, say); says whether it ended.
    pub(crate) async fn give_up<F: Future>(&self, future: F) -> Completed {
        abandon(future, self.case.polls, self.case.way).await.is_some()
    }

    pub(crate) fn inflict(&self) -> Troubled {
        Troubled::inflict(self.case.trouble, &self.voters[..self.case.troubled])
    }

    /// The voters at which whatever was sent has run by now, one round trip later.
    pub(crate) fn obedient(&self) -> &[EmbeddedVoter] {
        let from = if self.case.trouble.lets_requests_run() { 0 } else { self.case.troubled };
        &self.voters[from..]
    }

    /// Brings in those who hold the lock, or stand before us.
    pub(crate) async fn rivals(&self) -> Rival {
        let mut rival = Rival { hold: None, tasks: Vec::new() };
        if matches!(self.case.rivals, Rivals::Holder | Rivals::InLine | Rivals::InQueue) {
            let guard = self.other.mutex("a").lock().await.expect("nobody else is there");
            rival.hold = Some(guard.hold().clone());
            rival.leaves_later(async move { guard.release().await });
        }
        if self.case.rivals == Rivals::InLine {
            rival.enters_and_leaves(lock(self.mutex()));
            // So that it stands in line.
            tokio::task::yield_now().await;
        }
        if self.case.rivals == Rivals::InQueue {
            let mutex = self.other.fair_mutex("a");
            rival.enters_and_leaves(async move { mutex.lock().await?.release().await });
            sleep(PLACED).await;
        }
        if matches!(self.case.rivals, Rivals::Permits | Rivals::PermitsInQueue) {
            let guard = self.other.semaphore("a", 2).acquire_many(2).await.expect("all are free");
            rival.hold = Some(guard.hold().clone());
            rival.leaves_later(async move { guard.release().await });
        }
        if self.case.rivals == Rivals::PermitsInQueue {
            rival.enters_and_leaves(permit(self.other.semaphore("a", 2)));
            sleep(PLACED).await;
        }
        self.rivals_that_read_or_write(&mut rival).await;
        self.rivals_that_lead(&mut rival).await;
        rival
    }

    async fn rivals_that_read_or_write(&self, rival: &mut Rival) {
        let lock = self.other.rw_lock("a").preference(Preference::Fair);
        match self.case.rivals {
            Rivals::Reader | Rivals::WriterInQueue => {
                let guard = lock.read().await.expect("nobody else is there");
                rival.hold = Some(guard.hold().clone());
                rival.leaves_later(async move { guard.release().await });
            }
            Rivals::Writer | Rivals::ReaderInQueue => {
                let guard = lock.write().await.expect("nobody else is there");
                rival.hold = Some(guard.hold().clone());
                rival.leaves_later(async move { guard.release().await });
            }
            _ => {}
        }
        match self.case.rivals {
            Rivals::WriterInQueue => rival.enters_and_leaves(write(lock)),
            Rivals::ReaderInQueue => rival.enters_and_leaves(read(lock)),
            _ => return,
        }
        sleep(PLACED).await;
    }

    async fn rivals_that_lead(&self, rival: &mut Rival) {
        if !matches!(self.case.rivals, Rivals::Leader | Rivals::CandidateInQueue) {
            return;
        }
        let election = self.other.election("a");
        let leadership = election.campaign("other").await.expect("nobody else is there");
        rival.hold = Some(leadership.hold().clone());
        rival.leaves_later(async move { leadership.resign().await });
        if self.case.rivals == Rivals::CandidateInQueue {
            rival.enters_and_leaves(lead(election));
            sleep(PLACED).await;
        }
    }

    /// Another client that waits for the lock which we hold.
    pub(crate) async fn waiter(&self) -> Rival {
        let mut rival = Rival { hold: None, tasks: Vec::new() };
        match self.case.rivals {
            Rivals::Waiter => rival.enters_and_leaves(lock(self.other.mutex("a"))),
            Rivals::WaitingReader => rival.enters_and_leaves(read(self.other.rw_lock("a"))),
            Rivals::WaitingWriter => rival.enters_and_leaves(write(self.other.rw_lock("a"))),
            Rivals::WaitingForPermits => {
                rival.enters_and_leaves(permit(self.other.semaphore("a", 2)));
            }
            Rivals::WaitingCandidate => rival.enters_and_leaves(lead(self.other.election("a"))),
            _ => return rival,
        }
        sleep(PLACED).await;
        rival
    }

    /// One round trip after it was given up nothing is left at any voter that can be reached; soon
    /// after the end of the trouble nothing is anywhere, and nothing comes back.
    pub(crate) async fn expect_nothing(
        self,
        rival: Rival,
        trouble: Troubled,
    ) -> Result<(), String> {
        sleep(self.case.trouble.round_trip()).await;
        if self.case.rivals.are_alone() {
            check::only(self.obedient(), rival.hold.as_ref())?;
        }
        trouble.heal().await;
        self.expect_end(rival).await
    }

    /// When everybody has gone, nothing is left, and another client can enter.
    pub(crate) async fn expect_end(self, rival: Rival) -> Result<(), String> {
        let Self { voters, client, other, .. } = self;
        drop(client);
        rival.finish().await?;
        check::within(RETRIES, || check::nothing(&voters)).await?;
        let guard = other.mutex("a").try_lock().await.map_err(|error| error.to_string())?;
        let guard = guard.ok_or("another client is refused")?;
        guard.release().await.map_err(|error| error.to_string())?;
        let guard = other.rw_lock("a").try_write().await.map_err(|error| error.to_string())?;
        let guard = guard.ok_or("another client may not write")?;
        guard.release().await.map_err(|error| error.to_string())?;
        let all = other.semaphore("a", 2).try_acquire_many(2).await;
        let guard = all.map_err(|error| error.to_string())?;
        let guard = guard.ok_or("another client gets no permits")?;
        guard.release().await.map_err(|error| error.to_string())?;
        let lead =
            other.election("a").try_campaign("x").await.map_err(|error| error.to_string())?;
        let lead = lead.ok_or("another client may not lead")?;
        lead.resign().await.map_err(|error| error.to_string())?;
        let renewals = check::renewals(&voters);
        sleep(LEASE_AND_MORE).await;
        check::nothing(&voters)?;
        if check::renewals(&voters) > renewals {
            return Err("something is still being renewed".into());
        }
        Ok(())
    }
}

/// Those who came along.
#[derive(Debug)]
pub(crate) struct Rival {
    /// What another client may have on the voters.
    pub(crate) hold: Option<HoldId>,
    tasks: Vec<JoinHandle<Result<(), Error>>>,
}

impl Rival {
    fn leaves_later(&mut self, leaves: impl Future<Output = Result<(), Error>> + Send + 'static) {
        self.enters_and_leaves(async move {
            sleep(RIVAL_LEAVES).await;
            leaves.await
        });
    }

    fn enters_and_leaves(
        &mut self,
        turn: impl Future<Output = Result<(), Error>> + Send + 'static,
    ) {
        self.tasks.push(tokio::spawn(turn));
    }

    async fn finish(self) -> Result<(), String> {
        for task in self.tasks {
            let finished = tokio::time::timeout(LEASE / 2, task).await;
            match finished.map_err(|_| "a rival neither enters nor leaves")?.expect("no panic") {
                // Its own voters are in the same trouble.
                Err(error) if error.is_unconfirmed() || error.is_no_quorum() => {}
                other => other.map_err(|error| format!("a rival failed: {error}"))?,
            }
        }
        Ok(())
    }
}

async fn lock(mutex: Mutex) -> Result<(), Error> {
    mutex.lock().await?.release().await
}

async fn read(lock: RwLock) -> Result<(), Error> {
    lock.read().await?.release().await
}

async fn permit(semaphore: Semaphore) -> Result<(), Error> {
    semaphore.acquire().await?.release().await
}

async fn lead(election: Election) -> Result<(), Error> {
    election.campaign("other").await?.resign().await
}

async fn write(lock: RwLock) -> Result<(), Error> {
    lock.write().await?.release().await
}

async fn connect(voters: &[EmbeddedVoter], seed: u64) -> Quorate {
    let builder = Quorate::builder().embedded(voters).seed(seed);
    let builder = builder.lease(LEASE).quorum_timeout(Duration::from_millis(100));
    builder.connect().await.expect("three voters answer")
}

/// A guard that was acquired before the trouble began.
pub(crate) async fn held(scene: &Scene) -> MutexGuard {
    scene.mutex().lock().await.expect("nobody else is there")
}
