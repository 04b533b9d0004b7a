use proptest::prelude::*;

use super::*;
use crate::{
    keys::Word,
    proto::{HoldId, at},
    scripts::{Script, mutex},
    voter::Request,
};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn request(script: &'static Script, hold: &str, count: &str) -> Queued {
    let keys = script.keys.iter().map(|_| Word::from("lock"));
    let blank = script.args.iter().skip(2).map(|_| Word::NOTHING);
    let args = [hold.into(), count.into()].into_iter().chain(blank);
    let requests = [Request::new(keys, args, Some(&HoldId::parse(hold)))].into();
    let call = Call { script, shared: [].into(), requests, deadline: MS(200), longest: MS(200) };
    Queued { call, owed_until: None, asker: None, shard: None, asked: at(0) }
}

fn acquire(hold: &str) -> Queued {
    request(&mutex::ACQUIRE, hold, "1")
}

fn release(hold: &str) -> Queued {
    request(&mutex::RELEASE, hold, "0")
}

/// Two calls are on their way, so that the next requests wait.
fn busy(request: fn(&str) -> Queued) -> Lanes {
    let mut lanes = Lanes::new(32);
    for hold in ["8", "9"] {
        lanes.push(request(hold), 0);
        lanes.take(at(0)).unwrap();
    }
    lanes
}

/// The script, and the holds.
fn words(departure: &Departure) -> (&'static str, Vec<&str>) {
    let holds = departure.requests.iter().filter_map(|request| request.call.args().next());
    (departure.requests[0].call.script.name, holds.collect())
}

fn holds(departure: Option<Departure>) -> Vec<String> {
    let requests = departure.into_iter().flat_map(|departure| departure.requests);
    requests.filter_map(|request| Some(request.call.args().next()?.to_owned())).collect()
}

#[test]
fn a_lone_request_leaves_at_once_and_what_gathers_leaves_together() {
    let mut lanes = Lanes::new(32);
    lanes.push(acquire("a:1"), 0);
    let first = lanes.take(at(0)).unwrap();
    assert_eq!((words(&first).1, first.alone), (vec!["a:1"], true));
    lanes.push(acquire("a:2"), 0);
    let second = lanes.take(at(0)).unwrap();
    assert_eq!((words(&second).1, second.alone), (vec!["a:2"], false), "two are on their way");
    lanes.push(acquire("a:3"), 0);
    lanes.push(acquire("a:4"), 0);
    assert!(lanes.take(at(0)).is_none());
    lanes.end_call(first.lane);
    let both = lanes.take(at(0)).unwrap();
    assert_eq!((words(&both).1, both.alone), (vec!["a:3", "a:4"], false));
    assert!(lanes.are_empty());
    for call in [second, both] {
        lanes.end_call(call.lane);
    }
    lanes.push(acquire("a:5"), 0);
    assert!(lanes.take(at(0)).unwrap().alone);
}

#[test]
fn a_voter_that_is_far_or_silent_gets_a_call_each_millisecond() {
    let mut lanes = Lanes::new(32);
    for number in 0..50 {
        lanes.push(acquire(&number.to_string()), 0);
        let now = at(number);
        assert_eq!(holds(lanes.take(now)), [number.to_string()]);
        if number > 0 {
            lanes.push(acquire("next"), 0);
            assert!(lanes.take(now).is_none());
            assert_eq!(lanes.due(), Some(now + PACE));
            let first = lanes.turns[0];
            lanes.hurry(first);
            lanes.urgent.clear();
        }
    }
}

