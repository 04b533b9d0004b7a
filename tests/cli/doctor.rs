//! `quorate doctor`: servers that are wrong on purpose, each in one way.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    ops::Range,
    process::Command,
    thread,
    time::Duration,
};

use quorate_support::{Cluster, Proxy, RedisServer, Settings};
use quorate_tests::{rights, scene::DURABLE};
use serde_json::Value;

use crate::{
    program::{Running, output, quorate},
    screen::Screen,
    status::json,
    voters::Voters,
};

/// What a server that forgets nothing is started with, to be reached by three addresses.
fn good() -> Vec<&'static str> {
    [&DURABLE[..], &["--bind", "127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"]].concat()
}

/// Each by an address that no other has.
fn urls(servers: &[RedisServer]) -> Vec<String> {
    let url = |(place, server): (usize, &RedisServer)| {
        format!("redis://127.0.0.{}:{}", place + 1, server.port())
    };
    servers.iter().enumerate().map(url).collect()
}

fn doctor(urls: &[String], arguments: &[&str]) -> Command {
    let mut command = quorate([&["doctor"], arguments].concat());
    patient(command.env("QUORATE_VOTERS", urls.join(" ")));
    command
}

/// No answer of a busy machine is taken for silence.
fn patient(command: &mut Command) -> &mut Command {
    command.env("QUORATE_VOTER_DEADLINE", "400ms")
}

/// The exit code, and what is not well: check, level, server and what was seen.
fn findings(command: &mut Command) -> (i32, Vec<[String; 4]>) {
    let (code, said) = json(command);
    assert_eq!(said["version"], 1);
    let all = said["findings"].as_array().expect("it has findings");
    let bad = all.iter().filter(|finding| finding["level"] != "ok");
    let texts = |finding: &Value| {
        ["check", "level", "server", "seen"]
            .map(|key| finding[key].as_str().unwrap_or_default().to_owned())
    };
    let bad: Vec<_> = bad.map(texts).collect();
    let count = |level: &str| bad.iter().filter(|finding| finding[1] == level).count();
    assert_eq!([&said["errors"], &said["warnings"]], [count("error"), count("warning")]);
    (code, bad)
}

/// Three good servers.
fn three() -> Vec<RedisServer> {
    with_one(&Settings::new().flags(&good()))
}

/// Two good servers, and another one.
fn with_one(settings: &Settings) -> Vec<RedisServer> {
    let mut servers = RedisServer::start_many(&Settings::new().flags(&good()), 2);
    servers.push(RedisServer::start_as(settings));
    servers
}

/// What is wrong with the last of three servers, where the others are good.
fn wrong(settings: &Settings, login: &str) -> (i32, Vec<[String; 4]>) {
    let servers = with_one(settings);
    let mut urls = urls(&servers);
    urls[2] = urls[2].replace("://", &format!("://{login}"));
    // One that may forget is kept out at first, beside others that do not.
    let (code, mut found) = findings(&mut doctor(&urls, &["--json", "--ignore", "connection"]));
    let place = format!("127.0.0.3:{}", servers[2].port());
    assert!(found.iter().all(|finding| finding[2] == place), "{found:?}");
    found.retain(|finding| finding[0] != "connection");
    (code, found)
}

fn checks(found: &[[String; 4]]) -> Vec<(&str, &str)> {
    found.iter().map(|[check, level, ..]| (&**check, &**level)).collect()
}

#[test]
fn good_servers_are_well() {
    let servers = three();
    let (code, said, errors) = output(&mut doctor(&urls(&servers), &[]));
    assert_eq!((code, &*said), (0, "0 errors, 0 warnings\n"), "{errors}");
    let (code, said, errors) = output(&mut doctor(&urls(&servers), &["-v"]));
    assert_eq!((code, &*errors), (0, ""), "{said}");
    assert!(said.ends_with("0 errors, 0 warnings\n"), "{said}");
    assert!(said.lines().rev().skip(1).all(|line| line.starts_with("ok ")), "{said}");
    let checks = "number distinct domains connection version eviction persistence replicas rights \
                  wakeups clock latency";
    for check in checks.split(' ') {
        assert!(said.contains(&format!(" {check} ")), "{check}: {said}");
    }
}

