//! Who is shown as the holder, and ended by force, where the holder is of another kind in Java.

use futures::future::join_all;
use quorate::{Lockable, Quorate};

use super::{LEASE, NAME, builder, client, java::Java, servers};
use quorate_support::{Cluster, without_lasting};
use quorate_tests::fixture::secs;
use tokio::{task::spawn_blocking, time::timeout};

// Each of these names is asked for at once, so they share the batches on the wire: none of the
// others is harmed.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_a_read_write_lock_has_in_java_is_inspected_and_ended_like_any_other() {
    let servers = servers::<1>();
    let (client, java) = (client(&servers).await, Java::new(&servers[0], 1));
    let ours = client.redisson().mutex("ours").lock().await.unwrap();
    assert!(java.try_read("read", LEASE) && java.try_write("written", LEASE));
    let names = ["ours", "read", "written", "free"];
    for _ in 0..10 {
        let mutexes = names.map(|name| client.redisson().mutex(name));
        let seen = join_all(mutexes.iter().map(quorate::Mutex::inspect)).await;
        let holders = seen.into_iter().map(|seen| {
            let holder = seen.unwrap().holder();
            holder.map(|holder| (holder.hold.to_string(), holder.count))
        });
        let (read, written) = (java.owner.clone(), format!("{}:write", java.owner));
        let ours = ours.hold().to_string();
        let expected = [Some((ours, 1)), Some((read, 1)), Some((written, 1)), None];
        assert_eq!(holders.collect::<Vec<_>>(), expected);
    }
    assert!(client.redisson().mutex("read").try_lock().await.unwrap().is_none());
    let mutexes = ["read", "written"].map(|name| client.redisson().mutex(name));
    let ended = join_all(mutexes.iter().map(quorate::Mutex::force_release)).await;
    assert!(ended.into_iter().all(|ended| ended.unwrap()));
    for mutex in mutexes {
        mutex.try_lock().await.unwrap().expect("nothing is left of it").release().await.unwrap();
    }
    assert!(ours.is_held());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_is_no_number_harms_no_other_request() {
    let servers = servers::<1>();
    let client = client(&servers).await;
    servers[0].command(&["HSET", NAME, "somebody", "once"]).unwrap();
    let seen = client.redisson().mutex(NAME).inspect().await.unwrap().holder().unwrap();
    assert_eq!((seen.hold.as_str(), seen.count, seen.ttl), ("somebody", 0, None));
    assert!(client.redisson().mutex(NAME).force_release().await.unwrap());
    client
        .redisson()
        .mutex(NAME)
        .try_lock()
        .await
        .unwrap()
        .expect("it is free")
        .release()
        .await
        .unwrap();
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
    quorate_support::eventually_async("it is free", async || java.try_lock("a", LEASE)).await;
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
