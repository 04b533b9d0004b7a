//! Credentials that are asked for before each connection.

use std::{
    io, panic,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use quorate::Credentials;
use quorate_tests::{prelude::*, scene::accepted};

/// A password that changes, and how often it was asked for.
#[derive(Clone, Default)]
struct Secret {
    password: Arc<Mutex<String>>,
    asked: Arc<AtomicUsize>,
}

impl Secret {
    fn set(&self, password: &str) {
        password.clone_into(&mut self.password.lock().unwrap());
    }

    fn asked(&self) -> usize {
        self.asked.load(SeqCst)
    }

    /// What a client asks.
    fn ask(&self) -> impl Fn(&str) -> std::future::Ready<io::Result<Credentials>> + use<> {
        let secret = self.clone();
        move |_| {
            secret.asked.fetch_add(1, SeqCst);
            let password = secret.password.lock().unwrap().clone();
            std::future::ready(Ok(Credentials::new("rotated", password)))
        }
    }
}

fn set_password(server: &RedisServer, password: &str) {
    let password = format!(">{password}");
    let rules = ["ACL", "SETUSER", "rotated", "on", "resetpass", &password, "~*", "&*", "+@all"];
    server.command(&rules).expect("the user is set");
}

fn kill_connections(server: &RedisServer) {
    server.command(&["CLIENT", "KILL", "USER", "rotated"]).expect("it answers");
}

/// How many connections the user has.
fn connections(server: &RedisServer) -> usize {
    let list = server.command(&["CLIENT", "LIST"]).expect("it answers").text();
    list.matches(" user=rotated ").count()
}

// Nobody can log in by the old password any more, and every connection is ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_that_changes_costs_no_restart_and_no_lock() {
    let (servers, secret) = (servers(3), Secret::default());
    let change = |password: &str| {
        secret.set(password);
        for server in &servers {
            set_password(server, password);
        }
    };
    change("first");
    let urls = servers.iter().map(RedisServer::url);
    let builder = Quorate::builder().voters(urls).credentials(secret.ask());
    let client = connect(patient(builder.lease(MS(8000)))).await;
    let guard = client.mutex("a").lock().await.expect("all are up");
    let both = async || servers.iter().all(|server| connections(server) == 2);
    for password in ["second", "third"] {
        eventually_async("both connections to each stand", both).await;
        let asked = secret.asked();
        change(password);
        servers.iter().for_each(kill_connections);
        until!("it was asked again for each", secret.asked() >= asked + 6 && both().await);
        until_given(&client, "b").await;
        assert!(guard.is_held(), "eight seconds were not enough");
    }
    guard.release().await.expect("it was never lost");
}

// A majority has the right one, so the client stays. The connection is tried at once, and again
// after 0.5, 1.5 and 3.5 seconds. Tried every half second, it would be the fourth time after 1.5
// seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_is_tried_less_and_less_often() {
    let servers = servers(3);
    let wrong = servers[2].url_as("nobody", "wrong");
    let (before, started) = (accepted(&servers[2]), now());
    let voters = Quorate::builder().voters([servers[0].url(), servers[1].url(), wrong]);
    let client = connect(patient(voters)).await;
    // Each question has a connection of its own.
    let mut questions = 0;
    until!("it was tried four times", {
        questions += 1;
        accepted(&servers[2]) - before - questions >= 4
    });
    let took = since(started);
    assert!(took >= MS(3_000), "four attempts in {took:?}");
    let status = client.status().await;
    assert!(status.to_string().contains("WRONGPASS"), "{status}");
}

// The new password comes too late: the lock is lost in time, and then locks are given again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_that_comes_too_late_is_told_and_loses_the_lock_in_time() {
    let (servers, secret) = (servers(1), Secret::default());
    secret.set("first");
    set_password(&servers[0], "first");
    let lease = MS(5000);
    let builder = Quorate::builder().voter(servers[0].url()).credentials(secret.ask());
    let client = connect(patient(builder.lease(lease))).await;
    let guard = client.mutex("a").lock().await.expect("it is up");
    set_password(&servers[0], "second");
    kill_connections(&servers[0]);
    let lost = tokio::time::timeout(2 * lease, guard.lost()).await.expect("in time");
    assert!(lost.is_lost() && lost.to_string().contains("WRONGPASS"), "{lost}");
    secret.set("second");
    until_given(&client, "a").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_no_credentials_is_a_voter_that_cannot_be_reached_for_this_reason() {
    let servers = servers(1);
    let label = format!("127.0.0.1:{}", servers[0].port());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let voters = Arc::clone(&asked);
    let failing = move |voter: &str| {
        voters.lock().unwrap().push(voter.to_owned());
        async { Err::<Credentials, _>("the vault is sealed") }
    };
    let builder = Quorate::builder().voter(servers[0].url()).connect_timeout(MS(300));
    let error = builder.clone().credentials(failing).connect().await.expect_err("it has none");
    let told = "unreachable: no credentials: the vault is sealed";
    assert!(error.is_not_connected() && error.to_string().contains(told), "{error}");
    assert!(asked.lock().unwrap().iter().all(|voter| *voter == label));

    // Without a report: to find the names of its frames takes seconds on a busy machine.
    let panicking = |voter: &str| {
        if !voter.is_empty() {
            panic::resume_unwind(Box::new("this panic is meant"));
        }
        async { Ok::<_, io::Error>(Credentials::password("x")) }
    };
    let builder = builder.credentials(panicking).connect_timeout(MS(3000));
    let error = builder.connect().await.expect_err("it has none");
    assert!(error.to_string().contains("panicked"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_credentials_of_an_address_keep_their_place() {
    let server = RedisServer::start_with(&["--requirepass", "right"]);
    let secret = Secret::default();
    let url = server.url().replace("://", "://:right@");
    let client = connect(patient(Quorate::builder().voter(url).credentials(secret.ask()))).await;
    assert!(client.mutex("a").try_lock().await.expect("it is up").is_some());
    assert_eq!(secret.asked(), 0);
    let of_the_default_user =
        |_: &str| async { Ok::<_, io::Error>(Credentials::password("right")) };
    let builder = Quorate::builder().voter(server.url()).credentials(of_the_default_user);
    let client = connect(patient(builder)).await;
    assert!(client.mutex("b").try_lock().await.expect("it is up").is_some());
}

#[test]
fn credentials_show_no_password() {
    let shown = format!("{:?}", Credentials::new("user", "hunter2"));
    assert_eq!(shown, "Credentials { user: Some(\"user\"), .. }");
    let builder = Quorate::builder().voter("redis://user:hunter2@a.example");
    assert!(!format!("{builder:?}").contains("hunter2"));
}
