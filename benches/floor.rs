//! The floor: what a careful user would write by hand with the same client library and the same
//! scripts. One client per node, each request sent at most once and with a deadline, an answer at
//! the majority, and nothing dropped that was asked for.

use std::time::Duration;

use fred::{
    clients::{Client, WithOptions},
    interfaces::ClientLike,
    types::{
        Builder, ClusterHash, CustomCommand, RespVersion, Value,
        config::{Config, Options, ReconnectPolicy},
    },
    util::sha1_hash,
};
use futures::stream::{FuturesUnordered, StreamExt};

use quorate_support::{RedisServer, Reply};

/// What the channels begin with on which waiters are called; the client's id follows.
pub const CALLS: &str = "quorate:calls:";
pub const DEADLINE: Duration = Duration::from_millis(200);

const LEASE_MS: &str = "30000";
const KEEP_MS: &str = "600000";

/// What a node answers to a request: code, ms, id, and up to two entries more.
pub type Answer = Vec<Value>;

type Outcome = Result<Answer, fred::error::Error>;

/// One client per node.
#[derive(Debug)]
pub struct Nodes {
    clients: Vec<Client>,
    options: Options,
}

/// What the floor sends to a script, by the names in the script's header.
#[derive(Debug)]
pub struct Takes<const KEYS: usize, const ARGS: usize> {
    script: &'static str,
    keys: [&'static str; KEYS],
    /// Those that all requests share, and how many they are, before those of one request.
    args: [&'static str; ARGS],
    shared: usize,
}

pub const MUTEX_ACQUIRE: Takes<4, 7> = Takes {
    script: "mutex/acquire",
    keys: ["lock", "queue", "alive", "fence"],
    args: ["calls", "lease_ms", "keep_ms", "wait_ms", "hold", "floor", "ticket"],
    shared: 4,
};
pub const MUTEX_RELEASE: Takes<3, 7> = Takes {
    script: "mutex/release",
    keys: ["lock", "queue", "alive"],
    args: ["calls", "aloud", "publish", "hold", "count", "place", "channel"],
    shared: 3,
};
pub const RW_ACQUIRE: Takes<6, 9> = Takes {
    script: "rw/acquire",
    keys: ["writer", "readers", "queue", "alive", "writers", "fence"],
    args: ["calls", "mode", "turn", "lease_ms", "keep_ms", "wait_ms", "hold", "floor", "ticket"],
    shared: 6,
};
pub const RW_RELEASE: Takes<5, 4> = Takes {
    script: "rw/release",
    keys: ["writer", "readers", "queue", "alive", "writers"],
    args: ["calls", "hold", "count", "place"],
    shared: 1,
};

/// A script that every node has loaded. A call has as many keys and arguments as the script takes:
/// otherwise it does not compile.
#[derive(Clone, Debug)]
pub struct Script<const KEYS: usize, const ARGS: usize> {
    name: &'static str,
    sha1: Value,
    shared: usize,
}

impl<const KEYS: usize, const ARGS: usize> Takes<KEYS, ARGS> {
    /// The text of the script, if its header names what the floor sends.
    fn source(&self) -> Result<&'static str, String> {
        let name = self.script;
        let found = quorate::scripts().find(|(ours, _)| *ours == name);
        let (_, source) = found.ok_or_else(|| format!("there is no script {name} any more"))?;
        let (shared, own) = self.args.split_at(self.shared);
        for (label, sent) in [
            ("KEYS, for each request", &self.keys[..]),
            ("ARGV, for all requests", shared),
            ("ARGV, for each request", own),
        ] {
            let prefix = format!("-- {label}: ");
            let takes = source.lines().find_map(|line| line.strip_prefix(&prefix));
            let takes = takes.ok_or_else(|| format!("the header of {name} has no `{prefix}`"))?;
            let sent = sent.join(", ");
            if takes != sent {
                return Err(format!(
                    "{name} now takes `{takes}` as {label}, and the floor of the benches sends \
                     `{sent}`: change benches/floor.rs"
                ));
            }
        }
        Ok(source)
    }
}

impl<const KEYS: usize, const ARGS: usize> Script<KEYS, ARGS> {
    /// By which the nodes know it.
    pub fn sha1(&self) -> &Value {
        &self.sha1
    }
}

impl Nodes {
    pub async fn connect(servers: &[RedisServer], deadline: Duration) -> Self {
        let mut clients = Vec::new();
        for server in servers {
            clients.push(connect(server).await);
        }
        let options = Options {
            timeout: Some(deadline),
            max_attempts: Some(1),
            fail_fast: true,
            ..Options::default()
        };
        Self { clients, options }
    }

