//! What `proto` makes of what a client has heard. Nothing of it is written here once more: this
//! tells the own values of `proto` what happened, and asks them.
//!
//! A state has only facts: who said what, and how many ticks ago. The values of `proto` are made
//! of them for each question. So a state stays small, and is the same whenever it comes about.

use std::time::Duration;

use crate::hold_model::{
    rules::{Broken, Rules},
    state::{Answer, Hold, Line, Phase, State},
};
use quorate::proto::{
    Asked, Attempt, Cause, Drift, Duty, Grant, GrantNext, Granted, HoldId, Lease, Moment, Next,
    Quarantine, Quorum, Register, RestartGuard, Round, RoundEnd, Rules as Measures, Shard,
    ShardQuarantine, Support, Suspicion, Terms, Token, Verdict, Vote,
};

const TICK: Duration = Duration::from_secs(1);
/// What voters have to answer. The model says itself who is waited for.
const SOON: Duration = Duration::from_millis(1);
const NEVER: Duration = Duration::from_secs(1_000_000);

/// Every state is one of this moment.
fn now() -> Moment {
    Moment::BEGINNING + 1_000 * TICK
}

fn ago(ticks: u8) -> Moment {
    now() - u32::from(ticks) * TICK
}

fn ticks(length: Duration) -> u8 {
    u8::try_from(length.as_secs()).expect("leases are short")
}

impl Rules {
    fn terms(&self) -> Terms {
        let fixed = u32::from(self.drift) * TICK;
        Terms::new(u32::from(self.lease) * TICK, Drift { ppm: 0, fixed })
    }

    fn measures(&self) -> Measures {
        let minimum_validity = Duration::ZERO;
        Measures {
            terms: self.terms(),
            minimum_validity,
            voter_deadline: SOON,
            longest_deadline: SOON,
        }
    }

    /// For how long a hold may be trusted, counted from before its first request.
    pub(crate) fn validity(&self) -> u8 {
        ticks(self.terms().validity())
    }

    /// Whether an attempt of that age may still be won.
    pub(crate) fn is_in_time(&self, age: u8) -> bool {
        self.measures().is_in_time(ago(age), now())
    }

    /// What is left of a hold that was asked for so long ago.
    pub(crate) fn left_of(&self, age: u8) -> u8 {
        ticks(Lease::new(self.terms(), ago(age), true, None).deadline().since(now()))
    }

    fn lease_with(&self, left: u8) -> Lease {
        let started = now() + u32::from(left) * TICK - self.terms().validity();
        Lease::new(self.terms(), started, true, None)
    }

    pub(crate) fn is_lost(&self, left: u8) -> bool {
        self.lease_with(left).duty(now()) == Duty::Lost
    }

    /// What is left of a hold when a majority has renewed it that was asked so long ago.
    pub(crate) fn renewed(&self, left: u8, age: u8) -> u8 {
        let mut lease = self.lease_with(left);
        let late = self.breaks(Broken::RenewalAfterTheDeadline) && left == 0;
        let heard = if late { ago(1) } else { now() };
        lease.renewed(self.terms(), ago(age), heard);
        ticks(lease.deadline().since(now()))
    }

    /// Whether the grants of a voter that forgot so long ago are held against requests of that age.
    fn quarantine(&self, forgot: Option<u8>, sent: u8) -> Option<ShardQuarantine> {
        let forgot = forgot?;
        let guard = if self.quarantine > 0 { RestartGuard::Relative } else { RestartGuard::Off };
        let drift = Drift { ppm: 0, fixed: u32::from(self.drift) * TICK };
        let longest = u32::from(self.quarantine) * TICK;
        let mut register =
            Register::new(vec![0], Quorum::of(1), Suspicion { guard, longest, drift });
        let shard = Shard { voter: 0, number: 0 };
        register.note_server(shard, "before", 500 * TICK, false, ago(200));
        register.note_server(shard, "after", Duration::ZERO, false, ago(forgot));
        register.quarantine(shard, ago(sent))
    }

    /// Whether it matters to requests of that age that the voter forgot.
    pub(crate) fn is_kept_out(&self, forgot: Option<u8>, sent: u8) -> bool {
        self.quarantine(forgot, sent).is_some()
    }

    /// What a grant counts for that arrives now. The client has learned by then that the voter
    /// forgot.
    pub(crate) fn counts(&self, phase: Phase, line: &Line, forgot: Option<u8>) -> bool {
        let Some(age) = phase.asked() else { return false };
        let Some(quarantine) = self.quarantine(forgot, age) else { return true };
        if matches!(phase, Phase::Holding { .. }) {
            self.breaks(Broken::AnyRenewalCounts) || self.is_proven(line, quarantine)
        } else {
            quarantine.verdict() == Verdict::Granted
        }
    }

    /// Whether the client can tell that its hold had the vote when the voter forgot, or would if it
    /// forgot now.
    pub(crate) fn has_proof(&self, line: &Line, forgot: Option<u8>) -> bool {
        self.is_proven(line, quarantine_since(ago(forgot.unwrap_or(0))))
    }

