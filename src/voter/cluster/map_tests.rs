//! Every way in which slots change hands.

use std::{collections::BTreeSet, ops::Range};

use proptest::prelude::*;

use super::*;
use crate::{keys::Prefix, voter::seat::slot_of};

fn server(id: &str, is_primary: bool, slots: &[RangeInclusive<u16>]) -> ClusterServer {
    let endpoint = (id.to_owned(), 7_000);
    let (id, slots) = (id.to_owned(), slots.to_vec());
    ClusterServer { id, endpoint, alias: None, is_primary, is_doubted: false, epoch: 0, slots }
}

/// Three servers with a third each, and a replica.
fn thirds() -> [ClusterServer; 4] {
    [
        server("a", true, &[0..=5_460]),
        server("b", true, &[5_461..=10_922]),
        server("c", true, &[10_923..=16_383]),
        server("b2", false, &[]),
    ]
}

/// What is known once these were told.
fn map_of(servers: &[ClusterServer]) -> Map {
    Map::default().next(servers).0
}

fn leader(map: &Map, slot: u16) -> &str {
    &map.route(slot).unwrap().1.0
}

#[test]
fn the_answer_of_a_server_is_read() {
    let text = "\
        07c3 127.0.0.1:30004@31004,host4 slave,fail? e7d1 0 1426238317239 4 connected\n\
        67ed :30002@31002 myself,master - 0 0 2 connected 5461-10922 15000 [93-<-292f]\n\
        292f 127.0.0.1:30003@31003 master,fail - 0 1426238318243 3 connected 10923-14999\n\
        6ec2 :0@0 master,noaddr - 0 0 0 disconnected\n";
    let servers = read(text, "10.0.0.9", false).unwrap();
    let at = |host: &str, port| (host.to_owned(), port);
    let seen = |it: &ClusterServer| (it.id.clone(), it.is_primary, it.is_doubted, it.epoch);
    let seen: Vec<_> = servers.iter().map(seen).collect();
    let expected = [("07c3", false, true, 4), ("67ed", true, false, 2), ("292f", false, true, 3)];
    assert_eq!(
        seen,
        expected.map(|(id, primary, doubt, epoch)| (id.into(), primary, doubt, epoch))
    );
    assert_eq!(servers[1].slots, [5_461..=10_922, 15_000..=15_000]);
    assert_eq!(servers[1].endpoint, at("10.0.0.9", 30_002));
    assert!(read("ERR", "", false).is_err());
    assert_eq!(servers[0].alias.as_deref(), Some("host4"));
    let named = read(text, "10.0.0.9", true).unwrap();
    assert_eq!(named[0].endpoint, at("host4", 30_004));
    let map = map_of(&[ClusterServer { is_primary: true, ..named[0].clone() }]);
    let places = [("127.0.0.1", 30_004), ("host4", 30_004), ("host4", 30_005)];
    let led = places.map(|(host, port)| map.led_by(&at(host, port)));
    assert_eq!(led, [Some(0), Some(0), None]);
}

#[test]
fn who_does_not_reach_a_leader_or_knows_of_none_is_not_believed_alone() {
    let map = map_of(&thirds());
    assert!(map.believes(&thirds()));
    let doubts = |at: usize| {
        let mut servers = thirds();
        servers[at].is_doubted = true;
        servers
    };
    assert!(!map.believes(&doubts(1)));
    assert!(map.believes(&doubts(3)), "a replica leads nobody");
    assert!(!map.believes(&[server("a", true, &[])]));
    let mut later = thirds();
    later[1].epoch = 7;
    let (map, _) = map.next(&later);
    assert!(map.believes(&later) && !map.believes(&thirds()), "what was");
}

/// Before and after the second server failed over to its replica.
fn failed_over() -> [[ClusterServer; 4]; 2] {
    let mut before = thirds();
    (before[0].epoch, before[1].epoch, before[2].epoch) = (1, 2, 3);
    let mut after = before.clone();
    after[3].slots = std::mem::take(&mut after[1].slots);
    (after[1].is_primary, after[3].is_primary, after[3].epoch) = (false, true, 4);
    [before, after]
}

