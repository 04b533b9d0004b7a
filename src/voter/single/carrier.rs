//! fred 10.1.0, the client library that carries commands and messages. No other file names it.
//!
//! To update fred, to fork it or to replace it, change this file alone. One [`Carrier`] is one
//! connection, which never connects again. fred does more than it documents, and less. This client
//! relies on the following, or avoids it; each row has the test that fails otherwise:
//!
//! | fred | the test |
//! |---|---|
//! | queues a command when its future is first polled, and writes in that order (`basic_request_response` awaits nothing before) | `a_thousand_requests_run_in_the_order_in_which_they_were_sent` |
//! | sends what has left although its future is dropped | `a_request_runs_though_its_future_is_dropped` |
//! | repeats nothing, if it may attempt once | `nothing_runs_twice_however_often_connections_are_cut_under_load` |
//! | connects once at most, if it has no policy for that and fails fast; and calls itself connected afterwards | `a_carrier_is_of_one_connection` |
//! | says by its text that a command was not sent: any other text counts as sent | `an_unknown_error_counts_as_possibly_sent` |
//! | takes a limit of zero for none | `no_command_is_without_a_limit` |
//! | keeps to the limit of a custom command, but not of its own `EVALSHA` | `a_stopped_server_is_noticed_under_steady_traffic_and_used_again` |
//! | tells why a connection ended before its task ends | `why_nobody_can_log_in_is_told_without_the_password` |
//! | keeps an I/O error, and one of TLS, as its `Debug` text | `an_io_error_reads_as_the_system_words_it`, `an_error_of_tls_is_put_in_words` |
//! | hands on an error reply as a frame, if the command is a custom one | `an_error_reply_is_a_frame` |
//! | completes `SUBSCRIBE` before the server answers, and takes the error of a refused one for the reply to the next command | `the_error_of_a_refused_channel_comes_to_the_next_command` |
//! | keeps its task alive by itself, with the connection: the task has to be aborted | `a_node_that_is_closed_or_dropped_answers_at_once_and_has_no_connections_and_no_tasks` |
//! | logs in by a line of text, whose words end with blanks and have quotes around them | `a_user_and_a_password_of_any_characters_are_let_in` |
//! | may stand still in a write: who waits for it waits, too | `a_connection_whose_writes_are_stuck_is_replaced_all_the_same` |

use std::{borrow::Cow, io, sync::Mutex, time::Duration};

pub(super) use fred::types::{
    Message, Resp3Frame as Frame, RespVersion, Value as Argument,
    config::{Config, Options, Server, ServerConfig},
};
pub(crate) use fred::util::sha1_hash;
use fred::{
    clients::Client,
    error::{Error, ErrorKind},
    interfaces::{ClientLike, EventInterface, PubsubInterface},
    types::{
        ClusterHash, ConnectHandle, CustomCommand,
        config::{ConnectionConfig, PerformanceConfig, TcpConfig},
    },
};
#[cfg(feature = "tls")]
pub(super) use fred::{
    rustls, rustls_native_certs::load_native_certs, types::config::TlsConnector,
};
use futures::{FutureExt, future::BoxFuture};
use tokio::sync::broadcast::{self, error::TryRecvError::Lagged};

use crate::{
    proto::{Reason, ServerError},
    voter::{contract::begin, lock},
};

/// The reply to a command.
pub(super) type Raw<T = Frame> = Result<T, Unanswered>;

/// Why a command got no reply. Unless it was never sent, it may have run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unanswered {
    NeverSent(Reason),
    // fred cannot tell whether it was written before its time was over.
    TimedOut,
    Broken(Reason),
}

/// One connection to one server.
pub(super) struct Carrier {
    client: Client,
    errors: Mutex<broadcast::Receiver<(Error, Option<Server>)>>,
}

/// fred's task that owns the socket. The connection ends with it, or when this is dropped.
pub(super) struct Router(ConnectHandle);

/// Why an address leads to no connection.
pub(super) struct ConnectFailure {
    pub(super) why: Option<Reason>,
    /// Whether it was more than an error of the network, so that no other address is better.
    pub(super) has_answered: bool,
}

/// For a command that is sent at most once, and not at all without a connection.
pub(super) fn at_once(limit: Duration) -> Options {
    Options {
        // For fred, zero is no limit at all.
        timeout: Some(limit.max(Duration::from_millis(1))),
        max_attempts: Some(1),
        fail_fast: true,
        ..Options::default()
    }
}

/// For a command that may wait until fred is connected.
pub(super) fn patient(limit: Duration) -> Options {
    // fred announces a connection a little before its own state says so. A command that is sent on
    // the announcement, and fails fast, would be refused.
    Options { fail_fast: false, ..at_once(limit) }
}

