//! The example service on real voters, and a Prometheus that collects from it: the rules as they
//! are shipped, but that all of their durations are shorter.

use std::{
    collections::BTreeSet,
    io::{Seek, Write},
    process::{Command, ExitStatus},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{
    DASHBOARD, RULES,
    programs::{Server, ask, list},
    promtool::{promtool, queries},
};
use quorate_support::{RedisServer, Settings, succeeds};

const CONFIG: &str = include_str!("../../../deploy/prometheus/prometheus.yml");

fn service(voters: &[RedisServer]) -> Server {
    let voters: Vec<_> = voters.iter().map(RedisServer::url).collect();
    let command = |port| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_web-service"));
        command.env("QUORATE_VOTERS", voters.join(" ")).env_remove("RUST_LOG");
        command.env("QUORATE_LISTEN", format!("127.0.0.1:{port}"));
        // A busy machine is no voter that is silent.
        command.env("QUORATE_VOTER_DEADLINE", "1s");
        command
    };
    Server::start(command, &[], "/health")
}

/// Asks the service to work for so many milliseconds.
fn work(port: u16, name: &str, milliseconds: u64) -> Result<(u16, String), String> {
    let body = milliseconds.to_string();
    let (path, length) = (format!("jobs/{name}"), body.len());
    let head = format!("POST /{path} HTTP/1.0\r\nHost: localhost\r\nContent-Length: {length}");
    ask(port, &format!("{head}\r\n\r\n{body}"))
}

fn works(service: &Server, name: &str, milliseconds: u64) -> (u16, String) {
    let answer = work(service.port, name, milliseconds);
    answer.unwrap_or_else(|told| panic!("{told}: {}", service.log()))
}

/// Works for long, on another thread, and holds its lock when this returns.
fn works_long(
    service: &Server,
    name: &'static str,
) -> thread::JoinHandle<Result<(u16, String), String>> {
    let port = service.port;
    // While it is asked below whether the lock is held, this one may be told that it is.
    let long = thread::spawn(move || {
        loop {
            match work(port, name, 100_000) {
                Ok((409, _)) => {}
                other => return other,
            }
        }
    });
    succeeds("it is held", || match works(service, name, 0) {
        (409, _) => Ok(()),
        other => Err(format!("{other:?}")),
    });
    long
}

/// As an operator ends it.
fn ends(mut service: Server) -> ExitStatus {
    kill_process(Pid::from_child(&service.process), Signal::TERM).expect("it runs");
    succeeds("it has ended", || match service.process.try_wait() {
        Ok(Some(status)) => Ok(status),
        other => Err(format!("{other:?}: {}", service.log())),
    })
}

/// The shipped rules with every duration of ranges, offsets and `for` divided by 30.
fn faster(rules: &str) -> String {
    let divided = [
        ("1m", 2),
        ("2m", 4),
        ("5m", 10),
        ("10m", 20),
        ("15m", 30),
        ("20m", 40),
        ("30m", 60),
        ("1h", 120),
        ("1d", 2880),
    ];
    let faster = divided.iter().fold(rules.to_owned(), |rules, (duration, seconds)| {
        let rules = rules.replace(&format!("[{duration}]"), &format!("[{seconds}s]"));
        let rules = rules.replace(&format!("offset {duration}"), &format!("offset {seconds}s"));
        rules.replace(&format!("for: {duration}\n"), &format!("for: {seconds}s\n"))
    });
    for (begin, end) in [("[", "]"), ("offset ", "\n"), ("    for: ", "\n")] {
        let durations = faster.split(begin).skip(1).filter_map(|rest| rest.split(end).next());
        let as_they_were: Vec<_> = durations.filter(|it| it.ends_with(['m', 'h', 'd'])).collect();
        assert_eq!(as_they_were, [""; 0]);
    }
    faster
}

fn prometheus(service: &Server) -> Server {
    let (config, itself) = CONFIG.split_once("  - job_name: prometheus\n").expect("it has a job");
    assert!(!itself.contains("service"), "{itself}");
    let target = format!("127.0.0.1:{}", service.port);
    let config = config.replace(": 15s", ": 500ms").replace("service:8080", &target);
    let command = |port| {
        let mut command = Command::new("prometheus");
        command.args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"]);
        command.args(["--log.level=warn", "--query.lookback-delta=15s"]);
        command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
        command
    };
    let files = [("prometheus.yml", &*config), ("quorate.rules.yml", &faster(RULES))];
    Server::start(command, &files, "/-/ready")
}