    fn is_proven(&self, line: &Line, quarantine: ShardQuarantine) -> bool {
        let to_the_last = self.breaks(Broken::ProofToTheLastTick);
        let less = if to_the_last { Duration::from_nanos(1) } else { Duration::ZERO };
        let quarantine = ShardQuarantine { forgot: quarantine.forgot - less, ..quarantine };
        let support = self.support(&[*line]);
        support.verdict_that_counts(0, Verdict::Granted, Some(quarantine)) == Verdict::Granted
    }

    /// What is known of voters by the hold that these lines are of.
    fn support(&self, lines: &[Line]) -> Support {
        let long_ago = ago(100);
        let mut support = Support::new(lines.len(), long_ago, Duration::ZERO, NEVER);
        let asked = |sent| self.asked(sent, sent);
        for (voter, line) in lines.iter().enumerate() {
            support.heard(voter, &Verdict::Granted, Asked { is_first: true, ..asked(long_ago) });
            if line.has_lost {
                // Every voter that has lost it was in quarantine then.
                let later = long_ago + TICK / 2;
                let lost = Asked { quarantine: Some(quarantine_since(later)), ..asked(later) };
                support.heard(voter, &Verdict::Absent, lost);
                support.heard(voter, &Verdict::Granted, lost);
            }
            if let Some(sent) = line.proof {
                support.heard(voter, &Verdict::Granted, asked(ago(sent)));
            }
        }
        support
    }

    /// In a round.
    fn asked(&self, sent: Moment, heard: Moment) -> Asked {
        let (terms, quarantine) = (self.terms(), None);
        Asked { is_first: false, is_passed: false, sent, terms, heard, quarantine }
    }

    /// Takes note of the answer that was heard to a request of that age.
    pub(crate) fn take_note(&self, line: &mut Line, age: u8) {
        let mut support = self.support(&[*line]);
        let (says, asked) = (verdict(line.heard), self.asked(ago(age), now()));
        let is_anew = matches!(line.heard, Answer::Granted { anew: true, .. });
        let first = if is_anew { &Verdict::Absent } else { &says };
        line.has_lost |= support.misses(0, first, now()).is_some();
        support.heard(0, first, asked);
        support.heard(0, &says, asked);
        // It proves what it says until the vote ends, and did not before.
        let last = self.terms().deadline(ago(age)) - Duration::from_nanos(1);
        let proves = support.verdict_that_counts(0, Verdict::Granted, Some(quarantine_since(last)));
        if proves == Verdict::Granted {
            line.proof = Some(line.proof.map_or(age, |sent| sent.min(age)));
        }
    }
}

impl State {
    fn quorum(&self, client: u8, rules: &Rules) -> Quorum {
        rules.quorum_of(self.client(client).sets)
    }

    /// By their places in the state: a client calls its voters by their places among its own.
    fn places(&self, client: u8, voters: Vec<usize>, rules: &Rules) -> Vec<usize> {
        let first = rules.voters_of(self.client(client).sets).start;
        voters.into_iter().map(|voter| first + voter).collect()
    }

    /// The client's attempt, by what it has heard.
    pub(crate) fn attempt(&self, client: u8, rules: &Rules) -> Attempt {
        let it = self.client(client);
        let Phase::Asking { age, again } = it.phase else { unreachable!("it asks") };
        let (hold, started) = (it.hold(client, rules), ago(age));
        let mut attempt =
            Attempt::start(id(hold), self.quorum(client, rules), rules.measures(), started);
        if again {
            self.lines(client, rules).enumerate().for_each(|(voter, line)| {
                attempt.heard(voter, verdict_of_all(line.before), started);
            });
            ask_again(&mut attempt, started).expect("it was asked again");
        }
        for (voter, line) in self.lines(client, rules).enumerate() {
            if line.heard != Answer::None {
                attempt.heard(voter, verdict(line.heard), now());
            }
        }
        attempt
    }

    pub(crate) fn is_won(&self, client: u8, rules: &Rules) -> bool {
        matches!(self.attempt(client, rules).next(now()), Next::End(Ok(_)))
    }

    /// The voters that the client asks again if it waits for no more answers: it leads in a split.
    pub(crate) fn asked_again(&self, client: u8, rules: &Rules) -> Option<Vec<usize>> {
        let it = self.client(client);
        let Phase::Asking { age, .. } = it.phase else { return None };
        let (hold, started) = (it.hold(client, rules), ago(age));
        let mut attempt =
            Attempt::start(id(hold), self.quorum(client, rules), rules.measures(), started);
        for (voter, line) in self.lines(client, rules).enumerate() {
            attempt.heard(voter, verdict_of_all(line.heard), started);
        }
        let voters = ask_again(&mut attempt, started)?;
        Some(self.places(client, voters, rules))
    }

