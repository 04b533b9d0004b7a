//! Servers with users, with TLS, on a Unix socket, and as replicas.

use std::path::Path;
use std::process::Command;

use super::text;
use quorate_support::{
    Certificates, ClientCertificates, Cluster, RedisServer, Reply, Settings, eventually,
};

/// What `redis-cli` prints for `PING`, and its complaints, on the port of that server. Files are
/// those of the server's directory.
fn ping(server: &RedisServer, options: &[&str]) -> String {
    let is_file = |option: &str| Path::new(option).extension().is_some();
    let in_dir = |option: &str| server.dir().join(option).display().to_string();
    let full = |&option: &&str| if is_file(option) { in_dir(option) } else { option.to_owned() };
    let output = Command::new("redis-cli")
        .args(["-h", "localhost", "-p", &server.port().to_string()])
        .args(options.iter().map(full))
        .arg("PING")
        .output()
        .expect("redis-cli is installed with the server");
    let all = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&all).trim().to_owned()
}

const TLS: [&str; 3] = ["--tls", "--cacert", "ca.pem"];

#[test]
fn a_server_with_tls_answers_over_tls_only() {
    let certificates = Certificates::new();
    let settings = Settings::new().tls(&certificates, ClientCertificates::NotAsked);
    let server = RedisServer::start_as(&settings);
    assert_eq!(server.url(), format!("rediss://localhost:{}", server.port()));
    assert_eq!(ping(&server, &TLS), "PONG");
    let distrusted = ping(&server, &["--tls", "--cacert", "stranger-ca.pem"]);
    assert!(distrusted.contains("certificate verify failed"), "{distrusted}");
    let plain = ping(&server, &[]);
    assert!(plain.contains("Error"), "{plain}");
}

#[test]
fn a_server_can_speak_tls_and_demand_a_certificate_of_its_clients() {
    let certificates = Certificates::new();
    let settings = Settings::new().tls(&certificates, ClientCertificates::Demanded);
    let server = RedisServer::start_as(&settings);
    let own = ["--cert", "client.pem", "--key", "client.key"];
    assert_eq!(ping(&server, &[&TLS[..], &own].concat()), "PONG");
    let strangers = ["--cert", "stranger.pem", "--key", "stranger.key"];
    for refused in [&[][..], &strangers] {
        let said = ping(&server, &[&TLS[..], refused].concat());
        assert!(said.contains("Error"), "{said}");
    }
}

#[test]
fn a_server_with_users_knows_no_others() {
    let settings = Settings::new().users(&["locker on >secret ~lock:* +set +ping"]);
    let server = RedisServer::start_as(&settings);
    assert_eq!(server.command(&["SET", "other", "1"]), Ok(text("OK")));
    let talk = |commands: &[&[&str]]| server.anonymous(commands).expect("it answers");
    let refused = |reply: &Result<Reply, String>, how: &str| {
        let cause = reply.as_ref().expect_err("it is refused");
        assert!(cause.starts_with(how), "{cause}");
    };
    refused(&talk(&[&["PING"]])[0], "NOAUTH");
    refused(&talk(&[&["AUTH", "locker", "wrong"]])[0], "WRONGPASS");
    let login: &[&str] = &["AUTH", "locker", "secret"];
    let replies =
        talk(&[login, &["SET", "lock:a", "1"], &["SET", "other", "2"], &["GET", "lock:a"]]);
    assert_eq!(replies[..2], [Ok(text("OK")), Ok(text("OK"))]);
    refused(&replies[2], "NOPERM");
    refused(&replies[3], "NOPERM");
    let url = format!("redis://locker:secret@127.0.0.1:{}", server.port());
    assert_eq!(server.url_as("locker", "secret"), url);
    // A rotated password, as an operator would write it.
    server.command(&["ACL", "SETUSER", "locker", "resetpass", ">newer"]).expect("it may");
    refused(&talk(&[login])[0], "WRONGPASS");
    assert_eq!(talk(&[&["AUTH", "locker", "newer"]]), [Ok(text("OK"))]);
}

#[test]
fn a_replica_has_the_data_and_can_be_waited_for() {
    let primary = RedisServer::start();
    primary.command(&["SET", "k", "v"]).expect("it answers");
    let mut replica = primary.start_replica();
    assert_eq!(replica.keys(), ["k"]);
    let waited =
        || primary.commands(&[&["SET", "k", "w"], &["WAIT", "1", "100"]]).expect("it is up");
    assert_eq!(waited()[1], Ok(Reply::Int(1)));
    replica.stop();
    assert_eq!(waited()[1], Ok(Reply::Int(0)));
    replica.resume();
    eventually("the replica catches up", || waited()[1] == Ok(Reply::Int(1)));
    replica.restart();
    eventually("it is a replica again", || replica.is_linked_to(&primary).is_ok());
}

#[test]
fn a_server_listens_on_a_unix_socket_too() {
    let server = RedisServer::start();
    let url = format!("redis+unix://{}", server.socket().display());
    assert_eq!(server.socket_url(), url);
    let socket = server.socket();
    let socket = socket.to_str().expect("a temp dir's name is text");
    assert_eq!(ping(&server, &["-s", socket]), "PONG");
    assert!(Path::new(socket).starts_with(server.dir()));
}

/// All settings at once, and the nodes of a cluster talk by them too.
#[tokio::test]
async fn a_cluster_can_have_users_and_tls() {
    let certificates = Certificates::new();
    let settings = Settings::new()
        .users(&["locker on >secret ~* &* +@all"])
        .tls(&certificates, ClientCertificates::Demanded);
    let cluster = Cluster::start_as(3, 1, &settings);
    let slot = cluster.slot_of("k");
    let from = cluster.primary_of(slot);
    cluster[from].command(&["SET", "k", "v"]).expect("it is the primary");
    let replica = cluster.replicas_of(from)[0];
    cluster.failover(replica).await;
    assert_eq!(cluster[replica].command(&["GET", "k"]), Ok(text("v")));
    let to = cluster.primaries().into_iter().find(|&node| node != replica).expect("three of them");
    cluster.migrate(slot, to).await;
    assert_eq!(cluster[to].command(&["GET", "k"]), Ok(text("v")));
}
