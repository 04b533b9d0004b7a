//! Every setting with its default, and the checks.

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
        /// The settings of a client.
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
    /// How long a lock may be held, however often it is renewed.
    hold_at_most: Option<Duration> = None;
    voter_deadline: Duration = Duration::from_millis(200);
    /// The user has set the voter deadline, so no voter has more time.
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
    /// Servers may delete keys when their memory is full.
    may_evict: bool = false;
    /// How many requests one call to a voter carries at most.
    batch_size: usize = 32;
    /// The locks that metrics may name.
    named: NamedLocks = NamedLocks::default();
    /// The number of the voter configuration, unless it is the first.
    configuration: Option<u32> = None;
    /// The client stores no voter configuration, and connects whatever the voters have.
    only_looks: bool = false;
    /// The name that the user has given the client.
    client_name: Option<String> = None;
    /// Some of the voters are parts of a cluster.
    in_cluster: bool = false;
}

/// The replicas that must acknowledge a grant.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReplicaAcks {
    /// How many replicas of a voter; 0: none is asked.
    pub(crate) replicas: u32,
    /// How long they have; if not set, a quarter of the time that the voter has.
    pub(crate) timeout: Option<Duration>,
}

impl ReplicaAcks {
    /// How long replicas have if the voter has so much time left.
    pub(crate) fn within(self, left: Duration) -> Duration {
        let within = self.timeout.map_or(left / 4, |timeout| timeout.min(left));
        // Never zero, which is no limit at all for `WAIT`.
        Duration::from_millis(u64::try_from(within.as_millis()).unwrap_or(u64::MAX).max(1))
    }
}

impl Settings {
    const USUAL_LEASE: Duration = Duration::from_secs(30);

    /// The longest lease that can be set.
    // A longer one would hide a lock that nobody will ever release.
    pub(crate) const LONGEST_LEASE: Duration = Duration::from_secs(24 * 3600);

    /// Ten years.
    // Servers refuse an expiry that overflows their clock, and with it every lock: the error would
    // be that there is no quorum.
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

    /// The voter configuration of the client.
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

    /// The name of the client. Fails if it cannot be used.
    pub(crate) fn client_name(&self) -> Result<Option<ClientName>, Error> {
        self.client_name.as_deref().map(ClientName::parse).transpose()
    }

    /// How long voters keep a place in a queue whose waiter does not ask again.
    pub(crate) fn waiting(&self, lease: Duration) -> Duration {
        let usual = Duration::from_secs(5).max(self.voter_deadline.saturating_mul(4));
        // No longer than the lease: a holder's place must not outlive its vote.
        self.waiter_deadline.unwrap_or(usual).min(lease)
    }

    /// The same for a place without a turn in order, if voters cannot see that its waiter has died,
    /// or never wake it.
    // Shorter, as a dead waiter may keep a free lock from others. Not everywhere: on servers of
    // their own, 1,000 clients refreshed their places twice a second, and the lock went to all of
    // them in 13 to 85 s; with 5 s, in 4 to 9 s.
    pub(crate) fn waiting_briefly(&self, lease: Duration) -> Duration {
        let brief = Duration::from_millis(1_500).max(self.voter_deadline.saturating_mul(4));
        self.waiting(lease).min(brief)
    }

    /// How long a distant voter may have to answer.
    pub(crate) fn longest_deadline(&self, lease: Duration) -> Duration {
        let most = lease / 10;
        if self.deadline_is_fixed { self.voter_deadline.min(most) } else { most }
    }

    /// The timeout that was set, if replicas are asked at all.
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

