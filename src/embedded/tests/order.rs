use futures::future::join_all;
use proptest::{collection::vec, prelude::*};

use super::*;

#[tokio::test(start_paused = true)]
async fn answers_come_back_in_order_whatever_each_takes() {
    let (voter, node, _) = connected();
    let clock = Clock::tokio();
    voter.fault_next(1, delay(0, 50));
    voter.fault_next(2, delay(0, 10));
    let answers = join_all([node.run(acquire("a:1")), node.run(acquire("b:1"))]).await;
    assert_eq!(answers.into_iter().map(code).collect::<Vec<_>>(), [1, 0]);
    assert_eq!(passed(&clock), ms(60), "the second waits behind the first");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_late_for_its_caller_runs_all_the_same() {
    for is_stopped in [false, true] {
        let (voter, node, _) = connected();
        let clock = Clock::tokio();
        let _slow = voter.fault(delay(if is_stopped { 0 } else { 500 }, 0));
        if is_stopped {
            voter.stop();
        }
        assert_eq!(node.run(acquire("a:1")).await, Err(Cause::TimedOut(DEADLINE)));
        assert_eq!((passed(&clock), voter.commands_seen()), (DEADLINE, 0));
        voter.resume();
        tokio::time::sleep(ms(301)).await;
        assert_eq!((voter.keys(), voter.runs("mutex/acquire")), (vec!["lock".into()], 1));
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_sent_before_the_connection_closed_runs() {
    let (voter, node, _) = connected();
    let answer = sent(&voter, &node, acquire("a:1"), 50, 0);
    node.close().await;
    assert_eq!(node.run(acquire("b:1")).await, Err(Cause::Unreachable("closed".into())));
    drop(node);
    assert_eq!(code(answer.await), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_voter_runs_what_arrived_in_the_order_of_arrival() {
    let voter = voter();
    let ((first, _), (second, _)) = (connect(&voter), connect(&voter));
    voter.stop();
    // Sent in the other order of the connections, and asked for in this one.
    let mut later = second.run(acquire("b:1"));
    let late = pending(first.run(acquire("a:1")));
    assert!((&mut later).now_or_never().is_none());
    voter.resume();
    assert_eq!((code(late.await), code(later.await)), (0, 1));
}

const CONNECTIONS: usize = 3;

/// Appends its argument to a log.
static LOG: Script = test_script!(
    "test/log",
    "log",
    "entry",
    "local length = #redis.call('HKEYS', KEYS[1])
        redis.call('HSET', KEYS[1], string.format('%04d', length), ARGV[1])
        return { length, 0, '' }"
);

#[derive(Clone, Debug)]
enum Step {
    /// Sends on a connection, with these milliseconds there and back; the caller stays or goes.
    Send {
        connection: usize,
        there: u64,
        back: u64,
        stays: bool,
    },
    Stop,
    Resume,
    /// What is under way arrives, behind the connections that stand from now on.
    Cut,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let send = (0..CONNECTIONS, 0..50_u64, 0..50_u64, any::<bool>());
    prop_oneof![
        6 => send.prop_map(|(connection, there, back, stays)| {
            Step::Send { connection, there, back, stays }
        }),
        1 => Just(Step::Stop),
        1 => Just(Step::Resume),
        1 => Just(Step::Cut),
        2 => (0..40_u64).prop_map(Step::Wait),
    ]
}

/// What the voter's log holds at the end, and what those who stayed were answered. An entry names
/// the cut before it, the connection, and the step.
async fn trace(steps: Vec<Step>) -> (Vec<String>, Vec<Outcome<Answer>>) {
    let (voter, mut cuts, mut waiting) = (voter(), 0, Vec::new());
    let nodes: Vec<_> = (0..CONNECTIONS).map(|_| connect(&voter).0).collect();
    for (number, step) in steps.into_iter().enumerate() {
        match step {
            Step::Send { connection, there, back, stays } => {
                voter.fault_next(1, delay(there, back));
                let entry = format!("{cuts} {connection} {number:04}");
                let mut outcome = nodes[connection].run(Call::of(&LOG, &["log"], &[&entry]));
                // One that goes has not even looked: it was sent all the same.
                if stays {
                    let answered = (&mut outcome).now_or_never();
                    waiting.push(answered.map_or(outcome, |outcome| async { outcome }.boxed()));
                }
            }
            Step::Stop => voter.stop(),
            Step::Resume => voter.resume(),
            Step::Cut => {
                voter.cut(InFlight::Arrives);
                cuts += 1;
            }
            Step::Wait(length) => tokio::time::sleep(ms(length)).await,
        }
    }
    voter.resume();
    let outcomes = join_all(waiting).await;
    tokio::time::sleep(ms(10_000)).await;
    let fields = voter.records().into_iter().flat_map(|record| record.fields);
    (fields.map(|(_, entry)| entry).collect(), outcomes)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_sent_runs_once_in_the_order_of_its_connection_and_the_same_way_each_time(
        steps in vec(step(), 1..60),
    ) {
        let run = || {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            let runtime = builder.enable_time().start_paused(true).build().unwrap();
            runtime.block_on(trace(steps.clone()))
        };
        let (log, outcomes) = run();
        let sent = steps.iter().filter(|step| matches!(step, Step::Send { .. }));
        prop_assert_eq!(log.len(), sent.count());
        let connections: BTreeSet<_> = log.iter().map(|entry| &entry[..entry.len() - 4]).collect();
        for connection in connections {
            // The entries hold the number of the step: in order, and none twice.
            let entries = log.iter().filter(|entry| entry.starts_with(connection));
            prop_assert!(entries.is_sorted_by(|earlier, later| earlier < later));
        }
        prop_assert_eq!((log, outcomes), run());
    }
}
