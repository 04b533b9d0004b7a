//! The queue alone: places that all want to write, as those of a fair mutex.

use crate::{
    change::{CHANGES, Sets},
    check::{holds, large},
    queue_model::{
        NONE, WRITE as W,
        properties::all_enter,
        rest::wins_at_once,
        rules::{Bounds, Budget, Rules, Start},
        state::State,
        waiter::Loss,
    },
};

/// Ada and ben, with one place each.
pub(super) const TWO: Bounds = Bounds::of([W, W, None]).bids([2; 4]);
const THREE: Bounds = Bounds::of([W, W, W]).bids([2; 4]);
/// Ada stands already when ben asks.
pub(super) const BEHIND_ADA: Bounds = TWO.from(Start::Queued(0));
/// Of two with the same ticket ada is the first, so here that is not who came first.
pub(super) const BEHIND_BEN: Bounds = TWO.from(Start::Queued(1));

#[test]
fn two_places_win_in_their_order() {
    holds("two places", Rules::kept(TWO), 175_020);
    large("two places, one more bid", Rules::kept(TWO.bids([3; 4])), 500_000);
    let slow = TWO.with(Budget { leaves: 1, timeouts: 1, ..NONE });
    large("answers are late, one gives up", Rules::kept(slow), 1_000_000);
}

#[test]
fn two_places_of_one_client_win_in_their_order() {
    let behind = THREE.clients([1, 2, 0]).from(Start::Queued(0));
    holds("two of one client", Rules::kept(behind.bids([1; 4])), 118_383);
    let more = behind.bids([2, 1, 1, 1]);
    large("two of one client behind another", Rules::kept(more), 1_000_000);
    let free = THREE.clients([2, 1, 0]).from(Start::Free);
    large("two of one client, a free lock", Rules::kept(free), 100_000);
    let four = Bounds { users: [W; 4], tries: [false, true, false, true], ..BEHIND_ADA };
    let four = four.clients([2, 2, 0]).bids([1; 4]);
    large("two of both, a lock and a try each", Rules::kept(four), 200_000);
}

#[test]
fn three_clients_win_in_their_order() {
    let behind = THREE.from(Start::Queued(0));
    let tries = Bounds { tries: [false, false, true, false], ..behind };
    holds("a try behind two", Rules::kept(tries.bids([1; 4])), 22_394);
    large("a try behind two that win", Rules::kept(tries.bids([2, 1, 1, 1])), 400_000);
    large("three clients, a free lock", Rules::kept(THREE.from(Start::Free)), 1_000_000);
    large("three clients", Rules::kept(behind.bids([2, 1, 1, 1])), 1_000_000);
}

#[test]
fn order_is_kept_while_connections_break() {
    let cuts = Budget { cuts: 1, ..NONE };
    holds("a connection breaks", Rules::kept(BEHIND_ADA.bids([1; 4]).with(cuts)), 9_324);
    large("a connection breaks, two places", Rules::kept(TWO.with(cuts)), 2_868_862);
}

#[test]
fn order_is_kept_while_answers_are_late_and_places_are_given_up() {
    let late = BEHIND_BEN.with(Budget { timeouts: 1, ..NONE });
    holds("an answer is late", Rules::kept(late), 88_779);
    let leaves = BEHIND_ADA.with(Budget { leaves: 1, ..NONE });
    holds("a place is given up", Rules::kept(leaves), 131_882);
}

#[test]
fn the_entries_of_a_client_that_died_block_nobody_for_good() {
    let dies = Budget { deaths: 1, ..NONE };
    holds("a client dies", Rules::kept(BEHIND_ADA.bids([1; 4]).with(dies)), 31_187);
    large("a client dies, two places", Rules::kept(TWO.with(dies)), 1_000_000);
}

#[test]
fn order_is_kept_while_voters_restart_and_forget() {
    let restarts = BEHIND_ADA.with(Budget { restarts: 1, ..NONE });
    holds("a voter restarts", Rules::kept(restarts), 86_770);
    let forgets = BEHIND_BEN.with(Budget { amnesias: 1, ..NONE });
    holds("a voter forgets", Rules::kept(forgets), 210_289);
    let both = TWO.with(Budget { amnesias: 1, timeouts: 1, ..NONE });
    large("a voter forgets, an answer is late", Rules::kept(both), 1_000_000);
}

#[test]
fn order_is_kept_while_an_entry_lapses() {
    let lapses = Budget { lapses: 1, ..NONE };
    holds("an entry lapses", Rules::kept(BEHIND_BEN.bids([1; 4]).with(lapses)), 10_267);
    large("an entry lapses, two places", Rules::kept(TWO.with(lapses)), 1_139_515);
}

/// Ada's ticket is the lowest. Ben heard his own from 1 and 2, and cleo hers from 1 and 3, so both
/// rest; but each has a lower one on the voter that was not heard, and is before ada there.
#[test]
fn the_first_of_three_may_need_the_bids_of_the_others() {
    let rules = Rules::kept(THREE);
    let mut state = State::first(&rules);
    (0..3).for_each(|place| state.call(place, &rules));
    for (voter, order) in [[0, 1, 2], [2, 1, 0], [1, 0, 2]].into_iter().enumerate() {
        for client in order {
            state.arrive(client, voter, &rules);
        }
    }
    for (place, heard) in [(0, 0b101), (0, 0b111), (1, 0b011), (2, 0b101)] {
        state.lose(place, Loss { heard, undo_last: false }, &rules);
        state.deliver(None, &rules);
    }
    // The first ticket is 2.
    assert_eq!([0, 1, 2].map(|place| state.places[place].ticket), [3, 3, 4]);
    assert!(!wins_at_once(&state, &rules));
    assert!(all_enter(&state, &rules));
}

/// Two that are in one step of a change, or in two that follow each other.
const BESIDE: [[Sets; 3]; 5] = [
    [Sets::Old, Sets::Joint, Sets::Joint],
    [Sets::Joint, Sets::Old, Sets::Joint],
    [Sets::Joint, Sets::Joint, Sets::Joint],
    [Sets::Joint, Sets::New, Sets::Joint],
    [Sets::New, Sets::Joint, Sets::Joint],
];

#[test]
fn order_is_kept_while_the_voters_are_changed() {
    let counts = [
        [456, 456, 16_932, 12_715, 12_754],
        [12_754, 12_715, 16_932, 456, 456],
        [397, 397, 227_184, 5_475, 5_868],
        [11_265, 10_487, 443_831, 10_487, 11_265],
    ];
    for (change, counts) in CHANGES.into_iter().zip(counts) {
        for (sets, at_least) in BESIDE.into_iter().zip(counts) {
            let two = TWO.changing(change, sets);
            let free = two.from(Start::Free);
            holds("changed, a free lock", Rules::kept(free), at_least);
            large("the voters are changed", Rules::kept(two.bids([1; 4])), 100);
            let late = free.bids([1; 4]).with(Budget { timeouts: 1, ..NONE });
            large("changed, an answer is late", Rules::kept(late), 100);
            let leaves = free.with(Budget { leaves: 1, ..NONE });
            large("changed, one gives up", Rules::kept(leaves), 100);
        }
    }
}