/// Quotes a user or a password for the line of text by which fred logs in.
// In that line a blank ends a word, and a line break begins another command.
fn word(text: String) -> String {
    let separates = |byte: u8| byte <= b' ' || b"\"'\x7f".contains(&byte);
    if !text.bytes().any(separates) {
        return text;
    }
    let escaped = text.chars().map(|sign| match sign {
        '"' | '\\' => format!("\\{sign}"),
        '\0'..'\x20' | '\x7f' => format!("\\x{:02x}", u32::from(sign)),
        _ => sign.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

impl Carrier {
    /// Connects. `patience`: how long this, and each of fred's own requests, may take. `backlog`:
    /// how many messages may wait for their receiver.
    // A client for each connection. If one client connected again, a command that came to it in
    // between would wait in its queue, and leave first on the next connection, before the server
    // was inspected: a restarted server could give a vote (law 1).
    pub(super) async fn connect(
        config: Config,
        patience: Duration,
        backlog: usize,
    ) -> Result<(Self, Router), ConnectFailure> {
        // Without a policy to reconnect, fred connects only if it fails fast.
        let mut config = Config { fail_fast: true, ..config };
        if config.version == RespVersion::RESP3 {
            config.username = config.username.map(word);
            config.password = config.password.map(word);
        }
        let performance = PerformanceConfig {
            default_command_timeout: patience,
            broadcast_channel_capacity: backlog,
            ..PerformanceConfig::default()
        };
        let connection = ConnectionConfig {
            connection_timeout: patience,
            internal_command_timeout: patience,
            // With more, fred repeats a command whose reply was lost: a script could run again
            // later (design 4).
            max_command_attempts: 1,
            // Otherwise the system may hold a request back until earlier ones are acknowledged.
            tcp: TcpConfig { nodelay: Some(true), ..TcpConfig::default() },
            ..ConnectionConfig::default()
        };
        let client = Client::new(config, Some(performance), Some(connection), None);
        let errors = Mutex::new(client.error_rx());
        let this = Self { client, errors };
        let mut connections = this.client.reconnect_rx();
        let mut router = Router(this.client.connect());
        tokio::select! {
            // No timeout of our own: fred has `patience`, and its error says what went wrong.
            ended = &mut router.0 => {
                let error = ended.ok().and_then(Result::err);
                let has_answered = error.is_none_or(|error| *error.kind() != ErrorKind::IO);
                Err(ConnectFailure { why: this.latest_error(), has_answered })
            }
            _ = connections.recv() => Ok((this, router)),
        }
    }

    /// Sends a command with the first poll.
    pub(super) fn command(
        &self,
        options: &Options,
        name: &'static str,
        words: Vec<Argument>,
    ) -> BoxFuture<'static, Raw> {
        let client = self.client.with_options(options);
        // A custom command, as fred ignores the options of its own `EVALSHA`, its timeout included.
        let command = CustomCommand::new_static(name, ClusterHash::Custom(0), false);
        // fred's future has 5 KB. Without a box of its own, each future that awaits it had it
        // several times: 21 KB were allocated and copied for each request.
        async move { client.custom_raw(command, words).await.map_err(Unanswered::from) }.boxed()
    }

    /// Sends `SUBSCRIBE` or `UNSUBSCRIBE`. Completes when fred has taken it, which proves nothing.
    pub(super) fn listen(
        &self,
        limit: Duration,
        channel: &str,
        listens: bool,
    ) -> BoxFuture<'static, Raw<()>> {
        let (client, channel) = (self.client.with_options(&patient(limit)), channel.to_owned());
        begin(async move {
            let written = if listens {
                client.subscribe(channel).await
            } else {
                client.unsubscribe(channel).await
            };
            written.map_err(Unanswered::from)
        })
    }

    /// Leaves a channel with a hash slot.
    pub(super) async fn leave_shard(&self, limit: Duration, channel: &str) -> Raw<()> {
        Ok(self.client.with_options(&patient(limit)).sunsubscribe(channel).await?)
    }

    /// Fails if the server does not answer.
    pub(super) async fn ping(&self, limit: Duration) -> Raw<()> {
        Ok(self.client.with_options(&at_once(limit)).ping::<()>(None).await?)
    }

    pub(super) fn is_connected(&self) -> bool {
        self.client.is_connected()
    }

    pub(super) fn server(&self) -> ServerConfig {
        self.client.client_config().server
    }

    /// The messages that come from now on.
    pub(super) fn messages(&self) -> broadcast::Receiver<Message> {
        self.client.message_rx()
    }

    /// The latest error since the last call of this.
    // Read when it is needed, from fred's channel. A task that followed the channel could come too
    // late to say why a connection ended.
    pub(super) fn latest_error(&self) -> Option<Reason> {
        let (mut errors, mut latest) = (lock(&self.errors), None);
        loop {
            match errors.try_recv() {
                Ok((error, _)) => latest = Some(readable(&error)),
                Err(Lagged(_)) => {}
                Err(_) => return latest,
            }
        }
    }
}

/// The channel and the text of a message.
pub(super) fn parts(message: &Message) -> (&str, Cow<'_, str>) {
    (&message.channel, message.value.as_str().unwrap_or_default())
}

impl Router {
    /// Completes when the task has ended by itself. Not to be called again then.
    pub(super) async fn ended(&mut self) {
        // fred has reported the error of this before, as one of the client.
        let _ = (&mut self.0).await;
    }
}

impl Drop for Router {
    // Otherwise the task keeps itself and the socket alive, though the client is dropped.
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// fred's errors for a command that it did not send, word for word.
// A command with any other error counts as sent. So if a later version changes a text, the error is
// on the safe side: an undo is sent for nothing.
const NEVER_SENT: [&str; 4] = [
    "Connection closed unexpectedly.",
    "Client is not initialized.",
    "Failed to send command to router.",
    "Failed to route command.",
];

impl From<Error> for Unanswered {
    fn from(error: Error) -> Self {
        if NEVER_SENT.contains(&error.details()) {
            Self::NeverSent(readable(&error))
        } else if *error.kind() == ErrorKind::Timeout {
            Self::TimedOut
        } else {
            Self::Broken(readable(&error))
        }
    }
}

/// An error in words.
fn readable(error: &Error) -> Reason {
    let details = error.details();
    // fred keeps an I/O error only as its `Debug` text.
    if let Some(rest) = details.strip_prefix("Os { code: ")
        && let Some((code, _)) = rest.split_once(',')
        && let Ok(code) = code.parse()
    {
        return io::Error::from_raw_os_error(code).to_string().into();
    }
    if details.starts_with("Custom { kind: ")
        && let Some((_, rest)) = details.split_once("error: ")
    {
        return in_words(rest.trim_end_matches(" }").trim_matches('"'));
    }
    if *error.kind() == ErrorKind::Timeout {
        return "no answer to the connection's own requests in time".into();
    }
    // A server without `HELLO` repeats its arguments in the error, the password included.
    let (what, _) = details.split_once(", with args").unwrap_or((details, ""));
    Reason::of_server(what.trim_end_matches('.'))
}

/// Words for errors of rustls, by their names.
// rustls has words too, but fred keeps only the names.
const TLS_ERRORS: [(&str, &str); 9] = [
    ("InvalidCertificate(UnknownIssuer", "the server's certificate is of an unknown authority"),
    ("InvalidCertificate(NotValidForName", "the server's certificate is for another name"),
    ("InvalidCertificate(Expired", "the server's certificate has expired"),
    ("InvalidCertificate(", "the server's certificate cannot be used"),
    ("AlertReceived(CertificateRequired", "the server demands a certificate of the client"),
    ("AlertReceived(UnknownCA", "the server does not know who signed the client's certificate"),
    // These say enough themselves.
    ("AlertReceived(", ""),
    ("InvalidMessage(", ""),
    ("PeerIncompatible(", ""),
];

fn in_words(error: &str) -> Reason {
    match TLS_ERRORS.iter().find(|(name, _)| error.starts_with(name)) {
        Some((_, "")) => Reason::of(ServerError::Tls, error),
        Some((_, words)) => Reason::of(ServerError::Tls, format!("{words}: {error}")),
        None => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn an_io_error_reads_as_the_system_words_it() {
        // Every system has this one, and words of its own for it.
        let raw = || io::Error::from_raw_os_error(1);
        let words = raw().to_string();
        assert!(words.ends_with(" (os error 1)"), "{words}");
        assert_eq!(readable(&Error::from(raw())), words.into());
        let custom = io::Error::other("failed to lookup address information");
        assert_eq!(readable(&Error::from(custom)), "failed to lookup address information".into());
    }

    #[cfg(feature = "tls")]
    #[test]
    fn an_error_of_tls_is_put_in_words() {
        use rustls::{AlertDescription::HandshakeFailure, CertificateError::Expired, Error as Tls};

        let of = |error: Tls| {
            let error = io::Error::new(io::ErrorKind::InvalidData, error);
            readable(&Error::from(error))
        };
        let expired = of(Tls::InvalidCertificate(Expired));
        let words = "the server's certificate has expired: InvalidCertificate(Expired)";
        assert_eq!(expired, Reason::of(ServerError::Tls, words));
        let alert = of(Tls::AlertReceived(HandshakeFailure));
        assert_eq!(alert, Reason::of(ServerError::Tls, "AlertReceived(HandshakeFailure)"));
    }

    #[test]
    fn an_unknown_error_counts_as_possibly_sent() {
        let of = |kind, text| Unanswered::from(Error::new(kind, text));
        let unsent = of(ErrorKind::Canceled, "Connection closed unexpectedly.");
        assert_eq!(unsent, Unanswered::NeverSent("Connection closed unexpectedly".into()));
        let unknown = of(ErrorKind::Unknown, "channel closed");
        assert_eq!(unknown, Unanswered::Broken("channel closed".into()));
        assert_eq!(of(ErrorKind::Timeout, "late"), Unanswered::TimedOut);
    }

    #[test]
    fn no_command_is_without_a_limit() {
        for options in [at_once(Duration::ZERO), patient(Duration::ZERO)] {
            assert_eq!((options.timeout, options.max_attempts), (Some(MS(1)), Some(1)));
        }
    }
}
