//! Three voters, two clients, and every case of giving up.

use std::fmt::Debug;

use quorate_tests::prelude::*;
use tokio::{runtime, task::yield_now};

use crate::cancel::{
    check,
    kinds::Access::{self, BothPermits, Lead, Lock, Write},
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
    /// Another client has it, and lets go of it after a while.
    Holds(Access),
    /// Another client has it, and another task of this one stands before us in line.
    InLine(Access),
    /// Another client has the first, and yet another task of that one waits for the second before
    /// us.
    InQueue(Access, Access),
    /// Another client waits for it while we hold the lock.
    Waits(Access),
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

/// Runs every case of one operation, each in a runtime of its own with a paused clock. Without the
/// feature `full` every other one: each trouble with half of the ways, and each way with half of the
/// troubles.
pub(crate) fn every(
    what: impl Debug,
    rivals: &[Rivals],
    run: impl AsyncFn(Scene) -> Result<Completed, String>,
) {
    let mut given_up = 0;
    for &rivals in rivals {
        for (at, trouble) in Trouble::ALL.into_iter().enumerate() {
            let scopes = if trouble == Trouble::Nothing { 0..=0 } else { 1..=2 };
            for troubled in scopes {
                for (way_at, way) in Way::ALL.into_iter().enumerate() {
                    if cfg!(not(feature = "full")) && (at + troubled + way_at) % 2 == 1 {
                        continue;
                    }
                    // Whoever stands before us keeps the client in any case.
                    if matches!((way, rivals), (Way::Leaving, Rivals::InLine(_))) {
                        continue;
                    }
                    let case = Case { polls: 0, way, trouble, troubled, rivals };
                    given_up += every_poll(&what, case, &run);
                }
            }
        }
    }
    assert!(given_up >= Trouble::ALL.len() * Way::ALL.len() / 2, "only {given_up} cases");
}

/// Gives up before the first poll, after it, after the second, and so on to the end.
fn every_poll(
    what: &impl Debug,
    case: Case,
    run: &impl AsyncFn(Scene) -> Result<Completed, String>,
) -> usize {
    for polls in 0.. {
        let case = Case { polls, ..case };
        let mut runtime = runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
        let outcome = runtime.block_on(async { run(Scene::start(case).await).await });
        match outcome {
            Ok(true) => return polls,
            Ok(false) => assert!(polls < 10_000, "{what:?}, {case:?}: it never completes"),
            Err(why) => panic!("{what:?}, {case:?}: {why}"),
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

    /// Brings in those who hold the lock, or stand before us, or wait for what we hold.
    pub(crate) async fn rivals(&self) -> Rival {
        let mut rival = Rival::default();
        match self.case.rivals {
            Rivals::Nobody => {}
            Rivals::Holds(held) => rival.holds(&self.other, held).await,
            Rivals::InLine(held) => {
                rival.holds(&self.other, held).await;
                rival.runs(held.enter_and_leave(self.client().clone()));
                // So that it stands in line.
                yield_now().await;
            }
            Rivals::InQueue(held, wanted) => {
                rival.holds(&self.other, held).await;
                rival.waits(&self.other, wanted).await;
            }
            Rivals::Waits(wanted) => rival.waits(&self.other, wanted).await,
        }
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
        match self.case.rivals {
            Rivals::Nobody | Rivals::Holds(_) => {
                check::only(self.obedient(), rival.hold.as_ref())?;
                check::nobody_waits(self.obedient())?;
            }
            // By then the rival has lost a race for the lock.
            Rivals::InLine(_) => check::nobody_waits_in_order(self.obedient())?,
            Rivals::InQueue(..) | Rivals::Waits(_) => {}
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
        for access in [Lock, Write, BothPermits, Lead] {
            let held = access.ask(&other, How::Try, None).await.map_err(text)?;
            let held = held.ok_or_else(|| format!("another client is refused: {access:?}"))?;
            held.release().await.map_err(text)?;
        }
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
#[derive(Debug, Default)]
pub(crate) struct Rival {
    /// What another client may have on the voters.
    hold: Option<HoldId>,
    tasks: Vec<JoinHandle<Result<(), Error>>>,
}

impl Rival {
    async fn holds(&mut self, client: &Quorate, access: Access) {
        let held = access.have(client, None).await;
        self.hold = Some(held.hold().clone());
        self.runs(async move {
            sleep(RIVAL_LEAVES).await;
            held.release().await
        });
    }

    async fn waits(&mut self, client: &Quorate, access: Access) {
        self.runs(access.enter_and_leave(client.clone()));
        sleep(PLACED).await;
    }

    fn runs(&mut self, turn: impl Future<Output = Result<(), Error>> + Send + 'static) {
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

pub(crate) async fn connect(voters: &[EmbeddedVoter], seed: u64) -> Quorate {
    let builder = Quorate::builder().embedded(voters).seed(seed);
    let builder = builder.lease(LEASE).quorum_timeout(Duration::from_millis(100));
    builder.connect().await.expect("three voters answer")
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(crate) fn text(error: Error) -> String {
    error.to_string()
}
