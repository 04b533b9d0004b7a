//! What can happen next.

use std::sync::Arc;

use stateright::{Model, Property};

use crate::{
    check::{Passed, Protocol},
    fair_model::{
        kind::Kind,
        landmarks::{self, Landmark},
        properties,
        requests::Request,
        rules::Rules,
        state::{Answer, Phase, State, VOTERS},
        waiter::Loss,
    },
};

/// One step. Voters are told by their place in the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    Call(usize),
    Win(usize),
    Lose(usize, Loss),
    BidAgain(usize),
    Leave(usize),
    Arrive(usize, usize),
    ArriveLate(usize, usize),
    VoteEnds(usize),
    EntryEnds(usize, usize),
    Cut(usize, usize),
    Crash { voter: usize, keeps_data: bool },
    Die(usize),
}

#[derive(Clone, Debug)]
pub(crate) struct Queues {
    pub(crate) rules: Rules,
    /// The one property that is looked at, if not all are.
    pub(crate) only: Option<&'static str>,
    /// What some path came by.
    pub(crate) landmarks: Arc<Passed>,
}

impl Model for Queues {
    type State = State;
    type Action = Move;

    fn init_states(&self) -> Vec<State> {
        vec![State::first(&self.rules)]
    }

    fn actions(&self, state: &State, moves: &mut Vec<Move>) {
        // What is sure to be won is won at once: what a place does that knows it, and what it does
        // that does not know it yet, is the same for all others, and it can only leave or die.
        let winner = self.rules.places().find(|place| state.may_win(*place, &self.rules));
        if let Some(place) = winner.filter(|_| state.budget.timeouts == 0) {
            moves.push(Move::Win(place));
            return;
        }
        for place in self.rules.places() {
            state.moves_of_place(place, &self.rules, moves);
        }
        for client in self.rules.clients() {
            if state.budget.deaths > 0 && !state.dead[client] {
                moves.push(Move::Die(client));
            }
        }
        for voter in 0..VOTERS {
            // What happens to one of two equal voters leads to the same situation as what happens
            // to the other, and equal ones are neighbours.
            if voter == 0 || state.voters[voter] != state.voters[voter - 1] {
                state.moves_of_voter(voter, &self.rules, moves);
            }
        }
    }

    fn next_state(&self, before: &State, step: Move) -> Option<State> {
        let mut after = before.after(step, &self.rules);
        landmarks::pass(&self.landmarks, before, step, &after);
        after.drop_lost_claims(&self.rules);
        after.drop_void();
        after.put_in_order();
        Some(after)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = properties::all();
        properties.retain(|property| self.only.is_none_or(|only| only == property.name));
        properties
    }
}

impl Protocol for Rules {
    type Model = Queues;
    type Landmark = Landmark;

    fn model(self, only: Option<&'static str>) -> Queues {
        Queues { rules: self, only, landmarks: Arc::default() }
    }

    fn missing(model: &Queues, landmarks: &[Landmark]) -> Vec<Landmark> {
        model.landmarks.missing(landmarks)
    }

    fn tell(self, state: &State, step: Move) -> String {
        state.tell(step, &self)
    }
}

impl State {
    fn moves_of_place(&self, place: usize, rules: &Rules, moves: &mut Vec<Move>) {
        let it = &self.places[place];
        if it.phase == Phase::Idle && !self.dead[rules.client_of(place)] {
            moves.push(Move::Call(place));
        }
        if self.may_win(place, rules) {
            moves.push(Move::Win(place));
        }
        moves.extend(self.losses(place, rules).into_iter().map(|loss| Move::Lose(place, loss)));
        if self.may_bid_again(place, rules) {
            moves.push(Move::BidAgain(place));
        }
        if it.phase == Phase::Holding || self.waits(place) && self.budget.leaves > 0 {
            moves.push(Move::Leave(place));
        }
    }

    fn moves_of_voter(&self, voter: usize, rules: &Rules, moves: &mut Vec<Move>) {
        let it = &self.voters[voter];
        for client in rules.clients() {
            let line = it.lines[client];
            if !line.queue.is_empty() {
                moves.push(Move::Arrive(client, voter));
                if self.budget.cuts > 0 {
                    moves.push(Move::Cut(client, voter));
                }
            }
            if !line.late.is_empty() {
                moves.push(Move::ArriveLate(client, voter));
            }
        }
        if it.vote.is_some_and(|vote| self.is_excused(vote, rules)) {
            moves.push(Move::VoteEnds(voter));
        }
        for place in rules.places() {
            if it.queue[place].is_some_and(|entry| self.may_end(place, entry, rules)) {
                moves.push(Move::EntryEnds(place, voter));
            }
        }
        if self.budget.restarts > 0 {
            moves.push(Move::Crash { voter, keeps_data: true });
        }
        if self.budget.amnesias > 0 {
            moves.push(Move::Crash { voter, keeps_data: false });
        }
    }

