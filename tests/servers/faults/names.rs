//! What may block for long beside a client: the look-up of a name, and a file on a disk that stands
//! still. Neither holds up another voter.

use std::{fs, net::UdpSocket, process::Command, thread};

use quorate::Tls;
use quorate_support::{Certificates, ClientCertificates::NotAsked};
use quorate_tests::{
    names::{answer, is_in_a_network_of_its_own},
    prelude::*,
    scene::connections,
};
use tokio::runtime::{self, Handle};

const LEASE: Duration = Duration::from_secs(4);
/// How long the look-up of a name takes: 12 s for the first silent name server, and two thirds of
/// that for the second (the system's own arithmetic).
const LOOK_UP: Duration = Duration::from_secs(20);
const RESOLVER: &str = "nameserver 127.0.0.2\nnameserver 127.0.0.3\nnameserver 127.0.0.4\n\
                        options timeout:12 attempts:1\n";

/// Two name servers that are silent, and one that knows every name: each is at 127.0.0.1.
fn serve_names() {
    let [first, second, third] = ["127.0.0.2:53", "127.0.0.3:53", "127.0.0.4:53"]
        .map(|at| UdpSocket::bind(at).expect("this network is new"));
    thread::spawn(move || {
        let _silent = [first, second];
        let mut question = [0; 512];
        loop {
            let (length, from) = third.recv_from(&mut question).expect("it asks");
            third.send_to(&answer(&question[..length]), from).expect("it hears");
        }
    });
}

fn cut_connections(servers: &[RedisServer]) {
    for server in servers {
        for kind in ["normal", "pubsub"] {
            server.command(&["CLIENT", "KILL", "TYPE", kind]).expect("they can be cut");
        }
    }
}

/// A voter of three has a name that takes long to look up. The two others have numbers, and need a
/// file for each connection: these end.
async fn is_spared(name: &str, on: Option<Handle>) {
    let certificates = Certificates::new();
    let secured = RedisServer::start_many(&Settings::new().tls(&certificates, NotAsked), 2);
    let named = RedisServer::start();
    let connect = async || {
        let address = format!("redis://{name}:{}", named.port());
        let tls = Tls::new().ca_file(secured[0].dir().join("ca.pem"));
        let voters = Quorate::builder().voters([secured[0].url(), secured[1].url(), address]);
        let settings = leased(voters.tls(tls), LEASE);
        let settings = if let Some(on) = &on { settings.runtime(on.clone()) } else { settings };
        timeout(MS(30_000), settings.connect()).await.expect("soon").expect("two answer")
    };
    let client = connect().await;
    let guard = client.mutex("a").lock().await.expect("two answer");
    // So many attempts have given up by then.
    sleep(LOOK_UP).await;
    cut_connections(&secured);
    let mutex = client.mutex("b");
    let locked = timeout(MS(5_000), mutex.lock()).await.expect("both are reached again at once");
    locked.expect("two answer").release().await.expect("two answer");
    let another = connect().await;
    assert!(another.mutex("c").try_lock().await.expect("both are up").is_some());
    sleep(2 * LEASE).await;
    assert!(guard.is_held());
    until!("the answer that came late is used", connections(&named) > 0);
}

// In a pool of four threads, as many look-ups would be enough to hold up everything else.
#[test]
fn a_name_that_takes_twenty_seconds_holds_up_no_other_voter() {
    let test = "faults::names::a_name_that_takes_twenty_seconds_holds_up_no_other_voter";
    if !is_in_a_network_of_its_own(test, RESOLVER) {
        return;
    }
    serve_names();
    let test = |name, is_its_own: bool| {
        let mut threads = runtime::Builder::new_multi_thread();
        let threads = threads.worker_threads(2).max_blocking_threads(4).enable_all();
        let runtime = threads.build().expect("a runtime");
        let on = is_its_own.then(|| runtime.handle().clone());
        runtime.block_on(is_spared(name, on));
        // What hangs there would hang for long.
        runtime.shutdown_background();
    };
    thread::scope(|scope| {
        let own = scope.spawn(|| test("one.voters.test", true));
        let shared = scope.spawn(|| test("two.voters.test", false));
        let ended = [own, shared].map(|test| test.join().is_ok());
        assert_eq!(ended, [true; 2], "on a runtime that it was given, and on its thread");
    });
}

// Opening the file blocks then, as where its disk stands still.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_file_that_cannot_be_read_now_holds_up_no_other_voter() {
    let (servers, folder) = (servers(3), tempfile::tempdir().expect("there is room"));
    for server in &servers {
        let rules = ["ACL", "SETUSER", "ann", "on", ">secret", "~*", "&*", "+@all"];
        server.command(&rules).expect("the user is set");
    }
    let file = folder.path().join("password");
    fs::write(&file, "secret\n").expect("there is room");
    let addresses: Vec<_> = servers.iter().map(RedisServer::url).collect();
    let variables = [
        ("QUORATE_VOTERS", addresses.join(" ")),
        ("QUORATE_USER", "ann".to_owned()),
        ("QUORATE_PASSWORD_FILE", file.display().to_string()),
    ];
    let settings = leased(Builder::from_variables(variables).expect("they fit"), LEASE);
    let client = settings.connect().await.expect("all are up");
    let guard = client.mutex("a").lock().await.expect("all are up");
    fs::remove_file(&file).expect("it is there");
    assert!(Command::new("mkfifo").arg(&file).status().expect("it starts").success());
    cut_connections(&servers[..1]);
    sleep(2 * LEASE).await;
    assert!(guard.is_held());
    assert!(connections(&servers[0]) == 0, "nobody could log in");
    // Whoever opened it meanwhile reads this.
    fs::write(&file, "secret\n").expect("it is read");
    fs::remove_file(&file).expect("it is there");
    fs::write(&file, "secret\n").expect("there is room");
    until!("the voter is reached again", connections(&servers[0]) > 0);
}
