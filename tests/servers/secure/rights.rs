//! The rights that the documentation asks for are enough, and none of them is more than that.

use std::{collections::HashMap, ops::Range};

use futures::{StreamExt, stream};
use quorate_tests::{
    prelude::*,
    rights,
    scene::{accepted, called, connections},
};

/// Whether it takes something away instead of giving it.
fn is_reset(right: &str) -> bool {
    right.starts_with("reset") || right.starts_with('-')
}

/// What is asked for and can be refused, as the page on deployments says.
const DISPENSABLE: [&str; 5] = ["+hello", "+client|id", "+ping", "+config|get", "+unsubscribe"];

/// How many kinds of locks are used.
const KINDS: usize = 3;

/// Everything that a client can do, as far as it gets, on locks of its own; what failed, if
/// anything did. The first kinds exclude all others from a lock, the last one does not.
async fn use_kinds(url: String, name: &str, kinds: Range<usize>) -> Result<(), String> {
    let mut outcome = Ok(());
    for kind in kinds {
        // Each with clients of its own: what one cannot do must not keep it from the others.
        let builder = Quorate::builder().voter(&url).lease(LEASE).voter_deadline(LEASE / 10);
        // Only wake-ups end the waiting in time.
        let builder = builder.poll_interval(Duration::from_mins(1)).quorum_timeout(MS(500));
        let builder = builder.connect_timeout(MS(6000));
        let connect = async || builder.clone().connect().await.map_err(|error| error.to_string());
        let used = async {
            // Within one client nobody needs a wake-up.
            let (client, next) = (connect().await?, connect().await?);
            let used = match kind {
                0 => use_mutex(Kind::Mutex, &client, &next, name).await,
                1 => use_mutex(Kind::FairMutex, &client, &next, name).await,
                _ => use_rw_lock(&client, &next, name).await,
            };
            // Where rights are missing, so may be answers to releases: what counts is `used`.
            let _ = tokio::join!(client.close(), next.close());
            used.map_err(|error| error.to_string())
        };
        let used = tokio::time::timeout(5 * LEASE, used).await;
        outcome = outcome.and(used.unwrap_or_else(|_| Err("it takes too long".to_owned())));
    }
    outcome
}

/// What came of a part, or what failed.
type Used<T> = Result<T, Box<dyn std::error::Error>>;

const LEASE: Duration = Duration::from_secs(5);
/// Until the first renewal.
const RENEWAL: Duration = Duration::from_millis(1800);
/// So late that the next one waits for a wake-up by then, also on a busy machine.
const LATER: Duration = Duration::from_millis(600);
/// Shorter than anything but a wake-up takes where waiters have an order: a third of the lease.
const SOON: Duration = Duration::from_millis(1_300);

/// Hands a lock on to the next who waits for it.
async fn hand_on<G, H>(
    release: impl Future<Output = Result<(), Error>>,
    next: impl Future<Output = Result<Option<G>, Error>>,
    release_next: impl AsyncFnOnce(G) -> Result<H, Error>,
) -> Used<H> {
    let release = async {
        tokio::time::sleep(LATER).await;
        release.await
    };
    let (released, entered) = tokio::join!(release, next);
    released?;
    Ok(release_next(entered?.ok_or("nobody called the next one")?).await?)
}

async fn force(client: &Quorate, kind: LockKind, name: &str, hold: &HoldId) -> Used<()> {
    client.admin().end(kind, name, hold).await?;
    Ok(())
}

async fn use_mutex(kind: Kind, client: &Quorate, next: &Quorate, name: &str) -> Used<()> {
    let of = |client: &Quorate| Client::new(client.clone(), kind).mutex(name);
    let (mutex, next) = (of(client), of(next));
    let guard = mutex.lock().await?;
    assert!(mutex.lock_within(MS(500)).await?.is_none());
    if kind == Kind::Mutex {
        tokio::time::sleep(RENEWAL).await;
    }
    guard.reenter().await?.release().await?;
    if kind == Kind::FairMutex {
        // An observer listens to the election's channel, and leaves it when the last one is dropped.
        let mut observer = client.election(name).observe();
        observer.next().await;
        client.election(name).campaign("x").await?.resign().await?;
    }
    assert!(client.mutex(name).try_lock().await?.is_none());
    mutex.inspect().await?;
    hand_on(guard.release(), next.lock_within(SOON), async |guard| guard.release().await).await?;
    let guard = mutex.lock().await?;
    force(client, LockKind::Mutex, name, guard.hold()).await
}

async fn use_rw_lock(client: &Quorate, next: &Quorate, name: &str) -> Used<()> {
    for preference in [Preference::Writers, Preference::Fair, Preference::Readers] {
        let of = |client: &Quorate| client.rw_lock(name).preference(preference);
        let (lock, next) = (of(client), of(next));
        let (one, other) = (lock.read().await?, lock.read().await?);
        assert!(lock.write_within(MS(500)).await?.is_none());
        one.reenter().await?.release().await?;
        if preference == Preference::Writers {
            tokio::time::sleep(RENEWAL).await;
        }
        one.release().await?;
        let writing = hand_on(other.release(), next.write_within(SOON), async |guard| Ok(guard));
        let writing = writing.await?;
        assert!(lock.read_within(MS(500)).await?.is_none());
        let reading = writing.downgrade().await?;
        assert!(lock.write_within(MS(500)).await?.is_none());
        lock.inspect().await?;
        reading.release().await?;
        let reading = lock.read().await?;
        force(client, LockKind::RwLock, name, reading.hold()).await?;
        let writing = lock.write().await?;
        force(client, LockKind::RwLock, name, writing.hold()).await?;
    }
    Ok(())
}

