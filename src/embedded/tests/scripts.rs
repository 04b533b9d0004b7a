use super::*;
use crate::scripts::Value;

async fn run(node: &Arc<dyn Node>, call: Call) -> Answer {
    node.run(call).await.unwrap()
}

fn answer(code: i64, ms: i64, id: &str) -> Answer {
    Answer::of(code, ms, id, [Value::Nil, Value::Nil])
}

fn refused(ms: i64, id: &str) -> Answer {
    Answer::of(0, ms, id, [Value::Text(String::new()), Value::Nil])
}

/// A grant shows the voter's clock, which began `after_ms` ago.
fn granted(after_ms: i64, token: &str) -> Answer {
    let token = Value::Text(token.into());
    Answer::of(1, 1_700_000_000_000 + after_ms, "", [token, Value::Nil])
}

fn renewed(after_ms: i64) -> Answer {
    answer(1, 1_700_000_000_000 + after_ms, "")
}

fn renew(hold: &str, anew: &str) -> Call {
    Call::of(&mutex::RENEW, &["lock", "revoked", "fence"], &["30000", "", hold, "2", "", "", anew])
}

#[tokio::test(start_paused = true)]
async fn a_vote_is_granted_refused_renewed_and_given_back() {
    let (voter, node, _) = connected();
    assert_eq!(run(&node, acquire("a:1")).await, granted(0, ""));
    tokio::time::advance(ms(10_000)).await;
    assert_eq!(run(&node, acquire("b:1")).await, refused(20_000, "a:1"));
    assert_eq!(run(&node, renew("a:1", "")).await, renewed(10_000));
    for anew in ["", "1"] {
        assert_eq!(run(&node, renew("b:1", anew)).await, answer(0, 30_000, "a:1"));
    }
    let inspect = || Call::of(&mutex::INSPECT, &["lock", "queue", "alive", "fence"], &[]);
    let more = || Value::List(vec![Value::List(Vec::new()), Value::Text(String::new())]);
    let held = Answer::of(1, 30_000, "a:1", [Value::Int(2), more()]);
    assert_eq!(run(&node, inspect()).await, held);
    assert_eq!(run(&node, release("b:1")).await, answer(0, 30_000, "a:1"));
    assert_eq!(run(&node, release("a:1")).await, answer(1, 0, ""));
    assert_eq!(run(&node, release("a:1")).await, answer(0, -2, ""));
    let free = Answer::of(0, -2, "", [Value::Int(0), more()]);
    assert_eq!(run(&node, inspect()).await, free);
    assert!(voter.keys().is_empty());
    assert_eq!((voter.runs("mutex/acquire"), voter.commands_seen()), (2, 10));
}

