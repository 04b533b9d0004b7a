use proptest::{collection::vec, prelude::*};

use super::*;
use crate::proto::{ConfigurationEntry, Done};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn one(entries: Vec<Value>) -> Result<Answer, Cause> {
    let width = entries.len();
    Answer::each(Value::List(entries), 1, width).remove(0)
}

fn answer(code: i64, ms: i64, id: &str, more: &[Value]) -> Answer {
    one([&[Value::Int(code), Value::Int(ms), text(id)], more].concat()).unwrap()
}

fn vote(code: i64, ms: i64, id: &str, token: &str, ticket: i64) -> Vote {
    Vote::read(&answer(code, ms, id, &[text(token), Value::Int(ticket)]))
}

#[test]
fn a_vote_says_who_has_it_for_how_long_and_the_ticket_of_who_asks_from_a_place() {
    let (c, ttl) = (|| HoldId::parse("c:1"), Some(MS(1500)));
    let refused = |ttl| Verdict::Refused { by: c(), ttl };
    for (code, ms, id, ticket, verdict) in [
        (0, 1500, "c:1", None, refused(ttl)),
        (0, -1, "c:1", None, refused(None)),
        (3, 1500, "c:1", Some(7), Verdict::Behind { place: c(), ttl }),
        (1, 30_000, "", Some(7), Verdict::Granted),
        (2, 5, "", None, Verdict::Revoked),
        (4, 5, "", None, Verdict::Absent),
    ] {
        let vote = vote(code, ms, id, "12", ticket.map_or(-1, u64::cast_signed));
        let token = Token::new(12).filter(|_| verdict == Verdict::Granted);
        assert_eq!((vote.verdict, vote.ticket, vote.token), (verdict, ticket.map(Ticket), token));
    }
    // Renewals give no more than that.
    assert_eq!(Vote::read(&answer(1, 5, "", &[])).verdict, Verdict::Granted);
}

#[test]
fn each_refusal_has_a_reason_and_nothing_else_has_one() {
    for (code, id, reason) in [
        (0, "c:1", Some("held")),
        (3, "c:1", Some("behind")),
        (2, "", Some("forced")),
        (4, "", Some("absent")),
        (1, "", None),
        // Nobody expects these: they are no refusals.
        (0, "", None),
        (3, "", None),
        (4, "c:1", None),
        (5, "", None),
    ] {
        assert_eq!(answer(code, 5, id, &[]).verdict().refusal(), reason, "{code} {id:?}");
    }
}

#[test]
fn a_release_of_a_vote_that_another_has_names_it_and_one_that_nobody_has_is_absent() {
    let released = |code, id| answer(code, 5, id, &[]).released();
    assert_eq!((released(1, ""), released(0, "")), (Verdict::Granted, Verdict::Absent));
    assert!(matches!(released(0, "c:1"), Verdict::Refused { .. }));
    assert!(matches!(released(3, "c:1"), Verdict::Unknown(_)));
}

#[test]
fn what_waits_is_read_whatever_it_is_called() {
    let line = |id, ticket, ms| [text(id), Value::Int(ticket), Value::Int(ms)];
    let entry = |id, ticket, ms| ListEntry { id: HoldId::parse(id), ticket, left: MS(ms) };
    let two = || Value::List([line("a 1\n", 3, 100), line("b:1", 4, 90)].concat());
    let more = |lists: Vec<Value>| Value::List([lists, vec![text("7")]].concat());
    let held = answer(1, 5, "another\nprogram's 1", &[Value::Int(2), more(vec![two()])]);
    let hold = HoldId::parse("another\nprogram's 1");
    let holder = Some(Holding { hold, count: 2, left: Some(MS(5)) });
    let lists = vec![vec![entry("a 1\n", 3, 100), entry("b:1", 4, 90)]];
    let seen = LockSeen::read(&held, 1).unwrap();
    assert_eq!(seen, LockSeen { holder, lists, number: Token::new(7), next: None });
    assert!(LockSeen::read(&held, 3).is_err(), "of another script");
    let free = |more| LockSeen::read(&answer(0, -2, "", &[Value::Int(0), more]), 1);
    assert!(free(more(vec![Value::List(line("a:1", 3, 100)[..2].to_vec())])).is_err());
    assert!(free(Value::List(Vec::new())).is_err());
}

// The second reply is of a moment later: it replaces what the first says of those slots.
#[test]
fn what_more_slots_are_taken_is_told_in_another_reply() {
    let list = |slots: &[i64]| {
        let entry = |slot: &i64| [text("c:1"), Value::Int(*slot), Value::Int(9)];
        Value::List(slots.iter().flat_map(entry).collect())
    };
    let reply = |slots: &[i64], waiting: &[i64], next| {
        let more = Value::List(vec![list(slots), list(waiting), text("600")]);
        LockSeen::read(&answer(1, 0, "", &[Value::Int(next), more]), 2).unwrap()
    };
    let first = reply(&[0, 1, 300], &[7], 256);
    assert_eq!(first.next, Some(256));
    let both = first.go_on(256, reply(&[256, 400], &[], 0));
    let tickets = |list: &[ListEntry]| list.iter().map(|entry| entry.ticket).collect::<Vec<_>>();
    assert_eq!(tickets(&both.lists[0]), [0, 1, 256, 400]);
    assert_eq!((tickets(&both.lists[1]), both.next), (vec![7], None));
}

