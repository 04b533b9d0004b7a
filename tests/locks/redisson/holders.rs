//! Who is shown as the holder, and ended by force, where the holder is of another kind in Java.

use futures::future::join_all;

use super::{LEASE, NAME, client, java::Java, servers};

// Each of these names is asked for at once, so they share the batches on the wire: none of the
// others is harmed.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_a_read_write_lock_has_in_java_is_inspected_and_ended_like_any_other() {
    let servers = servers::<1>();
    let (client, java) = (client(&servers).await, Java::new(&servers[0], 1));
    let ours = client.mutex("ours").lock().await.unwrap();
    assert!(java.try_read("read", LEASE) && java.try_write("written", LEASE));
    let names = ["ours", "read", "written", "free"];
    for _ in 0..10 {
        let mutexes = names.map(|name| client.mutex(name));
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
    assert!(client.mutex("read").try_lock().await.unwrap().is_none());
    let mutexes = ["read", "written"].map(|name| client.mutex(name));
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
    let seen = client.mutex(NAME).inspect().await.unwrap().holder().unwrap();
    assert_eq!((seen.hold.as_str(), seen.count, seen.ttl), ("somebody", 0, None));
    assert!(client.mutex(NAME).force_release().await.unwrap());
    client.mutex(NAME).try_lock().await.unwrap().expect("it is free").release().await.unwrap();
}
