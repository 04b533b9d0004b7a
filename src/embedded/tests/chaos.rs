//! Random delays, halts and callers that go away: what was sent runs once, in order, the same way
//! each time.

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::embedded::Fault;

const CONNECTIONS: usize = 3;

/// Appends its argument to a log.
static LOG: Script = Script {
    name: "test/log",
    source: "local length = #redis.call('HKEYS', KEYS[1])
        redis.call('HSET', KEYS[1], string.format('%04d', length), ARGV[1])
        return { length, 0, '' }",
    keys: &["log"],
    shared: &[],
    args: &[Arg::Text("entry")],
    width: 3,
    votes: false,
};

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
        2 => (0..40_u64).prop_map(Step::Wait),
    ]
}

/// What the voter's log holds at the end, and what those who stayed were answered.
type Trace = (Vec<String>, Vec<Outcome<Answer>>);

async fn trace(steps: &[Step]) -> Trace {
    let voter = voter();
    let nodes: Vec<_> = (0..CONNECTIONS).map(|_| connect(&voter).0).collect();
    let mut waiting: Vec<BoxFuture<'static, Outcome<Answer>>> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        match *step {
            Step::Send { connection, there, back, stays } => {
                voter.fault_next(1, Fault::Delay { there: ms(there), back: ms(back) });
                let entry = format!("{connection}:{number:04}");
                let mut outcome = nodes[connection].run(Call::of(&LOG, &["log"], &[&entry]));
                // One that goes has not even looked: it was sent all the same.
                if stays {
                    let answered = (&mut outcome).now_or_never();
                    waiting.push(answered.map_or(outcome, |outcome| async { outcome }.boxed()));
                }
            }
            Step::Stop => voter.stop(),
            Step::Resume => voter.resume(),
            Step::Wait(length) => tokio::time::sleep(ms(length)).await,
        }
    }
    voter.resume();
    let outcomes = futures::future::join_all(waiting).await;
    tokio::time::sleep(ms(10_000)).await;
    (log(&voter), outcomes)
}

fn log(voter: &EmbeddedVoter) -> Vec<String> {
    match voter.command(&["HGETALL", "log"]) {
        Ok(Reply::List(entries)) => {
            entries.chunks(2).map(|entry| format!("{:?}", entry[1])).collect()
        }
        other => panic!("no log: {other:?}"),
    }
}

fn run(steps: &[Step]) -> Trace {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap().block_on(trace(steps))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_sent_runs_once_and_in_the_order_of_its_connection(steps in vec(step(), 1..60)) {
        let (log, _) = run(&steps);
        let sent = steps.iter().filter(|step| matches!(step, Step::Send { .. }));
        prop_assert_eq!(log.len(), sent.count());
        for connection in 0..CONNECTIONS {
            let of_connection = format!("Text(\"{connection}:");
            // The entries hold the number of the step: in order, and none twice.
            let entries = log.iter().filter(|entry| entry.starts_with(&of_connection));
            prop_assert!(entries.is_sorted_by(|earlier, later| earlier < later));
        }
    }

    #[test]
    fn the_same_calls_run_and_are_answered_the_same_way(steps in vec(step(), 1..60)) {
        prop_assert_eq!(run(&steps), run(&steps));
    }
}
