use std::time::Duration;

use futures::future::BoxFuture;

use super::RedisServer;
use crate::voter::{
    contract::begin,
    single::{
        Access, Security,
        carrier::{Carrier, Frame, Raw, Router, Unanswered, at_once, patient},
    },
};

const LONG: Duration = Duration::from_secs(5);

async fn connect(server: &RedisServer) -> (Carrier, Router) {
    let access = Access::new(&server.url().into(), &Security::default()).unwrap();
    let connected = Carrier::connect(access.config, LONG, 32).await;
    connected.map_err(|failure| failure.why).expect("it connects")
}

fn ping(carrier: &Carrier) -> BoxFuture<'static, Raw> {
    carrier.command(&patient(LONG), "PING", Vec::new())
}

fn is_error(reply: &Raw, begins: &str) -> bool {
    matches!(reply, Ok(Frame::SimpleError { data, .. }) if data.starts_with(begins))
}

// fred goes on to call itself connected. What is asked waits in the queue of a client that is never
// connected again.
#[tokio::test]
async fn a_carrier_is_of_one_connection() {
    let mut server = RedisServer::start();
    let (carrier, mut router) = connect(&server).await;
    server.restart();
    tokio::time::timeout(LONG, router.ended()).await.expect("fred gives up");
    let limit = Duration::from_millis(300);
    for options in [patient(limit), at_once(limit)] {
        let reply = carrier.command(&options, "INCR", vec!["count".into()]).await;
        assert_eq!(reply, Err(Unanswered::TimedOut));
    }
    assert!(server.keys().is_empty());
}

#[tokio::test]
async fn an_error_reply_is_a_frame() {
    let server = RedisServer::start();
    let (carrier, _router) = connect(&server).await;
    let reply = carrier.command(&patient(LONG), "NOSUCH", Vec::new()).await;
    assert!(is_error(&reply, "ERR unknown command"), "{reply:?}");
}

// Where this does not hold any more, the numbers of the PINGs in `listen` can go.
#[tokio::test]
async fn the_error_of_a_refused_channel_comes_to_the_next_command() {
    let server = RedisServer::start();
    server.command(&["ACL", "SETUSER", "default", "resetchannels"]).unwrap();
    let (carrier, _router) = connect(&server).await;
    let written = carrier.listen(LONG, "forbidden", true);
    let next = begin(ping(&carrier));
    assert_eq!(written.await, Ok(()), "it is told nothing");
    let next = next.await;
    assert!(is_error(&next, "NOPERM"), "{next:?}");
}