#[test]
fn what_is_the_same_of_several_servers_is_one_line_which_fits_the_terminal() {
    let voters = Voters::start();
    let arguments = ["doctor", "--ignore", "domains"];
    let (code, said, _) = output(&mut voters.quorate(&arguments));
    assert_eq!((code, said.matches("persistence").count()), (1, 2), "check and advice: {said}");
    let places: Vec<_> =
        voters.0.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
    let line = format!("warning  persistence  {}: appendonly no", places.join(", "));
    assert!(said.contains(&line) && said.ends_with("\n0 errors, 1 warning\n"), "{said}");
    let (_, all) = json(&mut voters.quorate(&["doctor", "--json"]));
    let findings = all["findings"].as_array().unwrap().iter();
    let persistence = findings.filter(|finding| finding["check"] == "persistence");
    let servers: Vec<_> = persistence.map(|finding| finding["server"].as_str().unwrap()).collect();
    assert_eq!(servers, places, "programs have each");
    let mut command = voters.quorate(&arguments);
    let mut screen = Screen::start(command.env("NO_COLOR", "1"));
    assert_eq!(screen.end(), Some(1));
    screen.shows("0 errors, 1 warning");
    let shown = screen.shown();
    // The name of a setting is not broken.
    let fits = |line: &str| line.chars().count() <= 40 || !line.trim_start().contains(' ');
    assert!(shown.lines().all(fits), "{shown}");
    assert!(shown.contains(&format!("\n{:22}{},", "", places[1])), "{shown}");
}

#[test]
fn a_server_that_may_lose_votes_is_an_error_or_a_warning_that_can_be_accepted() {
    let (lru, full) = (["--maxmemory-policy", "allkeys-lru"], ["--maxmemory", "64mb"]);
    for (flags, check, level, seen) in [
        (&[lru, full].concat()[..], "eviction", "error", "maxmemory-policy allkeys-lru, "),
        (&lru, "eviction", "warning", "maxmemory-policy allkeys-lru"),
        (
            &["--appendonly", "no", "--save", ""],
            "persistence",
            "warning",
            "appendonly no, save \"\"",
        ),
        (
            &["--appendfsync", "everysec"],
            "persistence",
            "warning",
            "appendonly yes, appendfsync everysec, no-appendfsync-on-rewrite no",
        ),
    ] {
        let (code, found) = wrong(&Settings::new().flags(&good()).flags(flags), "");
        let expected = if level == "error" { 2 } else { 1 };
        assert_eq!((code, &checks(&found)[..]), (expected, &[(check, level)][..]), "{found:?}");
        assert!(found[0][3].starts_with(seen), "{found:?}");
    }
    // It reads its file as the user `default` when it starts.
    let users = ["default off resetkeys resetchannels -@all", "operator on >pw ~* &* +@all"];
    let dropping = Settings::new().flags(&good()).users(&users);
    let (code, found) = wrong(&dropping, "operator:pw@");
    assert_eq!((code, &checks(&found)[..]), (2, &[("persistence", "error")][..]), "{found:?}");
    assert!(found[0][3].contains("`default` may not"), "{found:?}");

    let servers = with_one(&Settings::new().flags(&good()).flags(&["--appendonly", "no"]));
    let arguments = ["--ignore", "persistence", "--ignore", "connection"];
    let (code, said, _) = output(&mut doctor(&urls(&servers), &arguments));
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("ignored  persistence ") && said.ends_with("0 errors, 0 warnings\n"));
    let line = said.lines().find(|line| line.starts_with("ignored  persistence"));
    let line = line.expect("it is shown");
    // What was seen, what it means, and how to mend it.
    assert!(line.contains("appendonly no") && line.contains("gives no new locks for 4s"), "{line}");
    assert!(line.contains("set appendonly yes, appendfsync always"), "{line}");
}

#[test]
fn rights_that_are_missing_are_named() {
    let documented = rights::documented().join(" ");
    for (lacks, level, code) in [("+zadd", "error", 2), ("+config|get", "warning", 1)] {
        let given = documented.replace(&format!("{lacks} "), "");
        let user = format!("quorate on >pw {given}");
        let settings = Settings::new().users(&[&user]).flags(&good());
        let servers = RedisServer::start_many(&settings, 3);
        let url = |(place, server): (usize, &RedisServer)| {
            format!("redis://quorate:pw@127.0.0.{}:{}", place + 1, server.port())
        };
        let urls: Vec<_> = servers.iter().enumerate().map(url).collect();
        let (ended, found) = findings(&mut doctor(&urls, &["--json", "--ignore", "persistence"]));
        let found: Vec<_> = found.into_iter().filter(|finding| finding[0] == "rights").collect();
        assert_eq!((ended, &checks(&found)[..]), (code, &[("rights", level); 3][..]), "{found:?}");
        assert!(found.iter().all(|finding| finding[3] == format!("the user lacks {lacks}")));
    }
}

