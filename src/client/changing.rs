//! Settings of a client whose voters are changed.

use super::{Builder, VoterSet};

impl Builder {
    /// The old voters, while the voters of this builder take their place: the step between clients
    /// that have the old voters alone and clients that have the new ones alone.
    ///
    /// Such a client needs a majority of the new voters *and* a majority of the old ones for each
    /// decision: to acquire, renew and release a lock, for its token, for a place in a queue, and
    /// to end it by force. So it excludes, and is excluded by, clients of either set. The two sets
    /// may have different sizes, and may share none, some or all of their voters. A voter in both
    /// is asked once and has a vote in each; name it alike in both sets.
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

    /// The number of the roster: of the list of voters that this client has. Default: 1. Count it
    /// up when you change the voters, with the first client that [replaces](Self::replacing) the
    /// old ones by the new.
    ///
    /// Clients say to each voter which roster they have, with how many voters, whether these
    /// replace others, and the [longest lease](Self::longest_lease), the [drift](Self::drift) and
    /// whether the [restart guard](Self::restart_guard) is off. They compare that on each new
    /// connection and every 15 seconds, never on the way of a lock. Clients are out of step if
    ///
    /// - they have the same roster with different numbers of voters,
    /// - they have different longest leases or drifts, or one has no restart guard, or
    /// - they are more than one step apart. The steps of a change from roster 1 to 2 are: roster 1;
    ///   roster 2, replacing; roster 2.
    ///
    /// A client that finds itself out of step with clients that a voter knows from the last longest
    /// lease and 45 s does not connect ([`is_out_of_step`](crate::Error::is_out_of_step)); nor does
    /// one whose voters were replaced meanwhile, for 30 days. One that finds it later logs an
    /// error, sets the metric [`OUT_OF_STEP`](crate::metric::OUT_OF_STEP), gets no new locks until
    /// it is over, and loses those that it holds and renews. A client that cannot compare on a
    /// majority of the voters is [not connected](crate::Error::is_not_connected).
    ///
    /// Nothing is found where the clients have no voter in common and no client that has voters of
    /// both, or where the voters of one roster are as many and others. Clients with different
    /// prefixes do not meet. A client that has only embedded voters takes part only if it names
    /// a roster.
    pub fn roster(mut self, number: u32) -> Self {
        self.settings.roster = Some(number);
        self
    }

    /// Takes no part in the [roster](Self::roster): this client says to no voter what it believes,
    /// and connects whatever others believe. For tools that take no locks. Default: false.
    pub fn only_looks(mut self, only: bool) -> Self {
        self.settings.only_looks = only;
        self
    }
}
