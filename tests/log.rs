//! What the log says: spans and events with the fields that are promised.
//!
//! Alone in its process: what a thread without a listener says first nobody hears from then on.

use std::{fmt::Write, sync::Mutex};

use quorate_tests::{prelude::*, scene};
use tracing::{
    Event, Id, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Record},
};

/// By level, or `span`, and name: every field that had a value.
type Seen = BTreeMap<(String, String), BTreeSet<String>>;

/// Takes note of all that is logged.
#[derive(Clone, Default)]
struct Ear(Arc<Mutex<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    spans: Vec<&'static str>,
    seen: Seen,
    /// Every event, as people read it.
    lines: Vec<String>,
}

/// The fields of one record; that of the message apart.
#[derive(Default)]
struct Fields {
    names: BTreeSet<String>,
    message: String,
    /// The other fields with their values.
    values: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => {
                self.names.insert(name.to_owned());
                write!(self.values, " {name}={value:?}").expect("texts take all");
            }
        }
    }
}

impl Noted {
    fn note(&mut self, level: &str, name: &str, fields: Fields) {
        let known = self.seen.entry((level.to_owned(), name.to_owned())).or_default();
        known.extend(fields.names);
    }
}

impl Subscriber for Ear {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("quorate")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        span.record(&mut fields);
        let mut noted = self.0.lock().unwrap();
        noted.spans.push(span.metadata().name());
        noted.note("span", span.metadata().name(), fields);
        Id::from_u64(noted.spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        let mut noted = self.0.lock().unwrap();
        let name = noted.spans[usize::try_from(span.into_u64()).unwrap() - 1];
        noted.note("span", name, fields);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let level = event.metadata().level().to_string().to_lowercase();
        let message = std::mem::take(&mut fields.message);
        let mut noted = self.0.lock().unwrap();
        noted.lines.push(format!("{level}: {message}{}", fields.values));
        noted.note(&level, &message, fields);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The tables in the documentation of the crate.
fn promised() -> Seen {
    let page = read_file("src/lib.rs");
    let rows = page.lines().filter_map(|line| line.strip_prefix("//! | ")?.strip_suffix(" |"));
    let rows = rows.map(|row| row.split(" | ").collect::<Vec<_>>());
    // What is in backquotes is a field.
    let fields = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let levels = ["error", "warn", "info", "debug"];
    rows.filter_map(|row| match row[..] {
        [level, event, cell] if levels.contains(&level) => {
            Some(((level.to_owned(), event.to_owned()), fields(cell)))
        }
        [span @ ("`acquire`" | "`renew`" | "`release`"), cell] => {
            Some((("span".to_owned(), span.trim_matches('`').to_owned()), fields(cell)))
        }
        _ => None,
    })
    .collect()
}

async fn life_goes_on() {
    let voters = embedded::voters(4);
    for voter in &voters {
        voter.set_uptime(Duration::from_hours(1));
    }
    voters[3].kill();
    let builder = Quorate::builder().embedded(&voters).client_name("web-1");
    let client = builder.connect().await.unwrap();
    let mutex = client.mutex("a");
    let guard = mutex.lock().await.unwrap();
    sleep(Duration::from_secs(11)).await;
    guard.release().await.unwrap();
    // Said once of each hold: nobody else gives it back.
    let guard = mutex.lock().await.unwrap();
    assert!(mutex.lock_within(Duration::from_secs(70)).await.unwrap().is_none());
    guard.release().await.unwrap();
    let rw = client.rw_lock("a");
    let guard = rw.write().await.unwrap();
    assert!(rw.write_within(Duration::from_secs(70)).await.unwrap().is_none());
    guard.release().await.unwrap();
    // Said once of each semaphore.
    let few = client.semaphore("a", 1).acquire().await.unwrap();
    few.release().await.unwrap();
    for _ in 0..2 {
        client.semaphore("a", 3).acquire().await.unwrap().release().await.unwrap();
    }
    let guard = mutex.lock().await.unwrap();
    voters[0].restart_empty();
    sleep(Duration::from_secs(1)).await;
    voters.iter().for_each(EmbeddedVoter::kill);
    assert!(guard.lost().await.is_lost());
    assert!(mutex.try_lock().await.is_err());
    voters.iter().for_each(EmbeddedVoter::restart_empty);
    client.close().await;
    sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn spans_and_events_have_the_fields_that_are_promised() {
    let ear = Ear::default();
    let listening = tracing::subscriber::set_default(ear.clone());
    life_goes_on().await;
    drop(listening);
    let Noted { seen, lines, .. } = std::mem::take(&mut *ear.0.lock().unwrap());
    let promised = promised();
    for (what, fields) in &seen {
        assert_eq!(promised.get(what), Some(fields), "of {what:?}");
    }
    // The others need a cluster, or the same server twice.
    assert_eq!(seen.len(), 19, "{seen:#?}");
    let fewer = "warn: others use the semaphore with fewer permits lock=\"a\" permits=3 fewer=1";
    let said = lines.iter().filter(|line| line.contains("fewer permits")).collect::<Vec<_>>();
    assert_eq!(said, [fewer]);
    let behind = |line: &&String| line.contains("behind a hold of its own client");
    assert_eq!(lines.iter().filter(behind).count(), 2, "{lines:#?}");
    quorum_changes(&lines);
    one_server_twice().await;
}

#[tokio::test]
async fn a_cluster_that_one_dead_primary_takes_as_a_whole_is_warned_of_once() {
    for (setting, warnings) in [("yes", 1), ("no", 0)] {
        let cluster = Cluster::start_with(3, 0, &["--cluster-require-full-coverage", setting]);
        let ear = Ear::default();
        let listening = tracing::subscriber::set_default(ear.clone());
        let voters = quorate::Cluster::new(cluster.urls()).voters(3);
        let builder = Quorate::builder().cluster(voters).voter_deadline(Duration::from_secs(2));
        let client = scene::connect(builder).await;
        client.mutex("a").lock().await.unwrap().release().await.unwrap();
        client.close().await;
        drop(listening);
        let noted = std::mem::take(&mut *ear.0.lock().unwrap());
        let lines = noted.lines.iter().filter(|line| line.contains("takes the whole cluster"));
        assert_eq!(lines.count(), warnings, "{setting}: {:?}", noted.lines);
        let all = promised();
        assert!(noted.seen.iter().all(|(what, fields)| all.get(what) == Some(fields)));
    }
}

// Each trouble that is a warning has an end that is one: a voter that was not reached, one that
// lost its data, and a majority that was away.
#[tokio::test(start_paused = true)]
async fn who_logs_at_warn_sees_the_end_of_each_trouble() {
    let voters = embedded::voters(3);
    for voter in &voters {
        voter.set_uptime(Duration::from_hours(1));
    }
    voters[2].kill();
    let ear = Ear::default();
    let listening = tracing::subscriber::set_default(ear.clone());
    let client = Quorate::builder().embedded(&voters).connect().await.unwrap();
    voters[2].restart();
    sleep(Duration::from_secs(1)).await;
    voters[0].restart_empty();
    sleep(Duration::from_secs(40)).await;
    voters[1].kill();
    voters[2].kill();
    sleep(Duration::from_secs(1)).await;
    voters[1].restart();
    sleep(Duration::from_secs(1)).await;
    client.close().await;
    drop(listening);
    let noted = std::mem::take(&mut *ear.0.lock().unwrap());
    let warnings = noted.lines.iter().filter_map(|line| line.strip_prefix("warn: "));
    let warnings: Vec<_> = warnings.collect();
    let expected = [
        "not reached yet; it is tried again and again voter=embedded-3",
        "connected voter=embedded-3",
        "connection lost voter=embedded-1",
        "connected voter=embedded-1",
        "voter in quarantine: its votes count for no new lock voter=embedded-1",
        "quarantine over: the voter's votes count for new locks voter=embedded-1",
        "connection lost voter=embedded-2",
        "connection lost voter=embedded-3",
        "no quorum: no lock is given or renewed answering=1",
        "connected voter=embedded-2",
        "the quorum is back answering=2",
    ];
    let are_so = warnings.iter().zip(expected).all(|(said, wanted)| said.starts_with(wanted));
    assert!(are_so && warnings.len() == expected.len(), "{warnings:#?}");
    assert!(warnings[4].ends_with(" ends_in=30s"), "{}", warnings[4]);
}

// What a server says of itself is asked every ten seconds, and logged once, however long it lasts.
#[tokio::test]
async fn a_server_that_evicts_refuses_or_has_no_mark_is_told_of_once_and_so_is_the_end() {
    let server = RedisServer::start();
    let set = |policy: &str, maxmemory: &str| {
        for (name, value) in [("maxmemory-policy", policy), ("maxmemory", maxmemory)] {
            server.command(&["CONFIG", "SET", name, value]).expect("it is set");
        }
    };
    let ear = Ear::default();
    let listening = tracing::subscriber::set_default(ear.clone());
    let client = scene::connect(Quorate::builder().voter(server.url())).await;
    let lines = |text: &str| {
        let noted = ear.0.lock().unwrap();
        noted.lines.iter().filter(|line| line.starts_with(text)).count()
    };
    let said = async |text: &str| eventually_async(text, async || lines(text) > 0).await;
    set("allkeys-lru", "100mb");
    said("error: votes may be gone at any time").await;
    sleep(Duration::from_secs(11)).await;
    // Full, and evicting no more.
    set("noeviction", "1");
    said("warn: the server deletes no votes any more").await;
    said("warn: the voter takes no new votes").await;
    set("noeviction", "0");
    said("warn: the voter takes new votes again").await;
    // No mark: whoever reads one fails.
    let mark = "quorate:{%voter}";
    server.command(&["DEL", mark]).unwrap();
    server.command(&["HSET", mark, "a", "1"]).unwrap();
    said("warn: the mark of a server cannot be read").await;
    sleep(Duration::from_secs(11)).await;
    assert_eq!(lines("warn: the mark of a server cannot be read"), 1);
    // The end is told on another connection too.
    server.command(&["DEL", mark]).unwrap();
    server.command(&["CLIENT", "KILL", "TYPE", "normal"]).unwrap();
    said("warn: the mark of a server can be read again").await;
    assert_eq!(lines("error: votes may be gone at any time"), 1);
    client.close().await;
    drop(listening);
    let all = promised();
    let noted = std::mem::take(&mut *ear.0.lock().unwrap());
    assert!(noted.seen.iter().all(|(what, fields)| all.get(what) == Some(fields)), "{noted:?}");
}

// All have just started without their data, and so each would be in quarantine.
async fn one_server_twice() {
    let voters = embedded::voters(2);
    voters.iter().for_each(EmbeddedVoter::restart_empty);
    let [one, other] = [&voters[0], &voters[1]];
    let strict = || Quorate::builder().restart_guard(RestartGuard::Strict);
    let told = async |builder: quorate::Builder| {
        let ear = Ear::default();
        let listening = tracing::subscriber::set_default(ear.clone());
        let connected = builder.connect().await.map(drop);
        drop(listening);
        let noted = std::mem::take(&mut *ear.0.lock().unwrap());
        let lines = noted.lines.into_iter();
        (connected, lines.filter(|line| line.contains("quarantine")).count())
    };
    let (twice, quarantines) = told(strict().embedded([one, other, one])).await;
    let error = twice.expect_err("two voters are one server");
    assert!(error.is_invalid() && error.to_string().contains("are the same server"), "{error}");
    assert_eq!(quarantines, 0, "that is not what is wrong");
    let (once, quarantines) = told(strict().embedded([one, other])).await;
    assert_eq!((once.is_ok(), quarantines), (true, 2));
}

// The first is emptied while the fourth is down; later all are killed, the first of them first.
fn quorum_changes(lines: &[String]) {
    let of = |text: &str| lines.iter().filter(|line| line.contains(text)).collect::<Vec<_>>();
    let missing = "missing=embedded-1, embedded-4";
    let lost = format!(
        "warn: no quorum: no lock is given or renewed answering=2 needed=3 voters=4 {missing}"
    );
    assert_eq!(of("no quorum"), [&lost; 2]);
    let back = "warn: the quorum is back answering=3 needed=3 voters=4 missing=";
    let came = of("the quorum is back");
    assert_eq!(came, [&format!("{back}embedded-4"); 2]);
}