#[test]
fn one_server_under_two_addresses_is_an_error() {
    let servers = [RedisServer::start_with(&good()), RedisServer::start_with(&good())];
    let mut urls = urls(&servers);
    urls.push(format!("redis://127.0.0.3:{}", servers[0].port()));
    let (code, found) = findings(&mut doctor(&urls, &["--json"]));
    assert_eq!((code, &checks(&found)[..]), (2, &[("settings", "error")][..]), "{found:?}");
    assert!(found[0][3].contains("are the same server"), "{found:?}");
}

#[test]
fn servers_on_one_host_and_an_even_number_of_them_are_warnings() {
    let servers: Vec<_> = (0..4).map(|_| RedisServer::start_with(&good())).collect();
    let (code, found) = findings(&mut doctor(&urls(&servers), &["--json"]));
    assert_eq!((code, &checks(&found)[..]), (1, &[("number", "warning")][..]), "{found:?}");
    let on_one_host: Vec<_> = servers[..3].iter().map(RedisServer::url).collect();
    let (code, found) = findings(&mut doctor(&on_one_host, &["--json"]));
    assert_eq!((code, &checks(&found)[..]), (1, &[("domains", "warning")][..]), "{found:?}");
    assert_eq!(found[0][3], "3 servers are on the host 127.0.0.1");
    let (code, found) = findings(&mut doctor(&on_one_host[..1], &["--json"]));
    assert_eq!((code, &checks(&found)[..]), (1, &[("number", "warning")][..]), "{found:?}");
}

#[test]
fn voters_that_cannot_be_used_are_errors_with_their_causes() {
    let mut servers = three();
    let replica = servers[0].start_replica();
    let mut urls = urls(&servers);
    urls[2] = replica.url();
    let (code, found) = findings(&mut doctor(&urls, &["--json"]));
    let found: Vec<_> = found.iter().filter(|finding| finding[0] == "connection").collect();
    assert_eq!((code, found.len(), &*found[0][1]), (2, 1, "error"), "{found:?}");
    assert!(found[0][3].contains("is a replica, which cannot vote"), "{found:?}");
    servers[1].kill();
    let (code, found) = findings(&mut doctor(&urls, &["--json"]));
    let [number, connection] = [("number", "error"), ("connection", "error")];
    assert_eq!((code, checks(&found)), (2, vec![number, connection, connection]), "{found:?}");
    assert_eq!(found[0][3], "1 of 3 voters answer: no lock can be taken");
}

#[test]
fn a_long_way_is_an_error() {
    let servers = three();
    let runtime = tokio::runtime::Runtime::new().expect("there is a runtime");
    let proxy = runtime.block_on(Proxy::start(servers[2].port()));
    let way = Duration::from_millis(120);
    proxy.delay(way, way);
    let mut urls = urls(&servers);
    urls[2] = proxy.url();
    let (code, found) =
        findings(&mut doctor(&urls, &["--json", "--ignore", "domains", "--ignore", "connection"]));
    let found: Vec<_> = found.iter().filter(|finding| finding[0] == "latency").collect();
    assert_eq!((code, found.len()), (2, 1), "{found:?}");
    assert_eq!(found[0][2], format!("127.0.0.1:{}", proxy.port()));
}

/// Passes everything on, and sets the clock that `TIME` shows ahead.
fn clock_ahead(server: u16, seconds: u64) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let port = listener.local_addr().expect("it has one").port();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { return };
            let (back, forth) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || pass(client, server, |_| {}));
            thread::spawn(move || pass(back, forth, |bytes| set_ahead(bytes, seconds)));
        }
    });
    port
}

fn pass(mut from: TcpStream, mut to: TcpStream, change: impl Fn(&mut [u8])) {
    let mut bytes = vec![0; 65_536];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        change(&mut bytes[..length]);
        if to.write_all(&bytes[..length]).is_err() {
            return;
        }
    }
}

/// In milliseconds since 1970.
const IN_THIS_CENTURY: Range<u64> = 1_000_000_000_000..4_000_000_000_000;