    /// The rules for attempts with this lease. Fails if the lease cannot be used.
    pub(crate) fn rules(&self, lease: Duration) -> Result<Rules, Error> {
        self.check_lease(lease)?;
        // Voters are asked for whole milliseconds. A hold must not be trusted for the rest: with no
        // drift, a lease of 400.999 ms was trusted for all of it, while voters gave 400 (law 2).
        let beyond = Duration::from_nanos(u64::from(lease.subsec_nanos()) % 1_000_000);
        let asked = lease.saturating_sub(beyond);
        let terms = Terms::new(asked, self.drift);
        let minimum_validity = self.minimum_validity.unwrap_or(asked / 2);
        let validity = terms.validity();
        let voter_deadline = self.voter_deadline.min(asked / 10);
        let why = if validity.is_zero() {
            format!("has no validity left after a drift of {:?}", self.drift.over(asked))
        } else if validity <= minimum_validity {
            format!(
                "leaves {validity:?} after drift, not more than the minimum validity of \
                 {minimum_validity:?}"
            )
        } else if let Some(long) = self.replica_timeout().filter(|it| *it > voter_deadline / 2) {
            // The script's own round trip needs the other half.
            format!(
                "leaves each voter {voter_deadline:?} to answer, less than twice the replica \
                 timeout of {long:?}"
            )
        } else {
            let longest_deadline = self.longest_deadline(asked);
            return Ok(Rules { terms, minimum_validity, voter_deadline, longest_deadline });
        };
        Err(Error::invalid(format!("the lease of {lease:?} {why}")))
    }

    fn check_lease(&self, lease: Duration) -> Result<(), Error> {
        let (longest, least) = (self.longest_lease(), self.voter_deadline.saturating_mul(2));
        let why = if lease.is_zero() {
            return Err(Error::invalid("the lease is zero"));
        } else if lease < Duration::from_millis(1) {
            // Voters would be asked for 0 ms, and the lock given to two clients at once.
            "is less than a millisecond".into()
        } else if lease > Self::LONGEST_LEASE {
            format!("is over the limit of {:?}", Self::LONGEST_LEASE)
        } else if lease > longest && self.restart_guard != RestartGuard::Off {
            // A quarantine lasts for the longest lease. A vote for longer could be forgotten, and
            // its voter count again while the hold still relies on it (law 1).
            format!(
                "is over the longest lease of {longest:?}, for which voters that may have \
                 forgotten are kept out: set `longest_lease`, to the same in all clients"
            )
        } else if lease < least {
            let deadline = self.voter_deadline;
            format!("is less than {least:?}, twice the voter deadline of {deadline:?}")
        } else {
            return Ok(());
        };
        Err(Error::invalid(format!("the lease of {lease:?} {why}")))
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

    /// The error after a change of the defaults.
    fn error(change: fn(&mut Settings)) -> String {
        let mut settings = Settings::default();
        change(&mut settings);
        let error = settings.check().unwrap_err();
        assert!(error.is_invalid(), "{error}");
        error.to_string()
    }

    type Row = (fn(&mut Settings), &'static str);

    #[test]
    fn a_lease_that_cannot_work_is_refused_with_the_values_that_clash() {
        let rows: [Row; 7] = [
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
                |it| it.replica_acks = acks(1, MS(101)),
                "the lease of 30s leaves each voter 200ms to answer, less than twice the replica \
                 timeout of 101ms",
            ),
        ];
        for (change, text) in rows {
            assert_eq!(error(change), text);
        }
        let settings = Settings { replica_acks: acks(1, MS(100)), ..Settings::default() };
        let error = settings.rules(MS(1_000)).unwrap_err().to_string();
        assert!(error.contains("leaves each voter 100ms to answer"), "of one lock alone: {error}");
    }

    #[test]
    fn any_other_setting_that_cannot_work_is_refused_with_the_values_that_clash() {
        let rows: [Row; 8] = [
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
        for (change, text) in rows {
            assert_eq!(error(change), text);
        }
    }

    #[test]
    fn settings_at_their_limits_are_taken() {
        let changes: [fn(&mut Settings); 5] = [
            |_| {},
            |it| it.hold_at_most = Some(MS(1)),
            |it| it.fence_memory = Settings::LONGEST_MEMORY,
            |it| it.replica_acks = acks(1, MS(100)),
            |it| it.replica_acks = acks(0, MS(101)),
        ];
        for change in changes {
            let mut settings = Settings::default();
            change(&mut settings);
            settings.check().unwrap();
        }
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
