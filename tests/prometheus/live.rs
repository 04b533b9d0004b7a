//! The example service on real voters, and a Prometheus that collects from it: the rules as they
//! are shipped, but that all of their durations are shorter.

use std::{
    collections::BTreeSet,
    env,
    fs::{self, File},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    dashboard::{self, Dashboard, list},
    picture,
    programs::{Prometheus, ask, get, promtool_on},
    rules::RULES,
    support::{RedisServer, Settings, Watchdog, compile_example, free_port, succeeds},
};

const CONFIG: &str = include_str!("../../deploy/prometheus/prometheus.yml");
/// By how much durations are shorter: five minutes are ten seconds.
const FASTER: u32 = 30;

/// The example service; killed when dropped.
struct Service {
    process: Child,
    watchdog: Watchdog,
    port: u16,
    dir: TempDir,
}

impl Service {
    fn start(program: PathBuf, voters: &[RedisServer]) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let port = free_port();
        let voters: Vec<_> = voters.iter().map(RedisServer::url).collect();
        let process = Command::new(program)
            .env("QUORATE_VOTERS", voters.join(" "))
            .env("QUORATE_LISTEN", format!("127.0.0.1:{port}"))
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(dir.path().join("log")).expect("a log file"))
            .spawn()
            .expect("it starts");
        let watchdog = Watchdog::over(&process, dir.path());
        let service = Self { process, watchdog, port, dir };
        succeeds("the service is healthy", || service.is_healthy());
        service
    }

    fn is_healthy(&self) -> Result<(), String> {
        let (status, text) = get(self.port, "/health")?;
        if status == 200 { Ok(()) } else { Err(text) }
    }

    /// Works for so many milliseconds.
    fn work(&self, name: &str, milliseconds: u64) -> (u16, String) {
        let answer = work(self.port, name, milliseconds);
        answer.unwrap_or_else(|told| panic!("{told}: {}", self.log()))
    }

    fn metrics(&self) -> String {
        get(self.port, "/metrics").expect("it tells of itself").1
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).expect("it logs")
    }

    /// As an operator ends it.
    fn ends(mut self) -> ExitStatus {
        kill_process(Pid::from_child(&self.process), Signal::TERM).expect("it runs");
        succeeds("it has ended", || match self.process.try_wait() {
            Ok(Some(status)) => Ok(status),
            other => Err(format!("{other:?}: {}", self.log())),
        })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        // Before the reaping: until then the id cannot belong to another process.
        self.watchdog.call_off();
        let _ = self.process.wait();
    }
}

fn work(port: u16, name: &str, milliseconds: u64) -> Result<(u16, String), String> {
    let body = milliseconds.to_string();
    let (path, length) = (format!("jobs/{name}"), body.len());
    let head = format!("POST /{path} HTTP/1.0\r\nHost: localhost\r\nContent-Length: {length}");
    ask(port, &format!("{head}\r\n\r\n{body}"))
}

/// The shipped rules with every duration divided: of ranges, offsets, and `for`.
fn faster(rules: &str) -> String {
    let mut faster = String::new();
    let mut rest = rules;
    let starts = ["[", "offset ", "for: "];
    while let Some((at, start)) = starts.iter().filter_map(|it| Some((rest.find(it)?, it))).min() {
        let (before, duration) = rest.split_at(at + start.len());
        faster.push_str(before);
        let length = duration.find(|sign: char| !sign.is_ascii_alphanumeric());
        let (duration, after) = duration.split_at(length.unwrap_or(duration.len()));
        faster.push_str(&divided(duration).unwrap_or_else(|| duration.to_owned()));
        rest = after;
    }
    faster + rest
}