#[test]
fn the_requests_of_a_call_are_about_few_slots() {
    let mut lanes = busy(acquire);
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
fn no_request_for_a_lock_overtakes_a_release_of_it() {
    let mut lanes = busy(release);
    lanes.push(release("1"), 0);
    lanes.push(release("2"), 0);
    lanes.push(acquire("3"), 0);
    assert_eq!(holds(lanes.take(at(0))), ["1", "2"]);
    assert_eq!(holds(lanes.take(at(0))), ["3"]);
    assert!(lanes.latest.is_empty());
}

/// The end of a hold has more time than the undo of an attempt, and so another lane.
#[test]
fn releases_of_one_lock_leave_in_their_order_though_they_have_different_deadlines() {
    let mut lanes = Lanes::new(32);
    let late = |hold| {
        let mut request = release(hold);
        request.call.deadline = MS(3000);
        request
    };
    for hold in ["8", "9"] {
        lanes.push(late(hold), 0);
        lanes.take(at(0)).unwrap();
    }
    lanes.push(late("1"), 0);
    lanes.push(release("2"), 0);
    lanes.push(acquire("3"), 0);
    let left: Vec<_> = std::iter::from_fn(|| lanes.take(at(0))).collect();
    let left: Vec<_> = left.iter().map(|departure| words(departure).1[0]).collect();
    assert_eq!(left, ["1", "2", "3"]);
    assert!(lanes.latest.is_empty());
}

/// Otherwise each of many who read one lock at once would have a call of its own.
#[test]
fn who_reads_waits_for_a_release_by_a_writer_and_for_none_by_another_reader() {
    // The holds behind the id of a client.
    let id = |hold: &str| format!("00000000-0000-4000-8000-000000000000:{hold}");
    let leave = |released: [&str; 2], asks: &str| {
        let mut lanes = busy(release);
        for hold in released {
            lanes.push(release(&id(hold)), 0);
        }
        lanes.push(acquire(&id(asks)), 0);
        let left: Vec<_> = std::iter::from_fn(|| lanes.take(at(0))).collect();
        left.iter().map(|departure| words(departure).1.join(" ")).collect::<Vec<_>>()
    };
    let together = |first, second| format!("{} {}", id(first), id(second));
    assert_eq!(leave(["r1", "r2"], "r3"), [id("r3")], "the releases gather for a millisecond");
    assert_eq!(leave(["1", "r2"], "r3"), [together("1", "r2"), id("r3")]);
    assert_eq!(leave(["r1", "r2"], "3"), [together("r1", "r2"), id("3")]);
}

#[test]
fn no_call_carries_more_than_it_may_and_where_that_is_one_none_waits() {
    let mut lanes = Lanes::new(2);
    for hold in ["1", "2", "3"] {
        lanes.push(acquire(hold), 0);
    }
    assert_eq!(holds(lanes.take(at(0))), ["1", "2"]);
    assert_eq!(holds(lanes.take(at(0))), ["3"]);
    let mut alone = Lanes::new(1);
    for hold in ["1", "2", "3"] {
        alone.push(acquire(hold), 0);
    }
    for hold in ["1", "2", "3"] {
        assert_eq!(holds(alone.take(at(0))), [hold]);
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
    for hold in ["1", "2", "3", "4"] {
        assert_eq!(holds(lanes.take(at(0))), [hold]);
    }
}

#[test]
fn one_place_in_a_queue_is_one_hold() {
    let mut lanes = busy(acquire);
    lanes.push(acquire("c:1.1"), 0);
    lanes.push(release("c:1.2"), 0);
    assert_eq!(holds(lanes.take(at(0))), ["c:1.1"]);
    assert_eq!(holds(lanes.take(at(0))), ["c:1.2"]);
}

/// As many lanes have been used as are kept.
fn used_lanes() -> Lanes {
    let mut lanes = Lanes::new(32);
    for part in 0..FEW {
        lanes.push(acquire(&part.to_string()), part.try_into().unwrap());
        let departure = lanes.take(at(0)).unwrap();
        lanes.end_call(departure.lane);
    }
    lanes
}

#[test]
fn little_is_remembered_of_what_has_come_to_something() {
    let mut lanes = used_lanes();
    for part in 0..100 {
        lanes.push(acquire(&part.to_string()), 2_000 + part);
        let departure = lanes.take(at(0)).unwrap();
        lanes.end_call(departure.lane);
    }
    assert!(lanes.latest.is_empty() && lanes.turns.is_empty());
    assert_eq!([lanes.all.len(), lanes.by_group.len()], [FEW; 2]);
}

#[test]
fn a_lane_of_which_something_is_about_to_leave_stays() {
    let mut lanes = used_lanes();
    lanes.push(acquire("1"), 2_000);
    let first = lanes.take(at(0)).unwrap().lane;
    lanes.push(acquire("2"), 2_000);
    lanes.push(release("2"), 2_000);
    lanes.end_call(first);
    lanes.push(acquire("3"), 2_007);
    let left: Vec<_> = std::iter::from_fn(|| lanes.take(at(0))).collect();
    let holds: Vec<_> = left.iter().map(|departure| words(departure).1[0]).collect();
    assert_eq!(holds, ["2", "2", "3"]);
    assert!(left[0].lane == first && left[2].lane != first);
}

#[test]
fn what_a_crowd_needed_is_not_kept_though_others_come() {
    let mut lanes = Lanes::new(32);
    for number in 0..10_000 {
        lanes.push(release(&number.to_string()), 0);
    }
    let room = |lanes: &Lanes| {
        let waiting = lanes.all.values().map(|lane| lane.waiting.capacity());
        waiting.max().max(Some(lanes.latest.capacity())).unwrap()
    };
    assert!(room(&lanes) >= 10_000);
    let mut under_way = VecDeque::new();
    while let Some(departure) = lanes.take(at(0)).or_else(|| lanes.take(at(1))) {
        under_way.push_back(departure.lane);
        if under_way.len() > 1 {
            lanes.end_call(under_way.pop_front().unwrap());
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
                departure.requests.iter().map(|it| it.call.requests[0].party).collect();
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
                Step::End => under_way.pop().into_iter().for_each(|lane| lanes.end_call(lane)),
                Step::Pass => now += 1,
            }
        }
        while !lanes.are_empty() {
            while take(&mut lanes, now, &mut under_way) {}
            under_way.drain(..).for_each(|lane| lanes.end_call(lane));
            now += 1;
        }
        for hold in 0..4_u8 {
            let of = |all: &[(String, &'static str, String)]| {
                all.iter().filter(|said| said.0 == hold.to_string()).cloned().collect::<Vec<_>>()
            };
            prop_assert_eq!(of(&asked), of(&left));
        }
    }
}
