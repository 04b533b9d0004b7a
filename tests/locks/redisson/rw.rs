//! Our read/write lock and an `RReadWriteLock` of the same name are one lock: what the model beside
//! it does not show.

use quorate_tests::prelude::*;

use super::{
    LEASE, NAME, builder, client,
    java::{Java, Subscriber},
    java_rw::rw_channel,
    servers,
};

fn lease_left(server: &RedisServer, key: &str) -> Duration {
    match server.command(&["PTTL", key]) {
        Ok(Reply::Int(left)) => ms(u64::try_from(left).expect("it expires")),
        other => panic!("no time: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_sides_are_renewed_and_their_leases_never_shortened() {
    let servers = servers::<1>();
    let builder = builder(&servers).voter_deadline(ms(300));
    let (client, java) = (builder.connect().await.unwrap(), Java::new(&servers[0], 1));
    let lock = client.redisson().rw_lock(NAME).lease(ms(1500));
    // It enters twice: the longest of its leases counts, as in Java.
    assert!(java.try_read(NAME, secs(600)) && java.try_read(NAME, LEASE));
    let reading = lock.read().await.unwrap();
    let key = format!("{{{NAME}}}:{}:rwlock_timeout:1", reading.hold());
    sleep(secs(3)).await;
    assert!(reading.is_held() && lease_left(&servers[0], &key) > ms(300));
    assert!(lease_left(&servers[0], NAME) > secs(500), "Java's lease is longer");
    lock.read().await.unwrap().release().await.unwrap();
    assert!(lease_left(&servers[0], NAME) > secs(500), "what is left is the longest");
    assert_eq!([java.end_read(NAME), java.end_read(NAME)], [Some(0); 2]);
    assert!(lease_left(&servers[0], NAME) <= ms(1500), "ours is left");
    reading.release().await.unwrap();
    let writing = lock.write().await.unwrap();
    sleep(secs(3)).await;
    assert!(writing.is_held() && !java.try_read(NAME, LEASE));
    writing.release().await.unwrap();
}

// `0` wakes one of those who wait in a JVM, and `1` all: behind readers only writers wait.
#[tokio::test(flavor = "multi_thread")]
async fn our_releases_are_told_as_those_of_java_are() {
    let servers = servers::<1>();
    let client = client(&servers).await;
    let (lock, admin) = (client.redisson().rw_lock(NAME), client.redisson().admin());
    let mut java = Subscriber::listen_to(&servers[0], &rw_channel(NAME)).await;
    let (one, other) = (lock.read().await.unwrap(), lock.read().await.unwrap());
    one.release().await.unwrap();
    other.release().await.unwrap();
    assert_eq!(java.message().await, "0", "of the last");
    lock.write().await.unwrap().release().await.unwrap();
    assert_eq!(java.message().await, "1");
    let reading = lock.write().await.unwrap().downgrade().await.unwrap();
    assert_eq!(java.message().await, "1", "all who wait to read in Java are woken");
    assert!(!admin.end_all(LockKind::RwLock, NAME).await.unwrap().is_empty());
    assert_eq!(java.message().await, "0");
    assert!(reading.release().await.is_err());
    let writing = lock.write().await.unwrap();
    admin.end(LockKind::RwLock, NAME, writing.hold()).await.unwrap();
    assert_eq!(java.message().await, "1");
    assert!(writing.release().await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_it_in_java_is_named() {
    let servers = servers::<1>();
    let (client, java) = (client(&servers).await, Java::new(&servers[0], 1));
    let (lock, admin) = (client.redisson().rw_lock(NAME), client.redisson().admin());
    let write = format!("{}:write", java.owner);
    for (hold, kind, count) in [(&java.owner, HolderKind::Read, 1), (&write, HolderKind::Write, 2)]
    {
        let enter = |_| match kind {
            HolderKind::Read => java.try_read(NAME, LEASE),
            _ => java.try_write(NAME, LEASE),
        };
        assert!((0..2).all(enter));
        let seen = lock.inspect().await.unwrap().holders.remove(0);
        assert_eq!((seen.kind, seen.count), (kind, count));
        let error = lock.write_or_busy(ms(100)).await.unwrap_err();
        assert_eq!((error.holder().unwrap().as_str(), error.holder_kind()), (&**hold, Some(kind)));
        assert!(!admin.end_all(LockKind::RwLock, NAME).await.unwrap().is_empty());
        assert!(admin.end_all(LockKind::RwLock, NAME).await.unwrap().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_was_entered_twice_keeps_java_out_until_it_is_left_twice() {
    let servers = servers::<1>();
    let (client, java) = (client(&servers).await, Java::new(&servers[0], 1));
    let lock = client.redisson().rw_lock(NAME).owner(&Owner::new());
    for guard in [lock.write().await.unwrap(), lock.write().await.unwrap()] {
        assert!(!java.try_read(NAME, LEASE));
        guard.release().await.unwrap();
    }
    assert!(java.try_read(NAME, LEASE));
}

// Java's readers would join it.
#[tokio::test(flavor = "multi_thread")]
async fn a_mutex_of_the_same_name_keeps_all_of_ours_out() {
    let servers = servers::<1>();
    let client = client(&servers).await;
    let (lock, mutex) = (client.redisson().rw_lock(NAME), client.redisson().mutex(NAME));
    let guard = mutex.lock().await.unwrap();
    assert!(lock.try_read().await.unwrap().is_none() && lock.try_write().await.unwrap().is_none());
    assert_eq!(lock.inspect().await.unwrap().holder().unwrap().hold, *guard.hold());
    // Java's are not kept out, as the page says.
    let java = Java::new(&servers[0], 1);
    assert!(java.try_write(NAME, LEASE));
    assert!(java.end_write(NAME).is_some());
    servers[0].command(&["HDEL", NAME, "mode"]).unwrap();
    guard.release().await.unwrap();
    let reading = lock.read().await.unwrap();
    assert!(mutex.try_lock().await.unwrap().is_none());
    reading.release().await.unwrap();
    servers[0].command(&["SET", NAME, "no hash"]).unwrap();
    assert!(lock.try_read().await.is_err());
    assert!(client.redisson().admin().clear(LockKind::RwLock, NAME).await.unwrap());
    lock.try_write().await.unwrap().expect("it is free").release().await.unwrap();
}

/// A program in Java that read and wrote, and has died: the record outlives what it read by.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_dead_and_keeps_writers_out_is_shown_and_can_be_ended() {
    let servers = servers::<1>();
    let client = client(&servers).await;
    servers[0].command(&["HSET", NAME, "mode", "read", "dead:1", "1"]).unwrap();
    servers[0].command(&["PEXPIRE", NAME, "600000"]).unwrap();
    let (lock, admin) = (client.redisson().rw_lock(NAME), client.redisson().admin());
    assert!(lock.try_write().await.unwrap().is_none());
    let seen = admin.look(LockKind::RwLock, NAME).await.unwrap();
    assert_eq!(seen.holder().unwrap().hold.as_str(), "dead:1");
    assert!(admin.clear(LockKind::RwLock, NAME).await.unwrap());
    lock.try_write().await.unwrap().expect("it is free").release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn several_voters_and_preferences_that_java_lacks_are_refused_with_the_reason() {
    let several = servers::<3>();
    let client = client(&several).await;
    let lock = client.redisson().rw_lock(NAME);
    let voters = "a read/write lock of Redisson has one voter, and this client has 3";
    // Clients of one prefix agree about the voters.
    let one = builder(&several[..1]).prefix("one").connect().await.unwrap();
    let lacks = |preference| one.redisson().rw_lock(NAME).preference(preference);
    let unknown = "is unknown to an RReadWriteLock: the only one of Redisson is `Readers`";
    for (refused, why) in [
        (lock.read().await.map(drop), voters),
        (lock.try_write().await.map(drop), voters),
        (lock.inspect().await.map(drop), voters),
        (client.redisson().admin().look(LockKind::RwLock, NAME).await.map(drop), voters),
        (lacks(Preference::Writers).try_read().await.map(drop), unknown),
        (lacks(Preference::Fair).try_read().await.map(drop), unknown),
    ] {
        let error = refused.unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains(why), "{error}");
    }
    lacks(Preference::Readers).read().await.unwrap().release().await.unwrap();
}