/// Nothing where it is no duration.
fn divided(duration: &str) -> Option<String> {
    let (number, unit) = duration.split_at_checked(duration.len().checked_sub(1)?)?;
    let milliseconds: u32 = match unit {
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    Some(format!("{}ms", number.parse::<u32>().ok()? * (milliseconds / FASTER)))
}

#[test]
fn only_durations_are_made_shorter() {
    let rule = "expr: rate(x:mean5m[5m] offset 10m) > y[1d]\nfor: 1m\n# for: all 5m of it\n";
    let faster = faster(rule);
    let expected = "expr: rate(x:mean5m[10000ms] offset 20000ms) > y[2880000ms]\nfor: 2000ms\n";
    assert_eq!(faster, format!("{expected}# for: all 5m of it\n"));
}

fn prometheus(service: &Service) -> Prometheus {
    let (config, itself) = CONFIG.split_once("  - job_name: prometheus\n").expect("it has a job");
    assert!(!itself.contains("service"), "{itself}");
    let config = config
        .replace(": 15s", ": 1s")
        .replace("service:8080", &format!("127.0.0.1:{}", service.port));
    let files = [("prometheus.yml", &*config), ("quorate.rules.yml", &faster(RULES))];
    Prometheus::start(&files, &["--query.lookback-delta=15s"])
}

/// Name, severity, and the other labels, of those that fire.
fn firing(prometheus: &Prometheus) -> Vec<(String, String, Value)> {
    let answer = prometheus.api("alerts", &[]).expect("it tells of alerts");
    let alerts = answer["alerts"].as_array().expect("a list").iter();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let told = alerts.filter(|alert| alert["state"] == "firing").map(|alert| {
        let labels = &alert["labels"];
        (text(&labels["alertname"]), text(&labels["severity"]), alert.clone())
    });
    told.collect()
}

/// Waits until this one fires, and returns it.
fn fires(prometheus: &Prometheus, name: &str) -> Value {
    succeeds(&format!("{name} fires"), || {
        let firing = firing(prometheus);
        let found = firing.iter().find(|(found, ..)| found == name);
        found.map(|(.., alert)| alert.clone()).ok_or_else(|| format!("{firing:?}"))
    })
}

fn number(prometheus: &Prometheus, query: &str) -> Result<f64, String> {
    let answer = prometheus.api("query", &[("query", query)])?;
    let value = answer["result"][0]["value"][1].as_str().ok_or_else(|| format!("{answer}"))?;
    value.parse().map_err(|_| format!("no number: {answer}"))
}

fn reaches(prometheus: &Prometheus, query: &str, least: f64) {
    succeeds(query, || match number(prometheus, query)? {
        value if value >= least => Ok(()),
        value => Err(value.to_string()),
    });
}

/// Uses and contends for locks until it is told that it is enough.
fn load(service: &Service, enough: &AtomicBool, name: &str) {
    while !enough.load(Ordering::Relaxed) {
        let (status, text) = service.work(name, 5);
        assert!([200, 409, 503].contains(&status), "{status}: {text}");
    }
}

#[test]
fn alerts_fire_when_locks_are_lost_and_not_before() {
    let mut voters = RedisServer::start_many(&Settings::new(), 5);
    let service = Service::start(compile_example("service"), &voters);
    let prometheus = prometheus(&service);
    let enough = AtomicBool::new(false);
    let mut story = Story::default();
    thread::scope(|scope| {
        // Also where a claim below does not hold.
        let ends = Ends(&enough);
        for name in ["a", "a", "b"] {
            scope.spawn(|| load(&service, ends.0, name));
        }
        story.goes_on(&prometheus, "three callers ask for two locks");
        well(&service, &prometheus);
        story.goes_on(&prometheus, "lock-1 is killed");
        one_is_down(&mut voters, &prometheus);
        story.goes_on(&prometheus, "lock-2 and lock-3 stop, while a lock is held for long");
        no_quorum(&voters, &service, &prometheus);
        story.goes_on(&prometheus, "all three are back, lock-1 without its data");
        all_return(&mut voters, &service, &prometheus);
        story.goes_on(&prometheus, "the end");
        drop(ends);
    });
    story.draw(&prometheus, &voters);
    assert_eq!(service.work("last", 600_001).0, 400, "nobody holds a lock for so long");
    let port = service.port;
    let last = thread::spawn(move || work(port, "last", 100_000));
    succeeds("it is held", || match service.work("last", 0) {
        (409, _) => Ok(()),
        other => Err(format!("{other:?}")),
    });
    // It is not waited for, and its lock is given back; whether it is told depends on the moment.
    assert!(service.ends().success());
    let told = last.join().expect("it does not panic");
    assert!(!matches!(told, Ok((200, _))), "{told:?}");
}

/// What was done, for the picture in the book: `QUORATE_TEST_PICTURE=docs/operations.svg`.
#[derive(Default)]
struct Story(Vec<picture::Event>);

impl Story {
    fn goes_on(&mut self, prometheus: &Prometheus, what: &str) {
        let now = number(prometheus, "vector(time())").expect("it knows the time");
        self.0.push((now, what.to_owned()));
    }

    fn draw(&self, prometheus: &Prometheus, voters: &[RedisServer]) {
        let Ok(path) = env::var("QUORATE_TEST_PICTURE") else { return };
        let called = |(place, voter): (usize, &RedisServer)| {
            (format!("127.0.0.1:{}", voter.port()), format!("lock-{}", place + 1))
        };
        let names: Vec<_> = voters.iter().enumerate().map(called).collect();
        let picture = picture::draw(prometheus, &self.0, &names);
        fs::write(path, picture).expect("it can be written");
    }
}

struct Ends<'flag>(&'flag AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn well(service: &Service, prometheus: &Prometheus) {
    let told = promtool_on(&service.metrics(), &["check", "metrics"]);
    assert_eq!(told, Ok(String::new()), "they are as Prometheus wants them");
    promtool_on("# TYPE x_count counter\nx_count 1\n", &["check", "metrics"])
        .expect_err("bad ones");
    // As many evaluations as the shortest alerts wait for, several times over.
    for evaluations in [7.0, 15.0] {
        reaches(prometheus, "count_over_time(job:quorate_connections:spare[5m])", evaluations);
    }
    assert_eq!(number(prometheus, "job:quorate_connections:spare"), Ok(2.0));
    reaches(prometheus, r#"sum(quorate_acquire_seconds_count{outcome="granted"})"#, 100.0);
    assert_eq!(firing(prometheus), [], "all is well");
    let mut silent = BTreeSet::new();
    for (title, query) in Dashboard::read(dashboard::TEXT).queries("quorate-service") {
        let answer = prometheus.api("query", &[("query", &query)]).expect("it is understood");
        silent.extend(list(&answer["result"]).next().is_none().then_some(title));
    }
    // No alert, and no hold that was long enough to be renewed.
    let expected = ["Alerts", "Late renewals", "Validity left when renewed"];
    assert!(silent.iter().eq(expected.iter()), "these show nothing: {silent:?}");
}

/// A ticket, and nobody is woken.
fn one_is_down(voters: &mut [RedisServer], prometheus: &Prometheus) {
    voters[0].kill();
    let alert = fires(prometheus, "QuorateVoterDown");
    let voter = format!("127.0.0.1:{}", voters[0].port());
    assert_eq!(alert["labels"]["voter"], voter, "{alert}");
    assert_eq!(alert["labels"]["severity"], "ticket", "{alert}");
    assert_eq!(number(prometheus, "job:quorate_connections:spare"), Ok(1.0));
    let pages = firing(prometheus).into_iter().filter(|(_, severity, _)| severity == "page");
    assert_eq!(pages.collect::<Vec<_>>(), []);
}

/// Two more stand still, while a lock is held.
fn no_quorum(voters: &[RedisServer], service: &Service, prometheus: &Prometheus) {
    thread::scope(|scope| {
        let long = scope.spawn(|| service.work("long", 100_000));
        succeeds("it is held", || match service.work("long", 0) {
            (409, _) => Ok(()),
            other => Err(format!("{other:?}")),
        });
        voters[1..3].iter().for_each(RedisServer::stop);
        let alert = fires(prometheus, "QuorateNoQuorum");
        assert_eq!(alert["labels"]["severity"], "page", "{alert}");
        assert_eq!(alert["labels"]["kind"], "mutex", "{alert}");
        assert!(service.is_healthy().is_err());
        let alert = fires(prometheus, "QuorateQuorumAtRisk");
        assert_eq!(alert["labels"]["severity"], "page", "{alert}");
        let (status, text) = long.join().expect("it is answered");
        assert_eq!(status, 500, "{text}");
        let alert = fires(prometheus, "QuorateLockLost");
        assert_eq!(alert["labels"]["reason"], "expired", "{alert}");
        assert_eq!(alert["labels"]["job"], "quorate-service", "{alert}");
        let log = service.log();
        let told = log.lines().find(|line| line.contains("lock lost")).expect("it is logged");
        assert!(told.contains("long") && told.contains("WARN"), "{told}");
    });
}

fn all_return(voters: &mut [RedisServer], service: &Service, prometheus: &Prometheus) {
    voters[1..3].iter().for_each(RedisServer::resume);
    voters[0].restart();
    succeeds("locks are given again", || match service.work("after", 1) {
        (200, _) => Ok(()),
        (status, text) => Err(format!("{status}: {text}")),
    });
    succeeds("nothing more is to be done at night", || {
        let firing = firing(prometheus);
        let pages = firing
            .iter()
            .filter(|(name, severity, _)| severity == "page" && name != "QuorateLockLost");
        if pages.count() == 0 { Ok(()) } else { Err(format!("{firing:?}")) }
    });
}