// A primary that is cut off from the others does not know that another has its slots.
#[test]
fn what_a_server_tells_that_is_cut_off_takes_no_slot_back_until_its_epoch_is_higher() {
    let [before, after] = failed_over();
    let map = map_of(&before);
    assert!(!map.is_newer_than(&before) && !map.is_newer_than(&after));
    let (map, moves) = map.next(&after);
    assert_eq!((leader(&map, 6_000), moves.len()), ("b2", 1));
    assert!(map.is_newer_than(&before) && !map.is_newer_than(&after));
    let (told, moves) = map.next(&before);
    assert_eq!((leader(&told, 6_000), moves), ("b2", vec![]));
    assert_eq!(told.next(&after), (map.clone(), vec![]));
    // What it tells of other slots counts: the first has one more of the third's.
    let mut mixed = before.clone();
    (mixed[0].epoch, mixed[0].slots) = (5, vec![0..=5_460, 16_383..=16_383]);
    mixed[2].slots = vec![10_923..=16_382];
    let (told, moves) = map.next(&mixed);
    assert_eq!([6_000, 16_383].map(|slot| leader(&told, slot)), ["b2", "a"]);
    assert_eq!(moves, [Move { from: 2, to: 0, lost: false }]);
    // A failover back.
    let mut back = before;
    back[1].epoch = 5;
    let (back, moves) = map.next(&back);
    assert_eq!((leader(&back, 6_000), moves.len()), ("b", 1));
}

// Its servers are all others, and count their epochs from the beginning.
#[test]
fn a_cluster_that_was_made_anew_counts_whatever_its_epochs_are() {
    let [before, _] = failed_over();
    let map = map_of(&before);
    let anew = [server("new", true, &[0..=16_383])];
    assert!(!map.is_newer_than(&anew));
    assert_eq!(leader(&map.next(&anew).0, 6_000), "new");
}

/// Whether the second server and its replica are primaries, and which of the two has the slots.
fn with(b: bool, b2: bool, has_slots: &str) -> [ClusterServer; 4] {
    let [a, mut old, c, mut new] = thirds();
    (old.is_primary, new.is_primary) = (b, b2);
    if has_slots == "b2" {
        new.slots = std::mem::take(&mut old.slots);
    }
    [old, new, a, c]
}

// A primary that was replaced is one without slots for a moment, as it tells before it has heard of
// the new one; then a replica, then back.
#[test]
fn a_failover_leaves_the_shard_and_changes_its_server_and_so_does_one_back() {
    let (mut map, moves) = Map::default().next(&thirds());
    assert_eq!((leader(&map, 6_000), moves), ("b", vec![]));
    for (b, b2, serves, is_news) in [
        (true, true, "b2", true),
        (true, true, "b2", false),
        (false, true, "b2", false),
        (true, true, "b", true),
        (true, false, "b", false),
        (false, true, "b2", true),
    ] {
        let mut servers = with(b, b2, serves);
        let in_order = map.next(&servers);
        servers.swap(0, 1);
        let (next, moves) = map.next(&servers);
        assert_eq!((&next, &moves), (&in_order.0, &in_order.1), "in whichever order");
        let taken = Move { from: 1, to: 1, lost: true };
        assert_eq!(moves, vec![taken; usize::from(is_news)]);
        assert_eq!((next.shard(6_000), leader(&next, 6_000)), (Some(1), serves));
        map = next;
    }
}

