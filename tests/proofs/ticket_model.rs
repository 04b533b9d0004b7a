//! Hold tickets as a small model, of which every state is looked at: all orders of all messages
//! between who detaches, two who resume, one who wants the lock, and three voters.
//!
//! Whether an attempt is won, lost, and where it is undone, is decided by `proto`; what a voter does
//! follows `mutex/pass` of `lua/mutex.lua`. Time, leases and what voters forget are left out, which
//! `hold_model` has.

use quorate::proto::{HoldId, Quorum, Verdict, Votes};
use stateright::Property;

use crate::check::{Explored, Protocol, finds, holds};

const VOTERS: usize = 3;
/// The hold of the guard, the parked one, those of two who resume it, and one of a stranger.
const HOLDS: [&str; 5] = ["h:1", "h:p1", "a:1", "b:1", "s:1"];
const GUARD: u8 = 0;
const PARKED: u8 = 1;
/// Who makes attempts: each for the hold with its number plus one.
const PARTIES: usize = 4;

const ONE_HOLDER: &str = "at most one has the lock";
const ONCE: &str = "a ticket is resumed once";
const NOBODY_BETWEEN: &str = "nobody has the lock between the guard and the one that resumes it";
const AS_GOOD: &str = "at rest, a ticket that nobody resumed has a majority";

#[derive(Clone, Copy, Debug)]
struct Rules {
    /// Which parties there are.
    who: [bool; PARTIES],
    /// The hold is parked at first, by two voters. The third has not heard of that.
    parked: bool,
    /// So many requests may run once more, late.
    copies: u8,
    /// So many requests may be lost.
    losses: u8,
    broken: Option<Broken>,
}

/// A rule that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    /// A vote is passed on from whoever has it.
    AnyFormer,
    /// A hold that nobody has is resumed.
    FromNothing,
    /// An attempt to resume that fails gives its votes to nobody.
    UndoFrees,
    /// It gives back the votes that it heard of.
    UndoesKnown,
    /// The guard goes on to trust its hold.
    TrustsOn,
}

const NOBODY: Rules =
    Rules { who: [false; PARTIES], parked: true, copies: 0, losses: 0, broken: None };
const TWO_RESUME: Rules = Rules { who: [false, true, true, false], ..NOBODY };
const ONE_WAITS: Rules = Rules { who: [false, true, false, true], ..NOBODY };
const DETACHES: Rules = Rules { who: [true, true, false, true], parked: false, ..NOBODY };

