//! The outcome of a release.

use std::{collections::BTreeMap, time::Duration};

use super::{Cause, Moment, Next, Quorum, Verdict, Votes};

/// The answers to a release, until a majority of them decides.
#[derive(Debug)]
pub struct Release {
    votes: Votes,
    lease: Duration,
    // The whole lease, and no voter deadline: each request has a deadline of its own, which begins
    // when it leaves. Time in our own queue is no silence of a voter (law 9).
    /// The end of the lease. After that there is nothing left to give back.
    ends: Moment,
    // A broken connection is usually replaced soon. Without this, one that broke at the wrong
    // moment made the release unconfirmed within milliseconds (commit `9f4dfc19`).
    /// Until when voters with a broken connection are asked again.
    patience: Option<Moment>,
    /// The voters with a broken connection, and why they did not answer.
    broken: BTreeMap<usize, Cause>,
    /// Which of them to ask next, and when.
    again: Option<(Moment, Vec<usize>)>,
}

impl Release {
    /// How long after a broken connection a voter is asked again.
    const PAUSE: Duration = Duration::from_millis(20);

    /// `patience`: for how long voters with a broken connection are asked again, if at all.
    pub fn start(quorum: Quorum, lease: Duration, patience: Option<Duration>, now: Moment) -> Self {
        Self {
            votes: Votes::new(quorum),
            lease,
            ends: now + lease,
            patience: patience.map(|patience| now + patience),
            broken: BTreeMap::new(),
            again: None,
        }
    }

    pub fn heard(&mut self, voter: usize, verdict: Verdict, now: Moment) {
        let is_patient = self.patience.is_some_and(|until| now < until);
        let verdict = match verdict {
            Verdict::Unknown(cause @ (Cause::Unreachable(_) | Cause::Broken(_))) if is_patient => {
                self.broken.insert(voter, cause);
                // Each further break moves the time, so that all voters are asked together.
                let (at, voters) = self.again.get_or_insert_with(|| (now, Vec::new()));
                *at = now + Self::PAUSE;
                voters.push(voter);
                return;
            }
            // The voter may have run the request whose connection broke: that it has no vote now is
            // no loss of the hold.
            Verdict::Absent | Verdict::Refused { .. } if self.broken.contains_key(&voter) => {
                Verdict::Granted
            }
            verdict => verdict,
        };
        self.votes.record(voter, verdict);
    }

    pub fn next(&mut self, now: Moment) -> Next<()> {
        if self.patience.take_if(|until| now >= *until).is_some() {
            self.again = None;
            for (voter, cause) in &self.broken {
                self.votes.close_one(*voter, cause);
            }
        }
        if now >= self.ends {
            self.votes.close(self.lease);
        }
        if self.votes.settles_release() {
            return Next::End(());
        }
        if let Some((_, voters)) = self.again.take_if(|(at, _)| now >= *at) {
            return Next::AskAgain(voters);
        }
        let again = self.again.as_ref().map(|(at, _)| *at);
        Next::Wait([again, self.patience].into_iter().flatten().fold(self.ends, Moment::min))
    }

    /// The verdicts. A grant means that the vote was given back.
    pub fn into_votes(self) -> Votes {
        self.votes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::at;

    /// Of a lease of 1 s, to three voters; broken connections are borne for 200 ms.
    fn release() -> Release {
        let ms = Duration::from_millis;
        Release::start(Quorum::of(3), ms(1_000), Some(ms(200)), at(0))
    }

    fn cut() -> Verdict {
        Verdict::Unknown(Cause::Broken("cut".into()))
    }

    #[test]
    fn a_majority_that_gave_a_vote_back_or_has_none_ends_it() {
        for verdict in [Verdict::Granted, Verdict::Absent] {
            let mut release = release();
            release.heard(0, verdict.clone(), at(1));
            assert_eq!(release.next(at(1)), Next::Wait(at(200)));
            release.heard(2, verdict.clone(), at(2));
            assert_eq!(release.next(at(2)), Next::End(()));
            assert_eq!(release.into_votes().lacks_majority(), verdict == Verdict::Absent);
        }
    }

    #[test]
    fn a_voter_whose_connection_broke_is_asked_once_more_and_that_it_has_no_vote_is_no_loss() {
        let mut release = release();
        release.heard(0, Verdict::Granted, at(1));
        for voter in [1, 2] {
            release.heard(voter, cut(), at(2));
        }
        assert_eq!(release.next(at(2)), Next::Wait(at(22)), "the new connection is worth a moment");
        assert_eq!(release.next(at(22)), Next::AskAgain(vec![1, 2]));
        assert_eq!(release.next(at(22)), Next::Wait(at(200)));
        release.heard(2, Verdict::Absent, at(25));
        assert_eq!(release.next(at(25)), Next::End(()));
        let votes = release.into_votes();
        assert!(votes.frees_majority() && votes.granting() == [0, 2]);
    }

    #[test]
    fn a_connection_that_stays_broken_is_silence_and_says_why() {
        let mut patient = release();
        for voter in [0, 1] {
            patient.heard(voter, cut(), at(190));
        }
        assert_eq!(patient.next(at(199)), Next::Wait(at(200)));
        assert_eq!(patient.next(at(200)), Next::End(()));
        let unheard = Verdict::Unknown(Cause::Unheard);
        assert_eq!(patient.into_votes().into_verdicts(), [cut(), cut(), unheard]);

        let mut late = release();
        assert_eq!(late.next(at(200)), Next::Wait(at(1_000)), "a slow answer is worth its time");
        for voter in [0, 1] {
            late.heard(voter, cut(), at(300));
        }
        assert_eq!(late.next(at(300)), Next::End(()), "nobody is asked once more");
    }

    #[test]
    fn nothing_is_waited_for_when_the_lease_is_over() {
        let second = Duration::from_secs(1);
        let mut silent = Release::start(Quorum::of(3), second, None, at(0));
        assert_eq!(silent.next(at(999)), Next::Wait(at(1_000)));
        assert_eq!(silent.next(at(1_000)), Next::End(()));
        let late = Verdict::Unknown(Cause::TimedOut(second));
        assert_eq!(silent.into_votes().into_verdicts(), [late.clone(), late.clone(), late]);
    }
}
