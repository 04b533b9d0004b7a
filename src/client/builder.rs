//! Every setting of a client.

use std::{fmt, sync::Arc, time::Duration};

use tokio::runtime::Handle;

use super::{Cluster, Quorate, VoterSet, connect::connect};
#[cfg(feature = "embedded")]
use crate::embedded::{EmbeddedVoter, Machine, Simulated};
#[cfg(feature = "tls")]
use crate::voter::Tls;
use crate::{
    clock::Clock,
    hold::Holds,
    keys::Prefix,
    kinds::Forms,
    locks::LockParts,
    metric::NamedLocks,
    proto::{Drift, Error, RestartGuard},
    settings::Settings,
    voter::{Address, Credentials, Provider, Security},
};

/// Sets up a client. Everything is checked in [`connect`](Self::connect).
#[derive(Clone, Debug, Default)]
#[must_use = "it does nothing until it connects"]
pub struct Builder {
    pub(super) voters: VoterSet,
    pub(super) replaced: Option<VoterSet>,
    pub(super) security: Security,
    pub(super) settings: Settings,
    pub(super) seed: Option<u64>,
    pub(super) clock: Option<Clock>,
    pub(super) runtime: Option<Handle>,
}

impl Builder {
    /// Adds a server.
    pub fn voter(mut self, address: impl Into<Address>) -> Self {
        self.voters = self.voters.voter(address);
        self
    }

    /// Adds servers.
    pub fn voters<A: Into<Address>>(mut self, addresses: impl IntoIterator<Item = A>) -> Self {
        self.voters = self.voters.voters(addresses);
        self
    }

