//! One sequence of tokens for both languages: that of a `RFencedLock`.

use quorate_tests::prelude::*;

use super::{NAME, builder, client, java::Java, servers};

async fn token_of(client: &Quorate) -> u64 {
    let guard = client.redisson().mutex(NAME).try_lock().await.unwrap().expect("it is free");
    let token = u64::from(guard.token());
    guard.release().await.unwrap();
    token
}

fn token_in(java: &Java<'_>) -> u64 {
    let token = java.try_fenced_lock(NAME).expect("it is free");
    assert!(java.unlock(NAME));
    token
}

/// Takes turns; says the last token.
async fn take_turns(client: &Quorate, java: &Java<'_>, mut last: u64) -> u64 {
    for _ in 0..3 {
        for token in [token_of(client).await, token_in(java), token_in(java)] {
            assert!(token > last, "{token} after {last}");
            last = token;
        }
    }
    last
}

/// They go on behind the last one.
async fn must_go_on(client: &Quorate, server: &RedisServer, last: u64) {
    let java = Java::new(server, 2);
    let token = token_in(&java);
    assert!(token > last, "{token} after {last}");
    take_turns(client, &java, token).await;
}

// A renewal that enters again, or heals a voter, stores the token too.
#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_sets_no_end_to_the_sequence() {
    let servers = servers::<3>();
    let client = client(&servers).await;
    let mutex = client.redisson().mutex(NAME);
    let guard = mutex.lock().await.unwrap();
    servers[0].command(&["FLUSHALL"]).unwrap();
    let again = guard.reenter().await.unwrap();
    until!("the voter is healed", {
        let token = servers[0].command(&["GET", "redisson_lock_token:{orders}"]);
        token == Ok(Reply::Text(guard.token().to_string()))
    });
    for server in &servers {
        let kept = server.command(&["PTTL", "redisson_lock_token:{orders}"]);
        assert_eq!(kept, Ok(Reply::Int(-1)));
    }
    again.release().await.unwrap();
    guard.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_grow_across_a_restart_of_a_server_that_keeps_its_data() {
    let durable = ["--appendonly", "yes", "--appendfsync", "always"];
    let mut servers = [RedisServer::start_as(&Settings::new().flags(&durable))];
    let before = builder(&servers).restart_guard(RestartGuard::Off).connect().await.unwrap();
    let last = take_turns(&before, &Java::new(&servers[0], 1), 0).await;
    drop(before.close().await);
    servers[0].kill();
    servers[0].restart();
    let after = builder(&servers).restart_guard(RestartGuard::Off).connect().await.unwrap();
    must_go_on(&after, &servers[0], last).await;
}

// The replica has all of it: what was not copied is lost to Java, which has no clock in its tokens.
#[tokio::test(flavor = "multi_thread")]
async fn tokens_grow_across_a_failover_to_a_replica() {
    let mut primary = servers::<1>();
    let replica = [primary[0].start_replica()];
    let before = client(&primary).await;
    let last = take_turns(&before, &Java::new(&primary[0], 1), 0).await;
    let copied = primary[0].commands(&[&["SET", "last", "1"], &["WAIT", "1", "20000"]]);
    assert_eq!(copied.unwrap()[1], Ok(Reply::Int(1)));
    drop(before.close().await);
    primary[0].kill();
    replica[0].command(&["REPLICAOF", "NO", "ONE"]).expect("it is promoted");
    must_go_on(&client(&replica).await, &replica[0], last).await;
}