impl Rules {
    const fn broken(self, broken: Broken) -> Self {
        Self { broken: Some(broken), ..self }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Request {
    /// Moves the vote to the first from the second.
    Pass(u8, u8),
    Acquire(u8),
    Renew(u8),
    Release(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Answer {
    Granted,
    /// The vote is this hold's.
    Refused(u8),
    Absent,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Phase {
    #[default]
    Idle,
    Asking,
    Won,
    /// It gave up or was lost, or what it had is released.
    Over,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Party {
    phase: Phase,
    heard: [Option<Answer>; VOTERS],
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    voters: [Option<u8>; VOTERS],
    /// Who detaches, two who resume, and the stranger.
    parties: [Party; PARTIES],
    /// In order.
    ways: [[Vec<Request>; VOTERS]; PARTIES],
    replies: [[Option<Answer>; VOTERS]; PARTIES],
    copy: Option<(usize, Request)>,
    copies: u8,
    losses: u8,
    /// How often it was resumed.
    resumed: u8,
    /// The stranger had it after the guard.
    between: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    Ask(usize),
    GiveUp(usize),
    Release(usize),
    Arrive(usize, usize),
    Lose(usize, usize),
    RunAgain,
    Hear(usize, usize),
}

fn hold_of(party: usize) -> u8 {
    u8::try_from(party).expect("there are few") + 1
}

/// The others hear an answer as it is given: what they do with it is in other models.
fn resumes(party: usize) -> bool {
    (1..3).contains(&party)
}

impl State {
    fn votes(&self, party: usize) -> Votes {
        let id = |hold: u8| -> HoldId { HOLDS[usize::from(hold)].parse().expect("it is one") };
        let mut votes = Votes::new(Quorum::of(VOTERS));
        for (voter, heard) in self.parties[party].heard.iter().enumerate() {
            match heard {
                Some(Answer::Granted) => votes.record(voter, Verdict::Granted),
                Some(Answer::Refused(by)) => {
                    votes.record(voter, Verdict::Refused { by: id(*by), ttl: None });
                }
                Some(Answer::Absent) => votes.record(voter, Verdict::Absent),
                None => {}
            }
        }
        votes
    }

    fn send(&mut self, party: usize, voter: usize, request: Request) {
        self.ways[party][voter].push(request);
    }

    /// What gives back what an attempt may have got.
    fn undo(&mut self, party: usize, rules: Rules) {
        let votes = self.votes(party);
        let voters = if rules.broken == Some(Broken::UndoesKnown) {
            votes.granting()
        } else {
            votes.may_have_granted()
        };
        let hold = hold_of(party);
        let is_passed_back = resumes(party) && rules.broken != Some(Broken::UndoFrees);
        for voter in voters {
            let back =
                if is_passed_back { Request::Pass(PARKED, hold) } else { Request::Release(hold) };
            self.send(party, voter, back);
        }
        if party == 0 {
            (0..VOTERS).for_each(|voter| self.send(0, voter, Request::Release(GUARD)));
        }
        self.end(party, Phase::Over);
    }

    /// What was heard, and is still to be, does not matter any more.
    fn end(&mut self, party: usize, phase: Phase) {
        self.parties[party] = Party { phase, ..Party::default() };
        self.replies[party] = Default::default();
    }

    fn run(&mut self, voter: usize, request: Request, rules: Rules) -> Answer {
        let vote = &mut self.voters[voter];
        let (hold, granted) = match request {
            Request::Pass(hold, former) => {
                let passes = match *vote {
                    Some(by) => by == former || rules.broken == Some(Broken::AnyFormer),
                    None => rules.broken == Some(Broken::FromNothing),
                };
                (hold, passes)
            }
            Request::Acquire(hold) | Request::Renew(hold) => (hold, vote.is_none()),
            Request::Release(hold) => {
                *vote = vote.filter(|by| *by != hold);
                return Answer::Granted;
            }
        };
        if granted {
            *vote = Some(hold);
        }
        match *vote {
            Some(by) if by == hold => Answer::Granted,
            Some(by) => Answer::Refused(by),
            None => Answer::Absent,
        }
    }

    fn hear(&mut self, party: usize, voter: usize, rules: Rules) {
        self.parties[party].heard[voter] = self.replies[party][voter].take();
        let votes = self.votes(party);
        if votes.is_won() {
            self.end(party, Phase::Won);
            match party {
                0 => (0..VOTERS).for_each(|voter| self.send(0, voter, Request::Release(GUARD))),
                1 | 2 => {
                    self.resumed += 1;
                    (0..VOTERS).for_each(|voter| self.send(party, voter, Request::Release(PARKED)));
                }
                _ => self.between |= self.parties[0].phase != Phase::Idle && self.resumed == 0,
            }
        } else if votes.is_hopeless() {
            self.undo(party, rules);
        }
    }

    fn at_rest(&self) -> bool {
        self.ways.iter().flatten().all(Vec::is_empty)
            && self.parties.iter().all(|party| party.phase != Phase::Asking)
    }

    fn has(&self, hold: u8) -> usize {
        self.voters.iter().filter(|vote| **vote == Some(hold)).count()
    }

    fn holders(&self, rules: Rules) -> usize {
        let won = (1..PARTIES).filter(|party| self.parties[*party].phase == Phase::Won).count();
        let is_trusted =
            self.parties[0].phase == Phase::Idle || rules.broken == Some(Broken::TrustsOn);
        won + usize::from(is_trusted)
    }
}

impl Protocol for Rules {
    type State = State;
    type Move = Move;

    fn alive(&self) -> Option<&'static str> {
        None
    }

    /// The guard has the votes that are not passed on, and a renewal of it is on its way.
    fn first(&self) -> State {
        let mut state = State {
            voters: [Some(GUARD); VOTERS],
            parties: Default::default(),
            ways: Default::default(),
            replies: Default::default(),
            copy: None,
            copies: 0,
            losses: 0,
            resumed: 0,
            between: false,
        };
        state.send(0, 0, Request::Renew(GUARD));
        if self.parked {
            state.parties[0].phase = Phase::Won;
            (state.voters[0], state.voters[1]) = (Some(PARKED), Some(PARKED));
            state.send(0, 2, Request::Pass(PARKED, GUARD));
            state.send(0, 2, Request::Release(GUARD));
        }
        state
    }

    fn moves(&self, state: &State, moves: &mut Vec<Move>) {
        for (number, party) in state.parties.iter().enumerate() {
            let is_detached = state.parties[0].phase == Phase::Won;
            match party.phase {
                // A ticket is there once a majority has stored it. The stranger comes any time.
                Phase::Idle if self.who[number] && (!resumes(number) || is_detached) => {
                    moves.push(Move::Ask(number));
                }
                Phase::Asking if resumes(number) => moves.push(Move::GiveUp(number)),
                Phase::Won if resumes(number) => moves.push(Move::Release(number)),
                _ => {}
            }
            for voter in 0..VOTERS {
                if !state.ways[number][voter].is_empty() {
                    moves.push(Move::Arrive(number, voter));
                    if state.losses < self.losses {
                        moves.push(Move::Lose(number, voter));
                    }
                }
                if state.replies[number][voter].is_some() {
                    moves.push(Move::Hear(number, voter));
                }
            }
        }
        if state.copy.is_some() && state.copies < self.copies {
            moves.push(Move::RunAgain);
        }
    }

    fn next(&self, state: &State, step: Move) -> Option<State> {
        let mut next = state.clone();
        match step {
            Move::Ask(party) => {
                next.parties[party].phase = Phase::Asking;
                let hold = hold_of(party);
                let request = match party {
                    0 => Request::Pass(hold, GUARD),
                    3 => Request::Acquire(hold),
                    _ => Request::Pass(hold, PARKED),
                };
                (0..VOTERS).for_each(|voter| next.send(party, voter, request));
            }
            Move::GiveUp(party) => next.undo(party, *self),
            Move::Release(party) => {
                next.parties[party].phase = Phase::Over;
                let release = Request::Release(hold_of(party));
                (0..VOTERS).for_each(|voter| next.send(party, voter, release));
            }
            Move::Arrive(party, voter) => {
                let request = next.ways[party][voter].remove(0);
                if voter == 0 && state.copies < self.copies {
                    next.copy = Some((voter, request));
                }
                let reply = next.run(voter, request, *self);
                let is_asked = matches!(request, Request::Pass(hold, _) | Request::Acquire(hold) if hold == hold_of(party));
                if is_asked && next.parties[party].phase == Phase::Asking {
                    next.replies[party][voter] = Some(reply);
                    if !resumes(party) {
                        next.hear(party, voter, *self);
                    }
                }
            }
            Move::Lose(party, voter) => {
                // What gives votes back is sent until it is answered.
                let request = next.ways[party][voter][0];
                if matches!(request, Request::Release(_))
                    || matches!(request, Request::Pass(PARKED, former) if former != GUARD)
                {
                    return None;
                }
                next.ways[party][voter].remove(0);
                next.losses += 1;
            }
            Move::RunAgain => {
                let (voter, request) = next.copy.take()?;
                next.run(voter, request, *self);
                next.copies += 1;
            }
            Move::Hear(party, voter) => next.hear(party, voter, *self),
        }
        Some(next)
    }

    fn properties() -> Vec<Property<Explored<Self>>> {
        vec![
            Property::always(ONE_HOLDER, |model: &Explored<Self>, state: &State| {
                state.holders(model.rules) <= 1
            }),
            Property::always(ONCE, |_, state: &State| state.resumed <= 1),
            Property::always(NOBODY_BETWEEN, |_, state: &State| {
                state.resumed == 0 || !state.between
            }),
            Property::always(AS_GOOD, |_, state: &State| {
                let is_open = state.parties[0].phase == Phase::Won && state.resumed == 0;
                let is_disturbed = state.copies > 0 || !state.at_rest();
                !is_open || is_disturbed || 2 * state.has(PARKED) > VOTERS
            }),
        ]
    }
}

#[test]
fn a_ticket_is_resumed_once_and_nobody_comes_between() {
    holds("two resume", TWO_RESUME, 192_835);
    holds("two resume, and a request runs again, late", Rules { copies: 1, ..TWO_RESUME }, 509_114);
    holds("two resume, and a request is lost", Rules { losses: 1, ..TWO_RESUME }, 555_566);
    holds("one resumes, one waits", ONE_WAITS, 18_232);
    holds("one detaches, one resumes, one waits", DETACHES, 83_681);
}

#[test]
fn each_rule_is_needed() {
    for (broken, rules, property) in [
        (Broken::AnyFormer, TWO_RESUME, ONE_HOLDER),
        (Broken::FromNothing, TWO_RESUME, ONCE),
        (Broken::UndoFrees, TWO_RESUME, AS_GOOD),
        (Broken::UndoesKnown, TWO_RESUME, AS_GOOD),
        (Broken::TrustsOn, DETACHES, ONE_HOLDER),
    ] {
        finds(&format!("{broken:?}"), rules.broken(broken), property);
    }
}
