//! The mutex.

use std::{fmt, sync::Arc, time::Duration};

use super::{Holder, Inspection, MutexGuard, VoterView, mutex_record::MutexRecord};
use crate::{
    coordinator::{Coordinator, Limit},
    engine::Rules,
    hold::{Holds, Wish, enter},
    node::Call,
    scripts::Answer,
    settings::Settings,
    words::{Cause, Error, Kind, LockName, Owner, Verdict},
};

/// A reentrant mutex held by a majority of the voters.
///
/// Made by [`Quorate::mutex`](crate::Quorate::mutex); a cheap value that says which lock and how,
/// and that sends nothing before [`lock`](Self::lock) and its like.
///
/// Who holds is a *hold*: one outermost acquisition. Without [`owner`](Self::owner) every
/// acquisition is a hold of its own, so a second `lock()` waits for the first guard. With an owner,
/// whoever has that owner enters again at once.
///
/// Waiters of one process stand in line and come in the order of asking; between processes there
/// is no order. A waiter is woken by the release and otherwise asks again when the holder's lease
/// ends.
#[derive(Clone)]
#[must_use = "it does nothing until it is locked"]
pub struct Mutex {
    coordinator: Arc<Coordinator>,
    holds: Arc<Holds>,
    name: Result<LockName, Error>,
    owner: Option<Owner>,
    lease: Duration,
    renewed: bool,
}

impl Mutex {
    pub(crate) fn new(coordinator: &Arc<Coordinator>, holds: &Arc<Holds>, name: &str) -> Self {
        Self {
            coordinator: Arc::clone(coordinator),
            holds: Arc::clone(holds),
            name: LockName::parse(name),
            owner: None,
            lease: coordinator.settings.lease,
            renewed: true,
        }
    }

    /// Acquires for this owner, who may enter again while it holds the lock.
    pub fn owner(mut self, owner: &Owner) -> Self {
        self.owner = Some(*owner);
        self
    }

