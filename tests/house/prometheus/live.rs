//! `promtool` on what is shipped; and the example service on real voters, with a Prometheus that
//! collects from it: the rules as they are shipped, but that all of their durations are shorter.

use std::{
    fs::{self, File},
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
    path::Path,
    process::{Command, ExitStatus, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread::{self, JoinHandle},
};

use quorate_support::{Watched, free_port, install_line, succeeds};
use quorate_tests::{prelude::*, scene::Ending};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{DASHBOARD, RULES};

fn spawned<T>(program: &str, started: std::io::Result<T>) -> T {
    let dnf = "golang-github-prometheus";
    let line = install_line(["prometheus", dnf, "prometheus", "prometheus", "prometheus"]);
    started.unwrap_or_else(|error| panic!("{program}: {error}; install it: {line}"))
}

/// What `promtool` says, or complains of.
fn promtool(arguments: &[&str], input: Stdio) -> Result<String, String> {
    let folder = Path::new(ROOT).join("deploy/prometheus");
    let mut command = Command::new("promtool");
    let output =
        spawned("promtool", command.args(arguments).current_dir(folder).stdin(input).output());
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if output.status.success() { Ok(text) } else { Err(text) }
}

#[test]
fn the_configuration_is_valid_and_every_rule_does_what_its_test_says() {
    let run = |arguments: &str| {
        let arguments: Vec<_> = arguments.split(' ').collect();
        promtool(&arguments, Stdio::null()).unwrap_or_else(|told| panic!("{arguments:?}: {told}"))
    };
    assert!(run("check config prometheus.yml").contains("1 rule files found"));
    run("check rules --lint=all --lint-fatal quorate.rules.yml");
    run("test rules quorate.rules.test.yml");
}

/// A process that speaks HTTP at a port of 127.0.0.1.
struct Server {
    watched: Watched,
    port: u16,
}

impl Server {
    /// In a folder with these files. Returns when `ready` is answered with 200.
    fn start(command: impl FnOnce(u16) -> Command, files: &[(&str, &str)], ready: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("quorate-").tempdir().expect("a folder");
        for (name, text) in files {
            fs::write(dir.path().join(name), text).expect("it can be written");
        }
        let port = free_port();
        let mut command = command(port);
        command.current_dir(dir.path()).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(dir.path().join("log")).expect("a log file"));
        let watched = spawned("a server", Watched::start(&mut command, Signal::KILL, dir));
        let server = Self { watched, port };
        succeeds("it is ready", || match ask(port, "GET", ready, "") {
            Ok((200, _)) => Ok(()),
            other => Err(format!("{other:?}: {}", server.log())),
        });
        server
    }

    fn log(&self) -> String {
        fs::read_to_string(self.watched.dir.path().join("log")).expect("it logs")
    }

    /// Of the example service: to work under a lock for so many milliseconds.
    fn work(&self, name: &str, milliseconds: u64) -> (u16, String) {
        let answer = ask(self.port, "POST", &format!("/jobs/{name}"), &milliseconds.to_string());
        answer.unwrap_or_else(|told| panic!("{told}: {}", self.log()))
    }

    /// Works for long, on another thread, and holds its lock when this returns.
    fn work_long(&self, name: &'static str) -> JoinHandle<Result<(u16, String), String>> {
        let port = self.port;
        let path = format!("/jobs/{name}");
        // While it is asked below whether the lock is held, this one may be told that it is.
        let long = thread::spawn(move || {
            loop {
                match ask(port, "POST", &path, "100000") {
                    Ok((409, _)) => {}
                    other => return other,
                }
            }
        });
        succeeds("it is held", || match self.work(name, 0) {
            (409, _) => Ok(()),
            other => Err(format!("{other:?}")),
        });
        long
    }

    /// As an operator ends it.
    fn end(mut self) -> ExitStatus {
        kill_process(Pid::from_child(&self.watched.process), Signal::TERM).expect("it runs");
        succeeds("it has ended", || match self.watched.process.try_wait() {
            Ok(Some(status)) => Ok(status),
            other => Err(format!("{other:?}: {}", self.log())),
        })
    }

    /// Of Prometheus: the lines of `promtool` for the answer, a series each.
    fn query(&self, query: &str) -> Result<String, String> {
        let address = format!("http://127.0.0.1:{}", self.port);
        promtool(&["query", "instant", &address, query], Stdio::null())
    }

    fn number(&self, query: &str) -> Result<f64, String> {
        let answer = self.query(query)?;
        let value = answer.split_once(" => ").and_then(|(_, rest)| rest.split(' ').next());
        value.and_then(|value| value.parse().ok()).ok_or_else(|| format!("no number: {answer}"))
    }

    /// The alerts that fire and have this in their labels.
    fn firing(&self, label: &str) -> Vec<String> {
        let alerts = self.query("ALERTS{alertstate=\"firing\"}").expect("it tells of alerts");
        let alerts = alerts.lines().filter(|line| !line.is_empty() && line.contains(label));
        alerts.map(str::to_owned).collect()
    }

    /// Waits until this alert fires with these labels.
    fn fires(&self, name: &str, labels: &[&str]) {
        let alert = succeeds(&format!("{name} fires"), || {
            let alert = self.firing(&format!("\"{name}\"")).pop();
            alert.ok_or_else(|| format!("{:?}", self.firing("")))
        });
        for label in labels {
            assert!(alert.contains(label), "{label}: {alert}");
        }
    }
}

