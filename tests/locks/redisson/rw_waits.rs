//! Waiting for an `RReadWriteLock`, ending it by force, and what of it is refused.

use quorate::{HolderKind, Preference, Quorate, inspection::Access};
use tokio::{task::JoinHandle, time::timeout};

use super::{
    LEASE, NAME, builder, client,
    java::{Java, Subscriber},
    java_rw::rw_channel,
    servers,
};
use quorate_support::{RedisServer, Reply, eventually_async};
use quorate_tests::fixture::{Stopwatch, ms, secs};

async fn until_listening(server: &RedisServer) {
    let listening = Ok(Reply::List(vec![Reply::Text(rw_channel(NAME)), Reply::Int(1)]));
    eventually_async("it listens", async || {
        server.command(&["PUBSUB", "NUMSUB", &rw_channel(NAME)]) == listening
    })
    .await;
    // Long enough for the question after the subscription.
    tokio::time::sleep(ms(300)).await;
}

/// A task that waits to read; or to write.
fn wait(client: &Quorate, access: Access) -> JoinHandle<()> {
    let lock = client.redisson().rw_lock(NAME);
    tokio::spawn(async move {
        if access == Access::Read {
            lock.read().await.unwrap().release().await.unwrap();
        } else {
            lock.write().await.unwrap().release().await.unwrap();
        }
    })
}

async fn must_be_woken(waiting: impl IntoIterator<Item = JoinHandle<()>>) {
    let watch = Stopwatch::start();
    for waiting in waiting {
        timeout(secs(20), waiting).await.expect("it is woken").unwrap();
    }
    assert!(watch.time() < secs(10), "{:?}", watch.time());
}

// No poll and no end of a lease comes within the time of the test.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_write_or_of_the_last_read_in_java_wakes_all_of_ours_that_can_enter() {
    let servers = servers::<1>();
    let (ours, java) = (client(&servers).await, Java::new(&servers[0], 1));
    assert!(java.try_write(NAME, secs(600)));
    let waiting = [Access::Read, Access::Read, Access::Write].map(|access| wait(&ours, access));
    until_listening(&servers[0]).await;
    assert!(waiting.iter().all(|waiting| !waiting.is_finished()));
    assert_eq!(java.end_write(NAME), Some(1));
    must_be_woken(waiting).await;

    assert!(java.try_read(NAME, secs(600)));
    let waiting = [wait(&ours, Access::Write)];
    until_listening(&servers[0]).await;
    assert!(!waiting[0].is_finished());
    assert_eq!(java.end_read(NAME), Some(1));
    must_be_woken(waiting).await;

    for writes in [false, true] {
        let locked = if writes { java.try_write(NAME, LEASE) } else { java.try_read(NAME, LEASE) };
        assert!(locked);
        let waiting = [wait(&ours, Access::Write)];
        until_listening(&servers[0]).await;
        assert!(java.force_rw(NAME, writes));
        must_be_woken(waiting).await;
    }
}

