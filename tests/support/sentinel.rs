//! A primary with two replicas that three sentinels watch.
//!
//! Servers are named by the number in which they started, the first primary first, and indexed by
//! it: `sentinels[0].kill()`. What waits is async, so that other tasks of the test go on meanwhile.

use std::ops::{Index, IndexMut};

use super::redis::RedisServer;
use super::resp::Reply;
use super::settings::Settings;
use super::wait::{succeeds, succeeds_async};

const SERVICE: &str = "lock-1";

/// How often sentinels look, in milliseconds, where their usual two to ten seconds would make a
/// test wait. Servers older than 7.0 do not know the command, and wait.
const DEBUG: [&str; 6] = ["SENTINEL", "DEBUG", "info-period", "500", "publish-period", "500"];

/// Three servers under one name and three sentinels, each a process; killed when dropped.
#[derive(Debug)]
pub struct Sentinels {
    // Dropped first: they fail nothing over while the servers go.
    sentinels: Vec<RedisServer>,
    servers: Vec<RedisServer>,
}

impl Sentinels {
    /// Starts all; returns when the sentinels know each other and the replicas have the data.
    ///
    /// A primary is held for dead after a second of silence.
    pub fn start() -> Self {
        Self::start_as(&Settings::new(), &Settings::new())
    }

    /// As [`start`](Self::start) with settings for the servers and for the sentinels.
    pub fn start_as(servers: &Settings, sentinels: &Settings) -> Self {
        let primary = RedisServer::start_as(&servers.clone().config(""));
        // In the file, where the sentinels have it rewritten, and not in flags that would return.
        let replica = servers.clone().config(&format!("replicaof 127.0.0.1 {}", primary.port()));
        let watched = watching(primary.port(), servers, sentinels);
        let mut servers = vec![primary];
        servers.extend(RedisServer::start_many(&replica, 2));
        let all = Self { sentinels: RedisServer::start_many(&watched, 3), servers };
        for sentinel in &all.sentinels {
            let _ = sentinel.command(&DEBUG);
        }
        succeeds("the sentinels know all", || all.judge());
        all
    }

    /// The name under which the sentinels know the servers.
    pub fn service(&self) -> &'static str {
        SERVICE
    }

    /// `127.0.0.1:PORT` of every sentinel.
    pub fn sentinel_addresses(&self) -> Vec<String> {
        self.sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port())).collect()
    }

    /// The sentinels themselves.
    pub fn sentinels(&mut self) -> &mut [RedisServer] {
        &mut self.sentinels
    }

    /// The servers, in the order of their numbers.
    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    /// The server that the live sentinels name as the primary, asked now; panics where they do not
    /// agree.
    #[track_caller]
    pub fn primary(&self) -> usize {
        self.named().unwrap_or_else(|cause| panic!("{cause}"))
    }

    /// Has the sentinels make another server the primary, and waits until all live ones name it and
    /// it is one; returns it. The old primary is told a little later: see
    /// [`settled`](Self::settled).
    pub async fn failover(&self) -> usize {
        let old = self.primary();
        succeeds_async("a sentinel starts a failover", async || {
            let sentinel = self.live_sentinels().next().ok_or("no sentinel lives")?;
            sentinel.command(&["SENTINEL", "FAILOVER", SERVICE]).map(drop)
        })
        .await;
        self.wait_for_failover(old).await
    }

    /// Waits until all live sentinels name another primary than `old`, and it is one; returns it.
    pub async fn wait_for_failover(&self, old: usize) -> usize {
        succeeds_async("the sentinels name another primary", async || {
            let new = self.named()?;
            if new == old {
                return Err(format!("they name server {old} still"));
            }
            self.has_role(new, "master")?;
            Ok(new)
        })
        .await
    }

    /// Waits until the live sentinels agree, no failover goes on, and all other live servers are
    /// replicas with the primary's data.
    pub async fn settled(&self) {
        succeeds_async("servers and sentinels agree", async || self.judge()).await;
    }

    fn live_sentinels(&self) -> impl Iterator<Item = &RedisServer> {
        self.sentinels.iter().filter(|sentinel| sentinel.is_live())
    }

    /// The primary that all live sentinels name.
    fn named(&self) -> Result<usize, String> {
        let name = |sentinel| port_named_by(sentinel);
        let ports = self.live_sentinels().map(name).collect::<Result<Vec<_>, _>>()?;
        let first = *ports.first().ok_or("no sentinel lives")?;
        if ports.iter().any(|&port| port != first) {
            return Err(format!("the sentinels name {ports:?}"));
        }
        let found = self.servers.iter().position(|server| server.port() == first);
        found.ok_or_else(|| format!("the sentinels name the stranger {first}"))
    }

    fn has_role(&self, server: usize, role: &str) -> Result<(), String> {
        let found = self[server].info(&["INFO", "replication"], "role")?;
        (found == role).then_some(()).ok_or_else(|| format!("server {server} is a {found}"))
    }

    fn judge(&self) -> Result<(), String> {
        let primary = self.named()?;
        for sentinel in self.live_sentinels() {
            let (replicas, sentinels) = (self.servers.len() - 1, self.sentinels.len() - 1);
            let seen =
                ["flags", "num-slaves", "num-other-sentinels"].map(|name| seen(sentinel, name));
            let right = ["master", &replicas.to_string(), &sentinels.to_string()]
                .map(|value| Ok(value.to_owned()));
            if seen != right {
                return Err(format!("a sentinel sees {seen:?}"));
            }
            // One that last saw a server as a primary would make it a replica again, though it has
            // been promoted meanwhile.
            let roles = roles_of_replicas(sentinel)?;
            if roles.iter().any(|role| role != "slave") {
                return Err(format!("a sentinel last saw the replicas as {roles:?}"));
            }
        }
        self.has_role(primary, "master")?;
        let others = (0..self.servers.len()).filter(|&server| server != primary);
        let mut live = others.filter(|&server| self[server].is_live());
        live.try_for_each(|server| self[server].is_linked_to(&self[primary]))
    }
}