/// Tries again where a busy machine may have been too slow.
async fn must_succeed(used: impl AsyncFn() -> Result<(), String>) {
    let mut outcomes = Vec::new();
    for _ in 0..3 {
        match used().await {
            Ok(()) => return,
            Err(why) => outcomes.push(why),
        }
    }
    panic!("{outcomes:?}");
}

/// What each user was denied: commands, keys and channels.
fn denied(server: &RedisServer) -> HashMap<String, Vec<(String, String)>> {
    let Ok(Reply::List(entries)) = server.command(&["ACL", "LOG", "10000"]) else {
        panic!("it has a log")
    };
    let mut denied = HashMap::<_, Vec<_>>::new();
    for entry in entries {
        let Reply::List(fields) = entry else { panic!("no entry: {entry:?}") };
        let field = |name: &str| {
            let at = fields.iter().position(|field| *field == Reply::Text(name.to_owned()));
            match &fields[at.expect("it is there") + 1] {
                Reply::Text(text) => text.clone(),
                other => format!("{other:?}"),
            }
        };
        denied.entry(field("username")).or_default().push((field("reason"), field("object")));
    }
    denied
}

// Each PING is refused: more of them would tell no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_that_may_not_ping_is_called_and_keeps_its_connections() {
    let rights = rights::documented();
    let ping = rights.iter().position(|right| *right == "+ping").expect("it is documented");
    let (user, name) = rights::user_without(ping);
    let server = RedisServer::start_as(&Settings::new().users(&[&user]));
    let url = server.url_as(&name, "password");
    must_succeed(async || use_kinds(url.clone(), &name, 0..1).await).await;
    until!("all have closed", connections(&server) == 0);
    let client = Quorate::builder().voter(&url).connect().await.expect("it is up");
    until!("it is called", called(&server) == 1);
    let before = (accepted(&server), pings(&server));
    // A lock and a wait that ends at its limit.
    let guard = client.mutex("a").lock().await.expect("it is up");
    let other = Quorate::builder().voter(&url).connect().await.expect("it is up");
    assert!(other.mutex("a").lock_within(MS(2500)).await.expect("it is up").is_none());
    guard.release().await.expect("it is up");
    let after = (accepted(&server), pings(&server));
    assert_eq!(
        after.0 - before.0,
        4,
        "two of the other client, and two that asked for these counts"
    );
    assert!(after.1 - before.1 <= 4, "{before:?} {after:?}");
}

/// How many PINGs were refused.
fn pings(server: &RedisServer) -> usize {
    let counts = server.info(&["INFO", "commandstats"], "cmdstat_ping").unwrap_or_default();
    let refused = counts.split(',').find_map(|count| count.strip_prefix("rejected_calls="));
    refused.map_or(0, |count| count.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_documented_right_is_used_and_needed_and_no_other_is_asked_for() {
    let rights = rights::documented();
    let given = (0..rights.len()).filter(|&at| !is_reset(rights[at]));
    let (mut users, names): (Vec<_>, Vec<_>) = given.clone().map(rights::user_without).unzip();
    users.push(rights::user());
    let users: Vec<_> = users.iter().map(String::as_str).collect();
    let settings = Settings::new().users(&users).flags(&["--acllog-max-len", "10000"]);
    let server = RedisServer::start_as(&settings);

    let use_some =
        |name, kinds| use_kinds(format!("{}/1", server.url_as(name, "password")), name, kinds);
    let use_as = |name| use_some(name, 0..KINDS);
    let outcomes = stream::iter(names.iter().map(|name| use_as(name)));
    let outcomes: Vec<_> = outcomes.buffered(8).collect().await;
    let right_of = |name: &str| {
        let at = names.iter().position(|there| there == name);
        at.map_or("", |at| rights[given.clone().nth(at).expect("as many")])
    };
    for (name, outcome) in names.iter().zip(outcomes) {
        let can_do_without = DISPENSABLE.contains(&right_of(name));
        assert!(can_do_without || outcome.is_err(), "{} is not needed", right_of(name));
        if can_do_without && outcome.is_err() {
            must_succeed(async || use_as(name).await).await;
        }
        if rights::of_shared_locks().iter().any(|right| right == right_of(name)) {
            must_succeed(async || use_some(name, 0..KINDS - 1).await).await;
        }
    }
    must_succeed(async || use_as("quorate").await).await;

    let denied = denied(&server);
    assert_eq!(denied.get("quorate"), None, "who has all rights is denied nothing");
    for (right, name) in given.map(|at| rights[at]).zip(names) {
        if right == "+hello" {
            continue; // Servers older than 7.0 ask for it; since then everybody may log in.
        }
        let of_it = denied.get(&name).map(Vec::as_slice).unwrap_or_default();
        let is_of_right = |(reason, object): &&(String, String)| match right.split_at(1) {
            // Servers older than 7.0 do not name the part of a command.
            ("+", command) => {
                reason == "command"
                    && (object == command || command.starts_with(&format!("{object}|")))
            }
            ("~", _) => reason == "key",
            ("&", pattern) => {
                reason == "channel" && object.starts_with(pattern.trim_end_matches('*'))
            }
            other => panic!("{other:?}"),
        };
        assert!(of_it.iter().any(|entry| is_of_right(&entry)), "{right} is not used: {of_it:?}");
    }
}
