//! The queue alone: places that all want to write, as those of a fair mutex.

use crate::{
    change::{Change, Sets},
    check::{finds, holds, is_large},
    queue_model::{
        landmarks::Landmark::{self, BidAtOnce, Ghost, Lowered, NotCounted, Won, WonInTurn},
        properties::{ALL_ENTER, EXCLUSION, HEAD_WINS, NOTHING_LEFT, ORDER, all_enter},
        rest::wins_at_once,
        rules::{Bounds, Broken, Budget, Order, Rules, Start, Wish},
        state::State,
        waiter::Loss,
    },
};

const W: Option<Wish> = Some(Wish::Write);
/// Ada and ben, with one place each.
const TWO: Bounds = Bounds::of([W, W, None]).bids([2; 4]);
const THREE: Bounds = Bounds::of([W, W, W]).bids([2; 4]);
/// Ada stands already when ben asks.
const BEHIND_ADA: Bounds = TWO.from(Start::Queued(0));
/// Of two with the same ticket ada is the first, so here that is not who came first.
const BEHIND_BEN: Bounds = TWO.from(Start::Queued(1));
const NONE: Budget = Budget::NONE;
const ALWAYS: [Landmark; 3] = [Won, WonInTurn, BidAtOnce];

#[test]
fn two_places_win_in_their_order() {
    holds("a free lock", Rules::kept(TWO.from(Start::Free)), 1_000, &[Won, BidAtOnce]);
    holds("two places", Rules::kept(TWO), 100_000, &[&ALWAYS[..], &[Lowered]].concat());
    if is_large() {
        holds("two places, one more bid", Rules::kept(TWO.bids([3; 4])), 500_000, &ALWAYS);
        let slow = TWO.with(Budget { leaves: 1, timeouts: 1, ..NONE });
        holds("answers are late, one gives up", Rules::kept(slow), 1_000_000, &ALWAYS);
    }
}

#[test]
fn two_places_of_one_client_win_in_their_order() {
    let behind = THREE.clients([1, 2, 0]).bids([1; 4]).from(Start::Queued(0));
    holds("two of one client", Rules::kept(behind), 100_000, &[BidAtOnce]);
    if is_large() {
        let behind = behind.bids([2, 1, 1, 1]);
        holds("two of one client behind another", Rules::kept(behind), 1_000_000, &ALWAYS);
        let free = THREE.clients([2, 1, 0]).from(Start::Free);
        holds("two of one client, a free lock", Rules::kept(free), 100_000, &ALWAYS);
        let four = Bounds { users: [W; 4], tries: [false, true, false, true], ..BEHIND_ADA };
        let four = Rules::kept(four.clients([2, 2, 0]).bids([1; 4]));
        holds("two of both, a lock and a try each", four, 200_000, &[BidAtOnce]);
    }
}

#[test]
fn three_clients_win_in_their_order() {
    let tries = [false, false, true, false];
    let behind = Bounds { tries, ..THREE.bids([1; 4]).from(Start::Queued(0)) };
    holds("a try behind two", Rules::kept(behind), 10_000, &[BidAtOnce]);
    if is_large() {
        let behind = behind.bids([2, 1, 1, 1]);
        holds("a try behind two that win", Rules::kept(behind), 400_000, &ALWAYS);
        let free = THREE.from(Start::Free);
        holds("three clients, a free lock", Rules::kept(free), 1_000_000, &ALWAYS);
        let behind = THREE.bids([2, 1, 1, 1]).from(Start::Queued(0));
        holds("three clients", Rules::kept(behind), 1_000_000, &ALWAYS);
    }
}

#[test]
fn order_is_kept_while_connections_break() {
    let bounds = BEHIND_ADA.bids([1; 4]).with(Budget { cuts: 1, ..NONE });
    holds("a connection breaks", Rules::kept(bounds), 8_000, &[BidAtOnce]);
    if is_large() {
        let ghosts = TWO.with(Budget { cuts: 1, ..NONE });
        let passing = [&ALWAYS[..], &[Lowered, Ghost]].concat();
        holds("a connection breaks, two places", Rules::kept(ghosts), 1_000_000, &passing);
    }
}