    /// Adds the voters of a Redis Cluster.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn connect() -> Result<(), quorate::Error> {
    /// use quorate::{Cluster, Quorate};
    ///
    /// let cluster = Cluster::new(["redis://10.0.0.1:7000", "redis://10.0.0.2:7000"]).voters(3);
    /// let quorum = Quorate::builder().cluster(cluster).connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn cluster(mut self, cluster: Cluster) -> Self {
        self.voters = self.voters.cluster(cluster);
        self
    }

    /// Adds voters inside the process. A client with only such voters takes its time from the tokio
    /// runtime, so that tests can pause it.
    #[cfg(feature = "embedded")]
    pub fn embedded<'a>(mut self, voters: impl IntoIterator<Item = &'a EmbeddedVoter>) -> Self {
        self.voters = self.voters.embedded(voters);
        self
    }

    /// Trusted authorities and the client certificate for TLS addresses (`rediss`). Default: the
    /// platform's root certificates, no client certificate. [`connect`](Self::connect) fails if no
    /// address uses TLS.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.security.tls = Some(tls);
        self
    }

    /// Asks for credentials before each new connection, so that they can change while the client
    /// runs: for passwords that are rotated, and tokens that expire. An address that has
    /// credentials keeps its own.
    ///
    /// The function gets the voter's label, by which errors also name the voter. It is called once
    /// for each of the two connections to a voter, and again whenever a connection has to be
    /// replaced. If it fails, or does not answer within ten seconds, the connection has failed and
    /// is tried again soon. The text of its error is in the voter's cause, so it must not contain
    /// the secret. The function runs on the [thread of the clients](crate#runtime). It must not
    /// block: that would hold up the renewals of all clients.
    ///
    /// A new password does not touch connections that are open. To force them to log in again,
    /// close them on the server (`CLIENT KILL`). For sentinels, the parameters of their address
    /// are used.
    ///
    /// In a cluster, the function gets the `host:port` of each server. The client asks for the map
    /// of the slots on another connection. While servers are away or slots move, it opens up to
    /// twenty such connections a second. If the function is expensive, cache its answer for a
    /// while.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn connect() -> Result<(), quorate::Error> {
    /// use quorate::{Credentials, Quorate};
    ///
    /// let quorum = Quorate::builder()
    ///     .voters(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])
    ///     .credentials(|_voter| async {
    ///         let password = tokio::fs::read_to_string("/run/secrets/redis").await?;
    ///         Ok::<_, std::io::Error>(Credentials::new("quorate", password.trim()))
    ///     })
    ///     .connect()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn credentials<F, Asked, E>(mut self, ask: F) -> Self
    where
        F: Fn(&str) -> Asked + Send + Sync + 'static,
        Asked: Future<Output = Result<Credentials, E>> + Send + 'static,
        E: fmt::Display,
    {
        self.security.credentials = Some(Provider::new(ask));
        self
    }

    /// The locks that metrics name, in a label `lock`: each by its name, or several by the
    /// beginning of their names and a `*`. The value of the label is the text that is given here,
    /// so there are no more values than that. The first text that fits a lock is used. Default: no
    /// lock is named.
    ///
    /// # Examples
    ///
    /// ```
    /// let builder = quorate::Quorate::builder().named_metrics(["nightly report", "invoice:*"]);
    /// ```
    pub fn named_metrics<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.settings.named = NamedLocks::new(names);
        self
    }

    /// The old voters, while the voters of this builder take their place: the step between clients
    /// with only the old voters and clients with only the new voters.
    ///
    /// Such a client needs a majority of the new voters *and* a majority of the old voters for each
    /// decision: to acquire, renew and release a lock, for its token, for a place in a queue, and
    /// to end it by force. So it excludes clients of either set, and they exclude it. The two sets
    /// may have different sizes, and may share none, some or all of their voters. A voter in both
    /// is asked once and has a vote in each. Give it the same address in both sets.
    ///
    /// To change the voters of a running system, restart its clients in three steps, each with all
    /// clients before the next begins: the old voters; the new ones replacing the old; the new
    /// ones. Never skip the middle: clients of the old voters alone and clients of the new voters
    /// alone do not exclude each other. The book has the procedure, in *Changing the voters*
    /// (`docs/changing-voters.md`).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn connect() -> Result<(), quorate::Error> {
    /// use quorate::Quorate;
    ///
    /// let old = ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"];
    /// let new = [old[0], old[1], old[2], "redis://10.0.0.4", "redis://10.0.0.5"];
    /// let quorum = Quorate::builder().voters(new).replacing(old).connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn replacing(mut self, old: impl Into<VoterSet>) -> Self {
        self.replaced = Some(old.into());
        self
    }

    /// Runs the client on this runtime, which must have time and I/O, and must not end before the
    /// client.
    ///
    /// By default, the clients of a process share a [thread](crate#runtime). On the runtime of its
    /// callers a client saves the way to that thread and back:
    /// over three servers beside it, a lock and its release of a single task take 310 us in place
    /// of 362, and on a runtime of one thread 259 us in place of 375; 64 tasks have 1.04 and 1.24
    /// times as many locks a second. But then **a blocked thread of this runtime can lose locks**,
    /// whatever its other threads do, and when the runtime ends, all calls fail with
    /// [`is_closed`](Error::is_closed). Each new connection needs the pool for blocking work
    /// (`spawn_blocking`) for a moment: while all its threads are taken, a connection that ends is
    /// not replaced.
    ///
    /// By default a client of voters inside the process lives on the runtime in which it connects.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn connect() -> Result<(), quorate::Error> {
    /// let quorum = quorate::Quorate::builder()
    ///     .voters(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])
    ///     .runtime(tokio::runtime::Handle::current())
    ///     .connect()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn runtime(mut self, runtime: Handle) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Connects.
    ///
    /// # Errors
    ///
    /// As [`Quorate::connect`]; [`is_invalid`](Error::is_invalid) also if settings clash, if voters
    /// of a cluster [share primaries](crate::SharedPrimaries), or if the [runtime](Self::runtime)
    /// has no timer; [`is_not_connected`](Error::is_not_connected) also if a majority takes longer
    /// to answer than the [voter deadline](Self::voter_deadline) that was set.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// use std::time::Duration;
    ///
    /// let voters = quorate::embedded::voters(5);
    /// let quorum = quorate::Quorate::builder()
    ///     .embedded(&voters)
    ///     .lease(Duration::from_secs(10))
    ///     .connect()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect(self) -> Result<Quorate, Error> {
        let coordinator = connect(self).await?;
        // Once for the client: a program that makes a lock value for each lock does not make the
        // texts of leases and channels again.
        let forms = Arc::new(Forms::new(coordinator.settings()));
        let holds = Holds::of_client(&coordinator);
        let parts = LockParts { coordinator, holds, forms, dialect: None };
        Ok(Quorate { parts: Arc::new(parts) })
    }
}

