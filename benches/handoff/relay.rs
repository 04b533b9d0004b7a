//! The floor of a hand-off: two parties that hand a fair lock to each other, with nothing in
//! between but the scripts.

use std::time::{Duration, Instant};

use fred::{
    clients::Client,
    interfaces::{ClientLike, EventInterface, PubsubInterface},
    types::Value,
};
use futures::{
    StreamExt,
    stream::{self, BoxStream, SelectAll},
};
use tokio::time::sleep;

use crate::SETTLE;
use quorate_benches::floor::{self, CALLS, MUTEX_ACQUIRE, MUTEX_RELEASE, Nodes, Script};
use quorate_support::RedisServer;

const NAME: &str = "bench:flat";
/// Ids as long as those of clients.
const IDS: [&str; 2] =
    ["67e55044-10b1-426f-9247-bb680e5fe0c8", "67e55044-10b1-426f-9247-bb680e5fe0c9"];
/// Nothing is lost here, and whatever is late is to be measured.
const DEADLINE: Duration = Duration::from_secs(5);
const MAJORITY: usize = 3;

pub(crate) struct Relay {
    parties: [Party; 2],
    acquire: Script<4, 7>,
    release: Script<3, 7>,
    places: u64,
}

struct Party {
    nodes: Nodes,
    listeners: Vec<Client>,
    /// Whoever was called, each time that any of the nodes did.
    calls: SelectAll<BoxStream<'static, String>>,
}

/// Stands in the queue of every node.
struct Place {
    party: usize,
    name: String,
    /// That of the latest bid.
    hold: Value,
    ticket: Value,
}

impl Relay {
    pub(crate) async fn connect(servers: &[RedisServer]) -> Self {
        let parties =
            [Party::connect(servers, IDS[0]).await, Party::connect(servers, IDS[1]).await];
        let acquire = parties[0].nodes.load(&MUTEX_ACQUIRE).await;
        let release = parties[0].nodes.load(&MUTEX_RELEASE).await;
        Self { parties, acquire, release, places: 0 }
    }

    pub(crate) async fn close(self) {
        for Party { nodes, listeners, .. } in self.parties {
            nodes.close().await;
            for client in listeners {
                client.quit().await.expect("the connection ends");
            }
        }
    }

    /// Hands the lock on so often, through as many places that stand in line. Returns the times
    /// from just before a release until the next one is granted by a majority.
    pub(crate) async fn hand_on(&mut self, count: usize) -> Vec<Duration> {
        let mut places = Vec::new();
        // The first one gets the lock, the others line up.
        for _ in 0..=count {
            places.push(self.enter().await);
        }
        sleep(SETTLE).await;
        let mut times = Vec::new();
        for pair in places.windows(2) {
            times.push(self.pass(&pair[0], &pair[1]).await);
        }
        self.leave(&places[count]).await;
        times
    }

    async fn enter(&mut self) -> Place {
        self.places += 1;
        let party = usize::from(self.places.is_multiple_of(2));
        let name = format!("{}:{}", IDS[party], self.places);
        let hold = format!("{name}.1").into();
        let mut place = Place { party, name, hold, ticket: "".into() };
        let nodes = &self.parties[party].nodes;
        let answers = nodes.all(&self.acquire, &floor::keys(NAME), &place.asking()).await;
        if !floor::is_granted(&answers[0]) {
            place.hold = format!("{}.2", place.name).into();
        }
        place.ticket = answers[0].last().expect("a ticket").clone();
        place
    }

    #[expect(clippy::disallowed_methods, reason = "a benchmark measures in real time")]
    async fn pass(&mut self, from: &Place, to: &Place) -> Duration {
        let Self { parties, acquire, release, .. } = self;
        let [one, other] = parties;
        let (giving, taking) = if from.party == 0 { (one, other) } else { (other, one) };
        let keys = floor::keys(NAME);
        let (leaving, asking) = (from.leaving(), to.asking());
        let started = Instant::now();
        let taken = async {
            taking.called(&to.name).await;
            taking.nodes.majority(acquire, &keys, &asking).await;
            started.elapsed()
        };
        tokio::join!(giving.nodes.majority(release, floor::first_three(&keys), &leaving), taken).1
    }

    async fn leave(&mut self, place: &Place) {
        let nodes = &self.parties[place.party].nodes;
        let keys = floor::keys(NAME);
        nodes.all(&self.release, floor::first_three(&keys), &place.leaving()).await;
    }
}

impl Party {
    async fn connect(servers: &[RedisServer], id: &str) -> Self {
        let mut listeners = Vec::new();
        let mut calls = SelectAll::new();
        for server in servers {
            let client = floor::connect(server).await;
            let heard = stream::unfold(client.message_rx(), async |mut heard| {
                let message = heard.recv().await.ok()?;
                Some((message.value.as_string().unwrap_or_default(), heard))
            });
            calls.push(heard.boxed());
            client.subscribe(format!("{CALLS}{id}")).await.expect("the server listens");
            listeners.push(client);
        }
        Self { nodes: Nodes::connect(servers, DEADLINE).await, listeners, calls }
    }

    /// Completes when a majority has called this place.
    async fn called(&mut self, place: &str) {
        let mut calls = 0;
        while calls < MAJORITY {
            let called = self.calls.next().await.expect("the connections stand");
            calls += usize::from(called == place);
        }
    }
}

impl Place {
    fn asking(&self) -> [Value; 7] {
        floor::asking_from(self.hold.clone(), "1".into(), self.ticket.clone())
    }

    fn leaving(&self) -> [Value; 7] {
        floor::leaving(self.hold.clone(), self.name.clone().into())
    }
}