#[test]
fn slots_that_a_server_gives_away_bring_their_data_along() {
    let map = map_of(&thirds());
    let [mut a, b, c, _] = thirds();
    a.slots = vec![];
    let fresh = server("d", true, &[]);
    let (map, _) = map.next(&[thirds().to_vec(), vec![fresh.clone()]].concat());
    let fresh = ClusterServer { slots: vec![0..=5_459], ..fresh };
    let c_with_one = ClusterServer { slots: vec![10_923..=16_383, 5_460..=5_460], ..c };
    let (after, moves) = map.next(&[a, b, c_with_one, fresh]);
    assert_eq!((leader(&after, 5_459), leader(&after, 5_460)), ("d", "c"));
    let shards = [0, 5_460].map(|slot| after.shard(slot).unwrap());
    assert_eq!(shards, [3, 2]);
    let moved = |to| Move { from: 0, to, lost: false };
    assert_eq!(moves, [moved(2), moved(3)]);
}

#[test]
fn slots_of_a_server_that_is_gone_have_lost_their_data_where_another_takes_them() {
    let map = map_of(&thirds());
    let [a, b, c, _] = thirds();
    let b_too = ClusterServer { slots: vec![0..=10_922], ..b };
    let (after, moves) = map.next(&[ClusterServer { is_primary: false, ..a }, b_too, c]);
    assert_eq!((leader(&after, 0), moves), ("b", vec![Move { from: 0, to: 1, lost: true }]));
}

#[test]
fn slots_that_nobody_serves_for_a_while_come_back_as_their_shard() {
    let map = map_of(&thirds());
    let mut servers = thirds();
    servers[1].is_primary = false;
    let (gap, moves) = map.next(&servers);
    assert_eq!((leader(&gap, 6_000), moves), ("b", vec![]));
    servers[3].is_primary = true;
    servers[3].slots = std::mem::take(&mut servers[1].slots);
    let (after, moves) = gap.next(&servers);
    assert_eq!((leader(&after, 6_000), moves), ("b2", vec![Move { from: 1, to: 1, lost: true }]));
    assert_eq!(after.shard(6_000), map.shard(6_000));
}

#[test]
fn where_the_slots_of_a_dead_server_go_to_two_one_of_them_takes_its_place() {
    let map = map_of(&thirds());
    let [a, b, c, _] = thirds();
    let dead = ClusterServer { is_primary: false, ..b };
    let heirs = [server("d", true, &[5_461..=7_000]), server("e", true, &[7_001..=10_922])];
    let (after, moves) = map.next(&[&[a, dead, c][..], &heirs].concat());
    assert_eq!([5_461, 7_001].map(|slot| after.shard(slot)), [Some(1), Some(3)]);
    let lost = |to| Move { from: 1, to, lost: true };
    assert_eq!(moves, [lost(1), lost(3)]);
}

#[test]
fn an_address_is_its_latest_owners() {
    let map = map_of(&thirds());
    let [mut a, b, c, _] = thirds();
    a.slots = vec![0..=10_922];
    let (map, _) = map.next(&[a.clone(), c.clone()]);
    a.slots = vec![0..=5_460];
    let other = ClusterServer { id: "other".to_owned(), ..b.clone() };
    let (map, _) = map.next(&[a, c, other]);
    assert_eq!(map.led_by(&b.endpoint), map.shard(6_000));
}

#[test]
fn voters_on_one_server_are_found() {
    let [seat, last] = [0, 2].map(|voter| Seat::new(voter, 3));
    let map = map_of(&thirds());
    assert_eq!((map.shared(seat), map.servers(seat)[0].0, map.servers(last)[0].0), (None, 0, 2));
    let two = [server("a", true, &[0..=8_191]), server("b", true, &[8_192..=16_383])];
    let map = map_of(&two);
    let (other, slot) = map.shared(seat).unwrap();
    assert_eq!((other, leader(&map, slot)), (1, "a"));
    assert_eq!(map.twin(seat, slot, 0..0), None);
    assert!(map.is_cramped(seat) && map.is_cramped(last));
    // One slot that is away makes no such cluster.
    let [mut a, mut b, c, _] = thirds();
    let stray = seat.slots().next().unwrap();
    (a.slots, b.slots) =
        (vec![0..=stray - 1, stray + 1..=5_460], vec![stray..=stray, 5_461..=10_922]);
    let map = map_of(&[a, b, c]);
    assert_eq!((map.shared(seat), map.is_cramped(seat)), (Some((1, stray)), false));
    let whole = stray + 1;
    assert_eq!(map.apart(seat), Some(whole));
    assert_eq!(map.apart(last), Some(seat.sibling(whole, 2)));
}

