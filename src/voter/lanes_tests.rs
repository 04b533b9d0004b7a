use futures::FutureExt;
use proptest::prelude::*;

use super::*;
use crate::{
    keys::Word,
    proto::{Cause, HoldId},
    scripts::{Script, mutex},
    voter::{Replies, Request, Requests},
};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn at(ms: u64) -> Moment {
    Moment::BEGINNING + MS(ms)
}

fn request(script: &'static Script, hold: &str, count: &str) -> Queued {
    let keys = script.keys.iter().map(|_| Word::from("lock"));
    let blank = script.args.iter().skip(2).map(|_| Word::NOTHING);
    let args = [hold.into(), count.into()].into_iter().chain(blank);
    let requests = Requests::One(Request::new(keys, args, Some(&HoldId::parse(hold))));
    let call = Call { script, shared: [].into(), requests, deadline: MS(200), longest: MS(200) };
    Queued { call, owed_until: None, asker: None, others: Vec::new(), shard: None, asked: at(0) }
}

fn acquire(hold: &str) -> Queued {
    request(&mutex::ACQUIRE, hold, "1")
}

fn release(hold: &str) -> Queued {
    request(&mutex::RELEASE, hold, "0")
}

fn holds_of(departure: &Departure) -> Vec<&str> {
    departure.requests.iter().filter_map(|request| request.call.args().next()).collect()
}

fn holds(departure: Option<Departure>) -> Vec<String> {
    let departure = departure.as_ref();
    departure.map(holds_of).into_iter().flatten().map(str::to_owned).collect()
}

/// A voter to which two such calls are on their way, so that the next ones of their lane wait.
fn busy_with(request: impl Fn(&str) -> Queued) -> Lanes {
    let mut lanes = Lanes::new(32);
    for hold in ["8", "9"] {
        lanes.push(request(hold), 0);
        lanes.take(at(0)).unwrap();
    }
    lanes
}

/// All that may leave now; the holds of each call.
fn leave(lanes: &mut Lanes) -> Vec<String> {
    let left = std::iter::from_fn(|| lanes.take(at(0)));
    left.map(|departure| holds_of(&departure).join(" ")).collect()
}

#[test]
fn a_lone_request_leaves_at_once_and_what_gathers_leaves_together() {
    let mut lanes = Lanes::new(32);
    lanes.push(acquire("a:1"), 0);
    let first = lanes.take(at(0)).unwrap();
    assert_eq!((holds_of(&first), first.alone), (vec!["a:1"], true));
    lanes.push(acquire("a:2"), 0);
    let second = lanes.take(at(0)).unwrap();
    assert_eq!((holds_of(&second), second.alone), (vec!["a:2"], false), "two are on their way");
    lanes.push(acquire("a:3"), 0);
    lanes.push(acquire("a:4"), 0);
    assert!(lanes.take(at(0)).is_none());
    lanes.ended(first.lane);
    let both = lanes.take(at(0)).unwrap();
    assert_eq!((holds_of(&both), both.alone), (vec!["a:3", "a:4"], false));
    assert!(lanes.are_empty());
    for call in [second, both] {
        lanes.ended(call.lane);
    }
    lanes.push(acquire("a:5"), 0);
    assert!(lanes.take(at(0)).unwrap().alone);
}

#[test]
fn a_voter_that_is_far_or_silent_gets_a_call_each_millisecond() {
    let mut lanes = busy_with(acquire);
    for number in 1..50 {
        lanes.push(acquire(&number.to_string()), 0);
        assert!(lanes.take(at(number - 1)).is_none());
        assert_eq!(lanes.due(), Some(at(number)));
        assert_eq!(holds(lanes.take(at(number))), [number.to_string()]);
    }
}

#[test]
fn the_requests_of_a_call_are_about_few_slots() {
    let mut lanes = busy_with(acquire);
    for (hold, slots) in [("1", 256), ("2", 200), ("3", 56), ("4", 1), ("5", 256), ("6", 255)] {
        let mut request = acquire(hold);
        request.call = request.call.weighing(slots);
        lanes.push(request, 0);
    }
    let left: Vec<_> = (1..=5).map(|ms| holds(lanes.take(at(ms)))).collect();
    assert_eq!(left, [vec!["1"], vec!["2", "3"], vec!["4"], vec!["5"], vec!["6"]]);
    assert!(lanes.are_empty());
}

