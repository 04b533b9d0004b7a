use super::*;

const MS: fn(u64) -> Duration = Duration::from_millis;

fn held(kind: HolderKind, hold: &str, left: u64) -> Holder {
    Holder::listed(kind, ListEntry { id: HoldId::parse(hold), ticket: 0, left: MS(left) })
}

fn counted(hold: &str, count: u32) -> Holder {
    Holder { count, ..held(HolderKind::Mutex, hold, 1) }
}

fn view(kind: LockKind, states: impl IntoIterator<Item = Result<LockState, Cause>>) -> LockView {
    let voter = |state| VoterView { voter: "v".into(), side: None, state, quarantine: None };
    LockView::new("a", kind, states.into_iter().map(voter).collect())
}

/// A lock of which these voters have these holders.
fn held_by<const N: usize>(kind: LockKind, holders: [Vec<Holder>; N]) -> LockView {
    let state = |holders| Ok(LockState { holders, ..LockState::default() });
    view(kind, holders.map(state))
}

#[test]
fn a_hold_keeps_its_majority_until_the_last_voter_it_needs_expires() {
    let by = |left| vec![held(HolderKind::Mutex, "a", left)];
    let seen = held_by(LockKind::Mutex, [by(100), by(300), by(200)]);
    assert_eq!(seen.holders, by(200));
    assert_eq!(seen.all_holders(), by(300), "as long as anywhere");
    // Of the reads that voters know, some have a majority.
    let read = |hold, left| held(HolderKind::Read, hold, left);
    let seen = held_by(
        LockKind::RwLock,
        [
            vec![read("a", 10), read("b", 30)],
            vec![read("b", 20), read("c", 40)],
            vec![read("b", 10)],
        ],
    );
    assert_eq!(seen.holders, [read("b", 20)]);
    assert_eq!(seen.all_holders(), [read("a", 10), read("b", 30), read("c", 40)]);
    assert_eq!((seen.votes(&read("b", 0).hold), seen.votes(&read("c", 0).hold)), (3, 1));
}

#[test]
fn a_voter_that_has_not_heard_of_a_release_or_an_entry_yet_does_not_decide_the_count() {
    for (late, told) in [(2, 1), (1, 2)] {
        let by = |count| vec![counted("a", count)];
        let seen = held_by(LockKind::Mutex, [by(late), by(told), by(told)]);
        assert_eq!(seen.holder().unwrap().count, told);
    }
}