impl Index<usize> for Sentinels {
    type Output = RedisServer;

    fn index(&self, server: usize) -> &RedisServer {
        &self.servers[server]
    }
}

impl IndexMut<usize> for Sentinels {
    fn index_mut(&mut self, server: usize) -> &mut RedisServer {
        &mut self.servers[server]
    }
}

/// The settings of a sentinel that watches the server at this port.
fn watching(port: u16, servers: &Settings, sentinels: &Settings) -> Settings {
    let mut lines = vec![
        format!("sentinel monitor {SERVICE} 127.0.0.1 {port} 2"),
        format!("sentinel down-after-milliseconds {SERVICE} 1000"),
        format!("sentinel failover-timeout {SERVICE} 3000"),
        format!("sentinel parallel-syncs {SERVICE} 2"),
    ];
    if let Some([name, password]) = servers.master() {
        lines.push(format!("sentinel auth-user {SERVICE} {name}"));
        lines.push(format!("sentinel auth-pass {SERVICE} {password}"));
    }
    if let Some([name, password]) = sentinels.master() {
        lines.push(format!("sentinel sentinel-user {name}"));
        lines.push(format!("sentinel sentinel-pass {password}"));
    }
    sentinels.clone().config(&lines.join("\n")).flags(&["--sentinel"])
}

fn port_named_by(sentinel: &RedisServer) -> Result<u16, String> {
    let words = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE];
    let Reply::List(address) = sentinel.command(&words)? else {
        return Err("a sentinel names no primary".to_owned());
    };
    match address.as_slice() {
        [_, Reply::Text(port)] => port.parse().map_err(|_| format!("{port} is no port")),
        other => Err(format!("{other:?} is no address")),
    }
}

/// What a sentinel knows about the primary.
fn seen(sentinel: &RedisServer, name: &str) -> Result<String, String> {
    value_of(name, &sentinel.command(&["SENTINEL", "MASTER", SERVICE])?)
}

/// As what each replica last showed itself to a sentinel.
fn roles_of_replicas(sentinel: &RedisServer) -> Result<Vec<String>, String> {
    let reply = sentinel.command(&["SENTINEL", "REPLICAS", SERVICE])?;
    let Reply::List(replicas) = reply else { panic!("SENTINEL REPLICAS answers with a list") };
    replicas.iter().map(|replica| value_of("role-reported", replica)).collect()
}

/// What belongs to a name in a list of names and values.
fn value_of(name: &str, list: &Reply) -> Result<String, String> {
    let Reply::List(words) = list else { panic!("{list:?} is no list") };
    let mut pairs = words.chunks_exact(2);
    let value = pairs.find_map(|pair| match pair {
        [Reply::Text(found), Reply::Text(value)] if found == name => Some(value.clone()),
        _ => None,
    });
    value.ok_or_else(|| format!("no {name} in {words:?}"))
}
