//! The thread of a client: there is one, and it ends with the client.
//!
//! The threads are counted in a process of its own, because other tests have clients as well.

use std::{env, fs, process::Command};

use quorate::{Builder, blocking::Quorate, embedded};
use quorate_support::{RedisServer, eventually};
use quorate_tests::fixture::{Stopwatch, secs};

/// Runs a test of this file once more, alone in a process.
fn alone(test: &str, body: impl FnOnce()) {
    const CHILD: &str = "QUORATE_BLOCKING_CHILD";
    if env::var_os(CHILD).is_some() {
        return body();
    }
    let child = Command::new(env::current_exe().expect("this binary"))
        .args(["--exact", &format!("blocking::thread::{test}"), "--nocapture"])
        .env(CHILD, "yes")
        .status();
    assert!(child.expect("this binary runs").success());
}

/// The threads of this process that are those of clients.
fn client_threads() -> usize {
    let threads = fs::read_dir("/proc/self/task").expect("Linux has it").flatten();
    let names = threads.filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok());
    names.filter(|name| name.trim() == "quorate-client").count()
}

fn connect(builder: Builder) -> Quorate {
    let lease = secs(2);
    builder.lease(lease).longest_lease(lease).connect_blocking().expect("a majority answers")
}

#[test]
fn a_client_has_one_thread_which_ends_when_nobody_has_it_any_more() {
    alone("a_client_has_one_thread_which_ends_when_nobody_has_it_any_more", || {
        let (voters, server) = (embedded::voters(3), RedisServer::start());
        let inside = || connect(Quorate::builder().embedded(&voters));
        let on_server = || connect(Quorate::builder().voter(server.url()));
        for quorum in [inside(), on_server()] {
            let (clone, mutex) = (quorum.clone(), quorum.mutex("a"));
            let guard = mutex.lock().unwrap();
            drop((quorum, clone, mutex));
            // The guard keeps it, or else the lease would end.
            assert!(guard.lost_within(secs(3)).unwrap().is_none());
            drop(guard);
        }
        let watch = Stopwatch::start();
        eventually("no client has a thread any more", || client_threads() == 0);
        assert!(watch.time() < secs(5), "nothing is owed any more: {:?}", watch.time());
        let (one, other) = (inside(), on_server());
        assert_eq!(client_threads(), 2);
        one.close().unwrap();
        other.close().unwrap();
        drop((one, other));
        eventually("nor has one that was closed", || client_threads() == 0);
        assert!(Quorate::builder().connect_blocking().unwrap_err().is_invalid());
        eventually("nor has one that could not connect", || client_threads() == 0);
    });
}

// The quarantine ends after a lease of two minutes.
#[test]
fn a_thread_does_not_stay_for_a_quarantine() {
    alone("a_thread_does_not_stay_for_a_quarantine", || {
        let voters = embedded::voters(3);
        let lease = secs(120);
        let builder = Quorate::builder().embedded(&voters).lease(lease).longest_lease(lease);
        let quorum = builder.connect_blocking().expect("a majority answers");
        voters[0].restart_empty();
        let is_out = || quorum.status().expect("it is open").voters[0].quarantine.is_some();
        eventually("the voter is in quarantine", is_out);
        drop(quorum);
        let watch = Stopwatch::start();
        eventually("the client has no thread any more", || client_threads() == 0);
        assert!(watch.time() < secs(5), "{:?}", watch.time());
    });
}

// The voters never answer to the release: the thread gives up at the end of the lease.
#[test]
fn a_thread_ends_though_the_voters_are_gone() {
    alone("a_thread_ends_though_the_voters_are_gone", || {
        let (voters, mut server) = (embedded::voters(3), RedisServer::start());
        let one = connect(Quorate::builder().embedded(&voters));
        let other = connect(Quorate::builder().voter(server.url()));
        let guards = [one.mutex("a").lock().unwrap(), other.mutex("a").lock().unwrap()];
        voters.iter().for_each(embedded::EmbeddedVoter::stop);
        server.kill();
        assert_eq!(client_threads(), 2);
        drop((guards, one, other));
        eventually("both threads have ended", || client_threads() == 0);
    });
}