    /// The state after a step, its voters not yet in order.
    pub(crate) fn after(&self, step: Move, rules: &Rules) -> Self {
        let mut next = self.clone();
        match step {
            Move::Call(place) => next.call(place, rules),
            Move::Win(place) => next.win(place),
            Move::Lose(place, loss) => next.lose(place, loss, rules),
            Move::BidAgain(place) => next.bid(place, rules),
            Move::Leave(place) => {
                if next.waits(place) {
                    next.budget.leaves -= 1;
                }
                next.leave(place, rules);
            }
            Move::Arrive(client, voter) => next.arrive(client, voter, rules),
            Move::ArriveLate(client, voter) => next.voters[voter].run_late(client, rules),
            Move::VoteEnds(voter) => next.voters[voter].vote = None,
            Move::EntryEnds(place, voter) => {
                if next.is_live(place) {
                    next.budget.lapses -= 1;
                }
                next.voters[voter].entry_ends(place);
            }
            Move::Cut(client, voter) => {
                next.budget.cuts -= 1;
                next.voters[voter].lines[client].cut();
            }
            Move::Crash { voter, keeps_data } => {
                let budget = &mut next.budget;
                let left = if keeps_data { &mut budget.restarts } else { &mut budget.amnesias };
                *left -= 1;
                next.voters[voter].crash(keeps_data);
            }
            Move::Die(client) => {
                next.budget.deaths -= 1;
                next.die(client, rules);
            }
        }
        next
    }

    /// An answer to a bid that is over, or from a connection that is, is heard by nobody.
    pub(crate) fn arrive(&mut self, client: usize, voter: usize, rules: &Rules) {
        let Some((request, answer)) = self.voters[voter].run_next(client, rules) else { return };
        let Request { place, bid, .. } = request;
        let place_now = &self.places[place];
        if answer.is_some() && place_now.phase == Phase::Bidding && place_now.bids == bid {
            self.voters[voter].answers[place] = answer;
        }
    }

    /// The step from this state, in words.
    pub(crate) fn tell(&self, step: Move, rules: &Rules) -> String {
        let who = |place: usize| place_name(place, rules);
        let at = |voter: usize| format!("voter {}", self.names[voter]);
        let voters = |voters: u8| -> String {
            let named = (0..VOTERS).filter(|at| voters >> at & 1 > 0);
            let names: Vec<String> = named.map(|at| self.names[at].to_string()).collect();
            if names.is_empty() { "nobody".into() } else { names.join(" and ") }
        };
        match step {
            Move::Call(place) => format!("{} asks", who(place)),
            Move::Win(place) => format!("{} wins", who(place)),
            Move::Lose(place, loss) => {
                let after = self.after(step, rules).places[place];
                let then =
                    if after.phase == Phase::Bidding { "bids again at once" } else { "waits" };
                let last = if loss.undo_last { ", then undoes the others" } else { "" };
                let heard = voters(loss.heard);
                let ticket = after.ticket;
                format!("{} has lost, hearing {heard}: ticket {ticket}, {then}{last}", who(place))
            }
            Move::BidAgain(place) => format!("{} bids again", who(place)),
            Move::Leave(place) => format!("{} leaves", who(place)),
            Move::Arrive(client, voter) => {
                let first = self.voters[voter].lines[client].queue.first();
                let answer = self.voters[voter].clone().run_next(client, rules);
                let answer = answer.and_then(|(_, answer)| answer);
                format!("{} arrives at {}{}", request(first, rules), at(voter), told(answer))
            }
            Move::ArriveLate(client, voter) => {
                let first = self.voters[voter].lines[client].late.first();
                format!("late, {} arrives at {}", request(first, rules), at(voter))
            }
            Move::VoteEnds(voter) => format!("the vote of {} ends", at(voter)),
            Move::EntryEnds(place, voter) => {
                format!("the entry of {} at {} ends", who(place), at(voter))
            }
            Move::Cut(client, voter) => {
                format!("the connection of {} to {} breaks", client_name(client), at(voter))
            }
            Move::Crash { voter, keeps_data: true } => format!("{} restarts", at(voter)),
            Move::Crash { voter, keeps_data: false } => {
                format!("{} restarts and has forgotten everything", at(voter))
            }
            Move::Die(client) => format!("{} dies", client_name(client)),
        }
    }
}

fn client_name(client: usize) -> &'static str {
    ["ada", "ben", "cleo"][client]
}

fn place_name(place: usize, rules: &Rules) -> String {
    let client = rules.client_of(place);
    let number = (0..=place).filter(|it| rules.client_of(*it) == client).count();
    let name = client_name(client);
    if number == 1 { name.into() } else { format!("{name}'s second") }
}

fn request(request: Option<Request>, rules: &Rules) -> String {
    let Some(Request { kind, place, bid, ticket }) = request else { return String::new() };
    let name = place_name(place, rules);
    match kind {
        Kind::Bid if ticket > 0 => format!("bid {bid} of {name} with ticket {ticket}"),
        Kind::Bid => format!("bid {bid} of {name}"),
        Kind::Try => format!("the try of {name}"),
        Kind::Undo => format!("the undo of bid {bid} of {name}"),
        Kind::Leave => format!("the leaving of {name}"),
    }
}

fn told(answer: Option<Answer>) -> String {
    let Some(Answer { granted, ticket, stands }) = answer else { return String::new() };
    let outcome = if granted { "granted" } else { "refused" };
    let stands = if stands { "" } else { ", no entry" };
    format!(": {outcome}, ticket {ticket}{stands}")
}
