//! The libraries, each as its own documentation says to use it.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use distributed_lock_core::{DistributedLock, LockHandle, LockProvider};
use distributed_lock_redis::RedisLockProvider;
use fred::{
    clients::Client,
    interfaces::ClientLike,
    types::{Builder, ClusterHash, CustomCommand, Value, config::Config},
    util::sha1_hash,
};
use futures::future::join_all;
use quorate::Quorate;
use quorate_benches::common;
use quorate_support::RedisServer;
use redis::aio::MultiplexedConnection;
use rslock::LockManager;
use tokio::runtime::Handle;

const LEASE: Duration = Duration::from_secs(30);

/// Ours on the thread of the clients, as by default, and on the caller's runtime; then the one that
/// both are compared with.
pub(crate) const SIDES: [&str; 6] = [
    "quorate",
    "on the caller's runtime",
    "rslock 0.10",
    "distributed-lock 0.2",
    "plain, redis-rs",
    "plain, fred",
];

const LEASE_MS: &str = "30000";
const OWNER: &str = "a text of some twenty";

const COMPARE_AND_DELETE: &str = "\
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0";

static SHA1: LazyLock<String> = LazyLock::new(|| sha1_hash(COMPARE_AND_DELETE));

/// A client of one library.
#[derive(Clone)]
pub(crate) enum Side {
    Quorate(Quorate),
    Rslock(LockManager),
    DistributedLock(Arc<RedisLockProvider>),
    RedisRs(Vec<MultiplexedConnection>),
    Fred(Vec<Client>),
}

/// Why a lock was not had.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

impl Side {
    pub(crate) async fn connect(name: &str, servers: &[RedisServer]) -> Self {
        let urls: Vec<String> = servers.iter().map(RedisServer::url).collect();
        match name {
            "quorate" => Self::quorate(common::builder(urls)).await,
            "on the caller's runtime" => {
                Self::quorate(common::builder(urls).runtime(Handle::current())).await
            }
            "rslock 0.10" => Self::Rslock(LockManager::new(urls)),
            "distributed-lock 0.2" => {
                let built = RedisLockProvider::builder().urls(&urls).expiry(LEASE).build();
                Self::DistributedLock(built.await.expect("they answer").into())
            }
            "plain, redis-rs" => Self::RedisRs(join_all(urls.into_iter().map(redis_rs)).await),
            _ => Self::Fred(join_all(urls.into_iter().map(fred)).await),
        }
    }

    async fn quorate(builder: quorate::Builder) -> Self {
        Self::Quorate(builder.connect().await.expect("they answer"))
    }

    pub(crate) async fn lock_and_release(&self, name: &str) -> Result<(), Failure> {
        match self {
            Self::Quorate(client) => client.mutex(name).lock().await?.release().await?,
            Self::Rslock(manager) => {
                let lock = manager.lock(name, LEASE).await?;
                manager.unlock(&lock).await;
            }
            Self::DistributedLock(provider) => {
                provider.create_lock(name).acquire(None).await?.release().await?;
            }
            Self::RedisRs(all) => {
                done(join_all(all.iter().map(|one| set_by_redis_rs(one.clone(), name))).await)?;
                done(join_all(all.iter().map(|one| delete_by_redis_rs(one.clone(), name))).await)?;
            }
            Self::Fred(all) => {
                done(join_all(all.iter().map(|one| set_by_fred(one, name))).await)?;
                done(join_all(all.iter().map(|one| delete_by_fred(one, name))).await)?;
            }
        }
        Ok(())
    }
}

async fn redis_rs(url: String) -> MultiplexedConnection {
    let client = redis::Client::open(url).expect("a good address");
    let mut connection = client.get_multiplexed_async_connection().await.expect("it answers");
    let mut load = redis::cmd("SCRIPT");
    load.arg("LOAD").arg(COMPARE_AND_DELETE);
    let _: String = load.query_async(&mut connection).await.expect("it loads");
    connection
}

async fn fred(url: String) -> Client {
    let config = Config::from_url(&url).expect("a good address");
    let client = Builder::from_config(config).build().expect("a good configuration");
    client.init().await.expect("it answers");
    client
}

async fn set_by_redis_rs(mut one: MultiplexedConnection, name: &str) -> Result<bool, Failure> {
    let mut set = redis::cmd("SET");
    set.arg(name).arg(OWNER).arg("NX").arg("PX").arg(LEASE_MS);
    Ok(set.query_async(&mut one).await?)
}

async fn delete_by_redis_rs(mut one: MultiplexedConnection, name: &str) -> Result<bool, Failure> {
    let mut delete = redis::cmd("EVALSHA");
    delete.arg(&*SHA1).arg(1).arg(name).arg(OWNER);
    Ok(delete.query_async(&mut one).await?)
}

async fn set_by_fred(one: &Client, name: &str) -> Result<bool, Failure> {
    let set = CustomCommand::new_static("SET", ClusterHash::Custom(0), false);
    let set: Value = one.custom(set, vec![name, OWNER, "NX", "PX", LEASE_MS]).await?;
    Ok(!set.is_null())
}

async fn delete_by_fred(one: &Client, name: &str) -> Result<bool, Failure> {
    let delete = CustomCommand::new_static("EVALSHA", ClusterHash::Custom(0), false);
    let deleted: i64 = one.custom(delete, vec![&*SHA1, "1", name, OWNER]).await?;
    Ok(deleted == 1)
}

/// Whether all servers did what was asked.
fn done(said: Vec<Result<bool, Failure>>) -> Result<(), Failure> {
    for did in said {
        if !did? {
            return Err("somebody else had it".into());
        }
    }
    Ok(())
}
