//! `--listen`: what others hear over HTTP of a process that wants a lock.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    process::Command,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use quorate_support::{RedisServer, eventually, free_port};
use rand::RngExt;
use rustix::process::Signal;
use serde_json::Value;

use crate::{
    losses::assert_dead_at,
    program::{Running, client_name, output},
    voters::{LEASE, Voters},
};

/// Where a program listens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Desk(pub(crate) SocketAddr);

impl Desk {
    pub(crate) fn new() -> Self {
        Self(SocketAddr::from(([127, 0, 0, 1], free_port())))
    }

    /// Sends this; what comes back until the other side ends it. Nothing where nobody listens.
    fn send(self, request: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.0).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request.as_bytes()).ok()?;
        read(stream)
    }

    /// The status, and the body.
    pub(crate) fn asks(self, method: &str, path: &str) -> Option<(u16, String)> {
        let answer = self.send(&format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.0))?;
        parsed(&answer)
    }

    fn leader(self) -> Option<(u16, Value)> {
        let (status, body) = self.asks("GET", "/leader")?;
        Some((status, serde_json::from_str(&body).unwrap_or_else(|_| panic!("no JSON: {body}"))))
    }

    pub(crate) fn leads(self) -> bool {
        self.leader().is_some_and(|(status, _)| status == 200)
    }
}

fn read(mut stream: TcpStream) -> Option<String> {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

fn parsed(answer: &str) -> Option<(u16, String)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "))?;
    assert_eq!(length, body.len().to_string(), "{answer}");
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// `quorate lead` with a command that runs for as long as it may.
fn lead(voters: &Voters, desk: Desk, value: &str) -> Command {
    let script = ["--", "sh", "-c", "echo $$; exec sleep 1000"];
    let listen = desk.0.to_string();
    voters.quorate(&[&["lead", "a", "--value", value, "--listen", &listen], &script[..]].concat())
}

#[test]
fn one_leads_and_the_others_say_who() {
    let voters = Voters::start();
    let (first, second) = (Desk::new(), Desk::new());
    let mut leader = Running::start(&mut lead(&voters, first, "10.0.0.1:80"));
    let (status, body) = first.leader().expect("it listens");
    assert_eq!((status, &body["name"]), (200, &"10.0.0.1:80".into()), "{body}");
    assert!(body["token"].is_u64() && body["remaining_ms"].as_u64() <= Some(4_000), "{body}");
    let mut next = Running::start_soon(&mut lead(&voters, second, "10.0.0.2:80"));
    let expected = r#"{"error":"another has it","name":"10.0.0.1:80"}"#;
    eventually("it says who leads", || {
        second.asks("GET", "/leader") == Some((503, format!("{expected}\n")))
    });
    for desk in [first, second] {
        assert_eq!(desk.asks("GET", "/healthz"), Some((200, "ok\n".to_owned())));
    }
    leader.signal(Signal::TERM);
    assert_eq!(leader.end().0, 143);
    assert_eq!(first.leader(), None);
    next.group = next.says().parse().unwrap();
    let (status, body) = second.leader().expect("it listens");
    assert_eq!((status, &body["name"]), (200, &"10.0.0.2:80".into()), "{body}");
}

#[test]
fn of_a_lock_the_client_is_named() {
    let voters = Voters::start();
    for kind in [&[][..], &["--fair"], &["--read"], &["--write"], &["--permits", "1"]] {
        let desks = [Desk::new(), Desk::new()];
        let listen = desks.map(|desk| desk.0.to_string());
        let run = |listen: &str, kind: &[&str]| {
            voters.run(&[kind, &["a", "--listen", listen]].concat(), "exec sleep 1000")
        };
        let holder = Running::start(&mut run(&listen[0], kind));
        let name = Value::from(client_name(holder.id()));
        let (status, body) = desks[0].leader().expect("it listens");
        assert_eq!((status, &body["name"]), (200, &name), "{kind:?}: {body}");
        let is_shared = kind == ["--read"] || kind == ["--permits", "1"];
        assert_eq!(body["token"].is_u64(), !is_shared, "{kind:?}: {body}");
        let other = if kind == ["--read"] { &["--write"][..] } else { kind };
        let _waits = Running::start_soon(&mut run(&listen[1], other));
        eventually("it says who has it", || {
            desks[1].leader().is_some_and(|(status, body)| status == 503 && body["name"] == name)
        });
    }
}

#[test]
fn what_is_not_there_is_refused() {
    let voters = Voters::start();
    let desk = Desk::new();
    let _leader = Running::start(&mut lead(&voters, desk, "10.0.0.1:80"));
    for (method, path, expected) in [
        ("GET", "/healthz?probe=1", 200),
        ("GET", "/", 404),
        ("POST", "/leaders", 404),
        ("HEAD", "/leader", 405),
        ("POST", "/healthz", 405),
    ] {
        let (status, _) = desk.asks(method, path).expect("it answers");
        assert_eq!(status, expected, "{method} {path}");
    }
    let refused = desk.send("PUT /leader HTTP/1.1\r\n\r\n").expect("it answers");
    assert!(refused.contains("\r\nAllow: GET\r\n"), "{refused}");
    let long = "a".repeat(9_000);
    for wrong in ["hello\r\n\r\n", "GET /leader\r\n\r\n", "GET /leader SSH-2.0\r\n\r\n", &long] {
        let (status, _) = parsed(&desk.send(wrong).expect("it answers")).expect("it is HTTP");
        assert_eq!(status, 400);
    }
}

// Beside it the desk answers as ever.
#[test]
fn rubbish_is_refused_or_given_up() {
    let voters = Voters::start();
    let desk = Desk::new();
    let _leader = Running::start(&mut lead(&voters, desk, "10.0.0.1:80"));
    let mut chance = rand::rng();
    for _ in 0..100 {
        let length = chance.random_range(0..12_000);
        let mut bytes: Vec<u8> = (0..length).map(|_| chance.random()).collect();
        if chance.random() {
            bytes.splice(..0, *b"GET /leader HTTP/1.1");
        }
        bytes.extend(b"\r\n\r\n");
        let mut stream = TcpStream::connect(desk.0).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // It may not read all of it.
        let _ = stream.write_all(&bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).expect("it is text");
        let is_refused = answer.starts_with("HTTP/1.1 400 ");
        assert!(answer.is_empty() || is_refused, "{answer} to {bytes:?}");
    }
    assert!(desk.leads());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "real clients wait in real time")]
