//! Who is shown as the holder, and ended by force, where the holder is of another kind in Java; and
//! what is kept of a lock.

use quorate_tests::prelude::*;
use tokio::task::spawn_blocking;

use super::{LEASE, NAME, builder, client, java::Java, servers};

// Both are asked for at once, so they share the batches on the wire.
#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_is_no_number_harms_no_other_request_and_is_ended_like_any_other() {
    let servers = servers::<1>();
    let client = client(&servers).await;
    let ours = client.redisson().mutex("ours").lock().await.unwrap();
    servers[0].command(&["HSET", "odd", "somebody", "once"]).unwrap();
    let mutexes = ["ours", "odd"].map(|name| client.redisson().mutex(name));
    for _ in 0..10 {
        let seen = join_all(mutexes.iter().map(quorate::Mutex::inspect)).await;
        let holders: Vec<_> =
            seen.into_iter().map(|seen| seen.unwrap().holders.remove(0)).collect();
        assert_eq!((&holders[0].hold, holders[0].count), (ours.hold(), 1));
        let odd = (holders[1].hold.as_str(), holders[1].count, holders[1].ttl);
        assert_eq!(odd, ("somebody", 0, None));
    }
    assert!(!client.redisson().admin().end_all(LockKind::Mutex, "odd").await.unwrap().is_empty());
    mutexes[1].try_lock().await.unwrap().expect("nothing is left of it").release().await.unwrap();
    assert!(ours.is_held());
}

// They share a record that is no mutex.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_readers_in_java_one_is_ended_and_the_other_reads_on() {
    let servers = servers::<1>();
    let (client, readers) = (client(&servers).await, [1, 2].map(|at| Java::new(&servers[0], at)));
    assert!(readers.iter().all(|java| java.try_read(NAME, LEASE)));
    let admin = client.redisson().admin();
    let hold = admin.look(LockKind::Mutex, NAME).await.unwrap().holder().unwrap().hold;
    admin.end(LockKind::Mutex, NAME, &hold).await.unwrap();
    let lock = client.redisson().rw_lock(NAME);
    let left = lock.inspect().await.unwrap().holder().unwrap().hold;
    assert!(left != hold && lock.try_write().await.unwrap().is_none());
    assert!(readers.iter().any(|java| java.end_read(NAME).is_some()));
}

// What a client locks by its own names is another lock.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_of_redisson_and_one_of_ours_do_not_meet() {
    let servers = servers::<1>();
    let client = client(&servers).await;
    let theirs = client.redisson().mutex(NAME).lock().await.unwrap();
    let ours = client.mutex(NAME).lock().await.unwrap();
    assert_eq!(without_lasting(servers[0].keys()), [NAME, "quorate:{orders}"]);
    let both: [Lockable; 2] = [client.redisson().mutex("a").into(), client.mutex("a").into()];
    client.lock_all(both).lock().await.unwrap().release().await.unwrap();
    // But a mutex and a read/write lock of Redisson are one record.
    let redisson = client.redisson();
    let one: [Lockable; 2] = [redisson.mutex("b").into(), redisson.rw_lock("b").writing()];
    let error = client.lock_all(one).lock().await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("in the list twice"), "{error}");
    theirs.release().await.unwrap();
    ours.release().await.unwrap();
}

// With and without async it is one lock.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_without_async_has_the_locks_of_java_too() {
    let servers = servers::<1>();
    let (client, java) = (client(&servers).await, Java::new(&servers[0], 1));
    let waits = spawn_blocking({
        let builder = builder(&servers);
        move || {
            let redisson = builder.connect_blocking()?.redisson();
            let guards = (redisson.mutex("a").lock()?, redisson.rw_lock("b").write()?);
            assert!(redisson.fair_mutex("a").try_lock()?.is_none());
            Ok::<_, quorate::Error>(guards)
        }
    });
    let guards = waits.await.unwrap().unwrap();
    assert!(!java.try_lock("a", LEASE) && !java.try_read("b", LEASE));
    assert!(client.redisson().mutex("a").try_lock().await.unwrap().is_none());
    drop(guards);
    until!("it is free", java.try_lock("a", LEASE));
}

// Each twice has one of the two and not the other, and then takes them in the order of all callers.
#[tokio::test(flavor = "multi_thread")]
async fn callers_that_name_locks_of_both_kinds_in_another_order_do_not_wait_for_each_other() {
    let servers = servers::<1>();
    let (ada, ben) = (client(&servers).await, client(&servers).await);
    let lists = |client: &Quorate| -> [Lockable; 2] {
        [client.mutex("a").into(), client.redisson().mutex("a").into()]
    };
    let [one, mut other] = [&ada, &ben].map(lists);
    other.reverse();
    let all = [ada.lock_all(one), ben.lock_all(other)];
    let rounds = all.map(|all| async move {
        for _ in 0..30 {
            all.lock().await.unwrap().release().await.unwrap();
        }
    });
    timeout(secs(60), join_all(rounds)).await.expect("nobody waits for ever");
}

// One voter of a cluster is one server to Java.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_with_one_voter_has_the_locks_of_java() {
    let cluster = Cluster::start(3, 0);
    let voters = quorate::Cluster::new(cluster.urls()).voters(1);
    let builder = Quorate::builder().cluster(voters).voter_deadline(secs(3));
    let client = builder.connect_timeout(secs(20)).connect().await.unwrap();
    let guard = client.redisson().mutex(NAME).lock().await.unwrap();
    assert!(client.redisson().fair_mutex(NAME).try_lock().await.unwrap().is_none());
    guard.release().await.unwrap();
}

// A renewal that enters again, or heals a voter, stores the token too.
#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_sets_no_end_to_the_sequence_of_tokens() {
    let servers = servers::<3>();
    let client = client(&servers).await;
    let mutex = client.redisson().mutex(NAME);
    let guard = mutex.lock().await.unwrap();
    servers[0].command(&["FLUSHALL"]).unwrap();
    let again = guard.reenter().await.unwrap();
    until!("the voter is healed", {
        let token = servers[0].command(&["GET", "redisson_lock_token:{orders}"]);
        token == Ok(Reply::Text(guard.token().to_string()))
    });
    for server in &servers {
        let kept = server.command(&["PTTL", "redisson_lock_token:{orders}"]);
        assert_eq!(kept, Ok(Reply::Int(-1)));
    }
    again.release().await.unwrap();
    guard.release().await.unwrap();
}
