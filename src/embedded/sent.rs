//! What is sent, as the one sees it who decides each fate.

/// Something on its way between a client and an embedded voter, as
/// [`EmbeddedVoter::fault_each`](super::EmbeddedVoter::fault_each) tells it.
#[derive(Debug)]
pub struct Sent<'a> {
    client: &'a str,
    script: Option<&'static str>,
    is_message: bool,
}

impl<'a> Sent<'a> {
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