#[test]
fn what_follows_a_release_of_its_lock_or_a_request_of_its_hold_leaves_behind_it() {
    // The end of a hold has more time than the undo of an attempt, and so another lane.
    let late = |hold: &str| {
        let mut request = release(hold);
        request.call.deadline = MS(3000);
        request
    };
    for (mut lanes, asked, left) in [
        (busy_with(release), vec![release("1"), release("2"), acquire("3")], vec!["1 2", "3"]),
        (busy_with(late), vec![late("1"), release("2"), acquire("3")], vec!["1", "2", "3"]),
        (
            busy_with(acquire),
            vec![acquire("1"), acquire("2"), release("3"), release("2")],
            vec!["1 2", "3 2"],
        ),
        // One place in a queue is one hold.
        (busy_with(acquire), vec![acquire("c:1.1"), release("c:1.2")], vec!["c:1.1", "c:1.2"]),
    ] {
        asked.into_iter().for_each(|request| lanes.push(request, 0));
        assert_eq!(leave(&mut lanes), left);
        assert!(lanes.releases.is_empty());
    }
}

/// Otherwise each of many who read one lock at once would have a call of its own.
#[test]
fn who_reads_waits_for_a_release_by_a_writer_and_for_none_by_another_reader() {
    // The holds behind the id of a client.
    let id = |hold: &str| format!("00000000-0000-4000-8000-000000000000:{hold}");
    for (released, asks, left) in [
        // The releases gather for a millisecond.
        (["r1", "r2"], "r3", vec!["r3"]),
        (["1", "r2"], "r3", vec!["1 r2", "r3"]),
        (["r1", "r2"], "3", vec!["r1 r2", "3"]),
    ] {
        let mut lanes = busy_with(release);
        released.into_iter().for_each(|hold| lanes.push(release(&id(hold)), 0));
        lanes.push(acquire(&id(asks)), 0);
        let calls = leave(&mut lanes).into_iter();
        let calls: Vec<_> = calls.map(|holds| holds.replace(&id(""), "")).collect();
        assert_eq!(calls, left);
    }
}

#[test]
fn no_call_carries_more_than_it_may_and_where_that_is_one_none_waits() {
    for (most, left) in [(2, vec!["1 2", "3"]), (1, vec!["1", "2", "3"])] {
        let mut lanes = Lanes::new(most);
        ["1", "2", "3"].into_iter().for_each(|hold| lanes.push(acquire(hold), 0));
        assert_eq!(leave(&mut lanes), left);
    }
}

#[test]
fn scripts_parts_and_deadlines_do_not_mix() {
    let mut lanes = Lanes::new(32);
    lanes.push(acquire("1"), 0);
    lanes.push(acquire("2"), 7);
    let mut patient = acquire("3");
    patient.call.deadline = MS(500);
    lanes.push(patient, 0);
    lanes.push(release("4"), 0);
    assert_eq!(leave(&mut lanes), ["1", "2", "3", "4"]);
}

#[test]
fn what_is_asked_twice_before_it_has_left_leaves_once_and_answers_both() {
    let mut lanes = busy_with(acquire);
    let (mut first, mut second) = (acquire("1"), acquire("1"));
    let (mut one, mut two) = (Replies::new(1, 1), Replies::new(1, 1));
    first.asker = Some(one.expect(0));
    (second.asker, second.owed_until) = (Some(two.expect(0)), Some(at(9)));
    lanes.push(first, 0);
    lanes.push(second, 0);
    lanes.push(request(&mutex::ACQUIRE, "1", "2"), 0);
    let mut left = lanes.take(at(1)).unwrap().requests;
    assert_eq!(left.len(), 1, "another count is another request, and another call");
    let both = left.remove(0);
    assert_eq!(both.owed_until, Some(at(9)));
    both.answer(Err(Cause::Unheard));
    for replies in [&mut one, &mut two] {
        let (_, outcome) = replies.next().now_or_never().expect("both are answered");
        assert!(matches!(outcome, Err(Cause::Unheard)), "{outcome:?}");
    }
}

#[test]
fn of_lanes_that_are_no_more_nothing_is_kept_but_the_room_of_some() {
    let mut lanes = Lanes::new(32);
    (0..100).for_each(|part| lanes.push(acquire(&part.to_string()), part));
    let under_way: Vec<_> = std::iter::from_fn(|| lanes.take(at(0))).collect();
    assert_eq!(under_way.len(), 100);
    under_way.iter().for_each(|departure| lanes.ended(departure.lane));
    assert!(lanes.by_group.is_empty() && lanes.latest.is_empty() && lanes.turns.is_empty());
    assert!(lanes.all.iter().all(|lane| lane.waiting.capacity() == 0));
    assert_eq!((lanes.spare.len(), lanes.unused.len()), (SPARE, 100));
    lanes.push(acquire("0"), 0);
    let left = (lanes.spare.len(), lanes.unused.len(), lanes.all.len());
    assert_eq!(left, (SPARE - 1, 99, 100), "the next one has the room and the number of one");
}