fn slow_clients_hold_up_nobody() {
    let voters = Voters::start();
    let desk = Desk::new();
    let _leader = Running::start(&mut lead(&voters, desk, "10.0.0.1:80"));
    let slow = [(); 8].map(|()| TcpStream::connect(desk.0).expect("it listens"));
    (&slow[0]).write_all(b"GET /leader HT").unwrap();
    let asked = Instant::now();
    assert!(desk.leads());
    assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
    for stream in slow {
        assert_eq!(read(stream).as_deref(), Some(""), "it is given up");
    }
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
}

/// Takes all places, again and again, until it is dropped. Each connection sends this, and no more.
struct Crowd {
    stop: mpsc::Sender<()>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Crowd {
    fn start(desk: Desk, sends: &'static str) -> Self {
        let (stop, stopped) = mpsc::channel();
        let (come, has_come) = mpsc::channel();
        let thread = thread::spawn(move || {
            while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
                let all: Vec<_> = (0..16).filter_map(|_| TcpStream::connect(desk.0).ok()).collect();
                for mut stream in &all {
                    let _ = stream.write_all(sends.as_bytes());
                }
                let _ = come.send(());
                // As long as none of them has been given up.
                all[0].set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
                let _ = (&all[0]).read_to_end(&mut Vec::new());
            }
        });
        has_come.recv().expect("it begins");
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        let _ = self.stop.send(());
        let _ = self.thread.take().expect("it is there").join();
    }
}

// A kubelet waits for a second, and ends the pod after three probes that failed.
#[test]
#[expect(clippy::disallowed_methods, reason = "real clients wait in real time")]
fn whoever_takes_all_places_and_does_not_go_on_keeps_no_probe_out() {
    let voters = Voters::start();
    let desk = Desk::new();
    let _leader = Running::start(&mut lead(&voters, desk, "10.0.0.1:80"));
    for sends in ["", "GET /leader HT", "GET /healthz HTTP/1.1\r\n\r\n"] {
        let _crowd = Crowd::start(desk, sends);
        for _ in 0..8 {
            let asked = Instant::now();
            assert_eq!(desk.asks("GET", "/healthz"), Some((200, "ok\n".to_owned())), "{sends}");
            assert!(asked.elapsed() < Duration::from_secs(1), "{sends}: {:?}", asked.elapsed());
            thread::sleep(Duration::from_millis(100));
        }
    }
}

