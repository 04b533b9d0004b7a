//! What users of `Election::lead` rely on. Each test's name is the claim.

use std::{
    ops::ControlFlow::{self, Break, Continue},
    sync::Mutex,
};

use futures::FutureExt;
use quorate::{Election, Leadership};
use quorate_tests::{inside::fault_client, prelude::*};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::sync::{mpsc, oneshot};

const LEASE: Duration = secs(3);
/// So long before the end of its lead a leader is told: a third of the lease.
const GRACE: Duration = secs(1);

/// A task that leads, until it is sent something.
fn leads<T: Send + 'static>(
    election: Election,
    work: impl AsyncFnMut(Arc<Leadership>) -> ControlFlow<T> + Send + 'static,
) -> (oneshot::Sender<()>, impl Future<Output = Result<Option<T>, Error>>) {
    let (shut_down, shutdown) = oneshot::channel();
    let shutdown = async { shutdown.await.unwrap_or_default() };
    (shut_down, async move { election.lead("x", shutdown, work).await })
}

/// Nobody shuts it down.
async fn leads_on<T>(
    election: Election,
    work: impl AsyncFnMut(Arc<Leadership>) -> ControlFlow<T>,
) -> Result<Option<T>, Error> {
    election.lead("x", std::future::pending(), work).await
}

claims!(three:
    when_it_is_shut_down_the_lead_is_renewed_until_the_work_has_ended_and_then_given_up,
    work_that_goes_on_hands_the_lead_over_and_work_that_is_done_ends_the_loop,
);

// Three leases of work after the shutdown: without renewals the next one would lead after one.
async fn when_it_is_shut_down_the_lead_is_renewed_until_the_work_has_ended_and_then_given_up(
    on: Fixture,
) {
    let (ada, ben) = (on.client_with_lease(LEASE).await, on.client_with_lease(LEASE).await);
    let (told, mut tells) = mpsc::unbounded_channel();
    let work = async move |leadership: Arc<Leadership>| {
        told.send("leads").unwrap();
        leadership.ending().await;
        told.send("ends").unwrap();
        sleep(3 * LEASE).await;
        assert!(leadership.is_held());
        told.send("has ended").unwrap();
        Continue::<()>(())
    };
    let (shut_down, leads) = leads(ada.election("a"), work);
    let leads = tokio::spawn(leads);
    assert_eq!(tells.recv().await, Some("leads"));
    let next = tokio::spawn(ben.election("a").campaign("next"));
    on.until_queued().await;
    // It is told of the shutdown, and not of a loss that is near.
    assert!(timeout(LEASE, tells.recv()).await.is_err());
    shut_down.send(()).unwrap();
    assert_eq!(tells.recv().await, Some("ends"));
    assert_eq!(tells.recv().await, Some("has ended"));
    assert_eq!(leads.await.unwrap().unwrap(), None);
    let watch = Stopwatch::start();
    let leadership = next.await.unwrap().unwrap();
    assert!(watch.time() <= on.at_most(ms(10)), "it is given up: {:?}", watch.time());
    on.release(leadership.resign()).await;
    on.until_clean().await;
}

async fn work_that_goes_on_hands_the_lead_over_and_work_that_is_done_ends_the_loop(on: Fixture) {
    let clients = [on.client().await, on.client().await];
    // Each leads three times, in turn, and then is done.
    let turns = Arc::new(Mutex::new(Vec::new()));
    let candidate = |number: usize| {
        let (on, turns, election) = (&on, Arc::clone(&turns), clients[number].election("a"));
        let mut led = 0;
        leads_on(election, async move |_: Arc<Leadership>| {
            // The other one waits.
            if led + number < 3 {
                on.until_queued().await;
            }
            turns.lock().unwrap().push(number);
            led += 1;
            if led == 3 { Break(number) } else { Continue(()) }
        })
    };
    let second = async {
        // Whoever asks first leads first.
        while clients[1].election("a").leader().await.unwrap().is_none() {}
        candidate(1).await
    };
    let (first, second) = tokio::join!(candidate(0), second);
    assert_eq!([first.unwrap(), second.unwrap()], [Some(0), Some(1)]);
    assert_eq!(*turns.lock().unwrap(), [0, 1, 0, 1, 0, 1]);
    on.until_clean().await;
}

