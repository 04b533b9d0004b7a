//! The map of a cluster, kept up to date for all voters that are spread over it.

use std::{
    collections::HashSet,
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{StreamExt, stream};
use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
    time,
};

use super::{
    map::{self, ClusterServer, Map, Move},
    redirect::Endpoint,
    seat::Seat,
};
use crate::{
    proto::Cause,
    scripts::Value,
    voter::{Address, Ear, Outcome, lock, pauses::Pauses, single::Inquirer},
};

/// How often the map is asked for without a reason.
const INTERVAL: Duration = Duration::from_secs(10);
/// Between two questions, also where there are many reasons; it doubles while nothing has changed.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest of these, also between two questions that nobody answers.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// How many servers are asked at once.
const AT_ONCE: usize = 2;

/// What a server tells of its cluster, and the connection by which it did.
type Told = (Vec<ClusterServer>, Arc<Inquirer>);

/// One cluster. Its task ends when it is dropped.
pub(crate) struct Topology {
    state: Arc<TopologyState>,
    task: AbortHandle,
}

struct TopologyState {
    /// Where the user says that servers are.
    seeds: Vec<Address>,
    /// With which of those that serve it begins: not all clients with the same.
    first: usize,
    news: watch::Sender<TopologyNews>,
    wanted: Notify,
    /// Where to ask first.
    hints: Mutex<HashSet<Endpoint>>,
    /// Who is told what has moved, before anybody goes by the new map.
    ears: Mutex<Vec<Arc<dyn Ear>>>,
}

/// The latest map.
#[derive(Clone, Debug, Default)]
pub(super) struct TopologyNews {
    /// Grows with every answer, whatever it says.
    pub(super) answers: u64,
    pub(super) map: Arc<Map>,
    /// Why there was no answer, since the latest.
    pub(super) trouble: Option<Cause>,
}

impl Topology {
    /// Starts to ask. Must be called on a runtime.
    pub(crate) fn start(seeds: Vec<Address>) -> Arc<Self> {
        let state = Arc::new(TopologyState {
            seeds,
            first: rand::random_range(0..usize::from(u16::MAX)),
            news: watch::Sender::default(),
            wanted: Notify::new(),
            hints: Mutex::default(),
            ears: Mutex::default(),
        });
        let task = tokio::spawn(keep(Arc::clone(&state))).abort_handle();
        Arc::new(Self { state, task })
    }

    /// Has one of the voters told what moves from now on.
    pub(super) fn tell(&self, ear: Arc<dyn Ear>) {
        lock(&self.state.ears).push(ear);
    }

    pub(super) fn news(&self) -> watch::Receiver<TopologyNews> {
        self.state.news.subscribe()
    }

    pub(super) fn map(&self) -> Arc<Map> {
        self.state.map()
    }

    pub(super) fn answers(&self) -> u64 {
        self.state.news.borrow().answers
    }

    /// The address of a server of this cluster.
    pub(super) fn address(&self, at: &Endpoint) -> Address {
        self.state.address(at)
    }

    /// There is a reason to ask again, perhaps this server.
    pub(super) fn doubt(&self, hint: Option<Endpoint>) {
        if let Some(hint) = hint {
            lock(&self.state.hints).insert(hint);
        }
        self.state.wanted.notify_one();
    }
}

impl TopologyState {
    fn map(&self) -> Arc<Map> {
        Arc::clone(&self.news.borrow().map)
    }

    fn address(&self, (host, port): &Endpoint) -> Address {
        self.seeds[0].at(host, *port)
    }

    /// Asks one server after the other until one tells who has the slots: those that were hinted
    /// at, those that serve, those that the user named. One that knows of nobody may be new, or may
    /// have forgotten its cluster, and one that is cut off from the others tells what was: they are
    /// believed where the others know no more.
    ///
    /// `kept`: a connection to the one that answered last, which is used again.
    async fn ask(&self, kept: &mut Option<Arc<Inquirer>>) -> Outcome<Vec<ClusterServer>> {
        let mut places: Vec<Address> =
            lock(&self.hints).drain().map(|at| self.address(&at)).collect();
        let map = self.map();
        let mut serving = map.servers(Seat::new(0, 1));
        if let Some(first) = self.first.checked_rem(serving.len()) {
            serving.rotate_left(first);
        }
        places.extend(serving.into_iter().map(|(_, at)| self.address(at)));
        places.extend(self.seeds.iter().cloned());
        let mut asked = HashSet::new();
        places.retain(|address| asked.insert(Arc::clone(address.label())));
        let before = kept.take();
        let answers = stream::iter(places).map(|address| self.ask_one(address, before.as_ref()));
        // Several at once, as one that hangs must not hold up the others.
        let mut answers = pin!(answers.buffer_unordered(AT_ONCE));
        let mut known = Err(Cause::Unheard);
        while let Some(answer) = answers.next().await {
            match answer {
                Ok((servers, _)) if !servers.iter().any(ClusterServer::has_slots) => {
                    known = known.or(Ok(servers));
                }
                Ok((servers, by)) if !map.is_ahead_of(&servers) => {
                    *kept = Some(by);
                    return Ok(servers);
                }
                Err(_) if known.is_ok() => {}
                other => known = other.map(|(servers, _)| servers),
            }
        }
        known
    }

