//! What cannot work is refused before anything is sent, with the values that are wrong.

use quorate::Cluster;
use quorate_tests::prelude::*;
use tokio::runtime::Builder as Runtime;

const SECRET: &str = "s3cr3t";
const NOBODY: &str = "redis://127.0.0.1:1";

/// Neither form of the error may show the password.
fn is_discreet(error: &Error) -> bool {
    !format!("{error} {error:?} {error:#?}").contains(SECRET)
}

#[tokio::test(start_paused = true)]
async fn names_that_cannot_be_used_are_refused_by_every_call_and_nothing_is_sent() {
    let (on, client) = Fixture::with_client(3).await;
    let long = "n".repeat(513);
    for (name, message) in [("", "empty"), (long.as_str(), "513 bytes, the limit is 512")] {
        let mutex = client.mutex(name);
        assert_invalid(&mutex.lock().await.unwrap_err(), message);
        assert_invalid(&mutex.try_lock().await.unwrap_err(), message);
        assert_invalid(&mutex.lock_within(secs(1)).await.unwrap_err(), message);
        assert_invalid(&mutex.inspect().await.unwrap_err(), message);
        for kind in [LockKind::Mutex, LockKind::RwLock, LockKind::Semaphore, LockKind::Election] {
            let (admin, hold) = (client.admin(), "c:1".parse().unwrap());
            assert_invalid(&admin.look(kind, name).await.unwrap_err(), message);
            assert_invalid(&admin.end(kind, name, &hold).await.unwrap_err(), message);
            assert_invalid(&admin.end_all(kind, name).await.unwrap_err(), message);
            assert_invalid(&admin.clear(kind, name).await.unwrap_err(), message);
        }
    }
    assert_eq!(on.runs("mutex/acquire").unwrap(), [0, 0, 0]);
    let longest = "n".repeat(512);
    client.mutex(&longest).lock().await.unwrap().release().await.unwrap();
}

// Tokio would panic: at `connect` for voters inside the process, for servers at the first call that
// waits.
#[test]
fn a_runtime_without_a_timer_is_refused_and_the_error_says_how_to_have_one() {
    let bare = || Runtime::new_current_thread().build().unwrap();
    let voters = embedded::voters(1);
    let (inside, servers) =
        (Quorate::builder().embedded(&voters), Quorate::builder().voter(NOBODY));
    let (bare, other) = (bare(), bare());
    for builder in [inside, servers.clone()] {
        let error = bare.block_on(builder.connect()).unwrap_err();
        assert_invalid(&error, "has no timer, by which calls wait and leases end: build it with");
    }
    let given = servers.runtime(other.handle().clone());
    let error =
        Runtime::new_current_thread().enable_all().build().unwrap().block_on(given.connect());
    assert_invalid(&error.unwrap_err(), "`enable_time` or `enable_all`");
}

