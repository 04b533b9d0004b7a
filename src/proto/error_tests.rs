use super::*;
use crate::proto::{Cause, Quarantine, Quarantined};

const TWO: Majorities = Majorities { new: (2, 3), old: None };
const ONE: Majorities = Majorities { new: (1, 1), old: None };
const SECS: fn(u64) -> Duration = Duration::from_secs;

fn no_quorum(after: Duration, too_late: Option<Duration>) -> Kind {
    let asked_ago = Duration::from_millis(5);
    Kind::NoQuorum { lock: "a".into(), needed: TWO, after, asked_ago, too_late }
}

#[test]
fn a_message_names_the_lock_and_each_voter_with_its_cause() {
    let kind = no_quorum(SECS(1), None);
    let report = |voter: &str, cause| VoterReport::new(voter, Verdict::Unknown(cause));
    let voters = vec![
        report("a:1", Cause::Unreachable("connection refused".into())),
        report("b:1", Cause::TimedOut(Duration::from_millis(200))),
    ];
    let error = Error::new(kind, voters);
    assert!(error.is_no_quorum() && !error.is_lost());
    assert_eq!((error.lock(), error.hold(), error.frees_in()), (Some("a"), None, None));
    let source = std::error::Error::source(&error).expect("a voter did not answer");
    assert_eq!(source.to_string(), "unreachable: connection refused");
    let told = "no quorum of 2 for lock `a` in 1s (a:1: unreachable: connection refused; \
                b:1: no answer within 200ms)";
    assert_eq!(error.to_string(), told);
    assert_eq!(format!("{error:?}"), format!("Error({told})"));
}

#[test]
fn a_busy_lock_says_what_its_holder_does_and_for_how_long() {
    let told = |by: Option<(&str, HolderKind)>, lease_left| {
        let by = by.map(|(hold, kind)| Taker { hold: HoldId::parse(hold), kind });
        Error::new(Kind::Busy { lock: "a".into(), by, lease_left }, Vec::new())
    };
    for (kind, text) in [
        (HolderKind::Mutex, "taken by c:1"),
        (HolderKind::Read, "read by c:1"),
        (HolderKind::Write, "written by c:1"),
        (HolderKind::Permit, "taken by c:1"),
        (HolderKind::Leader, "led by c:1"),
        (HolderKind::Parked, "parked by c:1"),
        (HolderKind::Waiting, "kept for a waiter that comes first, c:1"),
    ] {
        let error = told(Some(("c:1", kind)), Some(SECS(5)));
        let text = format!("lock `a` is {text}, for 5s more unless renewed or released");
        assert_eq!(error.to_string(), text);
        assert_eq!((error.holder_kind(), error.lease_left()), (Some(kind), Some(SECS(5))));
        assert_eq!(error.holder(), Some(&HoldId::parse("c:1")));
    }
    let noted = "web-1.7@0123456789abcdef0123:1=the%20%22job%22=";
    let error = told(Some((noted, HolderKind::Mutex)), None).to_string();
    assert_eq!(error, format!("lock `a` is taken by {noted} (\"the \\\"job\\\"\")"));
    let unknown = told(None, None);
    assert_eq!(unknown.to_string(), "lock `a` is taken");
    assert_eq!((unknown.holder_kind(), unknown.holder()), (None, None));
}