// `0` wakes one of those who wait in a JVM, and `1` all: behind readers only writers wait.
#[tokio::test(flavor = "multi_thread")]
async fn our_releases_are_told_as_those_of_java_are() {
    let servers = servers::<1>();
    let client = client(&servers).await;
    let lock = client.redisson().rw_lock(NAME);
    let mut java = Subscriber::listen_to(&servers[0], &rw_channel(NAME)).await;
    let (one, other) = (lock.read().await.unwrap(), lock.read().await.unwrap());
    one.release().await.unwrap();
    other.release().await.unwrap();
    assert_eq!(java.message().await, "0", "of the last");
    lock.write().await.unwrap().release().await.unwrap();
    assert_eq!(java.message().await, "1");
    let reading = lock.read().await.unwrap();
    lock.force_release(Access::Read).await.unwrap();
    assert_eq!(java.message().await, "0");
    assert!(reading.release().await.is_err());
    let writing = lock.write().await.unwrap();
    lock.force_release_hold(writing.hold()).await.unwrap();
    assert_eq!(java.message().await, "1");
    assert!(writing.release().await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_ends_in_java_lets_us_in_though_nobody_says_so() {
    let servers = servers::<1>();
    let (client, java) = (client(&servers).await, Java::new(&servers[0], 1));
    assert!(java.try_read(NAME, secs(1)));
    must_be_woken([wait(&client, Access::Write)]).await;
    assert!(java.try_write(NAME, secs(1)));
    must_be_woken([wait(&client, Access::Read)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_it_in_java_is_named_shown_and_ended_by_force() {
    let servers = servers::<1>();
    let (client, java) = (client(&servers).await, Java::new(&servers[0], 1));
    let lock = client.redisson().rw_lock(NAME);
    let write = format!("{}:write", java.owner);
    for (access, hold, kind) in
        [(Access::Read, &java.owner, HolderKind::Read), (Access::Write, &write, HolderKind::Write)]
    {
        for _ in 0..2 {
            let locked = match access {
                Access::Read => java.try_read(NAME, LEASE),
                Access::Write => java.try_write(NAME, LEASE),
            };
            assert!(locked);
        }
        let error = lock.write_or_busy(ms(100)).await.unwrap_err();
        assert_eq!((error.holder().unwrap().as_str(), error.holder_kind()), (&**hold, Some(kind)));
        let seen = lock.inspect().await.unwrap();
        assert_eq!(seen.mode(), Some(access));
        if access == Access::Read {
            assert_eq!(seen.readers()[0].hold.as_str(), hold);
        } else {
            let writer = seen.writer().unwrap();
            assert_eq!((writer.hold.as_str(), writer.count), (&**hold, 2));
        }
        assert!(lock.force_release(access).await.unwrap());
        assert!(!lock.force_release(access).await.unwrap());
        assert!(java.end_read(NAME).is_none() && java.end_write(NAME).is_none());
        lock.try_write().await.unwrap().expect("it is free").release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forced_unlock_in_java_ends_our_hold_at_its_next_renewal() {
    let servers = servers::<1>();
    let (client, java) = (client(&servers).await, Java::new(&servers[0], 1));
    let lock = client.redisson().rw_lock(NAME).lease(secs(6));
    for (writes, somebody_is_let_in) in [(false, false), (false, true), (true, false), (true, true)]
    {
        let lost = if writes {
            let writing = lock.write().await.unwrap();
            assert!(!java.force_rw(NAME, false), "nobody reads");
            assert!(java.force_rw(NAME, true));
            assert!(!somebody_is_let_in || java.try_write(NAME, LEASE));
            let lost = timeout(secs(20), async { writing.lost().await.to_string() }).await;
            assert!(writing.release().await.is_err());
            lost
        } else {
            let reading = lock.read().await.unwrap();
            assert!(java.force_rw(NAME, false));
            assert!(!somebody_is_let_in || java.try_write(NAME, LEASE));
            let lost = timeout(secs(20), async { reading.lost().await.to_string() }).await;
            assert!(reading.release().await.is_err());
            lost
        };
        lost.expect("it is told");
        assert!(!somebody_is_let_in || java.end_write(NAME) == Some(1), "it was not harmed");
        eventually_async("it is free", async || java.try_write(NAME, LEASE)).await;
        assert_eq!(java.end_write(NAME), Some(1));
    }
}

// Java's readers would join it.
#[tokio::test(flavor = "multi_thread")]
async fn a_mutex_of_the_same_name_keeps_all_of_ours_out() {
    let servers = servers::<1>();
    let client = client(&servers).await;
    let (lock, mutex) = (client.redisson().rw_lock(NAME), client.redisson().mutex(NAME));
    let guard = mutex.lock().await.unwrap();
    assert!(lock.try_read().await.unwrap().is_none() && lock.try_write().await.unwrap().is_none());
    assert_eq!(lock.inspect().await.unwrap().writer().unwrap().hold, *guard.hold());
    guard.release().await.unwrap();
    let reading = lock.read().await.unwrap();
    assert!(mutex.try_lock().await.unwrap().is_none());
    reading.release().await.unwrap();
    servers[0].command(&["SET", NAME, "no hash"]).unwrap();
    assert!(lock.try_read().await.is_err());
    assert!(lock.force_clear().await.unwrap());
    lock.try_write().await.unwrap().expect("it is free").release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn several_voters_and_preferences_that_java_lacks_are_refused_with_the_reason() {
    let several = servers::<3>();
    let client = client(&several).await;
    let lock = client.redisson().rw_lock(NAME);
    for refused in [
        lock.read().await.map(drop),
        lock.try_write().await.map(drop),
        lock.inspect().await.map(drop),
        lock.force_release(Access::Read).await.map(drop),
    ] {
        let error = refused.unwrap_err();
        assert!(error.is_invalid());
        assert_eq!(
            error.to_string(),
            "a read/write lock of Redisson has one voter, and this client has 3: an RReadWriteLock \
             is on one server, and would not exclude it"
        );
    }
    client.redisson().mutex(NAME).lock().await.unwrap().release().await.unwrap();

    // Clients of one prefix agree about the voters.
    let one = builder(&several[..1]).prefix("one").connect().await.unwrap();
    for preference in [Preference::Writers, Preference::Fair] {
        let error =
            one.redisson().rw_lock(NAME).preference(preference).try_read().await.unwrap_err();
        assert!(error.is_invalid());
        assert_eq!(
            error.to_string(),
            format!(
                "the preference `{preference:?}` is unknown to an RReadWriteLock: the only one of \
                 Redisson is `Readers`"
            )
        );
    }
    let lock = one.redisson().rw_lock(NAME).preference(Preference::Readers);
    let reading = lock.read().await.unwrap();
    let writer = wait(&one, Access::Write);
    until_listening(&several[0]).await;
    lock.try_read().await.unwrap().expect("it passes who waits to write").release().await.unwrap();
    reading.release().await.unwrap();
    must_be_woken([writer]).await;
}
