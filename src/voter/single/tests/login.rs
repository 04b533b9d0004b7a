use super::{RedisServer, answers, connect, count, fails, number, start};
use crate::{
    proto::Cause,
    voter::{Address, Credentials},
};

#[tokio::test]
async fn the_database_and_the_socket_of_the_address_are_used_at_each_connection() {
    let mut server = RedisServer::start();
    let socket = format!("redis+unix://{}?db=3", server.dir().join("socket").display());
    for url in [format!("{}/3", server.url()), socket] {
        server.restart_empty();
        let (node, _) = connect(&url).await;
        for _ in 0..2 {
            assert_eq!(node.run(count("a")).await, Ok(number(1)));
            let keys = format!("{:?}", server.command(&["INFO", "keyspace"]).unwrap());
            assert!(keys.contains("db3:keys=1"), "{url}: {keys}");
            server.kill();
            fails(&node, |cause| matches!(cause, Cause::Unreachable(_))).await;
            server.restart();
            answers(&node).await;
        }
    }
}

#[tokio::test]
async fn why_nobody_can_log_in_is_told_without_the_password() {
    let secured = RedisServer::start_with(&["--requirepass", "right"]);
    // It repeats the arguments of a command that it does not know.
    let repeats = RedisServer::start_with(&["--rename-command", "HELLO", ""]);
    let open = RedisServer::start();
    let wrong = |server: &RedisServer| format!("redis://:hunter2@127.0.0.1:{}", server.port());
    for (url, told) in [
        (wrong(&secured), "unreachable: WRONGPASS"),
        (secured.url(), "NOAUTH"),
        (wrong(&repeats), "unknown command"),
        (format!("{}/200", open.url()), "DB index is out of range"),
    ] {
        let (node, _) = start(&url);
        let is_told = |cause: &Cause| {
            let text = cause.to_string();
            assert!(!text.contains("hunter2"), "{text}");
            text.contains(told)
        };
        fails(&node, is_told).await;
    }
}

#[tokio::test]
async fn a_user_and_a_password_of_any_characters_are_let_in() {
    const USER: &str = "o'n\"e\\@:/";
    let server = RedisServer::start();
    for password in [
        "p@ss:/w?rd#%41,é&=+[x]",
        "of two words",
        "it's",
        "\"quoted\"",
        "a\\ \\x41",
        "\t\r\nDEL count\r\n\u{7f}\0",
    ] {
        let rules = [USER, "on", "resetpass", &format!(">{password}"), "~*", "&*", "+@all"];
        server.command(&[&["ACL", "SETUSER"], &rules[..]].concat()).expect("the user is set");
        let address = Address::from(&server.url()).credentials(Credentials::new(USER, password));
        let (node, _) = connect(&address.to_url().expect("it can be used")).await;
        assert!(node.run(count("count")).await.is_ok(), "{password}");
    }
    let counted = server.command(&["GET", "count"]).expect("it answers").text();
    assert_eq!(counted, "6", "no password is a command");
}

#[tokio::test]
async fn an_ipv6_host_works() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return; // This machine has none.
    }
    let server = RedisServer::start_with(&["--bind", "127.0.0.1", "::1"]);
    let (node, _) = connect(&format!("redis://[::1]:{}", server.port())).await;
    assert_eq!(node.run(count("a")).await, Ok(number(1)));
}
