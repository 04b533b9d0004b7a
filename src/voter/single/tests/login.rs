use super::{RedisServer, answers, connect, count, fails, number, start};
use crate::proto::Cause;

#[tokio::test]
async fn the_database_of_the_address_is_used_at_each_connection() {
    let mut server = RedisServer::start();
    let (node, _) = connect(&format!("{}/3", server.url())).await;
    let in_third = |server: &RedisServer| {
        format!("{:?}", server.command(&["INFO", "keyspace"]).unwrap()).contains("db3:keys=1")
    };
    assert_eq!(node.run(count("a")).await, Ok(number(1)));
    assert!(in_third(&server));
    server.restart();
    answers(&node).await;
    assert_eq!(node.run(count("a")).await, Ok(number(1)));
    assert!(in_third(&server), "also after a reconnection");
}

#[tokio::test]
async fn a_database_that_the_server_does_not_have_is_told() {
    let server = RedisServer::start();
    let (node, _) = start(&format!("{}/200", server.url()));
    fails(&node, |cause| cause.to_string().contains("DB index is out of range")).await;
}

#[tokio::test]
async fn a_user_with_a_percent_encoded_password_logs_in() {
    let server = RedisServer::start();
    let rules = ["ACL", "SETUSER", "quorate", "on", ">p@ss/w:rd%", "~*", "&*", "+@all"];
    server.command(&rules).unwrap();
    let port = server.port();
    let url = format!("redis://quorate:p%40ss%2Fw%3Ard%25@127.0.0.1:{port}");
    let (node, _) = connect(&url).await;
    assert_eq!(node.run(count("a")).await, Ok(number(1)));
    let list = format!("{:?}", server.command(&["CLIENT", "LIST"]).unwrap());
    assert!(list.contains("user=quorate"));
}

#[tokio::test]
async fn a_wrong_password_is_told_and_the_right_one_works_once_the_server_has_it() {
    let server = RedisServer::start_with(&["--requirepass", "right"]);
    let (node, _) = start(&format!("redis://:hunter2@127.0.0.1:{}", server.port()));
    let told = |cause: &Cause| {
        let text = cause.to_string();
        assert!(!text.contains("hunter2") && !format!("{node:?}").contains("hunter2"));
        text.starts_with("unreachable: WRONGPASS")
    };
    fails(&node, told).await;
    let (other, _) = start(&server.url());
    fails(&other, |cause| cause.to_string().contains("NOAUTH")).await;
}

#[tokio::test]
async fn a_server_that_repeats_the_login_in_its_error_is_not_quoted() {
    let server = RedisServer::start_with(&["--rename-command", "HELLO", ""]);
    let (node, _) = start(&format!("redis://:hunter2@127.0.0.1:{}", server.port()));
    let told = |cause: &Cause| {
        let text = cause.to_string();
        assert!(!text.contains("hunter2"), "{text}");
        text.contains("unknown command")
    };
    fails(&node, told).await;
}

#[tokio::test]
async fn a_missing_right_is_told() {
    let server = RedisServer::start();
    let rules = ["ACL", "SETUSER", "poor", "on", ">pw", "~*", "+@connection", "+info"];
    server.command(&rules).unwrap();
    let (node, _) = connect(&format!("redis://poor:pw@127.0.0.1:{}", server.port())).await;
    let outcome = node.run(count("a")).await;
    assert!(matches!(&outcome, Err(Cause::Rejected(why)) if why.starts_with("NOPERM")));
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

#[tokio::test]
async fn a_unix_socket_works_also_after_a_restart() {
    let mut server = RedisServer::start();
    let url = format!("redis+unix://{}?db=2", server.dir().join("socket").display());
    let (node, _) = connect(&url).await;
    assert_eq!(node.run(count("a")).await, Ok(number(1)));
    server.kill();
    fails(&node, |cause| matches!(cause, Cause::Unreachable(_))).await;
    server.restart();
    answers(&node).await;
    assert_eq!(node.run(count("a")).await, Ok(number(1)));
}
