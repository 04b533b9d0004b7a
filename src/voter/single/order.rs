//! In which order requests left, and which scripts the server knows.
//!
//! Scripts are sent by their hash, or as a whole while it is not known that the server has them. A
//! server can forget them (`SCRIPT FLUSH`, a restart). It then answers NOSCRIPT, having run
//! nothing, and sending the script again as a whole would be right but for one thing: what left
//! meanwhile has overtaken it. An acquire that came in behind its own undo would leave a vote that
//! nobody wants, and an undo behind the next attempt would take one that somebody counts on.
//!
//! So a request is sent again only where none of the same party, that is for the same key *and the
//! same hold*, left since. Between two holds no order was promised to anyone, unless they are
//! attempts from one place in a queue, which a later one may have left for good: these are one
//! party.

use std::{
    mem,
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use fred::util::sha1_hash;

use crate::{
    scripts::{ALL, Script},
    voter::{Call, by_hash::ByHash},
};

/// So many departures are remembered, and at most twice as many. What is forgotten counts as
/// overtaken.
const REMEMBERED: usize = 2048;

#[derive(Debug)]
pub(in crate::voter) struct Order(Mutex<Departures>);

#[derive(Debug, Default)]
struct Departures {
    count: u64,
    /// For the hash of each key and hold, the number of the last call that left.
    recent: ByHash<u64>,
    /// Those before the recent ones.
    older: ByHash<u64>,
    scripts: Vec<KnownScript>,
}

#[derive(Debug)]
struct KnownScript {
    script: &'static Script,
    sha: Bytes,
    /// Whether the server has it, as far as we know.
    loaded: bool,
}

/// How a script is named in a request.
pub(in crate::voter) enum Naming {
    Hash(Bytes),
    Source,
}

/// The hashes of the catalog, computed once.
static CATALOG: LazyLock<Vec<KnownScript>> =
    LazyLock::new(|| ALL.into_iter().map(KnownScript::new).collect());

impl KnownScript {
    fn new(script: &'static Script) -> Self {
        Self { script, sha: sha1_hash(script.source).into(), loaded: false }
    }
}

impl Order {
    pub(in crate::voter) fn new() -> Self {
        let scripts = CATALOG
            .iter()
            .map(|known| KnownScript { sha: known.sha.clone(), loaded: false, ..*known })
            .collect();
        Self(Mutex::new(Departures { scripts, ..Departures::default() }))
    }

    /// A call is about to leave: gives it its number, and says how to name the script.
    pub(in crate::voter) fn leave(&self, call: &Call) -> (u64, Naming) {
        let mut inner = self.lock();
        let number = inner.stamp(call);
        let known = inner.known(call.script);
        (number, if known.loaded { Naming::Hash(known.sha.clone()) } else { Naming::Source })
    }

    /// The script was answered, so the server has it now.
    pub(super) fn loaded(&self, script: &'static Script) {
        self.lock().known(script).loaded = true;
    }

    /// The server said that it does not have the script.
    pub(super) fn unknown(&self, script: &'static Script) {
        self.lock().known(script).loaded = false;
    }

    /// Another connection: perhaps another server, with no scripts yet.
    pub(super) fn forget(&self) {
        self.lock().scripts.iter_mut().for_each(|known| known.loaded = false);
    }

    /// Those requests of the call with this number since which none of their hold has left. They
    /// leave again, with a number of their own.
    pub(in crate::voter) fn leave_again(&self, call: &Call, number: u64) -> (u64, Vec<usize>) {
        self.lock().leave_again(call, number)
    }

    /// The same; runs `send` with them before anything else can leave.
    pub(super) fn again<T>(
        &self,
        call: &Call,
        number: u64,
        send: impl FnOnce(&[usize]) -> T,
    ) -> (Vec<usize>, T) {
        let mut inner = self.lock();
        let (_, requests) = inner.leave_again(call, number);
        let sent = send(&requests);
        (requests, sent)
    }

    fn lock(&self) -> MutexGuard<'_, Departures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Departures {
    fn stamp(&mut self, call: &Call) -> u64 {
        self.count += 1;
        for request in &*call.requests {
            self.recent.insert(request.party, self.count);
        }
        if self.recent.len() >= REMEMBERED {
            self.older = mem::take(&mut self.recent);
        }
        self.count
    }

    fn leave_again(&mut self, call: &Call, number: u64) -> (u64, Vec<usize>) {
        let parties = call.requests.iter().map(|request| request.party).enumerate();
        let last = parties.filter(|(_, party)| self.last(*party) == Some(number));
        let requests: Vec<_> = last.map(|(request, _)| request).collect();
        (self.stamp(&call.pick(&requests)), requests)
    }

    fn last(&self, party: u64) -> Option<u64> {
        self.recent.get(&party).or_else(|| self.older.get(&party)).copied()
    }

    fn known(&mut self, script: &'static Script) -> &mut KnownScript {
        let at = self.scripts.iter().position(|known| std::ptr::eq(known.script, script));
        let at = at.unwrap_or_else(|| {
            self.scripts.push(KnownScript::new(script));
            self.scripts.len() - 1
        });
        &mut self.scripts[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripts::mutex;

    fn acquire(hold: &str) -> Call {
        Call::of(
            &mutex::ACQUIRE,
            &["a", "queue", "alive", "fence"],
            &["calls:", "5000", "", "5000", hold, "", ""],
        )
    }

    fn release(hold: &str) -> Call {
        Call::of(&mutex::RELEASE, &["a", "queue", "alive"], &["calls:", "", hold, "0", "", ""])
    }

    fn goes_again(order: &Order, call: &Call, number: u64) -> bool {
        let (requests, ()) = order.again(call, number, |_| ());
        requests.len() == call.requests.len()
    }

    #[test]
    fn a_script_goes_as_a_whole_until_it_was_answered_and_again_after_a_reconnection() {
        let order = Order::new();
        let whole = |order: &Order| matches!(order.leave(&acquire("c:1")).1, Naming::Source);
        assert!(whole(&order));
        order.loaded(&mutex::ACQUIRE);
        assert!(!whole(&order));
        order.forget();
        assert!(whole(&order));
    }

    #[test]
    fn what_a_later_request_of_its_hold_has_overtaken_never_goes_again() {
        for (first, second, again) in [
            (acquire("c:1"), release("c:1"), false),
            (release("c:1"), acquire("c:1"), false),
            (release("c:1"), acquire("c:2"), true),
            // Once its place has asked or left since, an attempt does not go again.
            (acquire("c:1.1"), release("c:1.2"), false),
        ] {
            let order = Order::new();
            let (number, _) = order.leave(&first);
            order.leave(&second);
            assert_eq!(goes_again(&order, &first, number), again);
            assert!(!goes_again(&order, &first, number), "it has left again since");
        }
    }

    #[test]
    fn what_left_long_ago_is_forgotten_and_never_goes_again() {
        let order = Order::new();
        let (number, _) = order.leave(&release("c:0"));
        for n in 0..REMEMBERED / 2 {
            order.leave(&acquire(&format!("c:{n}:other")));
        }
        assert!(goes_again(&order, &release("c:0"), number));
        let (number, _) = order.leave(&release("c:0"));
        for n in 0..2 * REMEMBERED {
            order.leave(&acquire(&format!("c:{n}:another")));
        }
        assert!(!goes_again(&order, &release("c:0"), number));
    }

    #[test]
    fn of_several_requests_only_those_go_again_that_were_not_overtaken() {
        let order = Order::new();
        let keys = ["b", "queue", "alive", "fence", "a", "queue", "alive", "fence"];
        let both = Call::of(
            &mutex::ACQUIRE,
            &keys,
            &["calls:", "5000", "", "5000", "c:2", "", "", "c:1", "", ""],
        );
        let (number, _) = order.leave(&both);
        order.leave(&release("c:1"));
        assert_eq!(order.leave_again(&both, number).1, [0]);
    }
}