#[test]
fn order_is_kept_while_answers_are_late_and_places_are_given_up() {
    let bounds = BEHIND_BEN.with(Budget { timeouts: 1, ..NONE });
    holds("an answer is late", Rules::kept(bounds), 50_000, &ALWAYS);
    let bounds = BEHIND_ADA.with(Budget { leaves: 1, ..NONE });
    holds("a place is given up", Rules::kept(bounds), 50_000, &ALWAYS);
}

#[test]
fn the_entries_of_a_client_that_died_block_nobody_for_good() {
    let bounds = BEHIND_ADA.bids([1; 4]).with(Budget { deaths: 1, ..NONE });
    holds("a client dies", Rules::kept(bounds), 10_000, &[BidAtOnce, Ghost]);
    if is_large() {
        let bounds = TWO.with(Budget { deaths: 1, ..NONE });
        holds("a client dies, two places", Rules::kept(bounds), 1_000_000, &ALWAYS);
    }
}

#[test]
fn order_is_kept_while_voters_restart_and_forget() {
    let restarts = BEHIND_ADA.with(Budget { restarts: 1, ..NONE });
    holds("a voter restarts", Rules::kept(restarts), 50_000, &ALWAYS);
    let forgets = BEHIND_BEN.with(Budget { amnesias: 1, ..NONE });
    holds("a voter forgets", Rules::kept(forgets), 50_000, &[&ALWAYS[..], &[NotCounted]].concat());
    if is_large() {
        let both = TWO.with(Budget { amnesias: 1, timeouts: 1, ..NONE });
        holds("a voter forgets, an answer is late", Rules::kept(both), 1_000_000, &ALWAYS);
    }
}

#[test]
fn order_is_kept_while_an_entry_lapses() {
    let lapses = BEHIND_BEN.bids([1; 4]).with(Budget { lapses: 1, ..NONE });
    holds("an entry lapses", Rules::kept(lapses), 8_000, &[BidAtOnce]);
    if is_large() {
        let lapses = TWO.with(Budget { lapses: 1, ..NONE });
        holds("an entry lapses, two places", Rules::kept(lapses), 500_000, &ALWAYS);
    }
}

/// Ben gets the vote of 3 before ada's request is there. Then she stands on all three; her entry on
/// 2 lapses, and ben gets that vote too. She stood on a majority at every moment, but not on one.
#[test]
fn standing_on_one_majority_after_another_keeps_no_order() {
    let rules = Rules::kept(BEHIND_ADA.with(Budget { lapses: 1, ..NONE }));
    finds("another majority", Rules { order: Order::SomeMajority, ..rules }, ORDER);
}

/// Ada's ticket is the lowest. Ben heard his own from 1 and 2, and cleo hers from 1 and 3, so both
/// rest; but each has a lower one on the voter that was not heard, and is before ada there.
#[test]
fn the_first_of_three_may_need_the_bids_of_the_others() {
    let rules = Rules::kept(THREE);
    let mut state = asked_in_orders([[0, 1, 2], [2, 1, 0], [1, 0, 2]], &rules);
    for (place, heard) in [(0, 0b101), (0, 0b111), (1, 0b011), (2, 0b101)] {
        state.lose(place, Loss { heard, undo_last: false }, &rules);
        state.deliver(None, &rules);
    }
    // The first ticket is 2.
    assert_eq!([0, 1, 2].map(|place| state.places[place].ticket), [3, 3, 4]);
    assert!(!wins_at_once(&state, &rules));
    assert!(all_enter(&state, &rules));
}

#[test]
fn the_order_of_arrival_on_each_voter_lets_three_block_each_other() {
    let blocked = |rules: Rules| {
        let mut state = asked_in_orders([[0, 1, 2], [1, 2, 0], [2, 0, 1]], &rules);
        for place in [0, 1, 2, 0, 1, 2] {
            state.lose(place, Loss { heard: 0b111, undo_last: false }, &rules);
            state.deliver(None, &rules);
        }
        !all_enter(&state, &rules)
    };
    assert!(blocked(Rules::broken(Broken::OrderOfArrival, THREE)));
    assert!(!blocked(Rules::kept(THREE)));
    finds("order of arrival", Rules::broken(Broken::OrderOfArrival, TWO), HEAD_WINS);
}