    /// Panics if the script takes something else than the floor sends.
    pub async fn load<const KEYS: usize, const ARGS: usize>(
        &self,
        takes: &Takes<KEYS, ARGS>,
    ) -> Script<KEYS, ARGS> {
        let source = takes.source().unwrap_or_else(|complaint| panic!("{complaint}"));
        for client in &self.clients {
            let load = CustomCommand::new_static("SCRIPT", ClusterHash::Custom(0), false);
            let loaded: Result<Value, _> = client.custom(load, vec!["LOAD", source]).await;
            loaded.expect("the script can be loaded");
        }
        Script { name: takes.script, sha1: sha1_hash(source).into(), shared: takes.shared }
    }

    pub async fn close(&self) {
        for client in &self.clients {
            client.quit().await.expect("the connection ends");
        }
    }

    /// Returns once a majority has answered with 1; what is left is heard in the background.
    pub async fn majority<const KEYS: usize, const ARGS: usize>(
        &self,
        script: &Script<KEYS, ARGS>,
        keys: &[Value; KEYS],
        args: &[Value; ARGS],
    ) {
        let mut replies = self.ask(script, keys, args);
        let (mut granted, mut refused) = (0, Vec::new());
        while granted < self.clients.len() / 2 + 1 {
            match replies.next().await {
                Some(Ok(answer)) if is_granted(&answer) => granted += 1,
                Some(other) => refused.push(other),
                None => panic!("no majority answers {} with 1, but {refused:?}", script.name),
            }
        }
        tokio::spawn(async move { while replies.next().await.is_some() {} });
    }

    /// Returns what all have answered.
    pub async fn all<const KEYS: usize, const ARGS: usize>(
        &self,
        script: &Script<KEYS, ARGS>,
        keys: &[Value; KEYS],
        args: &[Value; ARGS],
    ) -> Vec<Answer> {
        let replies = self.ask(script, keys, args);
        replies.map(|answer| answer.expect("it answers")).collect().await
    }

    fn ask<const KEYS: usize, const ARGS: usize>(
        &self,
        script: &Script<KEYS, ARGS>,
        keys: &[Value; KEYS],
        args: &[Value; ARGS],
    ) -> FuturesUnordered<impl Future<Output = Outcome> + use<KEYS, ARGS>> {
        let (shared, own) = args.split_at(script.shared);
        let own = packed(own.iter());
        let request = |client: &Client| {
            let mut words = Vec::with_capacity(3 + KEYS + shared.len());
            let count = i64::try_from(KEYS).expect("a few");
            words.extend([script.sha1.clone(), count.into()]);
            words.extend(keys.iter().chain(shared).chain([&own]).cloned());
            let command = CustomCommand::new_static("EVALSHA", ClusterHash::Custom(0), false);
            let client: WithOptions<Client> = client.with_options(&self.options);
            async move { client.custom(command, words).await.map(|answer: Value| entries(&answer)) }
        };
        self.clients.iter().map(request).collect()
    }
}

/// The arguments of a call's requests, as one.
pub fn packed<'a>(own: impl Iterator<Item = &'a Value>) -> Value {
    let texts = own.map(|text| text.as_str().expect("a text")).collect::<Vec<_>>();
    let texts = texts.iter().map(|text| &**text).collect::<Vec<_>>();
    Value::Bytes(quorate_support::packed(&texts).into())
}

