//! A lock goes from process to process by its ticket, while processes are killed and connections are
//! cut.

use std::{env, path::Path, process};

use quorate::HoldTicket;
use quorate_support::Worker;
use quorate_tests::{
    prelude::*,
    scene::{builder_through, knob},
};
use tokio::runtime;

const LEASE: Duration = secs(10);
const MINUTES: Duration = secs(600);
/// The addresses of the voters and a ticket, for a process that resumes it.
const PLAN: &str = "QUORATE_HANDOVER";

// Run as a process of its own, by the test below.
#[test]
fn resumes_and_parks() {
    let Ok(plan) = env::var(PLAN) else { return };
    let words: Vec<&str> = plan.split(' ').collect();
    let (ticket, urls) = words.split_last().expect("it has a ticket");
    let ticket: HoldTicket = ticket.parse().expect("it is one");
    let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let handed_over = runtime.expect("a runtime").block_on(async {
        let builder = leased(Quorate::builder().voters(urls), LEASE);
        let client = builder.connect_timeout(secs(20)).connect().await?;
        let guard = client.resume(&ticket).await?;
        let token = guard.token();
        let parked = guard.detach_for(MINUTES).await?;
        println!("resumed {token} {parked}");
        // It goes on renewing what it parks until it is killed.
        client.parked(&parked).expect("it parks it").await;
        Ok::<_, Error>(())
    });
    println!("ended {handed_over:?}");
    process::exit(0);
}

/// A process that is to resume this.
fn start(proxies: &[Proxy], ticket: &HoldTicket) -> Worker {
    let urls = proxies.iter().map(Proxy::url).collect::<Vec<_>>().join(" ");
    let plan = format!("{PLAN}={urls} {ticket}");
    let program = env::current_exe().expect("this program has a path").display().to_string();
    let arguments = [&plan, &program, "--exact", "handover::resumes_and_parks", "--nocapture"];
    Worker::start(Path::new("/usr/bin/env"), arguments)
}

/// What it has, or why it has nothing.
fn outcome(worker: &Worker) -> Result<(Token, HoldTicket), String> {
    loop {
        let said = worker.says();
        let words: Vec<&str> = said.split(' ').collect();
        match *words {
            ["resumed", token, ticket] => {
                let token = token.parse().expect("a token");
                return Ok((token, ticket.parse().expect("a ticket")));
            }
            ["ended", ..] => return Err(said),
            _ => {}
        }
    }
}

// One of a few rounds each: two resume the same; one is killed while it does; a connection is cut
// between execution and reply; the process that parks the hold is dead before.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_goes_from_process_to_process_while_they_are_killed_and_cut_off() {
    let servers = servers(3);
    let proxies = proxies(&servers).await;
    let client = connect(leased(builder_through(&proxies), LEASE)).await;
    let (mut latest, mut lost) = (None, 0);
    let mut parked: Option<(HoldTicket, Option<Worker>)> = None;
    for round in 0..knob("QUORATE_HANDOVERS", 40) {
        let (ticket, parks) = if let Some(parked) = parked.take() {
            parked
        } else {
            let guard = client.mutex("a").lock().await.unwrap();
            assert!(Some(guard.token()) > latest);
            latest = Some(guard.token());
            (guard.detach_for(MINUTES).await.unwrap(), None)
        };
        let parks = parks.filter(|_| round.is_multiple_of(2));
        if round % 7 == 3 {
            let mut victim = start(&proxies, &ticket);
            sleep(ms(7 * (round % 13))).await;
            victim.kill();
        }
        if round.is_multiple_of(3) {
            proxies[usize::from(round.is_multiple_of(2))].cut_after_request_naming("EVALSHA", 3);
        }
        let count = if round.is_multiple_of(5) { 2 } else { 1 };
        let workers: Vec<_> = (0..count).map(|_| start(&proxies, &ticket)).collect();
        for worker in workers {
            let (said, worker) =
                tokio::task::spawn_blocking(|| (outcome(&worker), worker)).await.unwrap();
            match said {
                Ok((token, next)) => {
                    assert!(parked.is_none(), "round {round}: two have resumed it");
                    assert!(Some(token) > latest, "round {round}: {token}");
                    latest = Some(token);
                    parked = Some((next, Some(worker)));
                }
                Err(said) => {
                    assert!(said.contains("has ended") || said.contains("is taken"), "{said}");
                }
            }
        }
        drop(parks);
        if parked.is_none() {
            // The one that was killed may have had it: its votes end with their lease.
            assert_eq!(round % 7, 3, "round {round}: nobody has resumed it");
            lost += 1;
        }
    }
    println!("{lost} were lost with the process that was killed");
}
