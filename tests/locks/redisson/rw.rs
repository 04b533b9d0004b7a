//! Our read/write lock and an `RReadWriteLock` of the same name are one lock.

use std::{collections::BTreeMap, time::Duration};

use quorate::Owner;

use super::{
    LEASE, NAME, builder, client,
    java::{Java, Subscriber},
    java_rw::rw_channel,
    servers,
};
use quorate_support::{RedisServer, Reply, eventually_async, without_lasting};
use quorate_tests::fixture::{ms, secs};

/// The fields of the record.
fn record(server: &RedisServer) -> BTreeMap<String, String> {
    let Ok(Reply::List(fields)) = server.command(&["HGETALL", NAME]) else { panic!("no list") };
    let text = |reply: &Reply| match reply {
        Reply::Text(text) => text.clone(),
        other => panic!("no text: {other:?}"),
    };
    fields.chunks(2).map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
}

fn fields<const N: usize>(of: [(&str, &str); N]) -> BTreeMap<String, String> {
    of.map(|(field, value)| (field.to_owned(), value.to_owned())).into()
}

fn lease_left(server: &RedisServer, key: &str) -> Duration {
    match server.command(&["PTTL", key]) {
        Ok(Reply::Int(left)) => ms(u64::try_from(left).expect("it expires")),
        other => panic!("no time: {other:?}"),
    }
}

