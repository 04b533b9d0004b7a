//! Redisson's names: services of both kinds exclude each other on the same mutex.

use quorate::{KeyScheme, Quorate};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::{sleep, timeout},
};

use quorate_support::{RedisServer, Reply, without_lasting};
use quorate_tests::fixture::{Stopwatch, ms, secs};

/// `<client's uuid>:<thread>`, as Redisson writes it.
const THEIRS: &str = "4f6a1d0e-6f5c-4b9e-9d43-0a5a4f1c2b3d:81";
const CHANNEL: &str = "redisson_lock__channel:{orders}";

/// `RedissonLock.tryLockInnerAsync`: nothing where it was taken, else the time left.
const TRY_LOCK: &str = "\
if ((redis.call('exists', KEYS[1]) == 0) or (redis.call('hexists', KEYS[1], ARGV[2]) == 1)) then \
redis.call('hincrby', KEYS[1], ARGV[2], 1); \
redis.call('pexpire', KEYS[1], ARGV[1]); \
return nil; \
end; \
return redis.call('pttl', KEYS[1]);";

/// `RedissonBaseLock.forceUnlockAsync`, which leaves no mark.
const FORCE_UNLOCK: &str = "\
if (redis.call('del', KEYS[1]) == 1) then \
redis.call('publish', KEYS[2], ARGV[1]); \
return 1; \
else \
return 0; \
end;";

fn try_lock_as_redisson(server: &RedisServer) -> Reply {
    server.command(&["EVAL", TRY_LOCK, "1", "orders", "30000", THEIRS]).unwrap()
}

/// Does not poll within a test's time.
async fn client(server: &RedisServer) -> Quorate {
    let builder = Quorate::builder().voter(server.url()).key_scheme(KeyScheme::Redisson);
    let builder =
        builder.poll_interval(secs(600)).voter_deadline(secs(3)).connect_timeout(secs(20));
    builder.connect().await.unwrap()
}

// Redisson's own script finds our record taken, and finds it gone after our release.
#[tokio::test(flavor = "multi_thread")]
async fn redisson_is_kept_out_while_we_hold_and_let_in_after() {
    let server = RedisServer::start();
    let client = client(&server).await;
    let guard = client.mutex("orders").lock().await.unwrap();
    assert_eq!(without_lasting(server.keys()), ["orders"]);
    let count = server.command(&["HGET", "orders", guard.hold().as_str()]);
    assert_eq!(count, Ok(Reply::Text("1".into())));
    let Reply::Int(left) = try_lock_as_redisson(&server) else { panic!("it was let in") };
    assert!((1..=30_000).contains(&left), "{left}");
    guard.release().await.unwrap();
    assert_eq!(try_lock_as_redisson(&server), Reply::Nil);
}

// The name of the field is as Redisson writes it: 36 signs of a uuid, a colon, a number.
#[tokio::test(flavor = "multi_thread")]
async fn our_hold_reads_as_one_of_redissons() {
    let server = RedisServer::start();
    let guard = client(&server).await.mutex("orders").lock().await.unwrap();
    let (uuid, number) = guard.hold().as_str().split_once(':').unwrap();
    assert!(uuid.len() == 36 && uuid.matches('-').count() == 4, "{uuid}");
    assert!(number.parse::<u64>().is_ok(), "{number}");
}

// A record of Redisson's refuses us, by its own name and for its own time; its release, which
// deletes the record and says `0` on the channel, is the only thing that can wake our waiter:
// the record had 30 s to go, and the next poll is ten minutes away.
#[tokio::test(flavor = "multi_thread")]
async fn we_are_kept_out_while_redisson_holds_and_woken_by_its_release() {
    let server = RedisServer::start();
    let client = client(&server).await;
    let mutex = client.mutex("orders");
    server.command(&["HSET", "orders", THEIRS, "1"]).unwrap();
    server.command(&["PEXPIRE", "orders", "30000"]).unwrap();
    assert!(mutex.try_lock().await.unwrap().is_none());
    let holder = mutex.inspect().await.unwrap().holder().unwrap();
    assert_eq!((holder.hold.as_str(), holder.count), (THEIRS, 1));
    let waiter = tokio::spawn(async move { mutex.lock().await });
    let listening = Ok(Reply::List(vec![Reply::Text(CHANNEL.into()), Reply::Int(1)]));
    quorate_support::eventually_async("it listens", async || {
        server.command(&["PUBSUB", "NUMSUB", CHANNEL]) == listening
    })
    .await;
    // Long enough for the attempt after the subscription.
    sleep(ms(300)).await;
    assert!(!waiter.is_finished());
    let watch = Stopwatch::start();
    server.command(&["DEL", "orders"]).unwrap();
    server.command(&["PUBLISH", CHANNEL, "0"]).unwrap();
    let guard = waiter.await.unwrap().unwrap();
    assert!(watch.time() < secs(15), "{:?}", watch.time());
    guard.release().await.unwrap();
}

// What Redisson's waiters listen to, and the message that wakes them.
#[tokio::test(flavor = "multi_thread")]
async fn our_release_tells_redissons_waiters() {
    let server = RedisServer::start();
    let stream = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
    let mut stream = BufReader::new(stream);
    stream.write_all(format!("SUBSCRIBE {CHANNEL}\r\n").as_bytes()).await.unwrap();
    let mut lines = stream.lines();
    let mut next = async || timeout(secs(20), lines.next_line()).await.unwrap().unwrap().unwrap();
    while next().await != ":1" {}
    client(&server).await.mutex("orders").lock().await.unwrap().release().await.unwrap();
    let mut message = Vec::new();
    for _ in 0..7 {
        message.push(next().await);
    }
    assert_eq!(message[2..], ["message", "$31", CHANNEL, "$1", "0"]);
}

// Under its own names a client neither sees the other kind's lock nor is kept out by it.
#[tokio::test(flavor = "multi_thread")]
async fn the_schemes_do_not_meet() {
    let server = RedisServer::start();
    let ours = Quorate::connect([server.url()]).await.unwrap();
    let guard = client(&server).await.mutex("orders").lock().await.unwrap();
    let other = ours.mutex("orders").lock().await.unwrap();
    assert_eq!(without_lasting(server.keys()), ["orders", "quorate:{orders}"]);
    guard.release().await.unwrap();
    other.release().await.unwrap();
}

// Whoever Redisson let in may have gone by then.
#[tokio::test(flavor = "multi_thread")]
async fn a_hold_that_redisson_ended_by_force_is_lost_at_its_next_renewal() {
    let server = RedisServer::start();
    let guard = client(&server).await.mutex("orders").lease(secs(12)).lock().await.unwrap();
    let forced = server.command(&["EVAL", FORCE_UNLOCK, "2", "orders", CHANNEL, "0"]);
    assert_eq!(forced, Ok(Reply::Int(1)));
    let error = timeout(secs(60), guard.lost()).await.expect("it is told").to_string();
    assert!(error.contains("a majority of voters no longer had its vote"), "{error}");
}
