//! What is sent, as the one sees it who decides each fate.

use std::fmt;

use super::{
    fault::Fault,
    link::{Errand, Wire},
    voter::EmbeddedVoter,
};

/// Something on its way between a client and an embedded voter, as [`EmbeddedVoter::fault_each`]
/// tells it.
#[derive(Debug)]
pub struct Sent<'a> {
    client: &'a str,
    script: Option<&'static str>,
    is_message: bool,
}

impl<'a> Sent<'a> {
    pub(super) fn request(link: &'a Wire, request: &Errand) -> Self {
        let script = match request {
            Errand::Run(call) => Some(call.script.name),
            Errand::Subscribe(_) | Errand::Unsubscribe(_) | Errand::Identify => None,
        };
        Self::of(&link.client, script, false)
    }

    pub(super) fn message(link: &'a Wire) -> Self {
        Self::of(&link.client, None, true)
    }

    pub(super) fn of(client: &'a str, script: Option<&'static str>, is_message: bool) -> Self {
        Self { client, script, is_message }
    }

    /// Which client sends it, or is to hear the message; as in [`Ran::client`](super::Ran::client).
    pub fn client(&self) -> &str {
        self.client
    }

    /// The script's name, `mutex/acquire` for one; `None` where no script is asked for.
    pub fn script(&self) -> Option<&'static str> {
        self.script
    }

    /// Whether it is a message on a channel to one that listens, and no request.
    pub fn is_message(&self) -> bool {
        self.is_message
    }
}

impl EmbeddedVoter {
    /// Decides about each request as it is sent, and about each message of a channel as it is sent
    /// to one that listens: the faults that `decide` returns are for this one alone and come on top
    /// of those in force. The next call replaces it; `fault_each(|_| Vec::new())` ends it.
    ///
    /// For messages nothing matters but delays on the way `back`, and that
    /// [`DropReplies`](Fault::DropReplies) and [`DropRequests`](Fault::DropRequests) lose them.
    ///
    /// `decide` is called under the voter's lock: it must not call this voter, nor drop what does
    /// (a client, a guard). One that keeps a clone of the voter keeps it alive for ever.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use quorate::embedded::Fault;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// let voters = quorate::embedded::voters(1);
    /// let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let there = Duration::from_millis(5);
    /// voters[0].fault_each(move |sent| match sent.script() {
    ///     Some("mutex/release") => vec![Fault::Delay { there, back: Duration::ZERO }],
    ///     _ => Vec::new(),
    /// });
    /// let guard = quorum.mutex("invoice:42").lock().await?;
    /// let started = tokio::time::Instant::now();
    /// guard.release().await?;
    /// assert_eq!(started.elapsed(), there);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fault_each(&self, decide: impl FnMut(&Sent<'_>) -> Vec<Fault> + Send + 'static) {
        let each = Each::new(decide);
        // What is replaced is dropped outside the lock: it may own what calls the voter.
        drop(self.0.act(|state| state.rules.each.replace(each)));
    }
}

/// Whom [`EmbeddedVoter::fault_each`] put there.
pub(super) struct Each(Box<Decide>);

type Decide = dyn FnMut(&Sent<'_>) -> Vec<Fault> + Send;

impl Each {
    pub(super) fn new(decide: impl FnMut(&Sent<'_>) -> Vec<Fault> + Send + 'static) -> Self {
        Self(Box::new(decide))
    }

    pub(super) fn decide(&mut self, sent: &Sent<'_>) -> Vec<Fault> {
        self.0(sent)
    }
}

impl fmt::Debug for Each {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Each")
    }
}
