//! Every setting with its default, checked once.

use std::time::Duration;

use crate::{
    keys::Prefix,
    metric::NamedLocks,
    proto::{
        ClientName, Drift, Error, Quorum, RestartGuard, Rules, Suspicion, Terms, VoterConfiguration,
    },
};

/// Makes the settings, each with its default.
macro_rules! settings {
    ($($(#[$about:meta])* $name:ident: $type:ty = $default:expr;)*) => {
        /// What a client was built with.
        #[derive(Clone, Debug)]
        pub(crate) struct Settings {
            $($(#[$about])* pub(crate) $name: $type,)*
        }

        impl Default for Settings {
            fn default() -> Self {
                Self { $($name: $default),* }
            }
        }
    };
}

settings! {
    lease: Duration = Settings::USUAL_LEASE;
    /// For how long a lock may be held, however often it is renewed.
    hold_at_most: Option<Duration> = None;
    voter_deadline: Duration = Duration::from_millis(200);
    /// The user has named it, so no voter has longer.
    deadline_is_fixed: bool = false;
    drift: Drift = Drift::DEFAULT;
    minimum_validity: Option<Duration> = None;
    quorum_timeout: Duration = Duration::from_secs(10);
    poll_interval: Duration = Duration::from_secs(2);
    waiter_deadline: Option<Duration> = None;
    connect_timeout: Duration = Duration::from_secs(5);
    keys: Prefix = Prefix::default();
    restart_guard: RestartGuard = RestartGuard::default();
    longest_lease: Option<Duration> = None;
    fence_memory: Duration = Duration::from_secs(10 * 60);
    replica_acks: ReplicaAcks = ReplicaAcks::default();
    /// Servers may delete keys where their memory is full.
    may_evict: bool = false;
    /// How many requests to one voter leave together at most.
    batch_size: usize = 32;
    /// Whom metrics may name.
    named: NamedLocks = NamedLocks::default();
    /// The number of the configuration, where it is not the first.
    configuration: Option<u32> = None;
    /// The client says to no voter what it believes of the voters, and connects all the same.
    only_looks: bool = false;
    /// What the user has called the client.
    client_name: Option<String> = None;
    /// Some of the voters are parts of a cluster.
    in_cluster: bool = false;
}

/// What a grant needs in order to count.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReplicaAcks {
    /// So many replicas of its voter acknowledge it; 0: none is asked.
    pub(crate) replicas: u32,
    /// How long they have for that; a quarter of the time that the voter has where it is not set.
    pub(crate) timeout: Option<Duration>,
}

impl ReplicaAcks {
    /// How long replicas have where the voter has so much left. Never zero: to a server that would
    /// be no limit at all.
    pub(crate) fn within(self, left: Duration) -> Duration {
        let within = self.timeout.map_or(left / 4, |timeout| timeout.min(left));
        Duration::from_millis(u64::try_from(within.as_millis()).unwrap_or(u64::MAX).max(1))
    }
}

impl Settings {
    const USUAL_LEASE: Duration = Duration::from_secs(30);

    /// The longest lease: longer ones would hide a lock that nobody will ever release.
    pub(crate) const LONGEST_LEASE: Duration = Duration::from_secs(24 * 3600);

    /// Ten years. Servers refuse an expiry that they cannot count to.
    const LONGEST_MEMORY: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

    pub(crate) fn check(&self) -> Result<(), Error> {
        let times = [
            ("voter deadline", self.voter_deadline),
            ("poll interval", self.poll_interval),
            ("quorum timeout", self.quorum_timeout),
            ("connect timeout", self.connect_timeout),
        ];
        let (least, memory) = (self.voter_deadline.saturating_mul(4), self.fence_memory);
        let why = if let Some((what, _)) = times.iter().find(|(_, time)| time.is_zero()) {
            format!("the {what} is zero")
        } else if self.configuration == Some(0) {
            "the configuration is number 0, and the first is 1".into()
        } else if self.batch_size == 0 {
            "the batch size is zero".into()
        } else if let Some(short) = self.waiter_deadline.filter(|deadline| *deadline < least) {
            let deadline = self.voter_deadline;
            format!(
                "the waiter deadline of {short:?} is less than {least:?}, four times the voter \
                 deadline of {deadline:?}"
            )
        } else if memory < Duration::from_millis(1) {
            format!("the fence memory of {memory:?} is less than a millisecond")
        } else if memory > Self::LONGEST_MEMORY {
            let limit = Self::LONGEST_MEMORY;
            format!("the fence memory of {memory:?} is over the limit of {limit:?}")
        } else if let Some(short) = self.replica_timeout().filter(|limit| limit.as_millis() == 0) {
            format!("the replica timeout of {short:?} is less than a millisecond")
        } else {
            Self::check_hold_at_most(self.hold_at_most)?;
            self.keys.check()?;
            self.client_name()?;
            return self.rules(self.lease).map(drop);
        };
        Err(Error::invalid(why))
    }

    pub(crate) fn check_hold_at_most(time: Option<Duration>) -> Result<(), Error> {
        time.filter(|time| time.as_millis() == 0).map_or(Ok(()), |short| {
            Err(Error::invalid(format!("hold_at_most of {short:?} is less than a millisecond")))
        })
    }

    /// What the client believes of its voters.
    pub(crate) fn configuration(&self, quorum: Quorum) -> VoterConfiguration {
        let mut sets = quorum.each().map(|(_, set)| set.len());
        VoterConfiguration {
            number: self.configuration.unwrap_or(1),
            voters: sets.next().unwrap_or(0),
            replaced: sets.next(),
            longest_lease: self.longest_lease(),
            drift_ppm: self.drift.ppm,
            drift_fixed: self.drift.fixed,
            restart_guard: self.restart_guard != RestartGuard::Off,
        }
    }

    /// What the user has called the client, if that can be used.
    pub(crate) fn client_name(&self) -> Result<Option<ClientName>, Error> {
        self.client_name.as_deref().map(ClientName::parse).transpose()
    }

    /// How long a place in a queue counts that asks for this lease and does not ask again. No
    /// longer than the lease, so that a holder's place never outlives its vote.
    pub(crate) fn waiting(&self, lease: Duration) -> Duration {
        let usual = Duration::from_secs(5).max(self.voter_deadline.saturating_mul(4));
        self.waiter_deadline.unwrap_or(usual).min(lease)
    }

    /// The same for a place that is owed no turn in order, where voters cannot see that its waiter
    /// has died, or never call it. It is shorter: a dead waiter may keep a free lock from others.
    pub(crate) fn waiting_briefly(&self, lease: Duration) -> Duration {
        let brief = Duration::from_millis(1_500).max(self.voter_deadline.saturating_mul(4));
        self.waiting(lease).min(brief)
    }

    /// How long a voter may have to answer, where it was seen to need longer than others.
    pub(crate) fn longest_deadline(&self, lease: Duration) -> Duration {
        let most = lease / 10;
        if self.deadline_is_fixed { self.voter_deadline.min(most) } else { most }
    }

    /// That which was set, where replicas are asked at all.
    fn replica_timeout(&self) -> Option<Duration> {
        self.replica_acks.timeout.filter(|_| self.replica_acks.replicas > 0)
    }

    pub(crate) fn longest_lease(&self) -> Duration {
        self.longest_lease.unwrap_or(Self::USUAL_LEASE)
    }

    pub(crate) fn suspicion(&self) -> Suspicion {
        let (guard, longest) = (self.restart_guard, self.longest_lease());
        Suspicion { guard, longest, drift: self.drift }
    }

    /// What an attempt with this lease is measured by, if the lease can be used at all.
    pub(crate) fn rules(&self, lease: Duration) -> Result<Rules, Error> {
        let refuse = |why: String| Err(Error::invalid(format!("the lease of {lease:?} {why}")));
        if lease.is_zero() {
            return Err(Error::invalid("the lease is zero"));
        }
        if lease < Duration::from_millis(1) {
            return refuse("is less than a millisecond".into());
        }
        if lease > Self::LONGEST_LEASE {
            return refuse(format!("is over the limit of {:?}", Self::LONGEST_LEASE));
        }
        let longest = self.longest_lease();
        if lease > longest && self.restart_guard != RestartGuard::Off {
            return refuse(format!(
                "is over the longest lease of {longest:?}, for which voters that may have \
                 forgotten are kept out: set `longest_lease`, to the same in all clients"
            ));
        }
        let least = self.voter_deadline.saturating_mul(2);
        if lease < least {
            let deadline = self.voter_deadline;
            return refuse(format!(
                "is less than {least:?}, twice the voter deadline of {deadline:?}"
            ));
        }
        // Voters count whole milliseconds: what they are not asked for is not to be trusted.
        let beyond = Duration::from_nanos(u64::from(lease.subsec_nanos()) % 1_000_000);
        let lease = lease.saturating_sub(beyond);
        let terms = Terms::new(lease, self.drift);
        let minimum_validity = self.minimum_validity.unwrap_or(lease / 2);
        let validity = terms.validity();
        if validity.is_zero() {
            return refuse(format!(
                "has no validity left after a drift of {:?}",
                self.drift.over(lease)
            ));
        }
        if validity <= minimum_validity {
            return refuse(format!(
                "leaves {validity:?} after drift, not more than the minimum validity of \
                 {minimum_validity:?}"
            ));
        }
        let voter_deadline = self.voter_deadline.min(lease / 10);
        if let Some(long) = self.replica_timeout().filter(|limit| *limit > voter_deadline / 2) {
            return refuse(format!(
                "leaves each voter {voter_deadline:?} to answer, less than twice the replica \
                 timeout of {long:?}"
            ));
        }
        let longest_deadline = self.longest_deadline(lease);
        Ok(Rules { terms, minimum_validity, voter_deadline, longest_deadline })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const SECS: fn(u64) -> Duration = Duration::from_secs;

    fn acks(replicas: u32, timeout: Duration) -> ReplicaAcks {
        ReplicaAcks { replicas, timeout: Some(timeout) }
    }

    /// A change, and what is said of it.
    type Row = (fn(&mut Settings), &'static str);

    #[test]
    fn what_cannot_work_is_refused_with_the_values_that_clash() {
        let refused: [Row; 15] = [
            (|it| it.lease = MS(0), "the lease is zero"),
            (|it| it.lease = MS(1) / 2, "the lease of 500µs is less than a millisecond"),
            (
                |it| it.lease = MS(399),
                "the lease of 399ms is less than 400ms, twice the voter deadline of 200ms",
            ),
            (|it| it.lease = SECS(86_401), "the lease of 86401s is over the limit of 86400s"),
            (
                |it| it.drift = Drift { ppm: 10_000, fixed: SECS(30) },
                "the lease of 30s has no validity left after a drift of 30.3s",
            ),
            (
                |it| it.minimum_validity = Some(SECS(30)),
                "the lease of 30s leaves 29.698s after drift, not more than the minimum validity \
                 of 30s",
            ),
            (
                |it| it.fence_memory = Duration::MAX,
                "the fence memory of 18446744073709551615.999999999s is over the limit of \
                 315360000s",
            ),
            (
                |it| it.waiter_deadline = Some(MS(799)),
                "the waiter deadline of 799ms is less than 800ms, four times the voter deadline \
                 of 200ms",
            ),
            (
                |it| it.replica_acks = acks(1, MS(101)),
                "the lease of 30s leaves each voter 200ms to answer, less than twice the replica \
                 timeout of 101ms",
            ),
            (
                |it| it.replica_acks = acks(1, MS(1) / 2),
                "the replica timeout of 500µs is less than a millisecond",
            ),
            (
                |it| it.hold_at_most = Some(MS(1) / 2),
                "hold_at_most of 500µs is less than a millisecond",
            ),
            (|it| it.voter_deadline = MS(0), "the voter deadline is zero"),
            (|it| it.poll_interval = MS(0), "the poll interval is zero"),
            (|it| it.quorum_timeout = MS(0), "the quorum timeout is zero"),
            (|it| it.batch_size = 0, "the batch size is zero"),
        ];
        for (change, told) in refused {
            let mut settings = Settings::default();
            change(&mut settings);
            let error = settings.check().unwrap_err();
            assert!(error.is_invalid() && error.to_string() == told, "{error}");
        }
        let fine: [fn(&mut Settings); 5] = [
            |_| {},
            |it| it.hold_at_most = Some(MS(1)),
            |it| it.fence_memory = Settings::LONGEST_MEMORY,
            |it| it.replica_acks = acks(1, MS(100)),
            |it| it.replica_acks = acks(0, MS(101)),
        ];
        for change in fine {
            let mut settings = Settings::default();
            change(&mut settings);
            settings.check().unwrap();
        }
        let settings = Settings { replica_acks: acks(1, MS(100)), ..Settings::default() };
        let error = settings.rules(MS(1_000)).unwrap_err().to_string();
        assert!(error.contains("leaves each voter 100ms to answer"), "of one lock alone: {error}");
    }

    #[test]
    fn what_voters_cannot_be_asked_for_is_not_trusted() {
        let drift = Drift { ppm: 0, fixed: Duration::ZERO };
        let settings = Settings { drift, ..Settings::default() };
        let rules = settings.rules(Duration::from_micros(400_999)).unwrap();
        assert_eq!(rules.terms.validity(), MS(400));
    }

    #[test]
    fn replicas_have_a_quarter_of_the_voters_time_and_never_none_or_for_ever() {
        let usual = ReplicaAcks { replicas: 1, timeout: None };
        assert_eq!(usual.within(MS(200)), MS(50));
        assert_eq!(usual.within(MS(3)), MS(1), "zero would be no limit");
        let set = acks(1, MS(80));
        assert_eq!((set.within(MS(200)), set.within(MS(30))), (MS(80), MS(30)));
    }

    #[test]
    fn a_voter_has_at_most_a_tenth_of_the_lease_to_answer() {
        let settings = Settings::default();
        let deadline = |ms| settings.rules(MS(ms)).unwrap().voter_deadline;
        assert_eq!([30_000, 1_000].map(deadline), [200, 100].map(MS));
    }
}