#[tokio::test(start_paused = true)]
async fn leases_that_cannot_work_are_refused_and_nothing_is_sent() {
    let (on, client) = Fixture::with_client(3).await;
    let day = secs(24 * 60 * 60);
    for (lease, message) in [
        (ms(0), "the lease is zero"),
        (ms(399), "399ms is less than 400ms, twice the voter deadline of 200ms"),
        (day + ms(1), "over the limit of 86400s"),
    ] {
        let mutex = client.mutex("a");
        assert_invalid(&mutex.clone().lease(lease).lock().await.unwrap_err(), message);
        assert_invalid(&mutex.lease_fixed(lease).try_lock().await.unwrap_err(), message);
        assert_invalid(&on.builder().lease(lease).connect().await.unwrap_err(), message);
    }
    assert_eq!(on.runs("mutex/acquire").unwrap(), [0, 0, 0]);
    let refused = client.mutex("a").lease(secs(31)).lock().await.unwrap_err();
    assert_invalid(&refused, "the lease of 31s is over the longest lease of 30s");
    // Other clients would not know: the longest is raised by its name only.
    for builder in [on.builder(), on.builder().longest_lease(secs(30))] {
        let refused = builder.lease(secs(31)).connect().await.unwrap_err();
        let told = "the lease of 31s is over the longest lease of 30s, for which voters that may \
                    have forgotten are kept out: set `longest_lease`, to the same in all clients";
        assert_invalid(&refused, told);
    }
    let client = on.connect(on.builder().longest_lease(day)).await;
    for lease in [ms(400), day] {
        client.mutex("a").lease(lease).lock().await.unwrap().release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn settings_that_cannot_work_are_refused_when_connecting() {
    let voters = embedded::voters(3);
    let builder = || Quorate::builder().embedded(&voters);
    let of_cluster = |cluster| Quorate::builder().cluster(cluster);
    for (builder, message) in [
        (builder().voter_deadline(ms(0)), "the voter deadline is zero"),
        (builder().quorum_timeout(ms(0)), "the quorum timeout is zero"),
        (builder().poll_interval(ms(0)), "the poll interval is zero"),
        (builder().connect_timeout(ms(0)), "the connect timeout is zero"),
        (builder().minimum_validity(secs(30)), "minimum validity"),
        (builder().drift(1_000_000, ms(0)), "no validity left"),
        (builder().prefix(""), "the key prefix is empty"),
        (builder().prefix("a{b"), "the key prefix `a{b` has a brace in it"),
        (builder().batch_size(0), "the batch size is zero"),
        (builder().voter_configuration(0), "the configuration is number 0, and the first is 1"),
        (of_cluster(Cluster::new([""; 0])), "a cluster has no address"),
        (of_cluster(Cluster::new([NOBODY]).voters(16)), "a cluster casts 1 to 15 votes, not 16"),
        (builder().waiter_deadline(ms(799)), "less than 800ms, four times the voter deadline"),
        (Quorate::builder(), "there are no voters"),
        (builder().embedded(&voters[..1]), "voters embedded-1 and embedded-1 are the same server"),
        (
            builder().voter(NOBODY).machine(&Machine::new("a")),
            "a client with servers takes no seed and no machine",
        ),
        (builder().voter(NOBODY).seed(7), "a client with servers takes no seed and no machine"),
    ] {
        assert_invalid(&builder.connect().await.unwrap_err(), message);
    }
    let none: [&str; 0] = [];
    assert_invalid(&Quorate::connect(none).await.unwrap_err(), "there are no voters");
}

#[tokio::test]
async fn an_address_that_cannot_be_used_is_refused_without_showing_its_password() {
    for address in [
        format!("redis://user:{SECRET}@"),
        format!("redis://user:{SECRET}@host:notaport"),
        format!("redis://user:{SECRET}@host:6379/db"),
        format!("redis://user:{SECRET}#x@host"),
        format!("redis://user:{SECRET}/x@host"),
        format!("redis://user:{SECRET}?x@host"),
        format!("http://user:{SECRET}@host"),
        format!("user:{SECRET}@host:6379"),
        format!("redis-cluster://user:{SECRET}@host"),
        format!("redis:{SECRET}@host"),
    ] {
        let builder = Quorate::builder().voter(&address);
        assert!(!format!("{builder:?} {builder:#?}").contains(SECRET), "{builder:?}");
        let error = builder.connect().await.unwrap_err();
        assert!(error.is_invalid() && is_discreet(&error), "{address}: {error}");
    }
}

// The right password works, and is shown nowhere; a wrong one is told as the server's refusal.
#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_shown_neither_by_clients_nor_by_errors() {
    let server = RedisServer::start_with(&["--requirepass", SECRET]);
    let address = |password: &str| format!("redis://:{password}@127.0.0.1:{}", server.port());
    let client = Quorate::connect([address(SECRET)]).await.unwrap();
    let guard = client.mutex("a").lock().await.unwrap();
    assert!(!format!("{client:?} {:?} {guard:?}", client.mutex("a")).contains(SECRET));
    assert!(format!("{client:?}").contains(&format!("127.0.0.1:{}", server.port())));
    guard.release().await.unwrap();
    let wrong = format!("not{SECRET}");
    // The other one answers, and what this one says only an operator can change: nobody waits.
    let other = RedisServer::start();
    let builder = Quorate::builder().voters([address(&wrong), other.url()]);
    let watch = Stopwatch::start();
    let error = builder.connect_timeout(secs(60)).connect().await.unwrap_err();
    assert!(watch.time() < secs(30), "{:?}", watch.time());
    assert!(error.is_not_connected() && is_discreet(&error), "{error}");
    assert!(error.to_string().contains("WRONGPASS"), "{error}");
    assert_eq!(error.voters()[1].to_string(), format!("127.0.0.1:{}: reached", other.port()));
}

#[tokio::test]
async fn of_several_addresses_the_one_that_cannot_be_used_is_named_by_its_number() {
    let good = ["redis://127.0.0.1:1", "redis://127.0.0.1:2"];
    for (wrong, why) in
        [("redis://a:0", "the redis:// address has port 0"), ("", "the address is empty")]
    {
        let refused = Quorate::connect([good[0], wrong, good[1]]).await.unwrap_err();
        assert_eq!(refused.to_string(), format!("address 2: {why}"));
        let replacing = Quorate::builder().voters(good).replacing([good[0], wrong]);
        let refused = replacing.connect().await.unwrap_err();
        assert_eq!(refused.to_string(), format!("replaced address 2: {why}"));
        let alone = Quorate::connect([wrong]).await.unwrap_err();
        assert_eq!(alone.to_string(), why);
    }
}

// Two addresses of one server would be two votes of one.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_server_twice_is_refused() {
    let server = RedisServer::start();
    let other = RedisServer::start();
    let addresses = [server.url(), other.url(), format!("redis://localhost:{}/1", server.port())];
    let builder =
        Quorate::builder().voters(&addresses).voter_deadline(secs(5)).connect_timeout(secs(20));
    let error = builder.connect().await.unwrap_err();
    assert_invalid(&error, "are the same server");
    let label = format!("127.0.0.1:{}", server.port());
    assert!(error.to_string().contains(&label), "{error}");
}

#[test]
fn texts_that_are_no_ids_are_refused_with_what_they_should_be() {
    let error = "".parse::<HoldId>().unwrap_err().to_string();
    assert_eq!(error, "\"\" is no hold id: those have at least one character");
    let error = "seven".parse::<Owner>().unwrap_err().to_string();
    assert_eq!(error, "\"seven\" is no owner: those are UUIDs");
}