#[test]
fn a_lane_of_which_something_is_about_to_leave_keeps_its_number() {
    let mut lanes = Lanes::new(32);
    lanes.push(acquire("1"), 0);
    let first = lanes.take(at(0)).unwrap().lane;
    lanes.push(acquire("2"), 0);
    lanes.push(release("2"), 0);
    lanes.ended(first);
    lanes.push(acquire("3"), 7);
    let left: Vec<_> = std::iter::from_fn(|| lanes.take(at(0))).collect();
    assert_eq!(left.iter().flat_map(holds_of).collect::<Vec<_>>(), ["2", "2", "3"]);
    assert!(left[0].lane == first && left[2].lane != first, "{left:?}");
}

#[test]
fn what_a_crowd_needed_is_not_kept_though_others_come() {
    let mut lanes = Lanes::new(32);
    for number in 0..10_000 {
        lanes.push(release(&number.to_string()), 0);
    }
    let room = |lanes: &Lanes| {
        let tables = [lanes.latest.capacity(), lanes.releases.capacity()];
        tables.into_iter().max().max(Some(lanes.all[0].waiting.capacity())).unwrap()
    };
    assert!(room(&lanes) >= 10_000);
    let mut under_way = VecDeque::new();
    while let Some(departure) = lanes.take(at(0)).or_else(|| lanes.take(at(1))) {
        under_way.push_back(departure.lane);
        if under_way.len() > 1 {
            lanes.ended(under_way.pop_front().unwrap());
        }
    }
    assert!(room(&lanes) < 4_096, "{}", room(&lanes));
}

/// What happens to a voter's lanes.
#[derive(Clone, Debug)]
enum Step {
    Ask { releases: bool, hold: u8, count: u8 },
    Take,
    End,
    Pass,
}

fn step() -> impl Strategy<Value = Step> {
    let ask = (any::<bool>(), 0..4_u8, 0..2_u8);
    prop_oneof![
        4 => ask.prop_map(|(releases, hold, count)| Step::Ask { releases, hold, count }),
        2 => Just(Step::Take),
        1 => Just(Step::End),
        1 => Just(Step::Pass),
    ]
}

proptest! {
    #[test]
    fn all_leave_and_those_of_a_hold_in_their_order(
        steps in prop::collection::vec(step(), 1..80), most in 1..5_usize,
    ) {
        let mut lanes = Lanes::new(most);
        let (mut now, mut under_way, mut asked, mut left) = (0, Vec::new(), Vec::new(), Vec::new());
        let mut take = |lanes: &mut Lanes, now, under_way: &mut Vec<LaneId>| {
            let Some(departure) = lanes.take(at(now)) else { return false };
            assert!(departure.requests.len() <= most);
            let parties: Vec<_> =
                departure.requests.iter().map(|it| it.call.party()).collect();
            let distinct: std::collections::HashSet<_> = parties.iter().collect();
            assert_eq!(distinct.len(), parties.len(), "a hold is twice in one call");
            let said = |request: &Queued| {
                let mut args = request.call.args().map(str::to_owned);
                let mut next = || args.next().expect("it has two");
                (next(), request.call.script.name, next())
            };
            left.extend(departure.requests.iter().map(said));
            under_way.push(departure.lane);
            true
        };
        for step in steps {
            match step {
                Step::Ask { releases, hold, count } => {
                    let script = if releases { &mutex::RELEASE } else { &mutex::ACQUIRE };
                    let (hold, count) = (hold.to_string(), count.to_string());
                    lanes.push(request(script, &hold, &count), 0);
                    asked.push((hold, script.name, count));
                }
                Step::Take => drop(take(&mut lanes, now, &mut under_way)),
                Step::End => under_way.pop().into_iter().for_each(|lane| lanes.ended(lane)),
                Step::Pass => now += 1,
            }
        }
        while !lanes.are_empty() {
            while take(&mut lanes, now, &mut under_way) {}
            under_way.drain(..).for_each(|lane| lanes.ended(lane));
            now += 1;
        }
        for hold in 0..4_u8 {
            let of = |all: &[(String, &'static str, String)]| {
                let mut of: Vec<_> =
                    all.iter().filter(|said| said.0 == hold.to_string()).cloned().collect();
                // What is said twice in a row may leave once.
                of.dedup();
                of
            };
            prop_assert_eq!(of(&asked), of(&left));
        }
    }
}