// Not methods of the builder itself: cargo unifies features, so a test that turns `embedded` on
// gives them to the builder of the service, too. With one seed two services have the same hold ids.
#[cfg(feature = "embedded")]
impl Simulated for Builder {
    fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    fn machine(mut self, machine: &Machine) -> Self {
        self.clock = Some(Clock::Machine(machine.clone()));
        self
    }
}

/// Makes a method of the builder of each row: its name, its values, and what it sets.
macro_rules! settings {
    ($(
        $(#[$about:meta])* $name:ident($($value:ident: $type:ty),+) => |$it:ident| $set:expr;
    )*) => {
        impl Builder {
            $(
                $(#[$about])*
                pub fn $name(mut self, $($value: $type),+) -> Self {
                    let $it = &mut self.settings;
                    $set;
                    self
                }
            )*
        }
    };
}

settings! {
    /// The lease of locks that name none. Default: 30 s. At least twice the voter deadline, at most
    /// a day.
    lease(lease: Duration) => |it| it.lease = lease;

    /// For how long a lock may be held, however often its lease is renewed: see
    /// [`Mutex::hold_at_most`](crate::Mutex::hold_at_most). For locks that name no other time.
    /// Default: no limit. At least a millisecond.
    hold_at_most(time: Duration) => |it| it.hold_at_most = Some(time);

    /// How long one voter has to answer one request. Without an answer in time, its vote is
    /// unknown. By default it has 200 ms, or longer if its round trips take longer. A deadline that
    /// you set is not made longer. It is never more than a tenth of the lease.
    ///
    /// [`connect`](Self::connect) fails if a majority of the voters needs longer than that.
    voter_deadline(deadline: Duration) => |it| {
        it.voter_deadline = deadline;
        // Not made longer for slow voters: `connect` fails if they are a majority.
        it.deadline_is_fixed = true;
    };

    /// By how much clocks may drift apart during a lease: parts per million of the lease, and a
    /// fixed time. A client relies on a lease for that much less. Default: 10,000 (a hundredth) and
    /// 2 ms.
    ///
    /// **All clients need the same.** A client also judges by it whether a voter's clock has moved.
    /// A client with a larger drift would count a voter that has ended the leases of others.
    drift(ppm: u32, fixed: Duration) => |it| it.drift = Drift { ppm, fixed };

    /// The least validity with which a lock is handed out. If less is left when a majority has
    /// granted it, the votes are given back, and the attempt fails. Default: half the lease.
    minimum_validity(validity: Duration) => |it| it.minimum_validity = Some(validity);

    /// For how long `lock` goes on asking while too few voters answer, before it fails. Default:
    /// 10 s. A call with a limit of its own asks until that limit.
    quorum_timeout(timeout: Duration) => |it| it.quorum_timeout = timeout;

    /// How often observers of an election, and waiters for a read/write lock of Redisson, ask again
    /// in case a wake-up was lost. Default: 2 s. All other waiters are in a queue, and ask again
    /// after a third of the [waiter deadline](Self::waiter_deadline).
    poll_interval(interval: Duration) => |it| it.poll_interval = interval;

    /// How long a waiter that does not ask again keeps its place in the queue of a lock. A waiter
    /// that dies blocks the waiters behind it for this time. Waiters ask again after a third of it.
    ///
    /// - Default: 5 s, or four times the voter deadline if that is longer.
    /// - At least four times the voter deadline.
    /// - At most the lease that the waiter asks for.
    /// - For a [`Mutex`](crate::Mutex) in a cluster, at most 1.5 s or four times the voter
    ///   deadline.
    waiter_deadline(deadline: Duration) => |it| it.waiter_deadline = Some(deadline);

    /// How long [`connect`](Self::connect) tries to reach a majority that answers in time.
    /// Default: 5 s.
    connect_timeout(timeout: Duration) => |it| it.connect_timeout = timeout;

    /// Whether voters that may have forgotten votes go into quarantine, where they do not count for
    /// new holds. Default: [`Relative`](RestartGuard::Relative). If it is
    /// [`Off`](RestartGuard::Off) in one client, it must be off in all.
    restart_guard(guard: RestartGuard) => |it| it.restart_guard = guard;

    /// The longest lease that any client of these voters asks for, which is also the length of a
    /// quarantine. Longer leases are refused, unless the [restart guard](Self::restart_guard) is
    /// off. Default: 30 s.
    ///
    /// **All clients need the same.** A client with a shorter one ends a quarantine too early: the
    /// voter has forgotten a hold of another client that still lasts, and votes again: two holders.
    longest_lease(lease: Duration) => |it| it.longest_lease = Some(lease);

    /// For how long voters remember the token of a lock that nobody acquires, and whose hold nobody
    /// renews. Default: 10 minutes.
    ///
    /// It must be longer than the time by which the wall clocks of any two clients differ. A token
    /// is never lower than its client's wall clock in microseconds. So tokens grow even if voters
    /// forget them, if the clocks of clients differ by less than this time. A voter caps a client's
    /// clock at half of this time ahead of its own. Each name that was locked within this time
    /// takes some 180 bytes on every voter.
    fence_memory(memory: Duration) => |it| it.fence_memory = memory;

    /// How many replicas of a voter must acknowledge a grant before it counts as a vote. Default:
    /// 0, none is asked.
    ///
    /// Redis answers before its replicas have what was written, so a replica that is promoted may
    /// not know the lock. With this setting, a `WAIT` follows each acquire and each renewal, in the
    /// same pipeline and so without a further round trip. A grant that too few replicas acknowledge
    /// within the [timeout](Self::replica_timeout) is no vote
    /// ([`Cause::Unacknowledged`](crate::Cause::Unacknowledged)) and is given back. Refusals and
    /// releases need no replica. Embedded voters have no replicas and are refused.
    ///
    /// An acknowledged vote is in the memory of that many replicas, not on their disks. The replica
    /// that is promoted may be another one, unless all must acknowledge. A server that takes over
    /// is in [quarantine](Self::restart_guard) all the same.
    ///
    /// A voter does nothing else for this client during a `WAIT`. So there is one at a time, and
    /// grants that come meanwhile share the next. If too few replicas answer, each `WAIT` lasts for
    /// the timeout and, with Redis' usual settings, up to a tenth of a second longer: such a voter
    /// is as good as down for new locks of this client, and its releases are late.
    replica_acks(replicas: u32) => |it| it.replica_acks.replicas = replicas;

    /// How long replicas have to acknowledge a grant. Default: a quarter of the voter deadline. At
    /// least a millisecond, and at most half the voter deadline (or a twentieth of the lease, if
    /// that is shorter). It has no effect without [`replica_acks`](Self::replica_acks).
    replica_timeout(timeout: Duration) => |it| it.replica_acks.timeout = Some(timeout);

    /// Accepts servers that delete keys when their memory is full: with a `maxmemory`, and a
    /// `maxmemory-policy` other than `noeviction`. Default: false, such servers are refused.
    ///
    /// **Unsafe.** The keys of locks have an expiry, so such a server deletes them first. A lock
    /// whose votes were deleted may be given to somebody else at once, while its holder still
    /// relies on it. A server that has deleted keys is in
    /// [quarantine](crate::Quarantine::Emptied), but this is noticed up to ten seconds later. For
    /// servers that you cannot configure, and locks that need not exclude.
    allow_eviction(allow: bool) => |it| it.may_evict = allow;

    /// How many requests leave for one voter in one call, at most. Default: 32.
    ///
    /// While requests of this client are on their way to a voter, further requests gather, and
    /// leave as one call. That costs client and server a fraction of single requests. A voter does
    /// nothing else while it runs a call, some 0.2 ms for 32 requests. With 1, each request leaves
    /// by itself at once.
    batch_size(most: usize) => |it| it.batch_size = most;

    /// What the names of all keys on the voters begin with: `<prefix>:{<lock name>}`, and names
    /// derived from it. Default: `quorate`. It is not empty and has no brace. Only locks of
    /// [Redisson](crate::Redisson) have names of their own, whatever the prefix.
    ///
    /// Clients with different prefixes do not see each other's locks. Braces and percent signs of a
    /// lock name are percent-encoded, so that the braces always mark the hash tag.
    prefix(prefix: impl Into<String>) => |it| it.keys = Prefix::new(prefix);

    /// What the client is called. The ids of its holds begin with it, as in
    /// `web-1.4711@5f0ad4b396b14a3c8c2f:1000042`, so that people find the process: see
    /// [`HoldId::client_name`](crate::HoldId::client_name). Any text of 1 to 64 bytes without
    /// control characters, such as `web:1` or `Zürich`; [`connect`](Self::connect) refuses other
    /// names. In ids all but ASCII letters, digits, `.`, `_` and `-` is percent-encoded
    /// (`web%3A1`); where a name is asked for, it is as it was given. Default: the host, of which
    /// an id has at most the last 20 bytes, and the process id. A client that has only embedded
    /// voters has none by default.
    ///
    /// The name need not be the only one of its kind: random digits follow it.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// let builder = quorate::Quorate::builder().embedded(&voters).client_name("billing-1");
    /// let quorum = builder.connect().await?;
    /// let guard = quorum.mutex("invoice:42").lock().await?;
    /// let seen = quorum.mutex("invoice:42").inspect().await?;
    /// assert_eq!(seen.holders[0].client_name.as_deref(), Some("billing-1"));
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    client_name(name: impl Into<String>) => |it| it.client_name = Some(name.into());

    /// The number of the voter configuration: of the list of voters that this client has. Default:
    /// 1. Count it up when you change the voters, with the first client that
    /// [replaces](Self::replacing) the old ones by the new.
    ///
    /// Clients say to each voter which configuration they have, with how many voters, whether these
    /// replace others, and the [longest lease](Self::longest_lease), the [drift](Self::drift) and
    /// whether the [restart guard](Self::restart_guard) is off. They compare that on each new
    /// connection and every 15 seconds, never on the way of a lock. Clients have a configuration
    /// mismatch if
    ///
    /// - they have the same configuration with different numbers of voters,
    /// - they have different longest leases or drifts, or one has no restart guard, or
    /// - they are more than one step apart. The steps of a change from configuration 1 to 2 are:
    ///   configuration 1; configuration 2, replacing; configuration 2.
    ///
    /// A client that finds another configuration at clients that a voter knows from the last
    /// longest lease and 45 s does not connect
    /// ([`is_configuration_mismatch`](Error::is_configuration_mismatch)); nor does one whose voters
    /// were replaced meanwhile, for 30 days. One that finds it later logs an error, sets the metric
    /// [`CONFIGURATION_MISMATCH`](crate::metric::CONFIGURATION_MISMATCH), gets no new locks until
    /// it is over, and loses those that it holds and renews. A client that cannot compare on a
    /// majority of the voters is [not connected](Error::is_not_connected).
    ///
    /// A mismatch is not found if
    ///
    /// - two clients have no voter in common, and no third client has voters of both;
    /// - two clients have the same configuration, with as many voters but others;
    /// - two clients have different prefixes.
    ///
    /// A client that has only embedded voters takes part only if it names a voter configuration.
    voter_configuration(number: u32) => |it| it.configuration = Some(number);

    /// Takes no part in the [voter configuration](Self::voter_configuration): this client stores no
    /// configuration on any voter, and connects whatever others have stored. For tools that take no
    /// locks. Default: false.
    only_looks(only: bool) => |it| it.only_looks = only;
}