#[tokio::test(start_paused = true)]
async fn a_renewal_takes_the_vote_of_an_empty_voter_if_it_asks_for_that() {
    let (voter, node, _) = connected();
    run(&node, acquire("a:1")).await;
    assert_eq!(run(&node, renew("a:1", "")).await, renewed(0));
    voter.wipe();
    for _ in 0..2 {
        assert_eq!(run(&node, renew("a:1", "")).await, answer(4, 0, ""), "however often it asks");
        assert!(voter.keys().is_empty());
    }
    assert_eq!(run(&node, renew("a:1", "1")).await, renewed(0));
    assert_eq!(run(&node, renew("a:1", "")).await, renewed(0));
    let keys = ["lock", "revoked", "queue", "alive"];
    let force = Call::of(&mutex::FORCE_RELEASE, &keys, &["calls:", "", "a:1", "60000", "freed"]);
    assert_eq!(run(&node, force).await, answer(1, 30_000, ""));
    assert_eq!(run(&node, renew("a:1", "1")).await, answer(2, 0, ""), "it was ended by force");
    assert_eq!(voter.keys(), ["revoked"]);
    tokio::time::advance(ms(60_001)).await;
    assert!(voter.keys().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_known_vote_is_kept_with_a_look_at_nothing_else() {
    let (voter, node, _) = connected();
    let known = |count: &str| {
        let args = ["30000", "60000", "a:1", count, "7", "1", "1"];
        Call::of(&mutex::RENEW, &["lock", "revoked", "fence"], &args)
    };
    let stored = || voter.command(&["GET", "fence"]).unwrap();
    run(&node, acquire("a:1")).await;
    tokio::time::advance(ms(10_000)).await;
    assert_eq!(run(&node, known("1")).await, renewed(10_000));
    assert_eq!(run(&node, acquire("b:1")).await, refused(30_000, "a:1"));
    assert_eq!(stored(), Reply::Nil);
    // What is not as it was is put right in full.
    assert_eq!(run(&node, known("2")).await, renewed(10_000));
    assert_eq!(stored(), Reply::Text("7".into()));
    assert_eq!(voter.command(&["HGET", "lock", "a:1"]), Ok(Reply::Text("2".into())));
    voter.wipe();
    assert_eq!(run(&node, known("2")).await, renewed(10_000));
    assert_eq!(stored(), Reply::Text("7".into()));
    voter.command(&["DEL", "lock"]).unwrap();
    voter.command(&["HSET", "revoked", "a:1", "1"]).unwrap();
    assert_eq!(run(&node, known("2")).await, answer(2, 0, ""));
    voter.command(&["HSET", "lock", "b:1", "1"]).unwrap();
    voter.command(&["DEL", "revoked"]).unwrap();
    assert_eq!(run(&node, known("2")).await, answer(0, -1, "b:1"));
}

#[tokio::test(start_paused = true)]
async fn one_bad_key_fails_alone() {
    let (voter, node, _) = connected();
    voter.command(&["SET", "b", "text"]).unwrap();
    let (mut args, mut keys) = (vec!["calls:", "500", "60000", "500"], Vec::new());
    for name in ["a", "b", "c"] {
        args.extend([name, "7", ""]);
        keys.extend(["", "queue:", "alive:", "fence:"].map(|part| format!("{part}{name}")));
    }
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let mut answers = node.send(Call::of(&mutex::ACQUIRE, &keys, &args)).await;
    let data = answers[0].as_mut().unwrap().data.take();
    assert!(data.is_some(), "what the data are called");
    let message = "WRONGTYPE Operation against a key holding the wrong kind of value";
    let failed = Err(Cause::Rejected(message.into()));
    assert_eq!(answers, [Ok(granted(0, "7")), failed, Ok(granted(0, "7"))]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_as_a_whole_is_a_rejection() {
    static BROKEN: Script = Script {
        name: "test/broken",
        source: "return nil + 1",
        keys: &["key"],
        shared: &[],
        args: &[],
        width: 3,
        votes: false,
    };
    let (node, _) = connect(&voter());
    let outcome = node.run(Call::of(&BROKEN, &["key"], &[])).await;
    let message = "ERR user_script:1: attempt to perform arithmetic on a nil value";
    assert_eq!(outcome, Err(Cause::Rejected(message.into())));
}

#[tokio::test(start_paused = true)]
async fn voters_of_one_thread_share_nothing_and_one_voter_serves_many_threads() {
    let (voter, other) = (voter(), EmbeddedVoter::new("b"));
    let ((node, _), (other_node, _)) = (connect(&voter), connect(&other));
    assert_eq!(run(&node, acquire("a:1")).await, granted(0, ""));
    assert_eq!(run(&other_node, acquire("b:1")).await, granted(0, ""));
    let refused = std::thread::spawn(move || node.run(acquire("b:1")).now_or_never());
    let refused = refused.join().unwrap().map(Result::unwrap);
    let verdict = refused.map(|answer| answer.whose());
    assert!(matches!(verdict, Some(Verdict::Refused { by, .. }) if by.as_str() == "a:1"));
    assert_eq!((voter.runs("mutex/acquire"), other.runs("mutex/acquire")), (2, 1));
}