#[test]
fn each_error_names_the_lock_the_hold_and_the_values() {
    let (lock, hold) = (|| "a".to_owned(), || HoldId::parse("c:1"));
    let two_sets = Majorities { new: (3, 5), old: Some((2, 3)) };
    let late = Some(SECS(15));
    for (kind, told) in [
        (
            Kind::Connect { needed: ONE, after: SECS(5) },
            "fewer than 1 of 1 voter could be reached in 5s",
        ),
        (
            Kind::Connect { needed: two_sets, after: SECS(5) },
            "fewer than 3 of 5 new and 2 of 3 old voters could be reached in 5s, 0 of the new \
             voters gave a usable answer, 0 of the old voters gave a usable answer",
        ),
        (
            no_quorum(SECS(10), late),
            "no quorum of 2 for lock `a` in 10s: granted too late, the minimum validity of 15s \
             was not left",
        ),
        (
            Kind::Released { lock: lock(), hold: hold() },
            "lock `a` was left by the last guard of hold c:1",
        ),
        (
            Kind::Reads { lock: lock(), hold: hold() },
            "lock `a` cannot be written by an owner that reads it as c:1",
        ),
        (
            Kind::Unconfirmed { lock: lock(), hold: hold(), needed: TWO, frees_in: SECS(7) },
            "release of lock `a` by hold c:1 not confirmed by 2 voters, free in 7s at the latest",
        ),
        (
            Kind::NotEntered { lock: lock(), hold: hold(), what: "extension", needed: ONE },
            "extension of lock `a` not confirmed by 1 voter; hold c:1 has it as before",
        ),
        (
            Kind::TicketEnded { lock: lock(), hold: hold(), why: "it was resumed".into() },
            "the ticket of lock `a` with hold c:1 has ended: it was resumed",
        ),
        (
            Kind::Overloaded { lock: lock(), most: 128, after: SECS(1) },
            "lock `a` was not asked for in 1s: this client has 128 attempts under way, and makes \
             no more at once",
        ),
    ] {
        assert_eq!(Error::new(kind, Vec::new()).to_string(), told);
    }
}

#[test]
fn each_verdict_says_what_the_voter_has_done() {
    let (by, ttl) = (|| HoldId::parse("c:1"), Some(Duration::from_millis(1_500)));
    let (why, within) = (|| "why".into(), Duration::from_millis(50));
    let lacks = Cause::Unacknowledged { acknowledged: 1, needed: 2, within };
    for (verdict, told) in [
        (Verdict::Granted, "granted"),
        (Verdict::Refused { by: by(), ttl }, "held by c:1 for 1.5s more"),
        (Verdict::Refused { by: by(), ttl: None }, "held by c:1 without expiry"),
        (Verdict::Behind { place: by(), ttl }, "behind c:1 in the queue, for 1.5s more"),
        (Verdict::Behind { place: by(), ttl: None }, "behind c:1 in the queue"),
        (Verdict::Revoked, "ended by force"),
        (Verdict::Absent, "held by nobody"),
        (Verdict::Unknown(Cause::Broken(why())), "connection broke after sending: why"),
        (Verdict::Unknown(Cause::Rejected(why())), "answered with an error: why"),
        (Verdict::Unknown(Cause::Duplicate("b:1".into())), "is the same server as b:1"),
        (Verdict::Unknown(lacks), "1 of 2 replicas acknowledged within 50ms"),
        (Verdict::Unknown(Cause::Unheard), "not waited for"),
    ] {
        assert_eq!(verdict.to_string(), told);
    }
}

#[test]
fn each_quarantine_says_why_and_for_how_long() {
    let (by, left) = (Duration::from_millis(700), Duration::from_micros(9_000_700));
    for (why, told) in [
        (Quarantine::Restarted, "restarted, perhaps without its data"),
        (Quarantine::Young, "started or was promoted after the others, perhaps without its data"),
        (Quarantine::Emptied, "its data, or a part of them, are gone"),
        (Quarantine::Copied, "its data and another voter's are copies, so one lacks its votes"),
        (Quarantine::ClockMoved(by), "its clock moved by 700ms"),
        (Quarantine::ClockApart(by), "its clock is 700ms from those of others"),
        (Quarantine::ClockSetBack(by), "its clock was set back by 700ms"),
    ] {
        let quarantined = Quarantined { why, left };
        assert_eq!(quarantined.to_string(), format!("in quarantine for 9s more: {told}"));
    }
}