    /// The voters that may have given the attempt a vote.
    pub(crate) fn may_have_granted(&self, client: u8, rules: &Rules) -> Vec<usize> {
        let granted = self.attempt(client, rules).into_votes().may_have_granted();
        self.places(client, granted, rules)
    }

    /// What is still to be done for a client that has won, by what these answers said.
    fn grant(&self, client: u8, which: impl Fn(Answer) -> bool, rules: &Rules) -> Grant {
        let (Phase::Asking { age, .. } | Phase::Storing { age, .. }) = self.client(client).phase
        else {
            unreachable!("it has just won")
        };
        let quorum = self.quorum(client, rules);
        let mut grant = Grant::new(quorum, None, rules.measures(), ago(age), None);
        for (voter, line) in self.lines(client, rules).enumerate() {
            let Some(counter) = line.heard.counter().filter(|_| which(line.heard)) else {
                continue;
            };
            // Those of a model begin at zero.
            let token = Token::try_from(u64::from(counter) + 1).expect("it is above zero");
            let verdict = Verdict::Granted;
            let (ticket, slots, fewer) = (None, None, None);
            let mut vote = Vote { verdict, token: Some(token), ticket, slots, fewer };
            grant.heard(voter, &mut vote);
        }
        grant
    }

    /// The token of a client that has won, and who is to store it before it has the lock.
    pub(crate) fn fix_token(&self, client: u8, rules: &Rules) -> Option<(u8, Option<Vec<usize>>)> {
        let number = |token| u8::try_from(u64::from(token) - 1).expect("counters are low");
        match self.grant(client, |_| true, rules).next(now()) {
            GrantNext::Store(token, to) => {
                Some((number(token), Some(self.places(client, to, rules))))
            }
            GrantNext::Done(Granted { token, .. }) => token.map(|token| (number(token), None)),
            _ => None,
        }
    }

    /// Whether a majority stores the token in time, by what was heard.
    pub(crate) fn is_stored(&self, client: u8, token: u8, rules: &Rules) -> bool {
        let mut grant = self.grant(client, |heard| heard.counter() == Some(token), rules);
        let mut next = grant.next(now());
        if let GrantNext::Store(..) = next {
            for (voter, line) in self.lines(client, rules).enumerate() {
                if matches!(line.heard, Answer::Granted { .. } | Answer::Stored) {
                    grant.heard_of_token(voter, Verdict::Granted);
                }
            }
            next = grant.next(now());
        }
        matches!(next, GrantNext::Done(_))
    }

    /// How the round of renewal has ended by what was heard, if it has.
    pub(crate) fn round_end(&self, client: u8, rules: &Rules) -> Option<RoundEnd> {
        let age = self.client(client).phase.asked()?;
        let open = self.lines(client, rules).any(Line::is_awaited);
        let patience = if open { NEVER } else { Duration::ZERO };
        let mut round = Round::start(self.quorum(client, rules), ago(age), patience);
        let lines: Vec<Line> = self.lines(client, rules).copied().collect();
        for (voter, line) in lines.iter().enumerate() {
            if line.heard != Answer::None {
                let place = rules.voters_of(self.client(client).sets).start + voter;
                let suspected = rules.is_kept_out(self.voters[place].forgot, age);
                round.heard(voter, verdict(line.heard), suspected);
            }
        }
        let mut support = rules.support(&lines);
        if support.is_lost(self.quorum(client, rules), now()) {
            round.vanish();
        }
        match round.next(now(), || 0) {
            Next::End(end) => Some(end),
            // A renewal that asks once more is one of its own here.
            Next::AskAgain(_) | Next::Wait(_) => None,
        }
    }
}

/// The voters that a lost attempt asks again, where it leads.
fn ask_again(attempt: &mut Attempt, at: Moment) -> Option<Vec<usize>> {
    match attempt.next(at) {
        Next::Wait(until) if until == at => match attempt.next(at) {
            Next::AskAgain(voters) => Some(voters),
            _ => None,
        },
        _ => None,
    }
}

fn id(hold: Hold) -> HoldId {
    let client = ["ada", "ben", "cleo"][usize::from(hold.client)];
    format!("{client}:{}", hold.number).parse().expect("it is not empty")
}

fn quarantine_since(forgot: Moment) -> ShardQuarantine {
    ShardQuarantine::new(Quarantine::Restarted, TICK, forgot)
}

fn verdict(answer: Answer) -> Verdict {
    match answer {
        Answer::None => Verdict::Unknown(Cause::Unheard),
        Answer::Granted { .. } => Verdict::Granted,
        Answer::Uncounted { .. } => quarantine_since(now()).verdict(),
        Answer::Refused(by) => Verdict::Refused { by: id(by), ttl: None },
        Answer::Stored => Verdict::Absent,
    }
}

/// Of a round that is over.
fn verdict_of_all(answer: Answer) -> Verdict {
    match answer {
        Answer::None => Verdict::Unknown(Cause::TimedOut(SOON)),
        answer => verdict(answer),
    }
}