// Each look asks all servers for the locks of all kinds.
#[test]
fn who_else_has_the_lock_is_asked_once_a_second_for_all() {
    const ASKERS: usize = 12;
    const EACH: usize = 20;
    let voters = Voters::start();
    let desk = Desk::new();
    let _holder = Running::start(&mut voters.run(&["a"], "exec sleep 1000"));
    let listen = desk.0.to_string();
    let _waits = Running::start_soon(&mut voters.run(&["a", "--listen", &listen], "true"));
    eventually("it says who has it", || says_that_another_has_it(desk));
    let looks = || -> u64 { voters.0.iter().map(|server| server.calls("evalsha")).sum() };
    let before = looks();
    let ask = move || (0..EACH).all(|_| says_that_another_has_it(desk));
    let askers = [(); ASKERS].map(|()| thread::spawn(ask));
    assert!(askers.into_iter().all(|asker| asker.join().expect("it ends")));
    // Four of each server a look, and what the holder and the waiter ask meanwhile.
    let asked = looks() - before;
    let of_each = 3 * 4 * u64::try_from(ASKERS * EACH).expect("not as many");
    assert!(asked < of_each / 10, "{asked} of {of_each}");
}

fn says_that_another_has_it(desk: Desk) -> bool {
    desk.leader().is_some_and(|(_, body)| body["error"] == "another has it")
}

#[test]
fn an_address_that_cannot_be_used_is_refused_before_the_command_starts() {
    let voters = Voters::start();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let run = |address: &str| output(&mut voters.run(&["a", "--listen", address], "true"));
    let (code, said, errors) = run(&address);
    assert_eq!((code, &*said), (71, ""), "{errors}");
    assert!(errors.starts_with(&format!("quorate: --listen {address}: ")), "{errors}");
    for wrong in ["4040", "localhost"] {
        let (code, said, errors) = run(wrong);
        assert_eq!((code, &*said), (64, ""), "{errors}");
        assert!(errors.contains(wrong), "{errors}");
    }
}

// The moment of the answer counts, not that of its request.
#[test]
#[expect(clippy::disallowed_methods, reason = "real servers count real time")]
fn nobody_is_told_that_a_lock_is_held_once_a_majority_may_give_it_to_another() {
    let voters = Voters::start();
    let desks = [Desk::new(), Desk::new()];
    let run = |desk: Desk| {
        let listen = desk.0.to_string();
        voters.run(&["a", "--wait", "1m", "--listen", &listen], "exec sleep 1000")
    };
    let mut holder = Running::start(&mut run(desks[0]));
    let mut waits = Running::start_soon(&mut run(desks[1]));
    eventually("the other waits", || desks[1].leader().is_some());
    thread::sleep(Duration::from_millis(rand::rng().random_range(0..2_000)));
    voters.0[..2].iter().for_each(RedisServer::stop);
    // No vote of theirs is longer.
    let deadline = Instant::now() + LEASE;
    let mut last = None;
    while let Some((status, _)) = desks[0].leader() {
        let now = Instant::now();
        last = (status == 200).then_some(now).or(last);
        let (status, body) = desks[1].leader().expect("it listens");
        assert_eq!(status, 503, "{body}");
        assert!(now.elapsed() < Duration::from_secs(3), "it is said at once: {:?}", now.elapsed());
    }
    assert!(last.is_some_and(|last| last < deadline), "{last:?} {deadline:?}");
    assert_eq!(holder.end().0, 76);
    assert_eq!(desks[1].asks("GET", "/healthz"), Some((200, "ok\n".to_owned())));
    voters.0.iter().for_each(RedisServer::resume);
    waits.signal(Signal::TERM);
    waits.wait();
}

#[test]
fn a_holder_that_was_stopped_past_its_lease_does_not_say_that_it_holds_the_lock() {
    let voters = Voters::start();
    let desk = Desk::new();
    let listen = ["a", "--listen", &desk.0.to_string()];
    let mut holder = Running::start(&mut voters.run(&listen, "exec sleep 1000"));
    assert!(desk.leads());
    holder.signal(Signal::STOP);
    let mut stream = TcpStream::connect(desk.0).expect("the kernel takes it");
    stream.write_all(b"GET /leader HTTP/1.1\r\n\r\n").unwrap();
    assert_dead_at(voters.deadline("a"), &holder);
    holder.signal(Signal::CONT);
    if let Some(answer) = read(stream).filter(|answer| !answer.is_empty()) {
        assert_eq!(parsed(&answer).expect("it is HTTP").0, 503, "{answer}");
    }
    assert_eq!(holder.end().0, 76);
}
