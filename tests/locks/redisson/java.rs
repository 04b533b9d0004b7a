//! Redisson's side of a lock: its own scripts, as its classes send them.

use quorate_tests::prelude::*;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::TcpStream,
};

/// `RedissonLock.tryLockInnerAsync`: nothing where it was taken, else the time left.
const TRY_LOCK: &str = "\
if ((redis.call('exists', KEYS[1]) == 0) or (redis.call('hexists', KEYS[1], ARGV[2]) == 1)) then \
redis.call('hincrby', KEYS[1], ARGV[2], 1); \
redis.call('pexpire', KEYS[1], ARGV[1]); \
return nil; \
end; \
return redis.call('pttl', KEYS[1]);";

/// `RedissonLock.unlockInnerAsync`, without the latch that its repetitions need.
const UNLOCK: &str = "\
if (redis.call('hexists', KEYS[1], ARGV[3]) == 0) then \
return nil;\
end; \
local counter = redis.call('hincrby', KEYS[1], ARGV[3], -1); \
if (counter > 0) then \
redis.call('pexpire', KEYS[1], ARGV[2]); \
return 0; \
else \
redis.call('del', KEYS[1]); \
redis.call(ARGV[4], KEYS[2], ARGV[1]); \
return 1; \
end;";

/// `RedissonFencedLock.tryLockAndGetTokenAsync`: -1 and the token where it was taken.
const TRY_FENCED_LOCK: &str = "\
if (redis.call('exists', KEYS[1]) == 0 or (redis.call('hexists', KEYS[1], ARGV[2]) == 1)) then \
local token = redis.call('incr', KEYS[2]);\
redis.call('hincrby', KEYS[1], ARGV[2], 1); \
redis.call('pexpire', KEYS[1], ARGV[1]); \
return {-1, token}; \
end; \
return {redis.call('pttl', KEYS[1]), -1};";

/// What `RedissonFairLock.tryLockInnerAsync` writes for one that has to wait.
const STAND_IN_QUEUE: &str = "\
if redis.call('zadd', KEYS[2], ARGV[1], ARGV[2]) == 1 then \
redis.call('rpush', KEYS[1], ARGV[2]);\
end;";

/// One thread of a client that is connected to one server: a `RedissonRedLock` has several.
#[derive(Debug)]
pub(super) struct Java<'a> {
    server: &'a RedisServer,
    pub(super) owner: String,
}

impl<'a> Java<'a> {
    /// Its client's id ends with this number.
    pub(super) fn new(server: &'a RedisServer, number: usize) -> Self {
        Self { server, owner: format!("4f6a1d0e-6f5c-4b9e-9d43-{number:012x}:81") }
    }

    /// One on each server, each of another client.
    pub(super) fn on_each(servers: &'a [RedisServer]) -> Vec<Self> {
        servers.iter().enumerate().map(|(at, server)| Self::new(server, at)).collect()
    }

    pub(super) fn eval(&self, script: &str, keys: &[&str], args: &[&str]) -> Reply {
        let count = keys.len().to_string();
        let words = [&["EVAL", script, &count], keys, args].concat();
        self.server.command(&words).unwrap()
    }

    pub(super) fn try_lock(&self, name: &str, lease: Duration) -> bool {
        let lease = lease.as_millis().to_string();
        self.eval(TRY_LOCK, &[name], &[&lease, &self.owner]) == Reply::Nil
    }

    /// True where that was the last of its entries.
    pub(super) fn unlock(&self, name: &str) -> bool {
        let args = ["0", "30000", &self.owner, "publish"];
        self.eval(UNLOCK, &[name, &channel(name)], &args) == Reply::Int(1)
    }

    /// The token, if it was free.
    pub(super) fn try_fenced_lock(&self, name: &str) -> Option<u64> {
        let keys = [name, &format!("redisson_lock_token:{{{name}}}")];
        match self.eval(TRY_FENCED_LOCK, &keys, &["30000", &self.owner]) {
            Reply::List(reply) if reply[0] == Reply::Int(-1) => match reply[1] {
                Reply::Int(token) => Some(token.try_into().unwrap()),
                _ => panic!("no token: {reply:?}"),
            },
            _ => None,
        }
    }

    pub(super) fn stand_in_fair_queue(&self, name: &str) {
        let keys = ["queue", "timeout"].map(|part| format!("redisson_lock_{part}:{{{name}}}"));
        self.eval(STAND_IN_QUEUE, &[&keys[0], &keys[1]], &["9000000000000", &self.owner]);
    }
}

/// Where those who wait for a lock listen.
pub(super) fn channel(name: &str) -> String {
    format!("redisson_lock__channel:{{{name}}}")
}

/// One that waits: it has subscribed.
#[derive(Debug)]
pub(super) struct Subscriber(Lines<BufReader<TcpStream>>);

impl Subscriber {
    pub(super) async fn listen(server: &RedisServer, name: &str) -> Self {
        Self::listen_to(server, &channel(name)).await
    }

    pub(super) async fn listen_to(server: &RedisServer, channel: &str) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
        let mut stream = BufReader::new(stream);
        stream.write_all(format!("SUBSCRIBE {channel}\r\n").as_bytes()).await.unwrap();
        let mut waiter = Self(stream.lines());
        while waiter.line().await != ":1" {}
        waiter
    }

    async fn line(&mut self) -> String {
        timeout(secs(20), self.0.next_line()).await.expect("a line").unwrap().unwrap()
    }

    /// The next message.
    pub(super) async fn message(&mut self) -> String {
        while self.line().await != "message" {}
        for _ in 0..3 {
            self.line().await;
        }
        self.line().await
    }
}
