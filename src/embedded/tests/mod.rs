//! What an embedded voter promises.

mod channels;
mod commands;
mod cut;
mod faults;
mod life;
mod observe;
mod order;
mod scripts;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};

use super::{EmbeddedVoter, Fault, InFlight, Machine, Ran, Record, Reply};
use crate::{
    clock::{Clock, Moment},
    proto::{Cause, HoldId, Verdict},
    scripts::{Answer, Script, mutex, test_script},
    voter::{Call, Identity, Node, ONLY, Outcome, Stamp, VoterEvents},
};

const DEADLINE: Duration = Duration::from_millis(200);

/// Writes down what it hears; a `!` stands for what may have been missed.
#[derive(Default)]
struct Listener {
    heard: Mutex<Vec<String>>,
    met: Mutex<Vec<(Identity, Stamp)>>,
    seen: Mutex<Vec<(Identity, Stamp)>>,
    /// What it does first when it is told whom it meets.
    when_met: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Listener {
    fn heard(&self) -> Vec<String> {
        std::mem::take(&mut self.heard.lock().unwrap())
    }

    fn met(&self) -> Vec<(Identity, Stamp)> {
        std::mem::take(&mut self.met.lock().unwrap())
    }

    fn seen(&self) -> Vec<(Identity, Stamp)> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

impl VoterEvents for Listener {
    fn note_connection(&self, shard: usize, identity: &Identity, stamp: Option<Stamp>) -> bool {
        assert_eq!(shard, ONLY);
        if let Some(act) = self.when_met.get() {
            act();
        }
        self.met.lock().unwrap().push((identity.clone(), stamp.unwrap()));
        false
    }

    fn note_inspection(&self, shard: usize, identity: &Identity, stamp: Option<Stamp>) -> bool {
        assert_eq!(shard, ONLY);
        self.seen.lock().unwrap().push((identity.clone(), stamp.unwrap()));
        false
    }

    fn note_disconnect(&self, _: usize, _: Option<&str>) {}

    fn note_move(&self, _: usize, _: usize, _: bool) {
        unreachable!("it is one server")
    }

    fn deliver(&self, channel: &str, _: &str) {
        self.heard.lock().unwrap().push(channel.into());
    }

    fn has_waiters(&self) -> bool {
        true
    }

    fn note_lost_messages(&self) {
        self.heard.lock().unwrap().push("!".into());
    }
}

fn voter() -> EmbeddedVoter {
    EmbeddedVoter::new("a")
}

fn connect(voter: &EmbeddedVoter) -> (Arc<dyn Node>, Arc<Listener>) {
    let listener = Arc::new(Listener::default());
    (voter.connect(Arc::clone(&listener) as Arc<dyn VoterEvents>, Clock::tokio()), listener)
}

fn connected() -> (EmbeddedVoter, Arc<dyn Node>, Arc<Listener>) {
    let voter = voter();
    let (node, listener) = connect(&voter);
    (voter, node, listener)
}

const fn delay(there: u64, back: u64) -> Fault {
    Fault::Delay { there: ms(there), back: ms(back) }
}

/// Sends a script that takes so long there and back.
fn sent(
    voter: &EmbeddedVoter,
    node: &Arc<dyn Node>,
    call: Call,
    there: u64,
    back: u64,
) -> BoxFuture<'static, Outcome<Answer>> {
    let _slow = voter.fault(delay(there, back));
    pending(node.run(call))
}

fn broken(why: &str) -> Outcome<Answer> {
    Err(Cause::Broken(why.into()))
}

fn publish(voter: &EmbeddedVoter) -> Reply {
    voter.command(&["PUBLISH", "freed", "0"]).unwrap()
}

/// Looks for an answer once, in vain.
fn pending<T>(mut answer: BoxFuture<'static, T>) -> BoxFuture<'static, T> {
    assert!((&mut answer).now_or_never().is_none());
    answer
}

fn acquire(hold: &str) -> Call {
    let keys = ["lock", "queue", "alive", "fence"];
    Call::of(&mutex::ACQUIRE, &keys, &["calls:", "30000", "", "30000", hold, "", ""])
}

fn release(hold: &str) -> Call {
    Call::of(&mutex::RELEASE, &["lock", "queue", "alive"], &["calls:", "", hold, "0", "", "freed"])
}

/// The code of an answer.
fn code(outcome: Outcome<Answer>) -> i64 {
    outcome.unwrap().code()
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The time since the clock was made.
fn passed(clock: &Clock) -> Duration {
    clock.now().since(Moment::BEGINNING)
}

fn text(text: &str) -> Reply {
    Reply::Text(text.into())
}