    /// Asks the one that answered last. `None` where others may know more.
    async fn ask_again(&self, kept: &Arc<Inquirer>) -> Option<Vec<ClusterServer>> {
        let (servers, _) = self.ask_by(Arc::clone(kept)).await.ok()?;
        self.map().follows(&servers).then_some(servers)
    }

    async fn ask_one(&self, address: Address, kept: Option<&Arc<Inquirer>>) -> Outcome<Told> {
        let kept = kept.filter(|kept| kept.address.label() == address.label());
        if let Some(kept) = kept {
            match self.ask_by(Arc::clone(kept)).await {
                // Its connection has ended since then.
                Err(Cause::Broken(_) | Cause::Unreachable(_)) => {}
                told => return told,
            }
        }
        self.ask_by(Arc::new(Inquirer::connect(address).await?)).await
    }

    async fn ask_by(&self, inquirer: Arc<Inquirer>) -> Outcome<Told> {
        let by_name = self.seeds[0].has_tls();
        match inquirer.ask("CLUSTER", &["NODES"]).await? {
            Value::Text(text) => {
                Ok((map::read(&text, inquirer.address.host(), by_name)?, inquirer))
            }
            other => Err(Cause::Rejected(format!("CLUSTER NODES answers {other:?}").into())),
        }
    }

    /// Takes note of an answer. Whether it changes anything.
    fn heard(&self, answer: Outcome<Vec<ClusterServer>>) -> bool {
        let before = self.map();
        let mut news = self.news.borrow().clone();
        match answer {
            Ok(servers) => {
                let (map, moves) = news.map.next(&servers);
                for Move { from, to, lost } in moves {
                    lock(&self.ears).iter().for_each(|ear| ear.moved(from, to, lost));
                }
                if map != *news.map {
                    news.map = Arc::new(map);
                }
                news.answers += 1;
                if news.trouble.take().is_some() {
                    let servers = servers.len();
                    tracing::warn!(servers, "a server tells of the cluster again");
                }
            }
            Err(cause) => {
                tracing::warn!(%cause, "no server tells of the cluster");
                news.trouble = Some(cause);
            }
        }
        let changed = news.map != before;
        self.news.send_replace(news);
        changed
    }
}

async fn keep(state: Arc<TopologyState>) {
    let mut pauses = Pauses::new(PAUSE, LONGEST_PAUSE);
    let (mut kept, mut has_reason, mut warned) = (None, true, false);
    loop {
        let again = match &kept {
            Some(kept) if !has_reason => state.ask_again(kept).await,
            _ => None,
        };
        let answer = match again {
            Some(servers) => Ok(servers),
            None => state.ask(&mut kept).await,
        };
        let trouble = answer.as_ref().err().map(ToString::to_string);
        if state.heard(answer) {
            pauses.reset();
        }
        if !warned && let Some(by) = &kept {
            warn_of_full_coverage(by).await;
            warned = true;
        }
        time::sleep(pauses.after(trouble.as_deref().unwrap_or_default(), 0)).await;
        // Without a reason by then it is asked without one.
        has_reason =
            trouble.is_some() || time::timeout(INTERVAL, state.wanted.notified()).await.is_ok();
    }
}

/// With what is usual in Redis a cluster serves no slot while any of them has no primary: then all
/// its voters fail together.
async fn warn_of_full_coverage(by: &Inquirer) {
    if by.setting("cluster-require-full-coverage").await.is_some_and(|value| value == "yes") {
        let server = by.address.label();
        tracing::warn!(
            %server,
            "cluster-require-full-coverage: one dead primary takes the whole cluster"
        );
    }
}

impl Drop for Topology {
    fn drop(&mut self) {
        self.task.abort();
    }
}