#[test]
fn who_stands_on_a_majority_waits_and_is_in_the_order_of_tickets_and_places() {
    let waiting = |(place, ticket, left)| {
        let entry = ListEntry { id: HoldId::parse(place), ticket, left: MS(left) };
        Waiting::all(HolderKind::Mutex, vec![entry]).next().unwrap()
    };
    let queue = |places: &[(&'static str, u64, u64)]| {
        let waiting = places.iter().copied().map(waiting).collect();
        Ok(LockState { waiting, ..LockState::default() })
    };
    let seen = view(
        LockKind::Mutex,
        [
            queue(&[("b", 1, 30), ("c", 1, 30), ("a", 2, 10)]),
            queue(&[("a", 2, 20), ("d", 3, 30)]),
            queue(&[("b", 1, 20), ("a", 2, 30), ("d", 4, 30)]),
        ],
    );
    assert_eq!(seen.waiting, [("b", 1, 20), ("a", 2, 20)].map(waiting));
    assert!(seen.is_free);
}

#[test]
fn a_firing_that_one_of_two_sets_does_not_know_may_be_forgotten() {
    let seen = |firings: [Option<u64>; 6]| {
        let sides = [Side::New, Side::New, Side::New, Side::Old, Side::Old, Side::Old];
        let voter = |(side, firing): (Side, Option<u64>)| {
            // Each goes by its own clock.
            let done = |firing| Done { firing, when_ms: Some(side as u64), memory_ms: 9 };
            let done = firing.map(|firing| FiringDone::from(done(firing)));
            let state = Ok(LockState { done, ..LockState::default() });
            VoterView { voter: "v".into(), side: Some(side), state, quarantine: None }
        };
        let seen =
            LockView::new("a", LockKind::Once, sides.into_iter().zip(firings).map(voter).collect());
        (seen.done.map(|done| done.firing), seen.is_done_stored())
    };
    let [six, seven] = [6, 7].map(Some);
    assert_eq!(seen([None, None, seven, seven, seven, seven]), (seven, false));
    assert_eq!(seen([None, seven, seven, seven, six, seven]), (seven, true));
    assert_eq!(seen([seven, seven, seven, six, six, seven]), (seven, false));
    assert_eq!(seen([None; 6]), (None, true));
}

// Attempts that failed leave higher numbers on a minority; a voter that forgot has none.
#[test]
fn the_token_is_the_highest_that_a_majority_has_reached() {
    let token = |tokens: [Option<u64>; 5]| {
        let token = |token: Option<u64>| token.and_then(Token::new);
        let states = tokens.map(|it| Ok(LockState { token: token(it), ..LockState::default() }));
        view(LockKind::Mutex, states).token.map(u64::from)
    };
    assert_eq!(token([Some(10), Some(12), Some(10), Some(12), Some(10)]), Some(10));
    assert_eq!(token([Some(10), None, Some(12), None, Some(11)]), Some(10));
    assert_eq!(token([Some(10), None, None, None, Some(11)]), None);
}

#[test]
fn a_minority_or_silence_is_neither_held_nor_free() {
    let one = LockState { holders: vec![counted("a", 1)], ..LockState::default() };
    let seen = view(LockKind::Mutex, [Ok(one), Err(Cause::Unheard), Ok(LockState::default())]);
    assert_eq!((seen.holder(), seen.is_free), (None, false));
}

#[test]
fn whoever_has_the_same_permits_on_a_majority_holds_them_and_the_rest_is_free() {
    let list = |entries: &[(&str, u64)]| {
        let entry = |(id, ticket): &(&str, u64)| ListEntry {
            id: HoldId::parse(id),
            ticket: *ticket,
            left: MS(9),
        };
        entries.iter().map(entry).collect::<Vec<_>>()
    };
    let state = |slots: &[(&str, u64)], permits: u64| {
        let (lists, number) = (vec![list(slots), list(&[("w", 1)])], Token::new(permits));
        let seen = LockSeen { holder: None, lists, number, next: None };
        Ok(LockState::read(LockKind::Semaphore, seen))
    };
    let seen = view(
        LockKind::Semaphore,
        [
            state(&[("a", 0), ("b", 1), ("a", 2)], 5),
            state(&[("a", 0), ("a", 2), ("c", 3)], 4),
            state(&[("b", 1), ("a", 3)], 5),
        ],
    );
    let slots: Vec<_> =
        seen.holders.iter().map(|held| (held.hold.as_str(), held.slots.clone())).collect();
    assert_eq!(slots, [("a", vec![0, 2]), ("b", vec![1])]);
    assert_eq!((seen.permits, seen.free(), seen.waiting.len()), (Some(4), Some(1), 1));
    assert_eq!((seen.token, seen.all_holders()[0].slots.len()), (None, 2));
}

#[cfg(feature = "serde")]
mod serial {
    use serde_json::{json, to_value};

    use super::*;
    use crate::proto::{LeaderValue, Quarantine};

    #[test]
    fn what_is_seen_is_written_with_what_each_voter_says() {
        const NAMED: &str = "web-1.7@0123456789abcdef0123:1";
        const NOTED: &str = "web-1.7@0123456789abcdef0123:2=job%2042=";
        let holding = Holding { hold: HoldId::parse(NAMED), count: 2, left: Some(MS(1_500)) };
        let place =
            ListEntry { id: HoldId::parse(NOTED), ticket: 7, left: Duration::from_micros(2_999) };
        let (lists, number) = (vec![vec![place]], Token::new(7));
        let seen = LockSeen { holder: Some(holding), lists, number, next: None };
        let state = LockState::read(LockKind::Mutex, seen);
        let mut seen = view(LockKind::Mutex, [Ok(state.clone()), Ok(state), Err(Cause::Unheard)]);
        let quarantined = Quarantined { why: Quarantine::ClockMoved(MS(700)), left: MS(9_000) };
        seen.voters[2].quarantine = Some(quarantined);
        seen.voters[2].side = Some(Side::Old);
        let holders = json!([{
            "hold": NAMED, "client_name": "web-1.7", "kind": "mutex", "count": 2, "ttl_ms": 1_500,
        }]);
        let waiting = json!([{
            "place": NOTED, "client_name": "web-1.7", "note": "job 42", "kind": "mutex",
            "ticket": 7, "ttl_ms": 2,
        }]);
        let heard = json!({
            "voter": "v", "holders": holders, "waiting": waiting, "token": 7, "quarantine": null,
        });
        // Without `holders`: none would say that the vote is free.
        let unheard = json!({
            "voter": "v", "side": "old", "error": { "kind": "unheard" },
            "quarantine": { "why": "clock_moved", "by_ms": 700, "left_ms": 9_000 },
        });
        let whole = json!({
            "name": "a", "kind": "mutex", "is_free": false, "holders": holders, "waiting": waiting,
            "token": 7, "voters": [heard, heard, unheard],
        });
        assert_eq!(to_value(&seen).unwrap(), whole);

        let value = LeaderValue::new(b"10.0.0.1:80").unwrap();
        let leader = Leader::new(HoldId::parse("c:1"), Token::new(7).unwrap(), value);
        let slots = Holder { slots: vec![0, 2], ttl: None, ..held(HolderKind::Permit, "c:1", 1) };
        let written = json!({ "hold": "c:1", "token": 7, "value": "10.0.0.1:80" });
        assert_eq!(to_value(leader).unwrap(), written);
        let written = json!({
            "hold": "c:1", "client_name": null, "kind": "permit", "count": 1, "slots": [0, 2],
            "ttl_ms": null,
        });
        assert_eq!(to_value(slots).unwrap(), written);
    }

    #[test]
    fn ids_and_tokens_are_read_as_they_are_written_and_causes_have_their_kind() {
        use serde_json::from_value;

        use crate::proto::Owner;

        let owner = json!("9e107d9d-372b-4b68-8f2a-3542a9d6d1e5");
        assert_eq!(to_value(from_value::<Owner>(owner.clone()).unwrap()).unwrap(), owner);
        assert_eq!(to_value(from_value::<HoldId>(json!("c:1")).unwrap()).unwrap(), json!("c:1"));
        assert_eq!(to_value(from_value::<Token>(json!(7)).unwrap()).unwrap(), json!(7));
        let told = from_value::<Owner>(json!("seven")).unwrap_err().to_string();
        assert!(told.contains("\"seven\" is no owner"), "{told}");
        assert!(from_value::<Token>(json!(0)).unwrap_err().to_string().contains("0 is no token"));
        assert!(from_value::<HoldId>(json!("")).is_err());
        let within = MS(50);
        for (cause, json) in [
            (Cause::Broken("cut".into()), json!({ "kind": "broken", "detail": "cut" })),
            (Cause::TimedOut(MS(200)), json!({ "kind": "timed_out", "detail": 200 })),
            (
                Cause::Unacknowledged { acknowledged: 1, needed: 2, within },
                json!({
                    "kind": "unacknowledged",
                    "detail": { "acknowledged": 1, "needed": 2, "within_ms": 50 },
                }),
            ),
            (
                Cause::Quarantined(Quarantined { why: Quarantine::Young, left: MS(9) }),
                json!({ "kind": "quarantined", "detail": { "why": "young", "left_ms": 9 } }),
            ),
        ] {
            assert_eq!(to_value(cause).unwrap(), json);
        }
    }
}