/// Three clients ask, and each voter gets their requests in its own order.
fn asked_in_orders(orders: [[usize; 3]; 3], rules: &Rules) -> State {
    let mut state = State::first(rules);
    (0..3).for_each(|place| state.call(place, rules));
    for (voter, order) in orders.into_iter().enumerate() {
        for client in order {
            state.arrive(client, voter, rules);
        }
    }
    state
}

#[cfg(quorate_mutants)]
mod mutants {
    use super::*;

    #[test]
    fn a_ticket_that_is_raised_after_it_was_fixed_breaks_the_order() {
        let bounds = BEHIND_BEN.bids([3; 4]);
        finds("ticket raised", Rules::broken(Broken::TicketRaised, bounds), ORDER);
    }
}

#[test]
fn a_ticket_of_fewer_than_a_majority_breaks_the_order() {
    let bounds = BEHIND_BEN.with(Budget { timeouts: 1, ..NONE });
    finds("ticket of a minority", Rules::broken(Broken::TicketOfAMinority, bounds), ORDER);
}

#[test]
fn a_bid_that_is_won_by_any_vote_breaks_exclusion() {
    finds("any vote", Rules::broken(Broken::WonByAMinority, TWO), EXCLUSION);
}

#[test]
fn a_place_that_is_taken_out_when_it_gets_a_vote_breaks_the_order() {
    finds("taken out", Rules::broken(Broken::TakenOutAtGrant, BEHIND_ADA), ORDER);
}

#[test]
fn an_undo_that_drops_the_place_breaks_the_order() {
    finds("dropped", Rules::broken(Broken::UndoDropsPlace, BEHIND_ADA), ORDER);
}

#[test]
fn a_grant_that_ignores_who_is_before_breaks_the_order() {
    finds("barging", Rules::broken(Broken::Barging, TWO), ORDER);
    let ben_tries = Bounds { tries: [false, true, false, false], ..TWO };
    finds("a barging try", Rules::broken(Broken::Barging, ben_tries), ORDER);
}

#[test]
fn a_place_that_is_left_only_where_it_was_granted_blocks_the_others() {
    let bounds = TWO.with(Budget { leaves: 1, ..NONE });
    let broken = Rules::broken(Broken::LeavesWhereGranted, bounds);
    for property in [NOTHING_LEFT, HEAD_WINS, ALL_ENTER] {
        finds("left somewhere", broken, property);
    }
}

#[test]
fn a_dead_place_that_is_never_swept_blocks_the_others() {
    let bounds = TWO.with(Budget { deaths: 1, ..NONE });
    let broken = Rules::broken(Broken::StaleMark, bounds);
    for property in [HEAD_WINS, ALL_ENTER] {
        finds("never swept", broken, property);
    }
}

/// One voter to three, three to one, one in the place of others, and two of which one stays.
const CHANGES: [Change; 4] =
    [Change::of(2, 1), Change::of(0, 1), Change::of(2, 0), Change::of(1, 1)];
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
    for change in CHANGES {
        for sets in BESIDE {
            let free = TWO.changing(change, sets).from(Start::Free);
            holds("changed, a free lock", Rules::kept(free), 100, &[Won]);
            if is_large() {
                let taken = TWO.changing(change, sets).bids([1; 4]);
                holds("the voters are changed", Rules::kept(taken), 100, &[]);
                let late = free.bids([1; 4]).with(Budget { timeouts: 1, ..NONE });
                holds("changed, an answer is late", Rules::kept(late), 100, &[]);
                let leaves = free.with(Budget { leaves: 1, ..NONE });
                holds("changed, one gives up", Rules::kept(leaves), 100, &[]);
            }
        }
    }
}
