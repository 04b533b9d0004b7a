//! The rights that the README asks for are enough, and none of them is more than that.

use std::{collections::HashMap, time::Duration};

use futures::{StreamExt, stream};
use quorate::{Access, Error, Preference, Quorate};

use crate::{
    scene::MS,
    support::{RedisServer, Reply, Settings},
};

/// What follows the name in the README's `ACL SETUSER quorate on >password`.
fn rights() -> Vec<&'static str> {
    let readme = include_str!("../../README.md");
    let (_, block) =
        readme.split_once("ACL SETUSER quorate on >password").expect("the README has the rights");
    block.split_once("```").expect("the block ends").0.split_whitespace().collect()
}

/// Whether it takes something away instead of giving it.
fn is_reset(right: &str) -> bool {
    right.starts_with("reset") || right.starts_with('-')
}

/// A user without one of the rights, and its name. None is called so that it would need quotes.
fn user_without(at: usize) -> (String, String) {
    let mut rights = rights();
    rights.remove(at);
    let name = format!("without-{at}");
    (format!("{name} on >password {}", rights.join(" ")), name)
}

/// Everything that a client can do, as far as it gets, on locks of its own.
async fn use_all(url: String, name: &str) {
    for part in 0..3 {
        // Each with a client of its own: what one cannot do must not keep it from the others.
        let builder = Quorate::builder().voter(&url).lease(MS(600)).connect_timeout(MS(400));
        let Ok(client) = builder.patience(MS(200)).connect().await else { return };
        let limit = Duration::from_secs(3);
        let used = async {
            match part {
                0 => use_mutex(&client, name).await,
                1 => use_fair_mutex(&client, name).await,
                _ => use_rw_lock(&client, name).await,
            }
        };
        let _ = tokio::time::timeout(limit, used).await;
        client.close().await;
    }
}

async fn use_mutex(client: &Quorate, name: &str) -> Result<(), Error> {
    let mutex = client.mutex(name);
    let guard = mutex.lock().await?;
    assert!(mutex.lock_within(MS(50)).await?.is_none());
    // Long enough for a renewal.
    tokio::time::sleep(MS(300)).await;
    guard.reenter().await?.release().await?;
    mutex.inspect().await?;
    guard.release().await?;
    let _guard = mutex.lock().await?;
    mutex.force_release().await.map(drop)
}

async fn use_fair_mutex(client: &Quorate, name: &str) -> Result<(), Error> {
    let mutex = client.fair_mutex(name);
    let guard = mutex.lock().await?;
    let (first, second) = (mutex.lock_within(MS(100)), mutex.lock_within(MS(1000)));
    let turn = async {
        tokio::time::sleep(MS(150)).await;
        mutex.inspect().await?;
        guard.release().await
    };
    let (first, second, turn) = tokio::join!(first, second, turn);
    turn?;
    assert!(first?.is_none());
    if let Some(guard) = second? {
        guard.release().await?;
    }
    Ok(())
}

async fn use_rw_lock(client: &Quorate, name: &str) -> Result<(), Error> {
    let lock = client.rw_lock(name);
    for preference in [Preference::Writers, Preference::Fair, Preference::Readers] {
        let lock = lock.clone().preference(preference);
        let (one, other) = (lock.read().await?, lock.read().await?);
        assert!(lock.write_within(MS(50)).await?.is_none());
        one.reenter().await?.release().await?;
        tokio::time::sleep(MS(250)).await;
        one.release().await?;
        other.release().await?;
        let reading = lock.write().await?.downgrade().await?;
        assert!(lock.write_within(MS(50)).await?.is_none());
        lock.inspect().await?;
        reading.release().await?;
        let _reading = lock.read().await?;
        lock.force_release(Access::Read).await?;
        let _writing = lock.write().await?;
        lock.force_release(Access::Write).await?;
    }
    Ok(())
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_right_in_the_readme_is_used_and_no_other_is_asked_for() {
    let rights = rights();
    let given = (0..rights.len()).filter(|&at| !is_reset(rights[at]));
    let (mut users, names): (Vec<_>, Vec<_>) = given.clone().map(user_without).unzip();
    users.push(format!("quorate on >password {}", rights.join(" ")));
    let users: Vec<_> = users.iter().map(String::as_str).collect();
    let settings = Settings::new().users(&users).flags(&["--acllog-max-len", "10000"]);
    let server = RedisServer::start_as(&settings);

    let all = names.iter().map(String::as_str).chain(["quorate"]);
    let uses = all.map(|name| use_all(format!("{}/1", server.url_as(name, "password")), name));
    stream::iter(uses).buffer_unordered(8).collect::<()>().await;

    let denied = denied(&server);
    assert_eq!(denied.get("quorate"), None, "who has all rights is denied nothing");
    for (right, name) in given.map(|at| rights[at]).zip(names) {
        if right == "+hello" {
            continue; // Servers older than 7.0 ask for it; since then everybody may log in.
        }
        let of_it = denied.get(&name).map(Vec::as_slice).unwrap_or_default();
        let is_of_right = |(reason, object): &&(String, String)| match right.split_at(1) {
            ("+", command) => reason == "command" && object == command,
            ("~", _) => reason == "key",
            ("&", pattern) => {
                reason == "channel" && object.starts_with(pattern.trim_end_matches('*'))
            }
            other => panic!("{other:?}"),
        };
        assert!(of_it.iter().any(|entry| is_of_right(&entry)), "{right} is not used: {of_it:?}");
    }
}
