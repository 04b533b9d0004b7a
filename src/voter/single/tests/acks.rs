use std::{pin::pin, sync::Arc, time::Duration};

use futures::poll;

use super::{
    Answer, Call, Cause, Heard, InspectionSettings, Node, Outcome, RedisServer, SingleNode,
    VoterEvents, answers, call, connect,
};
use crate::{
    scripts::{Script, election, mutex, redisson, rw, semaphore},
    settings::ReplicaAcks,
    voter::{Access, Security},
};
use quorate_support::{Reply, eventually, eventually_async};

const LONG: Duration = Duration::from_secs(2);

/// A server with a replica that has its data.
fn pair() -> (RedisServer, RedisServer) {
    let primary = RedisServer::start_with(&["--repl-diskless-sync-delay", "0"]);
    let port = primary.port().to_string();
    let replica = RedisServer::start_with(&["--replicaof", "127.0.0.1", &port]);
    // The first may have come with the copy of all data, the second has followed it.
    for key in ["first", "second"] {
        eventually("the replica follows", || {
            primary.command(&["SET", key, "1"]).unwrap();
            replica.command(&["GET", key]) == Ok(Reply::Text("1".into()))
        });
    }
    (primary, replica)
}

/// A node whose grants need one replica.
async fn acknowledged(server: &RedisServer) -> Arc<dyn Node> {
    let listener: Arc<dyn VoterEvents> = Arc::new(Heard::default());
    let acks = ReplicaAcks { replicas: 1, timeout: Some(Duration::from_millis(50)) };
    let access = Access::new(&server.url().into(), &Security::default()).unwrap();
    let node: Arc<dyn Node> = SingleNode::start(
        &access,
        listener,
        InspectionSettings { acks, ..InspectionSettings::default() },
    );
    answers(&node).await;
    node
}

fn long(script: &'static Script, args: &[&str]) -> Call {
    Call { deadline: LONG, ..call(script, script.name, args) }
}

/// All scripts whose answers are votes.
fn votes() -> [Call; 11] {
    let place = ["calls:", "60000", "", "60000", "c:1.1", "", ""];
    let passed = ["calls:", "60000", "", "c:1.1", "c:1", "", ""];
    let permit = ["calls:", "60000", "60000", "c:1", "3", "1", "0", "", ""];
    let candidate = ["calls:", "60000", "", "60000", "c:1", "", "", "1 - =x", "news"];
    let leader = ["60000", "", "c:1", "", "2 - =x", "news", "1"];
    let reader = ["calls:", "read", "last", "60000", "", "60000", "c:1", "", ""];
    [
        long(&mutex::ACQUIRE, &place),
        long(&mutex::RENEW, &["60000", "", "c:1", "1", "", "", "1"]),
        // Of the hold that has acquired it.
        Call { deadline: LONG, ..call(&mutex::PASS, mutex::ACQUIRE.name, &passed) },
        long(&rw::ACQUIRE, &reader),
        long(&rw::RENEW, &["read", "60000", "", "c:1", "1", "", "1"]),
        long(&semaphore::ACQUIRE, &permit),
        long(&semaphore::RENEW, &["calls:", "60000", "c:1", "3", "0-0", "1"]),
        long(&election::ACQUIRE, &candidate),
        long(&election::RENEW, &leader),
        long(&redisson::RW_ACQUIRE, &["60000", "", "c:1", ""]),
        long(&redisson::RW_RENEW, &["60000", "", "c:1", "1", "", "1"]),
    ]
}

fn is_granted(outcome: &Outcome<Answer>) -> bool {
    outcome.as_ref().is_ok_and(Answer::is_done)
}

/// What the grant rests on was written by somebody else, before the replica stopped to listen.
#[tokio::test]
async fn no_vote_counts_for_what_another_connection_wrote_and_no_replica_has() {
    let (primary, replica) = pair();
    let (with, (without, _)) = (acknowledged(&primary).await, connect(&primary.url()).await);
    with.run(long(&mutex::RELEASE, &["calls:", "", "c:1", "0", "", ""])).await.unwrap();
    with.run(long(&mutex::INSPECT, &[])).await.unwrap();
    assert_eq!(primary.calls("wait"), 0, "they do not vote");
    let voting = crate::scripts::ALL.iter().filter(|script| script.votes).count();
    assert_eq!((voting, votes().iter().filter(|vote| vote.script.votes).count()), (11, 11));
    for vote in votes() {
        assert!(is_granted(&with.run(vote.clone()).await), "{}", vote.script.name);
    }
    primary.command(&["FLUSHALL"]).unwrap();
    replica.stop();
    for vote in votes() {
        assert!(is_granted(&without.run(vote.clone()).await), "{}", vote.script.name);
    }
    let none =
        Cause::Unacknowledged { acknowledged: 0, needed: 1, within: Duration::from_millis(50) };
    for vote in votes() {
        let name = vote.script.name;
        assert_eq!(with.run(vote).await, Err(none.clone()), "{name}");
    }
}

/// Nobody may be there any more to send it later.
#[tokio::test]
async fn the_question_leaves_with_the_first_poll_of_its_script_and_is_asked_though_that_is_dropped()
{
    let (primary, _replica) = pair();
    let node = acknowledged(&primary).await;
    for [vote, next, ..] in [votes(), votes()] {
        // Each counts when it ends: one that nobody heard in time may still be open.
        let blocked = || primary.info(&["INFO", "clients"], "blocked_clients");
        eventually_async("no question is open", async || blocked().as_deref() == Ok("0")).await;
        let before = primary.calls("wait");
        {
            let mut request = pin!(node.run(vote));
            assert!(poll!(request.as_mut()).is_pending());
        }
        eventually_async("it is asked", async || primary.calls("wait") == before + 1).await;
        // The next is not held up by a question that nobody waits for. Once it is answered the node
        // has heard the answers to all questions, which the server gave earlier.
        assert!(is_granted(&node.run(next).await));
    }
}