/// The entries of a reply, which is packed.
fn entries(answer: &Value) -> Answer {
    let packed = answer.as_bytes().and_then(quorate_support::unpacked);
    let Some(Reply::List(entries)) = packed else { panic!("no list: {answer:?}") };
    let value = |entry| match entry {
        Reply::Int(number) => Value::Integer(number),
        Reply::Text(text) => text.into(),
        other => panic!("{other:?}"),
    };
    entries.into_iter().map(value).collect()
}

pub fn is_granted(answer: &Answer) -> bool {
    answer.first().and_then(Value::as_i64) == Some(1)
}

/// The keys of a mutex, as `mutex/acquire` takes them.
pub fn keys(name: &str) -> [Value; 4] {
    ["", ":queue", ":alive", ":fence"].map(|ending| format!("quorate:{{{name}}}{ending}").into())
}

/// The keys that `mutex/release` takes.
pub fn first_three(keys: &[Value; 4]) -> &[Value; 3] {
    keys.first_chunk().expect("there are four")
}

/// What `mutex/acquire` takes: a token of any height, remembered for as long as by default.
pub fn asking(hold: Value) -> [Value; 7] {
    asking_from(hold, "1".into(), "".into())
}

/// The same without a token.
pub fn asking_bare(hold: Value) -> [Value; 7] {
    asking_from(hold, "".into(), "".into())
}

/// The same from a place in the queue, with this ticket.
pub fn asking_from(hold: Value, floor: Value, ticket: Value) -> [Value; 7] {
    let wait_ms = LEASE_MS.into();
    [CALLS.into(), LEASE_MS.into(), KEEP_MS.into(), wait_ms, hold, floor, ticket]
}

/// What `mutex/release` takes to give a lock back. `place` is the one to leave, or empty.
pub fn leaving(hold: Value, place: Value) -> [Value; 7] {
    [CALLS.into(), "".into(), "PUBLISH".into(), hold, "0".into(), place, "".into()]
}

/// Connects with the settings that ours have.
pub async fn connect(server: &RedisServer) -> Client {
    connect_to(&server.url()).await
}

pub async fn connect_to(url: &str) -> Client {
    let mut config = Config::from_url(url).expect("a good address");
    config.version = RespVersion::RESP3;
    let client = Builder::from_config(config)
        .with_connection_config(|connection| {
            connection.max_command_attempts = 1;
            connection.tcp.nodelay = Some(true);
        })
        .set_policy(ReconnectPolicy::new_exponential(0, 10, 500, 2))
        .build()
        .expect("a good configuration");
    client.init().await.expect("the server answers");
    client
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_sends_what_the_scripts_take() {
        let all = [
            MUTEX_ACQUIRE.source(),
            MUTEX_RELEASE.source(),
            RW_ACQUIRE.source(),
            RW_RELEASE.source(),
        ];
        for source in all {
            assert!(source.is_ok(), "{source:?}");
        }
    }

    #[test]
    fn a_script_that_takes_something_else_is_named() {
        let args = ["calls", "aloud", "publish", "hold", "count", "channel"];
        let old = Takes { script: "mutex/release", keys: MUTEX_RELEASE.keys, args, shared: 3 };
        let expected = "mutex/release now takes `hold, count, place, channel` as ARGV, for each \
                        request, and the floor of the benches sends `hold, count, channel`: \
                        change benches/floor.rs";
        assert_eq!(old.source(), Err(expected.to_owned()));
        let gone = Takes { script: "mutex/give", keys: [], args: [], shared: 0 };
        assert_eq!(gone.source(), Err("there is no script mutex/give any more".to_owned()));
    }
}