/// The status and the body of the answer.
fn ask(port: u16, method: &str, path: &str, body: &str) -> Result<(u16, String), String> {
    let answer = whole_answer(port, method, path, body)?;
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    status.zip(body).ok_or_else(|| format!("no HTTP: {answer}"))
}

/// As HTTP/1.0, so that no answer comes in chunks.
fn whole_answer(port: u16, method: &str, path: &str, body: &str) -> Result<String, String> {
    let head = format!("{method} {path} HTTP/1.0\r\nHost: localhost");
    let request = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let answer = || {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        // Longer than any lock here can be held without a quorum.
        stream.set_read_timeout(Some(Duration::from_secs(40)))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map(|_| answer)
    };
    answer().map_err(|error: std::io::Error| error.to_string())
}

fn start_service(voters: &[RedisServer]) -> Server {
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

/// The shipped rules with every duration of ranges, offsets and `for` divided by 30.
fn faster(rules: &str) -> String {
    let minutes = (1..60).map(|minutes| (format!("{minutes}m"), minutes));
    let durations: Vec<_> = minutes.chain([("1h".into(), 60), ("1d".into(), 1_440)]).collect();
    let begins = ["[", "offset ", "    for: "].iter();
    let all = begins.flat_map(|begin| durations.iter().map(move |duration| (begin, duration)));
    all.fold(rules.to_owned(), |rules, (begin, (duration, minutes))| {
        rules.replace(&format!("{begin}{duration}"), &format!("{begin}{}s", minutes * 2))
    })
}

fn start_prometheus(service: &Server) -> Server {
    let config = read_file("deploy/prometheus/prometheus.yml");
    let (config, itself) = config.split_once("  - job_name: prometheus\n").expect("it has a job");
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
    let rules = faster(&read_file(RULES));
    Server::start(
        command,
        &[("prometheus.yml", &config), ("quorate.rules.yml", &rules)],
        "/-/ready",
    )
}

/// All queries of the dashboard, with their panels, about this service and everything of it.
fn queries(job: &str) -> Vec<(String, String)> {
    let dashboard: Value = serde_json::from_str(&read_file(DASHBOARD)).expect("it is JSON");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let choices = [("$__rate_interval", "1m"), ("$__range", "1h"), ("$job", job)];
    let all = ["$instance", "$kind", "$lock"].map(|name| (name, ".*"));
    let filled_in = |query: String| {
        choices.iter().chain(&all).fold(query, |query, (name, value)| query.replace(name, value))
    };
    let panels = list(&dashboard["panels"]).into_iter();
    let queries = panels.flat_map(|panel| {
        let targets = list(&panel["targets"]).into_iter();
        let queries =
            targets.map(|target| (text(&panel["title"]), filled_in(text(&target["expr"]))));
        queries.collect::<Vec<_>>()
    });
    queries.collect()
}

// What a user copies: it says when to come again, and at SIGTERM it answers first.
#[test]
fn the_service_answers_409_with_retry_after_and_finishes_its_work_when_it_is_told_to_end() {
    let voters = RedisServer::start_many(&Settings::new(), 3);
    let service = start_service(&voters);
    let port = service.port;
    let work = move |time: &str| whole_answer(port, "POST", "/jobs/report", time).expect("HTTP");
    let is_refused = |answer: &str| answer.starts_with("HTTP/1.0 409 ");
    // While it is asked below whether the lock is held, this one may be refused.
    let long = thread::spawn(move || {
        std::iter::repeat_with(|| work("6000")).find(|answer| !is_refused(answer))
    });
    let refused = succeeds("it is held", || match work("0") {
        answer if is_refused(&answer) => Ok(answer),
        other => Err(other),
    });
    assert!(refused.to_lowercase().contains("\r\nretry-after: 1\r\n"), "{refused}");
    let holds = |server: &RedisServer| server.keys().contains(&"quorate:{report}".to_owned());
    assert!(voters.iter().any(holds) && !refused.contains("127.0.0.1"), "{refused}");
    assert!(service.end().success());
    let done = long.join().expect("it does not panic").expect("there is always another");
    assert!(done.starts_with("HTTP/1.0 200 "), "it is answered before the end: {done}");
    assert!(!voters.iter().any(holds), "the lock is given back");
}

#[test]
fn alerts_fire_when_locks_are_lost_and_not_before() {
    let mut voters = RedisServer::start_many(&Settings::new(), 5);
    let service = start_service(&voters);
    let prometheus = start_prometheus(&service);
    let enough = AtomicBool::new(false);
    thread::scope(|scope| {
        // Also where a claim below does not hold.
        let _ends = Ending(&enough);
        for name in ["a", "a", "b"] {
            scope.spawn(|| {
                while !enough.load(Ordering::Relaxed) {
                    let (status, text) = service.work(name, 5);
                    assert!([200, 409, 503].contains(&status), "{status}: {text}");
                }
            });
        }
        well(&service, &prometheus);
        // A ticket, and nobody is woken.
        voters[0].kill();
        let voter = format!("voter=\"127.0.0.1:{}\"", voters[0].port());
        prometheus.fires("QuorateVoterDown", &[&voter, "severity=\"ticket\""]);
        assert_eq!(prometheus.number("job:quorate_connections:spare"), Ok(1.0));
        assert_eq!(prometheus.firing("severity=\"page\""), [""; 0]);
        no_quorum(&voters, &service, &prometheus);
    });
    assert_eq!(service.work("last", 600_001).0, 400, "nobody holds a lock for so long");
    let last = service.work_long("last");
    // It is not waited for; whether it is told depends on the moment.
    assert!(service.end().success());
    let told = last.join().expect("it does not panic");
    assert!(!matches!(told, Ok((200, _))), "{told:?}");
}

fn well(service: &Server, prometheus: &Server) {
    let metrics = ask(service.port, "GET", "/metrics", "").expect("it tells of itself").1;
    let file = service.watched.dir.path().join("metrics");
    fs::write(&file, metrics).expect("it is written");
    let input = File::open(file).expect("it is there").into();
    assert_eq!(promtool(&["check", "metrics"], input), Ok(String::new()));
    // As many evaluations as the shortest alerts wait for, several times over.
    for (query, least) in [
        ("count_over_time(job:quorate_connections:spare[5m])", 30.0),
        (r#"sum(quorate_acquire_seconds_count{outcome="granted"})"#, 100.0),
    ] {
        succeeds(query, || match prometheus.number(query)? {
            value if value >= least => Ok(()),
            value => Err(value.to_string()),
        });
    }
    assert_eq!(prometheus.number("job:quorate_connections:spare"), Ok(2.0));
    assert_eq!(prometheus.firing(""), [""; 0], "all is well");
    let empty = queries("quorate-service")
        .into_iter()
        .filter(|(_, query)| prometheus.query(query).expect("it is understood").trim().is_empty());
    let silent: BTreeSet<_> = empty.map(|(title, _)| title).collect();
    // No alert, no election, and no hold that was long enough to be renewed. No voter has a limit of
    // its memory, and none wants a certificate.
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

/// Two more stand still, while a lock is held.
fn no_quorum(voters: &[RedisServer], service: &Server, prometheus: &Server) {
    let long = service.work_long("long");
    voters[1..3].iter().for_each(RedisServer::stop);
    prometheus.fires("QuorateNoQuorum", &["severity=\"page\"", "kind=\"mutex\""]);
    assert!(ask(service.port, "GET", "/health", "").is_ok_and(|(status, _)| status != 200));
    prometheus.fires("QuorateQuorumAtRisk", &["severity=\"page\""]);
    let (status, text) = long.join().expect("no panic").expect("it is answered");
    assert_eq!(status, 500, "{text}");
    prometheus.fires("QuorateLockLost", &["reason=\"expired\"", "job=\"quorate-service\""]);
    let log = service.log();
    assert!(!log.contains("fred"), "quorate says all there is to say: {log}");
    voters[1..3].iter().for_each(RedisServer::resume);
}
