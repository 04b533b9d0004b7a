//! Against real `redis-server` processes.

mod acks;
mod address;
mod carrier;
mod channels;
mod faults;
mod fingerprint;
mod login;
mod met;
mod order;
mod scripts;

use std::{
    iter,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use super::{Access, InspectionSettings, Security, SingleNode};
use crate::{
    proto::Cause,
    scripts::{Answer, Script, Value, test_script},
    voter::{Call, Identity, Node, ONLY, Outcome, Stamp, VoterEvents},
};
use quorate_support::{RedisServer, eventually_async};

/// Counts how often it ran.
static COUNT: Script =
    test_script!("test/count", "counter", "none", "return { redis.call('INCR', KEYS[1]), 0, '' }")
        .that_votes();

/// Writes down in which order it ran.
static WRITE: Script = test_script!(
    "test/write",
    "list",
    "entry",
    "return { redis.call('RPUSH', KEYS[1], ARGV[1]), 0, '' }"
);

const DEADLINE: Duration = Duration::from_millis(200);

/// `key` is the first key; the others are derived from it.
fn call(script: &'static Script, key: &str, args: &[&str]) -> Call {
    let others = script.keys[1..].iter().map(|name| format!("{key}:{name}"));
    let keys: Vec<String> = iter::once(key.to_owned()).chain(others).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    Call { deadline: DEADLINE, ..Call::of(script, &keys, args) }
}

fn count(key: &str) -> Call {
    call(&COUNT, key, &[])
}

/// As [`COUNT`] answers.
fn number(count: i64) -> Answer {
    Answer::of(count, 0, "", [Value::Nil, Value::Nil])
}

/// Writes down what it hears.
#[derive(Default)]
struct Heard {
    called: Mutex<Vec<String>>,
    missed: AtomicUsize,
    met: Mutex<Vec<(Identity, Option<Stamp>)>>,
    seen: Mutex<Vec<(Identity, Option<Stamp>)>>,
    /// Called while it is told whom it meets.
    meeting: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Heard {
    fn called(&self) -> Vec<String> {
        self.called.lock().unwrap().clone()
    }

    fn missed(&self) -> usize {
        self.missed.load(Ordering::SeqCst)
    }
}

impl VoterEvents for Heard {
    fn note_disconnect(&self, _: usize, _: Option<&str>) {}

    fn note_move(&self, _: usize, _: usize, _: bool) {
        unreachable!("it is one server")
    }

    fn note_connection(&self, shard: usize, identity: &Identity, stamp: Option<Stamp>) -> bool {
        assert_eq!(shard, ONLY);
        self.met.lock().unwrap().push((identity.clone(), stamp));
        if let Some(meeting) = self.meeting.get() {
            meeting();
        }
        false
    }

    fn note_inspection(&self, _: usize, identity: &Identity, stamp: Option<Stamp>) -> bool {
        self.seen.lock().unwrap().push((identity.clone(), stamp));
        false
    }

    fn deliver(&self, channel: &str, message: &str) {
        assert_eq!(message, "0");
        self.called.lock().unwrap().push(channel.to_owned());
    }

    fn has_waiters(&self) -> bool {
        true
    }

    fn note_lost_messages(&self) {
        self.missed.fetch_add(1, Ordering::SeqCst);
    }
}

fn start(url: &str) -> (Arc<dyn Node>, Arc<Heard>) {
    start_with(url, InspectionSettings::default())
}

fn start_with(url: &str, looks: InspectionSettings) -> (Arc<dyn Node>, Arc<Heard>) {
    let heard = Arc::new(Heard::default());
    let listener: Arc<dyn VoterEvents> = heard.clone();
    let access = Access::new(&url.into(), &Security::default()).unwrap();
    (SingleNode::start(&access, listener, looks), heard)
}

/// A node that has connected.
async fn connect(url: &str) -> (Arc<dyn Node>, Arc<Heard>) {
    let (node, heard) = start(url);
    answers(&node).await;
    (node, heard)
}

async fn answers(node: &Arc<dyn Node>) {
    eventually_async("the server is reached", async || node.identify().await.is_ok()).await;
}

/// Subscribes once the listening connection stands, so that this is nothing the listener is told
/// of.
async fn listen(node: &Arc<dyn Node>, channel: &str) {
    let stands = async || node.unsubscribe("nothing".into()).await.is_ok();
    eventually_async("the listening connection stands", stands).await;
    node.subscribe(channel.into()).await.unwrap();
}

/// Waits until a call is answered with a cause that `fits`.
async fn fails(node: &Arc<dyn Node>, fits: impl Fn(&Cause) -> bool) {
    let failed = async || matches!(node.run(count("probe")).await, Err(cause) if fits(&cause));
    eventually_async("the expected cause", failed).await;
}

/// The ids of our connections, sorted; the harness's own come by the unix socket.
fn connections(server: &RedisServer) -> Vec<String> {
    let list = |kind| format!("{:?}", server.command(&["CLIENT", "LIST", "TYPE", kind]).unwrap());
    let both = list("normal") + &list("pubsub");
    let ours = both.split("id=").filter(|client| client.contains(" laddr=127.0.0.1:"));
    let mut ids: Vec<_> = ours.filter_map(|client| client.split(' ').next()).collect();
    ids.sort_unstable();
    ids.into_iter().map(str::to_owned).collect()
}

/// Of the servers that it met.
fn run_ids(heard: &Heard) -> Vec<String> {
    heard.met.lock().unwrap().iter().map(|(identity, _)| identity.run_id.clone()).collect()
}

fn is_unreachable(outcome: &Outcome<Answer>, why: &str) -> bool {
    matches!(outcome, Err(Cause::Unreachable(text)) if text.text().contains(why))
}