/// In the answer to `TIME`, two texts of which the first has ten digits; and in what scripts
/// answer, where MessagePack has milliseconds as eight bytes.
fn set_ahead(bytes: &mut [u8], seconds: u64) {
    let head = b"*2\r\n$10\r\n";
    if let Some(at) = bytes.windows(head.len()).position(|part| part == head)
        && let Some(digits) = bytes.get_mut(at + head.len()..at + head.len() + 10)
        && let Ok(shown) = std::str::from_utf8(digits).unwrap_or_default().parse::<u64>()
    {
        digits.copy_from_slice((shown + seconds).to_string().as_bytes());
    }
    for at in 1..bytes.len().saturating_sub(7) {
        let Some(number) = bytes[at..].first_chunk() else { return };
        let shown = u64::from_be_bytes(*number);
        if [0xcf, 0xd3].contains(&bytes[at - 1]) && IN_THIS_CENTURY.contains(&shown) {
            let set = (shown + 1000 * seconds).to_be_bytes();
            bytes[at..at + set.len()].copy_from_slice(&set);
        }
    }
}

#[test]
fn a_clock_that_is_apart_is_a_warning() {
    let servers = three();
    let mut urls = urls(&servers);
    urls[2] = format!("redis://127.0.0.1:{}", clock_ahead(servers[2].port(), 5));
    let (code, found) = findings(&mut doctor(&urls, &["--json", "--ignore", "domains"]));
    let clock: Vec<_> = found.iter().filter(|finding| finding[0] == "clock").collect();
    assert_eq!((code, clock.len()), (1, 1), "{found:?}");
    assert!(clock[0][3].starts_with("+5") || clock[0][3].starts_with("+4.9"));
    // And it is kept out for that.
    let kept_out = found.iter().find(|finding| finding[0] == "connection").expect("it is");
    assert!(kept_out[3].starts_with("in quarantine for ") && kept_out[3].contains("clock"));
}

#[test]
fn a_cluster_that_needs_all_slots_is_a_warning_and_voters_that_share_a_server_are_an_error() {
    for (setting, levels) in [("yes", &["warning"; 3][..]), ("no", &[])] {
        let cluster = Cluster::start_with(3, 0, &["--cluster-require-full-coverage", setting]);
        let seen = |voters: &str| {
            let mut command = quorate(["doctor", "--json", "--cluster-voters", voters]);
            for url in cluster.urls() {
                command.args(["--cluster", &url]);
            }
            findings(patient(&mut command))
        };
        let (_, found) = seen("3");
        assert!(found.iter().all(|finding| finding[0] != "distinct"), "{found:?}");
        let found: Vec<_> = found.iter().filter(|finding| finding[0] == "coverage").collect();
        let told: Vec<&str> = found.iter().map(|finding| &*finding[1]).collect();
        assert_eq!(told, levels, "{found:?}");
        let why = "cluster-require-full-coverage yes";
        assert!(found.iter().all(|finding| finding[3] == why), "{found:?}");
        let (code, found) = seen("5");
        assert_eq!(code, 2, "{found:?}");
    }
}

#[test]
fn clients_with_a_configuration_mismatch_are_named_and_nobody_joins_them() {
    let voters = Voters::start();
    let _held = Running::start(&mut voters.run(&["job"], "exec sleep 1000"));
    let mut doctor = voters.quorate(&["doctor", "--json"]);
    let (_, found) = findings(doctor.env("QUORATE_LONGEST_LEASE", "60s"));
    let found: Vec<_> = found.into_iter().filter(|finding| finding[0] == "configuration").collect();
    let [[_, level, _, seen]] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(level, "error");
    let told = "configuration 1 with 3 voters, a longest lease of 4s, a drift of 10000 ppm and 2ms, last seen ";
    assert!(seen.starts_with(told), "{seen}");

    let mut other = voters.run(&["other"], "true");
    let (code, _, errors) = output(other.env("QUORATE_LONGEST_LEASE", "60s"));
    assert_eq!(code, 78, "{errors}");
    let told = "it has configuration 1 with 3 voters, a longest lease of 60s, a drift of 10000 ppm and \
                2ms; others have configuration 1 with 3 voters, a longest lease of 4s, a drift of 10000 \
                ppm and 2ms, last seen ";
    assert!(errors.contains(told), "{errors}");
    assert!(errors.contains("all clients need the same longest lease"), "{errors}");
    // Nothing is wrong for those that agree.
    let (_, found) = findings(&mut voters.quorate(&["doctor", "--json"]));
    assert!(found.iter().all(|finding| finding[0] != "configuration"), "{found:?}");
}