/// Name, severity, and the other labels, of those that fire.
fn firing(prometheus: &Server) -> Vec<(String, String, Value)> {
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
fn fires(prometheus: &Server, name: &str) -> Value {
    succeeds(&format!("{name} fires"), || {
        let firing = firing(prometheus);
        let found = firing.iter().find(|(found, ..)| found == name);
        found.map(|(.., alert)| alert.clone()).ok_or_else(|| format!("{firing:?}"))
    })
}

fn number(prometheus: &Server, query: &str) -> Result<f64, String> {
    let answer = prometheus.api("query", &[("query", query)])?;
    let value = answer["result"][0]["value"][1].as_str().ok_or_else(|| format!("{answer}"))?;
    value.parse().map_err(|_| format!("no number: {answer}"))
}

fn reaches(prometheus: &Server, query: &str, least: f64) {
    succeeds(query, || match number(prometheus, query)? {
        value if value >= least => Ok(()),
        value => Err(value.to_string()),
    });
}

/// Uses and contends for locks until it is told that it is enough.
fn load(service: &Server, enough: &AtomicBool, name: &str) {
    while !enough.load(Ordering::Relaxed) {
        let (status, text) = works(service, name, 5);
        assert!([200, 409, 503].contains(&status), "{status}: {text}");
    }
}

#[test]
fn alerts_fire_when_locks_are_lost_and_not_before() {
    let mut voters = RedisServer::start_many(&Settings::new(), 5);
    let service = service(&voters);
    let prometheus = prometheus(&service);
    let enough = AtomicBool::new(false);
    thread::scope(|scope| {
        // Also where a claim below does not hold.
        let ends = Ends(&enough);
        for name in ["a", "a", "b"] {
            scope.spawn(|| load(&service, ends.0, name));
        }
        well(&service, &prometheus);
        one_is_down(&mut voters, &prometheus);
        no_quorum(&voters, &service, &prometheus);
        all_return(&mut voters, &service, &prometheus);
    });
    assert_eq!(works(&service, "last", 600_001).0, 400, "nobody holds a lock for so long");
    let last = works_long(&service, "last");
    // It is not waited for, and its lock is given back; whether it is told depends on the moment.
    assert!(ends(service).success());
    let told = last.join().expect("it does not panic");
    assert!(!matches!(told, Ok((200, _))), "{told:?}");
}

struct Ends<'flag>(&'flag AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn well(service: &Server, prometheus: &Server) {
    metrics_are_valid(&service.get("/metrics").expect("it tells of itself").1);
    // As many evaluations as the shortest alerts wait for, several times over.
    for evaluations in [15.0, 30.0] {
        reaches(prometheus, "count_over_time(job:quorate_connections:spare[5m])", evaluations);
    }
    assert_eq!(number(prometheus, "job:quorate_connections:spare"), Ok(2.0));
    reaches(prometheus, r#"sum(quorate_acquire_seconds_count{outcome="granted"})"#, 100.0);
    assert_eq!(firing(prometheus), [], "all is well");
    let mut silent = BTreeSet::new();
    for (title, query) in queries(DASHBOARD, "quorate-service") {
        let answer = prometheus.api("query", &[("query", &query)]).expect("it is understood");
        silent.extend(list(&answer["result"]).next().is_none().then_some(title));
    }
    // No alert, no election, and no hold that was long enough to be renewed.
    // No voter has a limit of its memory, and none wants a certificate.
    let expected = [
        "Alerts",
        "Client certificate",
        "Elections observed",
        "Late renewals",
        "Memory",
        "Validity left when renewed",
    ];
    assert!(silent.iter().eq(expected.iter()), "these show nothing: {silent:?}");
}

/// They are as Prometheus wants them.
fn metrics_are_valid(metrics: &str) {
    let check = |metrics: &str| {
        let mut input = tempfile::tempfile().expect("a file");
        input.write_all(metrics.as_bytes()).and_then(|()| input.rewind()).expect("it is written");
        promtool(Command::new("promtool").args(["check", "metrics"]).stdin(input))
    };
    assert_eq!(check(metrics), Ok(String::new()));
    check("# TYPE x_count counter\nx_count 1\n").expect_err("bad ones");
}

/// A ticket, and nobody is woken.
fn one_is_down(voters: &mut [RedisServer], prometheus: &Server) {
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
fn no_quorum(voters: &[RedisServer], service: &Server, prometheus: &Server) {
    let long = works_long(service, "long");
    voters[1..3].iter().for_each(RedisServer::stop);
    let alert = fires(prometheus, "QuorateNoQuorum");
    assert_eq!(alert["labels"]["severity"], "page", "{alert}");
    assert_eq!(alert["labels"]["kind"], "mutex", "{alert}");
    assert!(service.get("/health").is_ok_and(|(status, _)| status != 200));
    let alert = fires(prometheus, "QuorateQuorumAtRisk");
    assert_eq!(alert["labels"]["severity"], "page", "{alert}");
    let (status, text) = long.join().expect("no panic").expect("it is answered");
    assert_eq!(status, 500, "{text}");
    let alert = fires(prometheus, "QuorateLockLost");
    assert_eq!(alert["labels"]["reason"], "expired", "{alert}");
    assert_eq!(alert["labels"]["job"], "quorate-service", "{alert}");
    let log = service.log();
    let told = log.lines().find(|line| line.contains("lock lost")).expect("it is logged");
    assert!(told.contains("long") && told.contains("WARN"), "{told}");
    assert!(log.contains("no quorum: no lock is given or renewed"), "{log}");
    assert!(!log.contains("fred"), "quorate says all there is to say: {log}");
}

fn all_return(voters: &mut [RedisServer], service: &Server, prometheus: &Server) {
    voters[1..3].iter().for_each(RedisServer::resume);
    voters[0].restart();
    succeeds("locks are given again", || match works(service, "after", 1) {
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
