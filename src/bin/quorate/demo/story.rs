//! Five voters and three clients, and what is shown of them.

use std::{
    io::{self, Write},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use quorate::{
    Cause, FairMutex, HoldId, Quorate,
    embedded::{self, EmbeddedVoter},
    inspection::{Inspection, VoterView},
};
use tokio::time;

use crate::{
    clock,
    exit::{Code, Failure},
    frame::{Frame, Short, Tone, share_of},
};

/// Short, so that the story is.
pub(super) const LEASE: Duration = Duration::from_secs(3);
/// A server that does not answer by then is asked no more.
const VOTER_DEADLINE: Duration = Duration::from_millis(300);
pub(super) const LOCK: &str = "orders";

/// How many of the latest sentences stand below the voters.
const SENTENCES: usize = 8;
const BAR: usize = 20;

#[derive(Debug)]
pub(super) struct Story {
    pub(super) voters: Vec<EmbeddedVoter>,
    pub(super) ada: Quorate,
    pub(super) ben: Quorate,
    pub(super) cleo: Quorate,
    /// Looks at the lock, and never asks for it.
    observer: FairMutex,
    pace: Duration,
    is_drawn: bool,
    started: Duration,
    said: Mutex<Vec<(Tone, String)>>,
}

impl Story {
    pub(super) async fn start(pace: Duration, is_drawn: bool) -> Result<Self, Failure> {
        let voters = embedded::voters(5);
        let client = |name: &str| {
            let builder = Quorate::builder().embedded(&voters).client_name(name);
            builder.lease(LEASE).longest_lease(LEASE).voter_deadline(VOTER_DEADLINE).connect()
        };
        let (ada, ben, cleo) = (client("Ada").await?, client("Ben").await?, client("Cleo").await?);
        let observer = client("observer").await?.fair_mutex(LOCK);
        let (started, said) = (clock::now(), Mutex::default());
        Ok(Self { voters, ada, ben, cleo, observer, pace, is_drawn, started, said })
    }

    /// What the voters say.
    pub(super) async fn look(&self) -> Result<Inspection, Failure> {
        Ok(self.observer.inspect().await?)
    }

    /// Whether this voter has given its vote to the hold.
    pub(super) async fn has_vote(&self, voter: usize, hold: &HoldId) -> bool {
        let seen = self.look().await.map(|mut seen| seen.voters.swap_remove(voter).holder);
        matches!(seen, Ok(Ok(Some(holder))) if holder.hold == *hold)
    }

    /// A heading, for what comes next.
    pub(super) fn title(&self, text: &str) {
        if !self.is_drawn {
            print(&format!("\n{text}"));
        }
        self.keep(Tone::Heading, text.to_owned());
    }

    /// Says what has happened. Where nothing is drawn, what the voters say stands below it.
    pub(super) async fn tell(&self, text: &str) -> Result<(), Failure> {
        let passed = clock::now().saturating_sub(self.started).as_secs_f64();
        let line = format!("{passed:5.1}s  {text}");
        if !self.is_drawn {
            print(&line);
            let seen = self.look().await?;
            let votes: Vec<_> = seen.voters.iter().map(|view| vote(view).1).collect();
            print(&format!("        {}", votes.join(" | ")));
        }
        self.keep(Tone::Plain, line);
        time::sleep(self.pace).await;
        Ok(())
    }

    fn keep(&self, tone: Tone, line: String) {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).push((tone, line));
    }

    pub(super) async fn eventually(
        &self,
        what: &str,
        mut condition: impl AsyncFnMut() -> bool,
    ) -> Result<(), Failure> {
        let comes = async {
            while !condition().await {
                time::sleep(Duration::from_millis(5)).await;
            }
        };
        check(time::timeout(2 * LEASE, comes).await.is_ok(), what)
    }

    /// The voters, who waits, and what was said last.
    pub(super) async fn frame(&self) -> Frame {
        let mut frame = Frame::default();
        let head = format!("The lock `{LOCK}` on five voters: the votes of three are enough");
        frame.line(Tone::Heading, head);
        frame.blank();
        match self.look().await {
            Ok(seen) => draw(&mut frame, &seen),
            // Where too few answer, each says why.
            Err(failure) => {
                for cause in failure.causes {
                    frame.line(Tone::Bad, format!("  {cause}"));
                }
                frame.blank();
            }
        }
        frame.blank();
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        for (tone, line) in &said[said.len().saturating_sub(SENTENCES)..] {
            frame.line(*tone, line.as_str());
        }
        frame
    }
}

fn draw(frame: &mut Frame, seen: &Inspection) {
    for (place, view) in (1..).zip(&seen.voters) {
        let (tone, vote) = vote(view);
        let left = view.holder.as_ref().ok().and_then(|holder| holder.as_ref()?.ttl);
        let bar = left.map_or_else(String::new, |left| {
            let full = share_of(left, LEASE, BAR);
            format!("{:█<full$}{:░<1$}  {2}", "", BAR - full, Short(left))
        });
        let kept_out = view.quarantine.map_or("", |_| "  counts for no new lock yet");
        frame.line(tone, format!("  voter {place}  {vote:8}  {bar}{kept_out}"));
    }
    let queue: Vec<String> = seen.queue().into_iter().map(|it| name(it.client_name)).collect();
    let queue = if queue.is_empty() { "nobody".to_owned() } else { queue.join(", ") };
    frame.line(Tone::Plain, format!("  waiting  {queue}"));
}

/// What a voter says, in a word or two.
fn vote(view: &VoterView) -> (Tone, String) {
    match &view.holder {
        Ok(Some(holder)) => (Tone::Good, name(holder.client_name.clone())),
        Ok(None) => (Tone::Plain, "free".to_owned()),
        Err(Cause::TimedOut(_)) => (Tone::Doubtful, "silent".to_owned()),
        Err(_) => (Tone::Bad, "dead".to_owned()),
    }
}

fn name(client: Option<String>) -> String {
    client.unwrap_or_else(|| "somebody".to_owned())
}

/// Fails where something is otherwise than told.
pub(super) fn check(holds: bool, claim: &str) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure::new(Code::Software, format!("not as told: {claim}"))) }
}

/// Where nobody reads it, nothing is to be done.
fn print(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}
