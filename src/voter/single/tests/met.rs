//! Who answers is known before any script runs.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::FutureExt;

use super::{
    Cause, Heard, InspectionSettings, RedisServer, answers, connect, count, fails, is_unreachable,
    number, run_ids, start, start_with,
};
use crate::{
    clock::Clock,
    scripts::voter,
    voter::{Identity, Stamp},
};
use quorate_support::{Proxy, eventually_async};

/// Whom it met last, and what it was told of the time.
fn last(heard: &Heard) -> (Identity, Option<Stamp>) {
    heard.met.lock().unwrap().last().unwrap().clone()
}

#[tokio::test]
async fn a_server_is_durable_where_it_syncs_each_change_before_it_answers() {
    for (flags, durable) in [
        ("--appendonly yes --appendfsync always", true),
        ("--appendonly yes --appendfsync everysec", false),
        ("--appendonly no --appendfsync always", false),
        // While it writes its file anew it would sync nothing.
        ("--appendonly yes --appendfsync always --no-appendfsync-on-rewrite yes", false),
    ] {
        let server = RedisServer::start_with(&flags.split(' ').collect::<Vec<_>>());
        let (_node, heard) = connect(&server.url()).await;
        assert_eq!(last(&heard).0.durable, durable, "{flags}");
    }
}

// What it writes to disk is not what its predecessor had there.
#[tokio::test]
async fn a_server_that_was_promoted_is_not_durable() {
    let flags = ["--appendonly", "yes", "--appendfsync", "always"];
    let replica = RedisServer::start_with(&flags).start_replica();
    replica.command(&["REPLICAOF", "NO", "ONE"]).unwrap();
    let (_node, heard) = connect(&replica.url()).await;
    assert!(!last(&heard).0.durable);
}

#[tokio::test]
async fn a_user_who_may_not_ask_for_it_learns_of_no_durability_and_of_no_time() {
    let server = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let url = format!("redis://poor:pw@127.0.0.1:{}", server.port());
    let rules = ["ACL", "SETUSER", "poor", "on", ">pw", "~*", "+@connection", "+info", "+eval"];
    server.command(&[&rules[..], &["+evalsha", "+incr"]].concat()).unwrap();
    let (node, heard) = connect(&url).await;
    assert_eq!(node.run(count("a")).await, Ok(number(1)), "it is a voter all the same");
    let (identity, stamp) = last(&heard);
    assert_eq!((identity.run_id.len(), identity.durable, stamp), (40, false, None));
    server.command(&["ACL", "SETUSER", "poor", "+config|get", "+time"]).unwrap();
    let (_node, heard) = connect(&url).await;
    let (identity, stamp) = last(&heard);
    assert!(identity.durable && stamp.is_some());
}

#[tokio::test]
async fn the_stamp_lies_between_the_moments_and_shows_the_servers_time() {
    let server = RedisServer::start();
    let before = Clock::System.now();
    let (_node, heard) = connect(&server.url()).await;
    let Stamp { shown, asked, answered } = last(&heard).1.unwrap();
    assert!(before <= asked && asked < answered && answered <= Clock::System.now());
    let time = server.command(&["TIME"]).unwrap().texts();
    let now = Duration::from_secs(time[0].parse().unwrap());
    let ago = now.abs_diff(shown);
    assert!(ago < Duration::from_secs(5), "{ago:?}");
}

/// INFO without a section, as it is asked on each new connection; fred's own names one.
const INFO: &str = "*1\r\n$4\r\nINFO\r\n";

#[tokio::test]
async fn no_script_runs_on_a_connection_whose_server_has_not_said_who_it_is() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port()).await;
    let (node, heard) = connect(&proxy.url()).await;
    assert_eq!(node.run(count("a")).await, Ok(number(1)));
    proxy.hold_replies_from(INFO);
    proxy.cut().await;
    fails(&node, |cause| matches!(cause, Cause::Unreachable(_))).await;
    eventually_async("asked", async || proxy.holds_replies()).await;
    let outcome = node.run(count("a")).await;
    assert!(is_unreachable(&outcome, ""), "{outcome:?}");
    assert_eq!(run_ids(&heard).len(), 1);
    proxy.pass();
    answers(&node).await;
    assert_eq!(node.run(count("a")).await, Ok(number(2)), "none of the refused ran");
    assert_eq!(run_ids(&heard), vec![run_ids(&heard)[0].clone(); 2], "it is the same server");
}

