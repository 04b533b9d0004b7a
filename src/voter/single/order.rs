//! Which calls have left that nothing has followed.
//!
//! A server that does not know a script (`SCRIPT FLUSH`, a restart), or that does not have the slot
//! of a lock any more, has run nothing, and sending the same again would be right but for one
//! thing: what left meanwhile has overtaken it. An acquire that came in behind its own undo would
//! leave a vote that nobody wants, and an undo behind the next attempt would take one that somebody
//! counts on.
//!
//! So a request is sent again only where none of the same party, that is for the same key *and the
//! same hold*, left since. Between two holds no order was promised to anyone, unless they are
//! attempts from one place in a queue, which a later one may have left for good: these are one
//! party.

use std::sync::Mutex;

use rustc_hash::FxHashMap;

use crate::voter::{Call, lock};

#[derive(Debug, Default)]
pub(in crate::voter) struct Order(Mutex<UnderWay>);

#[derive(Debug, Default)]
struct UnderWay {
    /// How many calls have left.
    count: u64,
    /// By its party, the number of the call that carries its latest request, until that has come to
    /// something. A request that is not found here has been overtaken.
    latest: FxHashMap<u64, u64>,
}

/// A call that has left and has come to nothing yet.
pub(in crate::voter) struct Departed<'a> {
    order: &'a Order,
    call: &'a Call,
    number: u64,
}

impl Order {
    /// A call leaves.
    pub(in crate::voter) fn leave<'a>(&'a self, call: &'a Call) -> Departed<'a> {
        let UnderWay { count, latest } = &mut *lock(&self.0);
        *count += 1;
        for request in &*call.requests {
            latest.insert(request.party, *count);
        }
        Departed { order: self, call, number: *count }
    }
}

impl Departed<'_> {
    /// The requests of the call since which none of their party has left. They may leave again
    /// before anybody awaits anything: one task sends all requests of a hold, so none of them
    /// leaves between this look and that.
    pub(in crate::voter) fn still_latest(&self) -> Vec<usize> {
        let latest = &lock(&self.order.0).latest;
        let is_latest =
            |at: &usize| latest.get(&self.call.requests[*at].party) == Some(&self.number);
        (0..self.call.requests.len()).filter(is_latest).collect()
    }
}

impl Drop for Departed<'_> {
    fn drop(&mut self) {
        let latest = &mut lock(&self.order.0).latest;
        for request in &*self.call.requests {
            if latest.get(&request.party) == Some(&self.number) {
                latest.remove(&request.party);
            }
        }
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

    #[test]
    fn what_a_later_request_of_its_hold_has_overtaken_never_goes_again() {
        let (order, acquire, release) = (Order::default(), acquire("c:1"), release("c:1"));
        let first = order.leave(&acquire);
        assert_eq!(first.still_latest(), [0]);
        let second = order.leave(&release);
        assert_eq!((first.still_latest(), second.still_latest()), (vec![], vec![0]));
        drop(second);
        assert!(first.still_latest().is_empty(), "also where that was answered before");
        drop(first);
        assert!(lock(&order.0).latest.is_empty(), "nothing is remembered of what is answered");
    }

    #[test]
    fn what_other_holds_sent_since_is_no_matter() {
        let (order, release, acquire) = (Order::default(), release("c:1"), acquire("c:2"));
        let released = order.leave(&release);
        let _acquired = order.leave(&acquire);
        assert_eq!(released.still_latest(), [0]);
    }

    #[test]
    fn an_attempt_does_not_go_again_once_its_place_has_asked_or_left_since() {
        let (order, acquire, release) = (Order::default(), acquire("c:1.1"), release("c:1.2"));
        let attempt = order.leave(&acquire);
        let _left = order.leave(&release);
        assert!(attempt.still_latest().is_empty());
    }

    #[test]
    fn of_several_requests_only_those_go_again_that_were_not_overtaken() {
        let order = Order::default();
        let keys = ["b", "queue", "alive", "fence", "a", "queue", "alive", "fence"];
        let both = Call::of(
            &mutex::ACQUIRE,
            &keys,
            &["calls:", "5000", "", "5000", "c:2", "", "", "c:1", "", ""],
        );
        let (departed, release) = (order.leave(&both), release("c:1"));
        let _released = order.leave(&release);
        assert_eq!(departed.still_latest(), [0]);
    }
}