    /// The lease for which voters give the lock, renewed from a third of it on until the guard is
    /// dropped. It is also the longest time for which a lock outlives its dead holder. Default: the
    /// client's.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self.renewed = true;
        self
    }

    /// A lease that is not renewed: the lock is lost when it ends, unless released before.
    pub fn lease_fixed(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self.renewed = false;
        self
    }

    /// Acquires the lock, waiting for as long as another hold has it.
    ///
    /// # Errors
    ///
    /// [`is_no_quorum`](Error::is_no_quorum): no majority of the voters has answered for longer
    /// than the patience (default 10 s); each voter's cause is in it.
    /// [`is_invalid`](Error::is_invalid): the name or the lease cannot be used; nothing was sent.
    /// [`is_lost`](Error::is_lost): this owner held the lock, lost it and still has a guard of it.
    /// [`is_unconfirmed`](Error::is_unconfirmed): this owner holds the lock, and no majority
    /// answered its re-entry in time; the lock is still held, but this entry does not count.
    /// [`is_closed`](Error::is_closed): the client was closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up the place in line, and undoes on all voters whatever was sent.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let guard = quorum.mutex("invoice:42").lock().await?;
    /// assert!(guard.is_held());
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn lock(&self) -> Result<MutexGuard, Error> {
        loop {
            if let Some(guard) = self.enter(Limit::Never).await? {
                return Ok(guard);
            }
        }
    }

    /// Acquires the lock if no other hold has it; `None` where one has.
    ///
    /// Of several tries at the same moment one succeeds.
    ///
    /// # Errors
    ///
    /// As [`lock`](Self::lock); `is_no_quorum` at once, without patience.
    ///
    /// # Cancel safety
    ///
    /// As [`lock`](Self::lock).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let mutex = quorum.mutex("invoice:42");
    /// let guard = mutex.try_lock().await?.expect("nobody else wants it");
    /// assert!(mutex.try_lock().await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn try_lock(&self) -> Result<Option<MutexGuard>, Error> {
        self.enter(Limit::Now).await
    }

    /// Acquires the lock, waiting no longer than `limit`; `None` where another hold had it
    /// throughout. Nothing is left behind then.
    ///
    /// # Errors
    ///
    /// As [`lock`](Self::lock).
    ///
    /// # Cancel safety
    ///
    /// As [`lock`](Self::lock).
    pub async fn lock_within(&self, limit: Duration) -> Result<Option<MutexGuard>, Error> {
        let until = self.coordinator.clock.now() + limit;
        self.enter(Limit::Until(until)).await
    }

    async fn enter(&self, limit: Limit) -> Result<Option<MutexGuard>, Error> {
        let (record, rules) = self.checked()?;
        let wish =
            Wish { record: Arc::new(record), rules, renewed: self.renewed, owner: self.owner };
        let entered = enter(&self.coordinator, &self.holds, &wish, limit).await?;
        Ok(entered.map(MutexGuard::new))
    }

    /// Asks every voter who holds the lock. Waits for all of them, no longer than the voter
    /// deadline.
    ///
    /// # Errors
    ///
    /// [`is_no_quorum`](Error::is_no_quorum): fewer than a majority answered.
    /// [`is_invalid`](Error::is_invalid): the name or the lease cannot be used.
    /// [`is_closed`](Error::is_closed): the client was closed.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let mutex = quorum.mutex("invoice:42");
    /// let guard = mutex.lock().await?;
    /// let holder = mutex.inspect().await?.holder().expect("it is held");
    /// assert_eq!((&holder.hold, holder.count), (guard.hold(), 1));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn inspect(&self) -> Result<Inspection, Error> {
        let (record, rules) = self.checked()?;
        let answers = self.ask(&record.inspect(), rules).await?;
        let views = self.coordinator.panel.voters.iter().zip(answers).map(|(voter, answer)| {
            let holder = answer.map(|answer| Holder::read(&answer));
            VoterView { voter: voter.label().to_string(), holder }
        });
        Ok(Inspection { voters: views.collect() })
    }

    /// Ends whatever hold there is, whoever has it, and wakes the waiters; says whether there was
    /// one.
    ///
    /// The holder learns of it at its next renewal and is told the lock is lost; one with a fixed
    /// lease, which is not renewed, at its release or its deadline. Until then it believes to hold
    /// the lock, so this is for operators who know that it is gone or stuck.
    ///
    /// # Errors
    ///
    /// [`is_no_quorum`](Error::is_no_quorum): fewer than a majority could be asked or told; call
    /// again. [`is_invalid`](Error::is_invalid): the name or the lease cannot be used.
    /// [`is_closed`](Error::is_closed): the client was closed.
    ///
    /// # Cancel safety
    ///
    /// Dropped half way, the hold may have ended or not; calling again finishes it.
    pub async fn force_release(&self) -> Result<bool, Error> {
        let inspection = self.inspect().await?;
        let (record, rules) = self.checked()?;
        let holds = inspection.holds();
        for holder in &holds {
            // Longer than the holder, which renews from a third of its lease on, can go on.
            let left = holder.ttl.unwrap_or_default().min(Settings::LONGEST_LEASE);
            let marker = (left * 4).max(self.coordinator.settings.lease);
            self.ask(&record.force_release(&holder.hold, marker), rules).await?;
        }
        Ok(!holds.is_empty())
    }

    /// The answers of all voters, as far as they come in time; of a majority at least.
    async fn ask(&self, call: &Call, rules: Rules) -> Result<Vec<Result<Answer, Cause>>, Error> {
        let gathered = async { Ok(self.gather(call, rules).await) };
        let answers = self.coordinator.gate.within(gathered).await?;
        self.check_quorum(&answers, rules)?;
        Ok(answers)
    }

    async fn gather(&self, call: &Call, rules: Rules) -> Vec<Result<Answer, Cause>> {
        let Coordinator { clock, panel, .. } = &*self.coordinator;
        let mut asked = panel.ask_all(call);
        let late = || Err(Cause::TimedOut(rules.voter_deadline));
        let mut answers: Vec<_> = (0..panel.quorum.voters()).map(|_| late()).collect();
        let due = clock.now() + rules.voter_deadline;
        for _ in 0..answers.len() {
            tokio::select! {
                biased;
                (voter, answer) = asked.next() => answers[voter] = answer,
                () = clock.sleep_until(due) => break,
            }
        }
        answers
    }

    fn check_quorum(&self, answers: &[Result<Answer, Cause>], rules: Rules) -> Result<(), Error> {
        let needed = self.coordinator.panel.quorum.needed();
        if answers.iter().filter(|answer| answer.is_ok()).count() >= needed {
            return Ok(());
        }
        let verdicts = answers.iter().map(|answer| match answer {
            Ok(answer) => answer.released(),
            Err(cause) => Verdict::Unknown(cause.clone()),
        });
        let lock = self.name.as_ref().map_or("", |name| name.as_str()).into();
        let kind = Kind::NoQuorum { lock, needed, after: rules.voter_deadline };
        Err(Error::new(kind, self.coordinator.panel.report(verdicts.collect())))
    }

    fn checked(&self) -> Result<(MutexRecord, Rules), Error> {
        let name = self.name.clone()?;
        let settings = &self.coordinator.settings;
        let rules = settings.rules(self.lease)?;
        Ok((MutexRecord::new(name, &settings.keys, rules.voter_deadline), rules))
    }
}

impl fmt::Debug for Mutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex")
            .field("name", &self.name.as_ref().map_or("", |name| name.as_str()))
            .field("owner", &self.owner)
            .field("lease", &self.lease)
            .field("renewed", &self.renewed)
            .finish_non_exhaustive()
    }
}
