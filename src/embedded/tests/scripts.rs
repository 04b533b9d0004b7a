//! What each script does, the locks' tests and the simulation's mutants show.

use super::*;
use crate::scripts::Value;

async fn run(node: &Arc<dyn Node>, call: Call) -> Answer {
    node.run(call).await.unwrap()
}

/// A grant shows the voter's clock, which began `after_ms` ago.
fn granted(after_ms: i64, token: &str) -> Answer {
    let token = Value::Text(token.into());
    Answer::of(1, 1_700_000_000_000 + after_ms, "", [token, Value::Int(1)])
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
async fn voters_of_one_thread_share_nothing_and_one_voter_serves_many_threads() {
    let (voter, other) = (voter(), EmbeddedVoter::new("b"));
    let ((node, _), (other_node, _)) = (connect(&voter), connect(&other));
    assert_eq!(run(&node, acquire("a:1")).await, granted(0, ""));
    assert_eq!(run(&other_node, acquire("b:1")).await, granted(0, ""));
    let refused = std::thread::spawn(move || node.run(acquire("b:1")).now_or_never());
    let refused = refused.join().unwrap().map(Result::unwrap);
    let verdict = refused.map(|answer| answer.holder_verdict());
    assert!(matches!(verdict, Some(Verdict::Refused { by, .. }) if by.as_str() == "a:1"));
    assert_eq!((voter.runs("mutex/acquire"), other.runs("mutex/acquire")), (2, 1));
}