// As the classes of Redisson write it.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_and_a_write_are_written_as_in_java() {
    let [server] = servers::<1>();
    let client = client(std::slice::from_ref(&server)).await;
    let owner = Owner::new();
    let lock = client.redisson().rw_lock(NAME).owner(&owner);
    let reading = client.redisson().rw_lock(NAME).read().await.unwrap();
    let other = client.redisson().rw_lock(NAME).read().await.unwrap();
    let (one, two) = (reading.hold().as_str(), other.hold().as_str());
    assert_eq!(record(&server), fields([("mode", "read"), (one, "1"), (two, "1")]));
    let key = format!("{{{NAME}}}:{one}:rwlock_timeout:1");
    assert!((secs(20)..=LEASE).contains(&lease_left(&server, &key)));
    assert!((secs(20)..=LEASE).contains(&lease_left(&server, NAME)));
    reading.release().await.unwrap();
    other.release().await.unwrap();
    assert_eq!(without_lasting(server.keys()), Vec::<String>::new());

    let writing = lock.write().await.unwrap();
    let again = lock.write().await.unwrap();
    let hold = writing.hold().as_str();
    assert!(hold.ends_with(":write") && again.hold().as_str() == hold, "{hold}");
    assert_eq!(record(&server), fields([("mode", "write"), (hold, "2")]));
    assert!(u64::from(writing.token()) > 1);
    again.release().await.unwrap();
    assert_eq!(record(&server), fields([("mode", "write"), (hold, "1")]));
    writing.release().await.unwrap();
    let left = without_lasting(server.keys());
    assert_eq!(left, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_of_both_share_it_and_writers_of_both_are_alone() {
    let servers = servers::<1>();
    let (client, java) = (client(&servers).await, Java::new(&servers[0], 1));
    let lock = client.redisson().rw_lock(NAME);
    assert!(java.try_read(NAME, LEASE));
    let reading = lock.try_read().await.unwrap().expect("readers share it");
    assert!(lock.try_write().await.unwrap().is_none() && !java.try_write(NAME, LEASE));
    assert_eq!(java.end_read(NAME), Some(0), "we go on to read");
    assert!(!java.try_write(NAME, LEASE));
    assert!(java.try_read(NAME, LEASE));
    reading.release().await.unwrap();
    assert!(lock.try_write().await.unwrap().is_none(), "Java goes on to read");
    assert_eq!(java.end_read(NAME), Some(1));

    let writing = lock.try_write().await.unwrap().expect("it is free");
    assert!(!java.try_read(NAME, LEASE) && !java.try_write(NAME, LEASE));
    assert!(lock.try_read().await.unwrap().is_none());
    assert_eq!((java.end_write(NAME), java.end_read(NAME)), (None, None), "it has neither");
    writing.release().await.unwrap();
    assert!(java.try_write(NAME, LEASE) && java.try_write(NAME, LEASE));
    for left in [0, 1] {
        assert!(lock.try_read().await.unwrap().is_none());
        assert!(lock.try_write().await.unwrap().is_none());
        assert_eq!(java.end_write(NAME), Some(left));
    }
    lock.try_write().await.unwrap().expect("it is free").release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_in_java_that_entered_twice_keeps_it_until_it_has_left_twice() {
    let servers = servers::<1>();
    let (client, java) = (client(&servers).await, Java::new(&servers[0], 1));
    let lock = client.redisson().rw_lock(NAME);
    assert!(java.try_read(NAME, secs(600)) && java.try_read(NAME, LEASE));
    let reading = lock.read().await.unwrap();
    reading.release().await.unwrap();
    // The longest of its leases counts, as in Java.
    assert!(lease_left(&servers[0], NAME) > secs(500));
    assert_eq!(java.end_read(NAME), Some(0));
    assert!(lock.try_write().await.unwrap().is_none());
    assert_eq!(java.end_read(NAME), Some(1));
    lock.try_write().await.unwrap().expect("it is free").release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_java_writes_and_reads_itself_excludes_us_until_both_have_ended() {
    let servers = servers::<1>();
    let (client, java) = (client(&servers).await, Java::new(&servers[0], 1));
    let lock = client.redisson().rw_lock(NAME);
    assert!(java.try_write(NAME, LEASE) && java.try_read(NAME, LEASE));
    assert!(lock.try_read().await.unwrap().is_none());
    let seen = lock.inspect().await.unwrap();
    assert_eq!(seen.writer().unwrap().hold.as_str(), format!("{}:write", java.owner));
    assert_eq!(seen.readers()[0].hold.as_str(), java.owner);
    assert_eq!(java.end_write(NAME), Some(1));
    let reading = lock.try_read().await.unwrap().expect("it only reads now");
    assert!(lock.try_write().await.unwrap().is_none());
    assert_eq!(java.end_read(NAME), Some(0));
    reading.release().await.unwrap();
    assert!(java.try_write(NAME, LEASE));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_under_the_own_write_goes_on_and_lets_readers_in_java_in() {
    let servers = servers::<1>();
    let (client, java) = (client(&servers).await, Java::new(&servers[0], 1));
    let lock = client.redisson().rw_lock(NAME);
    let mut waiter = Subscriber::listen_to(&servers[0], &rw_channel(NAME)).await;
    let writing = lock.write().await.unwrap();
    let under = writing.read().await.unwrap();
    assert!(!java.try_read(NAME, LEASE));
    under.release().await.unwrap();
    assert!(!java.try_read(NAME, LEASE) && writing.is_held());
    let reading = writing.downgrade().await.unwrap();
    assert_eq!(waiter.message().await, "1", "all who wait to read in Java are woken");
    assert_eq!(record(&servers[0]), fields([("mode", "read"), (reading.hold().as_str(), "1")]));
    assert!(java.try_read(NAME, LEASE) && !java.try_write(NAME, LEASE));
    assert_eq!(java.end_read(NAME), Some(0));
    reading.release().await.unwrap();
    assert_eq!(waiter.message().await, "0");
    assert!(java.try_write(NAME, LEASE));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_would_write_is_refused_as_in_java_it_waits_for_ever() {
    let servers = servers::<1>();
    let client = client(&servers).await;
    let lock = client.redisson().rw_lock(NAME).owner(&Owner::new());
    let reading = lock.read().await.unwrap();
    let error = lock.write().await.unwrap_err();
    assert!(error.is_deadlock(), "{error}");
    let again = lock.read().await.unwrap();
    assert_eq!((again.count(), again.hold()), (2, reading.hold()));
    again.release().await.unwrap();
    reading.release().await.unwrap();
    let writing = lock.write().await.unwrap();
    let under = lock.read().await.unwrap();
    lock.write().await.expect("a writer that reads writes again").release().await.unwrap();
    under.release().await.unwrap();
    writing.release().await.unwrap();
}

// Whose lease has ended is out, also where others who came later go on.
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_reader_does_not_keep_the_lock() {
    let servers = servers::<1>();
    let builder = builder(&servers).voter_deadline(ms(300));
    let (client, java) = (builder.connect().await.unwrap(), Java::new(&servers[0], 1));
    let lock = client.redisson().rw_lock(NAME);
    assert!(java.try_read(NAME, ms(700)));
    let reading = lock.read().await.unwrap();
    eventually_async("it has ended", async || lock.inspect().await.unwrap().readers().len() == 1)
        .await;
    assert!(!Java::new(&servers[0], 2).try_write(NAME, LEASE), "we read");
    reading.release().await.unwrap();
    lock.try_write().await.unwrap().expect("its field is no reader").release().await.unwrap();

    let dying = lock.clone().lease_fixed(secs(1)).read().await.unwrap();
    dying.keep_for(secs(1)).await.unwrap();
    assert!(java.try_read(NAME, LEASE));
    eventually_async("ours has ended", async || lock.inspect().await.unwrap().readers().len() == 1)
        .await;
    assert_eq!(java.end_read(NAME), Some(1), "it was the last");
    lock.try_write().await.unwrap().expect("it is free").release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn both_sides_are_renewed_and_their_leases_never_shortened() {
    let servers = servers::<1>();
    let builder = builder(&servers).voter_deadline(ms(300));
    let (client, java) = (builder.connect().await.unwrap(), Java::new(&servers[0], 1));
    let lock = client.redisson().rw_lock(NAME).lease(ms(1500));
    assert!(java.try_read(NAME, secs(600)));
    let reading = lock.read().await.unwrap();
    let key = format!("{{{NAME}}}:{}:rwlock_timeout:1", reading.hold());
    tokio::time::sleep(secs(3)).await;
    assert!(reading.is_held() && lease_left(&servers[0], &key) > ms(300));
    assert!(lease_left(&servers[0], NAME) > secs(500), "Java's lease is longer");
    assert_eq!(java.end_read(NAME), Some(0));
    assert!(lease_left(&servers[0], NAME) <= ms(1500), "ours is left");
    reading.release().await.unwrap();
    let writing = lock.write().await.unwrap();
    tokio::time::sleep(secs(3)).await;
    assert!(writing.is_held() && !java.try_read(NAME, LEASE));
    writing.release().await.unwrap();
}