// No majority for ten minutes, and all that the voters had is gone.
#[tokio::test(start_paused = true)]
async fn without_a_majority_the_work_is_warned_then_dropped_and_it_leads_again_when_there_is_one() {
    let mut on = Fixture::embedded(3);
    let client = on.client_with_lease(LEASE).await;
    let (told, mut tells) = mpsc::unbounded_channel();
    let watch = Stopwatch::start();
    let work = async move |leadership: Arc<Leadership>| {
        told.send(("leads", watch.time(), leadership.token())).unwrap();
        leadership.ending().await;
        assert!(leadership.is_held(), "it is told before the loss");
        let left = leadership.remaining();
        assert!(left <= GRACE && left + ms(10) > GRACE, "{left:?}");
        told.send(("ends", watch.time(), leadership.token())).unwrap();
        // It does not listen.
        sleep(10 * LEASE).await;
        unreachable!("it is dropped at the deadline");
    };
    let (shut_down, leads) = leads::<()>(client.election("a"), work);
    let leads = tokio::spawn(leads);
    let (_, _, first) = tells.recv().await.unwrap();
    on.kill_all();
    assert_eq!(tells.recv().await.unwrap().0, "ends");
    sleep(secs(600)).await;
    assert!(tells.try_recv().is_err(), "nobody leads without a majority");
    on.restart_all();
    let back = watch.time();
    let (what, at, token) = tells.recv().await.unwrap();
    assert!(what == "leads" && token > first);
    // The voters are in quarantine first.
    assert!(at < back + secs(30) + LEASE + secs(1), "{back:?} {at:?}");
    on.kill_all();
    assert_eq!(tells.recv().await.unwrap().0, "ends");
    sleep(2 * LEASE).await;
    shut_down.send(()).unwrap();
    // It campaigns, and does not wait for that.
    assert_eq!(timeout(ms(1), leads).await.unwrap().unwrap().unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_while_another_leads_ends_it_at_once_and_leaves_nothing() {
    let on = Fixture::embedded(3);
    let (ada, ben) = (on.client().await, on.client().await);
    let leadership = ada.election("a").campaign("x").await.unwrap();
    let work = async |_: Arc<Leadership>| -> ControlFlow<()> { unreachable!("another one leads") };
    let (shut_down, leads) = leads(ben.election("a"), work);
    let leads = tokio::spawn(leads);
    on.until_queued().await;
    shut_down.send(()).unwrap();
    assert_eq!(timeout(ms(1), leads).await.unwrap().unwrap().unwrap(), None);
    leadership.resign().await.unwrap();
    on.until_clean().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_no_use_to_wait_out_ends_the_loop() {
    let (on, client) = Fixture::with_client(3).await;
    let work = async |_: Arc<Leadership>| Continue::<()>(());
    let election = client.election("a");
    let long = election.lead("x".repeat(4097), std::future::pending(), work);
    assert!(long.await.unwrap_err().is_invalid());
    let name = leads_on(client.election(""), work).await.unwrap_err();
    assert!(name.is_invalid() && name.is_permanent());
    let leader = on.client().await;
    let leadership = leader.election("a").campaign("x").await.unwrap();
    let waits = tokio::spawn(leads_on(client.election("a"), work));
    on.until_queued().await;
    client.close().await.expect("it holds nothing");
    let closed = waits.await.unwrap().unwrap_err();
    assert!(closed.is_closed() && closed.is_permanent());
    assert!(leadership.is_held());
}

// Two of three take scripts from nobody, and no operator has said otherwise.
#[tokio::test]
async fn rights_that_a_majority_refuses_end_the_loop() {
    let on = Fixture::restricted(3);
    let client = on.client().await;
    for voter in [0, 1] {
        on.command(voter, &["ACL", "SETUSER", "quorate", "-eval", "-evalsha"]);
    }
    let work = async |_: Arc<Leadership>| Continue::<()>(());
    let refused = leads_on(client.election("a"), work).await.unwrap_err();
    assert!(refused.is_no_quorum() && refused.is_permanent(), "{refused}");
    assert!(refused.to_string().contains("NOPERM"), "{refused}");
}

/// Who leads, as each of them knows it of itself.
#[derive(Default)]
struct Leads {
    /// Its token, and when it last knew that it led.
    latest: Option<(Token, Duration)>,
    takeovers: u32,
    longest_gap: Duration,
}

impl Leads {
    fn begin(&mut self, token: Token, now: Duration) {
        if let Some((before, at)) = self.latest {
            assert!(token > before && now > at, "two lead");
            self.longest_gap = self.longest_gap.max(now.saturating_sub(at));
        }
        self.takeovers += 1;
    }
}

// A leader dies, is shut down while its work takes three leases, or is cut off and comes back.
#[tokio::test(start_paused = true)]
async fn in_two_hundred_takeovers_no_two_lead_and_nobody_leads_for_a_lease_and_a_second_at_most() {
    let voters = embedded::voters(3);
    let on = Fixture::of(&voters);
    let (leads, watch) = (Arc::new(Mutex::new(Leads::default())), Stopwatch::start());
    let mut chance = StdRng::seed_from_u64(1);
    let (entered, mut enters) = mpsc::unbounded_channel();
    let candidate = async |number: usize| {
        let machine = Machine::new(format!("candidate-{number}"));
        let builder = on.builder().lease(LEASE).longest_lease(LEASE).voter_deadline(LEASE / 10);
        let client = builder.machine(&machine).connect().await.unwrap();
        let (shut_down, shutdown) = oneshot::channel::<()>();
        let (leads, entered) = (Arc::clone(&leads), entered.clone());
        let work = async move |leadership: Arc<Leadership>| {
            let token = leadership.token();
            leads.lock().unwrap().begin(token, watch.time());
            entered.send(number).unwrap();
            let ending = async {
                leadership.ending().await;
                sleep(3 * LEASE).await;
            };
            let mut ending = std::pin::pin!(ending.fuse());
            loop {
                if leadership.is_held() {
                    leads.lock().unwrap().latest = Some((token, watch.time()));
                }
                if timeout(ms(10), &mut ending).await.is_ok() {
                    return Continue::<()>(());
                }
            }
        };
        let runs = {
            let client = client.clone();
            machine.run(async move {
                let shutdown = async { shutdown.await.unwrap_or_default() };
                client.election("a").lead("x", shutdown, work).await.unwrap();
            })
        };
        (machine, client, shut_down, tokio::spawn(runs))
    };
    let mut candidates = Vec::new();
    for number in 0..3 {
        candidates.push(candidate(number).await);
    }
    for _ in 0..200 {
        let number = timeout(secs(60), enters.recv()).await.expect("somebody leads").unwrap();
        sleep(ms(chance.random_range(0..5000))).await;
        match chance.random_range(0..3) {
            0 => {
                candidates[number].0.kill();
                candidates[number] = candidate(number).await;
            }
            1 => {
                let fresh = candidate(number).await;
                let (_machine, _client, shut_down, runs) =
                    std::mem::replace(&mut candidates[number], fresh);
                shut_down.send(()).unwrap();
                runs.await.unwrap();
            }
            _ => {
                let name = format!("candidate-{number}");
                fault_client(&voters, &name, Fault::DropRequests);
                sleep(2 * LEASE).await;
                heal(&voters);
            }
        }
    }
    let leads = leads.lock().unwrap();
    assert!(leads.takeovers >= 200, "{}", leads.takeovers);
    assert!(leads.longest_gap <= LEASE + secs(1), "{:?}", leads.longest_gap);
}
