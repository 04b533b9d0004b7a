//! How a command asks for its lock: for how long it waits, and what it says meanwhile.

use std::{pin::pin, time::Duration};

use clap::Args;
use quorate::{Error, Quorate};
use tokio::time;

use crate::{
    clock,
    console::{Code, Console, Failure},
    lock::{self, LockHeld, LockKind, Request},
    screen::{Short, quoted},
    setup,
};

/// The time after which a terminal shows what the program waits for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct AskingOptions {
    /// Wait no longer than this, as in 30s [default: for as long as it is taken]
    #[arg(long, value_name = "TIME", value_parser = setup::parse_time, conflicts_with = "now")]
    wait: Option<Duration>,

    /// Do not wait for a lock that is taken
    #[arg(long = "try", id = "now")]
    now: bool,

    /// Do not wait for a quorum either, where servers have restarted
    ///
    /// A server that may have forgotten locks does not count for a while. If too few others are
    /// left, the program says so and waits until enough count again, also with --try and --wait,
    /// for the longest lease at most. With this option it ends with 69.
    #[arg(long)]
    no_quorum_wait: bool,

    /// For how long the servers give the lock; it is renewed from a third of it on
    #[arg(long, value_name = "TIME", value_parser = setup::parse_time)]
    pub(crate) lease: Option<Duration>,

    /// What the lock is held for, as others see it: up to 200 bytes
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

/// A lock that is asked for.
pub(crate) struct Asking<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: LockKind<'a>,
    pub(crate) options: &'a AskingOptions,
    /// How long a quarantine lasts.
    pub(crate) longest: Duration,
    pub(crate) console: &'a Console,
}

impl Asking<'_> {
    /// `None`: the firing is done.
    pub(crate) async fn acquire(&self, quorum: &Quorate) -> Result<Option<LockHeld>, Failure> {
        self.acquire_with_quorum(quorum).await.map_err(|error| self.not_acquired(error))
    }

    /// Asks for the lock. If only quarantines keep a majority away, waits for their end first.
    // Also with --try and --wait: the nightly job of a fleet whose servers had restarted ended with
    // 69 on every machine, as a quarantine begins with the first look at a server
    // (`a_nightly_job_runs_once_though_most_servers_have_restarted_since_anybody_was_there`).
    async fn acquire_with_quorum(&self, quorum: &Quorate) -> Result<Option<LockHeld>, Error> {
        let AskingOptions { wait, now: tries, no_quorum_wait, .. } = self.options;
        let limit = if *tries { Some(Duration::ZERO) } else { *wait };
        // It asks without waiting at first: the time of --wait begins when there is a quorum.
        let (mut within, mut until) = (Some(Duration::ZERO), None);
        loop {
            let error = match self.acquire_within(quorum, within).await {
                Err(error) => error,
                held => return held,
            };
            let (now, after) = (clock::now(), error.retry_after().filter(|_| !no_quorum_wait));
            let Some(after) = after else {
                if within == limit || error.is_permanent() {
                    return Err(error);
                }
                within = limit;
                continue;
            };
            if until.is_some_and(|until| now + after > until) {
                return Err(error);
            }
            if until.is_none() {
                // A quarantine after a failover ends later than a longest lease from now.
                until = Some(now + self.longest.max(after));
                let time = Short(after);
                self.console.warn(format_args!("waiting {time} for a quorum: {error}"));
            }
            time::sleep(after).await;
        }
    }

    /// The failure to report.
    fn not_acquired(&self, error: Error) -> Failure {
        // The library checked what the command line said, such as --lease.
        if error.is_invalid() {
            return Failure::new(Code::Usage, error.to_string());
        }
        // A lock that is taken is one line, as cron mails what is printed: the name of the client
        // in place of the long id, and no line for each voter.
        let holder = error.holder().filter(|_| error.is_busy() && !self.console.is_verbose);
        let Some((hold, client)) = holder.and_then(|hold| Some((hold, hold.client_name()?))) else {
            return error.into();
        };
        let what = error.to_string();
        let (before, after) = what.rsplit_once(hold.as_str()).unwrap_or((&what, ""));
        Failure::new(Code::Busy, format!("{before}{}{after}", quoted(&client)))
    }

    async fn acquire_within(
        &self,
        quorum: &Quorate,
        limit: Option<Duration>,
    ) -> Result<Option<LockHeld>, Error> {
        let note = self.options.note.as_deref();
        let request = Request { wait: limit, note, ..Request::default() };
        let mut acquiring = pin!(LockHeld::acquire(quorum, self.kind, self.name, request));
        if self.console.is_watched() {
            if let Ok(acquired) = time::timeout(PATIENCE, &mut acquiring).await {
                return acquired;
            }
            tokio::select! {
                // The lock may come while the voters are asked who has it: then nothing is said.
                biased;
                acquired = &mut acquiring => return acquired,
                who = self.who_has_it(quorum) => self.console.note(format_args!("waiting: {who}")),
            }
        }
        acquiring.await
    }

    /// Says in one line who has the lock, or why nobody gets it.
    async fn who_has_it(&self, quorum: &Quorate) -> String {
        let name = quoted(self.name);
        let holds = match lock::find(quorum, self.name).await {
            Ok(holds) => holds,
            Err(error) => return quoted(&Failure::from(error).what),
        };
        let mut holds = holds.iter().filter(|hold| hold.keeps_from(self.kind));
        match (holds.next(), holds.count()) {
            (Some(hold), 0) => format!("`{name}` is {hold}"),
            (Some(hold), others) => format!("`{name}` is {hold}, and {others} more have it"),
            (None, _) => {
                let status = quorum.status().await;
                let votes: Vec<_> = status.sets().map(|set| set.to_string()).collect();
                format!("nobody has a majority of `{name}`; {}", votes.join("; "))
            }
        }
    }
}
