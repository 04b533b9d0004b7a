//! The rights that the page on Redisson names are enough.

use quorate_tests::{prelude::*, rights};

use super::{LEASE, builder, java::Java};

const NAME: &str = "orders:7";

/// The patterns of keys and channels on the page, and the commands beside the usual ones.
fn patterns(page: &str) -> Vec<&str> {
    let block = page.split_once("```text\n").expect("it has the rights").1;
    block.split_once("```").expect("it ends").0.split_whitespace().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_the_rights_of_the_page_locks_waits_and_is_told_of_fair_locks() {
    let commands = rights::documented().into_iter().filter(|word| word.starts_with(['+', '-']));
    let page = read_file("docs/redisson.md");
    let words: Vec<_> = commands.chain(patterns(&page)).collect();
    let user = format!("quorate on >password resetkeys resetchannels {}", words.join(" "));
    let server = RedisServer::start_as(&Settings::new().users(&[&user]));
    let url = server.url_as("quorate", "password");
    let client = builder(&[]).voter(url).connect().await.unwrap();
    let (mutex, fair) = (client.redisson().mutex(NAME), client.redisson().fair_mutex(NAME));
    let guard = mutex.lock().await.unwrap();
    assert!(mutex.lock_within(ms(300)).await.unwrap().is_none());
    let waiting = tokio::spawn(async move { fair.lock().await.unwrap().release().await });
    until!("it waits in order", mutex.inspect().await.unwrap().waiting.len() == 1);
    guard.release().await.unwrap();
    waiting.await.unwrap().unwrap();
    let guard = mutex.lock().await.unwrap();
    assert!(!client.redisson().admin().end_all(LockKind::Mutex, NAME).await.unwrap().is_empty());
    drop(guard);
    let java = Java::new(&server, 1);
    let rw_lock = client.redisson().rw_lock("orders:8");
    let writing = rw_lock.write().await.unwrap();
    assert!(rw_lock.read_within(ms(300)).await.unwrap().is_none());
    let reading = writing.downgrade().await.unwrap();
    assert!(java.try_read("orders:8", LEASE) && java.end_read("orders:8") == Some(0));
    assert_eq!(rw_lock.inspect().await.unwrap().holders.len(), 1);
    let admin = client.redisson().admin();
    admin.end_all(LockKind::RwLock, "orders:8").await.unwrap();
    admin.clear(LockKind::RwLock, "orders:8").await.unwrap();
    drop(reading);
    until!("it is free", java.try_lock(NAME, LEASE));
    java.stand_in_fair_queue(NAME);
    let error = mutex.lock_within(secs(20)).await.unwrap_err();
    assert!(error.is_invalid(), "{error}");
    let denied = server.command(&["ACL", "LOG"]);
    assert_eq!(denied, Ok(quorate_support::Reply::List(Vec::new())));
}
