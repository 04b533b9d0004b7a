//! Servers with a client in each language.

use quorate::Mutex;
use quorate_tests::prelude::*;

use crate::java::{Jvm, Version};

/// What Java keeps a lock for that it does not renew.
pub(crate) const WATCHDOG: Duration = secs(4);

#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) servers: Vec<RedisServer>,
    pub(crate) java: Jvm,
    pub(crate) client: Quorate,
}

impl Stage {
    pub(crate) async fn start(version: Version, servers: usize) -> Self {
        let servers: Vec<_> = (0..servers).map(|_| RedisServer::start()).collect();
        let java = Jvm::start(version, WATCHDOG, &servers).await;
        let client = builder(&servers).connect().await.unwrap();
        Self { servers, java, client }
    }

    pub(crate) fn mutex(&self, name: &str) -> Mutex {
        self.client.redisson().mutex(name)
    }

    /// Waits for the lock in a task of its own: returns when it listens.
    pub(crate) async fn wait_for(&self, name: &str) -> JoinHandle<MutexGuard> {
        let asks = self.mutex(name).lock();
        let waiting = tokio::spawn(async { asks.await.unwrap() });
        self.until_listening(name).await;
        waiting
    }

    /// Somebody listens to the channel of the lock, on a majority if that is us.
    pub(crate) async fn until_listening(&self, name: &str) {
        let channel = format!("redisson_lock__channel:{{{name}}}");
        until!("somebody waits", {
            let listens = |server: &&RedisServer| {
                let reply = server.command(&["PUBSUB", "NUMSUB", &channel]).unwrap();
                matches!(reply, Reply::List(parts) if parts[1] != Reply::Int(0))
            };
            self.servers.iter().any(|server| listens(&server))
        });
    }
}

/// Only calls wake its waiters within a test's time.
pub(crate) fn builder(servers: &[RedisServer]) -> Builder {
    let builder = Quorate::builder().voters(servers.iter().map(RedisServer::url));
    let builder = builder.restart_guard(RestartGuard::Off);
    builder.poll_interval(secs(600)).voter_deadline(ms(500)).connect_timeout(secs(20))
}