#[test]
fn a_mark_has_a_name_an_age_a_clock_and_perhaps_why_it_was_not_written() {
    let times = || Value::List([1_700_000_000_000, 500, 60].map(Value::Int).into());
    let more = |why| [text(why), times()];
    let fingerprint =
        |code, ms, why| Fingerprint::read(&answer(code, ms, "b 1", &more(why))).unwrap();
    let (birth, age, clock) = (Some("b 1".into()), MS(1_500), Some(MS(1_700_000_000_000)));
    let (began, set_back) = (MS(500), MS(60));
    let known = Fingerprint { birth, age, refusal: None, began, set_back, clock };
    assert_eq!(fingerprint(1, 1_500, ""), known);
    let refusal = Some("OOM command not allowed".into());
    let full = Fingerprint { refusal: refusal.clone(), ..known.clone() };
    assert_eq!(fingerprint(1, 1_500, "OOM command not allowed"), full);
    let new = Fingerprint { birth: None, age: Duration::ZERO, refusal, ..known };
    assert_eq!(fingerprint(2, 0, "OOM command not allowed"), new);
    assert_eq!(Fingerprint::read(&answer(1, 5, "b1", &[])), None);
}

#[test]
fn a_request_that_failed_alone_is_a_rejection_with_its_message() {
    let failed = one(vec![Value::Int(-1), Value::Int(0), text("WRONGTYPE"), text("")]);
    assert_eq!(failed, Err(Cause::Rejected("WRONGTYPE".into())));
}

#[test]
fn each_request_has_its_own_answer_and_a_reply_that_is_short_of_one_is_none_at_all() {
    let entries = |code| [Value::Int(code), Value::Int(5), text("c:1"), text("")];
    let list = || [0, -1, 1].into_iter().flat_map(entries).collect::<Vec<_>>();
    let codes = Answer::each(Value::List(list()), 3, 4).into_iter();
    let codes: Vec<_> = codes.map(|answer| answer.map(|answer| answer.code)).collect();
    assert_eq!(codes, [Ok(0), Err(Cause::Rejected("c:1".into())), Ok(1)]);
    for short in [1, 4, 11] {
        let entries = list().into_iter().take(short).collect();
        assert!(Answer::each(Value::List(entries), 3, 4).iter().all(Result::is_err));
    }
}

#[test]
fn a_reply_of_another_shape_is_never_taken_for_a_grant() {
    for value in [Value::Nil, Value::Int(1), Value::List(vec![Value::Int(1)])] {
        let answers = Answer::each(value, 1, 3);
        assert!(matches!(&answers[..], [Err(Cause::Rejected(_))]));
    }
    assert!(one(vec![text("1"), Value::Int(5), text("")]).is_err());
    for code in [0, 7] {
        assert!(matches!(vote(code, 5, "", "", -1).verdict, Verdict::Unknown(_)));
    }
}

#[test]
fn a_vote_for_permits_says_which_slots_and_whether_others_use_fewer() {
    let slots = |text: &str| {
        let vote = vote(1, 0, "", text, 1);
        (vote.slots.map(|slots| slots.text()), vote.fewer, vote.token)
    };
    assert_eq!(slots("7-9,0-0"), (Some("7-9,0-0".into()), None, None));
    assert_eq!(slots("2-2 of 5"), (Some("2-2".into()), Some(5), None));
    let token = slots("1763766000123456");
    assert!(token.0.is_none() && token.2.is_some(), "a token is none");
}

fn any_number() -> impl Strategy<Value = Value> {
    prop_oneof![-1..5_i64, any::<i64>(), Just(i64::MAX), Just(i64::MIN)].prop_map(Value::Int)
}

fn any_text() -> impl Strategy<Value = Value> {
    let texts = ["\\PC{0,8}", "[0-9]{1,20}", "[0-9,# =\t-]{0,30}"];
    prop_oneof![texts[0], texts[1], texts[2]].prop_map(Value::Text)
}

/// What a server that is none may answer.
fn any_value() -> impl Strategy<Value = Value> {
    let one = prop_oneof![Just(Value::Nil), any_number(), any_text()];
    one.prop_recursive(3, 24, 6, |inner| vec(inner, 0..6).prop_map(Value::List))
}

/// As scripts answer, but for what the entries say.
fn any_entries() -> impl Strategy<Value = Vec<Value>> {
    let entries = (any_number(), any_number(), any_text(), any_value(), any_value());
    entries.prop_map(|(code, ms, id, one, other)| vec![code, ms, id, one, other])
}

proptest! {
    #[test]
    fn an_answer_of_any_shape_says_something_of_each_request(
        value in any_value(), requests in 0_usize..4, width in 0_usize..6,
    ) {
        prop_assert_eq!(Answer::each(value, requests, width).len(), requests);
    }

    #[test]
    fn whatever_the_entries_say_is_read_or_refused_and_only_the_code_is_a_grant(
        entries in any_entries(),
    ) {
        let granted = entries[0] == Value::Int(1);
        let outcome = one(entries);
        let vote = Vote::of(&outcome);
        prop_assert_eq!(vote.verdict == Verdict::Granted, granted);
        prop_assert!(granted || vote.token.is_none());
        let Ok(answer) = outcome else { return Ok(()) };
        for lists in 0..3 {
            drop(LockSeen::read(&answer, lists));
        }
        drop((Fingerprint::read(&answer), Incumbent::read(&answer)));
        drop((answer.released(), answer.clock()));
        for line in answer.text().into_iter().flat_map(str::lines) {
            let entry = ConfigurationEntry::read(line);
            drop(entry.map(|entry| (entry.told(MS(1)), entry.to_string())));
            let _ = Done::parse(line);
        }
    }
}
