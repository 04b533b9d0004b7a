//! The floor: what a careful user would write by hand with the same client library and the same
//! scripts. One client per node, each request sent at most once and with a deadline, an answer at
//! the majority, and nothing dropped that was asked for.

#![allow(dead_code, reason = "compiled into several benches, and each of them uses only a part")]

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

use crate::support::RedisServer;

pub(crate) const LEASE: &str = "30000";
pub(crate) const DEADLINE: Duration = Duration::from_millis(200);

/// What a node answers to a request: code, ms, text.
pub(crate) type Answer = (i64, i64, String);

/// One client per node.
pub(crate) struct Nodes {
    clients: Vec<Client>,
    options: Options,
}

/// A script that every node has loaded.
#[derive(Clone)]
pub(crate) struct Script(Value);

impl Nodes {
    pub(crate) async fn connect(servers: &[RedisServer], deadline: Duration) -> Self {
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

    pub(crate) async fn load(&self, name: &str) -> Script {
        let script = quorate::scripts().find(|(ours, _)| *ours == name);
        let (_, source) = script.expect("it is ours");
        for client in &self.clients {
            let load = CustomCommand::new_static("SCRIPT", ClusterHash::Custom(0), false);
            let loaded: Result<Value, _> = client.custom(load, vec!["LOAD", source]).await;
            loaded.expect("the script can be loaded");
        }
        Script(sha1_hash(source).into())
    }

    pub(crate) async fn close(&self) {
        for client in &self.clients {
            client.quit().await.expect("the connection ends");
        }
    }

    /// Returns what the first majority answered with 1; what is left is heard in the background.
    pub(crate) async fn majority(
        &self,
        script: &Script,
        keys: &[Value],
        args: &[Value],
    ) -> Vec<Answer> {
        let mut replies = self.ask(script, keys, args);
        let mut granted = Vec::new();
        while granted.len() < self.clients.len() / 2 + 1 {
            match replies.next().await.expect("a majority grants") {
                Ok(answer) if answer.0 == 1 => granted.push(answer),
                Ok(_) => {}
                Err(error) => eprintln!("a node did not answer: {error}"),
            }
        }
        tokio::spawn(async move { while replies.next().await.is_some() {} });
        granted
    }

    /// Returns what all have answered.
    pub(crate) async fn all(&self, script: &Script, keys: &[Value], args: &[Value]) -> Vec<Answer> {
        let replies = self.ask(script, keys, args);
        replies.map(|answer| answer.expect("it answers")).collect().await
    }

    fn ask(
        &self,
        script: &Script,
        keys: &[Value],
        args: &[Value],
    ) -> FuturesUnordered<impl Future<Output = Result<Answer, fred::error::Error>> + use<>> {
        let request = |client: &Client| {
            let mut words = Vec::with_capacity(2 + keys.len() + args.len());
            let count = i64::try_from(keys.len()).expect("a few");
            words.extend([script.0.clone(), count.into()]);
            words.extend(keys.iter().chain(args).cloned());
            let command = CustomCommand::new_static("EVALSHA", ClusterHash::Custom(0), false);
            let client: WithOptions<Client> = client.with_options(&self.options);
            async move { client.custom::<Answer, _>(command, words).await }
        };
        self.clients.iter().map(request).collect()
    }
}

/// The keys of a lock that one holds at a time: all to acquire it, the first three to release it.
pub(crate) fn keys(name: &str) -> [Value; 4] {
    ["", ":queue", ":alive", ":fence"].map(|ending| format!("quorate:{{{name}}}{ending}").into())
}

/// For how long, and for whom: a token as high as it must be, remembered for a day.
pub(crate) fn asking(hold: Value) -> [Value; 5] {
    [hold, "1".into(), LEASE.into(), "1".into(), "86400000".into()]
}

pub(crate) fn channel(name: &str) -> Value {
    format!("quorate:{{{name}}}:wake").into()
}

/// Connects with the settings that ours have.
pub(crate) async fn connect(server: &RedisServer) -> Client {
    let mut config = Config::from_url(&server.url()).expect("a good address");
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