/// The slots of a server of so many, as `redis-cli --cluster create` deals them out.
fn part(at: u32, servers: u32) -> Range<u16> {
    let start = |at: u32| (2 * at * u32::from(SLOTS) + servers) / (2 * servers);
    let start = |at| u16::try_from(start(at)).expect("a slot");
    start(at)..start(at + 1)
}

fn slots() -> impl Strategy<Value = BTreeSet<u16>> {
    proptest::collection::btree_set(0..SLOTS, 1..200)
}

#[test]
fn every_slot_has_a_rank_of_its_own() {
    let ranks: BTreeSet<u32> = (0..SLOTS).map(rank).collect();
    assert_eq!(ranks.len(), usize::from(SLOTS));
}

#[test]
fn it_stays_when_a_sixteenth_is_taken_from_either_end() {
    for servers in 1..=12 {
        for part in (0..servers).map(|at| part(at, servers)) {
            let taken = u16::try_from(part.len() / 16).expect("few");
            let left = part.start + taken..part.end - taken;
            assert_eq!(choose(part), choose(left), "one of {servers}");
        }
    }
}

#[test]
fn a_shard_without_slots_has_none() {
    let map = map_of(&[server("a", true, &[]), server("b", true, &[3..=3])]);
    assert_eq!(map.fingerprint(0, "quorate:{%voter}"), None);
    assert!(map.fingerprint(1, "quorate:{%voter}").is_some());
}

proptest! {
    #[test]
    fn the_slot_of_a_mark_is_one_of_the_servers(own in slots()) {
        let ranges: Vec<_> = own.iter().map(|slot| *slot..=*slot).collect();
        let others = (0..SLOTS).filter(|slot| !own.contains(slot));
        let others: Vec<_> = others.map(|slot| slot..=slot).collect();
        let servers = [server("a", true, &others), server("b", true, &ranges)];
        let fingerprint = map_of(&servers).fingerprint(1, &Prefix::default().fingerprint());
        let fingerprint = fingerprint.expect("it has slots");
        prop_assert!(own.contains(&slot_of(&fingerprint)), "{}", fingerprint);
    }

    #[test]
    fn it_stays_until_it_is_taken_itself(mut own in slots(), other in 0..SLOTS) {
        let before = choose(own.iter().copied());
        if own.remove(&other) {
            let after = choose(own.iter().copied());
            prop_assert!(before == Some(other) || before == after);
        } else {
            own.insert(other);
            let after = choose(own.iter().copied());
            prop_assert!(after == before || after == Some(other));
        }
    }
}

proptest! {
    #[test]
    fn whatever_cluster_nodes_says_is_read_or_refused(
        lines in proptest::collection::vec(
            "[a-c]{1,2} \\PC{0,3}:[0-9]{0,6}(@[0-9]{0,5})?(,\\PC{0,4})? (master|slave|fail\\?|,){0,3} \
             - 0 0 [0-9]{0,21} x( \\[?[0-9]{0,6}-?[0-9]{0,6}){0,4}|\\PC{0,40}",
            0..6,
        ),
        by_name: bool,
    ) {
        let text = lines.join("\n");
        if let Ok(servers) = read(&text, "10.0.0.1", by_name) {
            let (map, _) = map_of(&servers).next(&servers);
            let all = (0..SLOTS).filter_map(|slot| map.shard(slot));
            prop_assert!(all.max().is_none_or(|shard| shard < map.leaders.len()));
        }
    }
}