#[tokio::test]
async fn no_script_passes_until_the_ear_was_told() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port()).await;
    let (node, heard) = connect(&proxy.url()).await;
    let meanwhile = Arc::new(Mutex::new(Vec::new()));
    let (weak, outcomes) = (Arc::downgrade(&node), Arc::clone(&meanwhile));
    let meeting = move || {
        let outcome = weak.upgrade().and_then(|node| node.run(count("a")).now_or_never());
        outcomes.lock().unwrap().push(outcome);
    };
    assert!(heard.meeting.set(Box::new(meeting)).is_ok());
    proxy.cut().await;
    eventually_async("met again", async || run_ids(&heard).len() == 2).await;
    let outcomes = std::mem::take(&mut *meanwhile.lock().unwrap());
    assert!(matches!(&*outcomes, [Some(outcome)] if is_unreachable(outcome, "")), "{outcomes:?}");
    answers(&node).await;
    assert_eq!(node.run(count("a")).await, Ok(number(1)), "and the next one does");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_server_is_met_before_the_first_script_that_it_runs() {
    let mut server = RedisServer::start();
    let (node, heard) = connect(&server.url()).await;
    for restarts in 1..=5 {
        // Further than it counts after the restart, whichever answer comes first.
        server.command(&["SET", "a", "1000000"]).unwrap();
        let mut counted = node.run(count("a")).await.expect("it counts").code();
        // Calls go on all the time, so that some of them come at the moment of the reconnection.
        let calls = tokio::spawn({
            let (node, heard) = (Arc::clone(&node), Arc::clone(&heard));
            async move {
                loop {
                    match node.run(count("a")).await {
                        Ok(answer) if answer.code() <= counted => {
                            return run_ids(&heard);
                        }
                        Ok(answer) => counted = answer.code(),
                        _ => tokio::task::yield_now().await,
                    }
                }
            }
        });
        server = tokio::task::spawn_blocking(move || {
            server.restart();
            server
        })
        .await
        .unwrap();
        let info = server.command(&["INFO", "server"]).unwrap().text();
        let met = calls.await.unwrap();
        assert!(info.contains(&format!("run_id:{}", met.last().unwrap())), "{met:?}");
        assert_eq!(met.len(), restarts + 1);
    }
}

// Neither by INFO nor by its fingerprint.
#[tokio::test]
async fn a_server_that_does_not_say_who_it_is_is_given_up_and_asked_again() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port()).await;
    let look = format!("EVAL\r\n${}\r\n", voter::LOOK.source.len());
    for question in [INFO, &look] {
        proxy.hold_replies_from(question);
        let fingerprint = Some("quorate:{%voter}".into());
        let (node, heard) = start_with(
            &proxy.url(),
            InspectionSettings { fingerprint, ..InspectionSettings::default() },
        );
        let told = "does not say who it is: no answer within 3s";
        fails(&node, |cause| *cause == Cause::Unreachable(told.into())).await;
        assert!(run_ids(&heard).is_empty());
        proxy.pass();
        answers(&node).await;
        assert_eq!(run_ids(&heard).len(), 1);
    }
}

#[tokio::test]
async fn a_user_who_may_not_ask_who_it_is_is_told_so_until_he_may() {
    let server = RedisServer::start();
    let rules = ["ACL", "SETUSER", "poor", "on", ">pw", "~*", "+@all", "-info"];
    server.command(&rules).unwrap();
    let (node, heard) = start(&format!("redis://poor:pw@127.0.0.1:{}", server.port()));
    fails(&node, |cause| matches!(cause, Cause::Unreachable(why) if why.lacks().is_some())).await;
    let asked = node.identify().await.unwrap_err();
    assert!(asked.to_string().contains("NOPERM"), "{asked}");
    assert_eq!((run_ids(&heard).len(), server.keys().len()), (0, 0));
    server.command(&["ACL", "SETUSER", "poor", "+info"]).unwrap();
    answers(&node).await;
    assert_eq!(node.run(count("a")).await, Ok(number(1)));
}
