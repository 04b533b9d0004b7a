//! A release in one language wakes the other at once: no poll comes within a test's time.

use quorate_tests::prelude::*;

use crate::{java::Version, stage::Stage, with_each_redisson};

with_each_redisson!(an_unlock_in_java_wakes_us, our_release_wakes_java,);

const TIMES: usize = 15;
/// Alone on a machine the median is some 2 ms, over three servers some 7 ms.
const AT_ONCE: Duration = ms(60);

fn median(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
    println!("{what}: median {median:?}, longest {longest:?}");
    assert!(median < AT_ONCE, "{what}: {times:?}");
}

// Also those who wait in order.
async fn an_unlock_in_java_wakes_us(version: Version) {
    for servers in [1, 3] {
        let stage = Stage::start(version, servers).await;
        let in_order = stage.client.redisson().fair_mutex("orders");
        for is_in_order in [false, true] {
            let mut times = Vec::new();
            for _ in 0..TIMES {
                stage.java.does("a", "lock plain orders -1").await;
                let waiting = if is_in_order {
                    tokio::spawn(in_order.lock())
                } else {
                    tokio::spawn(stage.mutex("orders").lock())
                };
                stage.until_listening("orders").await;
                let watch = Stopwatch::start();
                stage.java.does("a", "unlock plain orders").await;
                let guard = timeout(secs(20), waiting).await.expect("it is woken").unwrap();
                times.push(watch.time());
                guard.unwrap().release().await.unwrap();
            }
            let what = format!("Java to Rust, {servers} servers, in order: {is_in_order}");
            median(&what, times);
        }
    }
}

async fn our_release_wakes_java(version: Version) {
    for servers in [1, 3] {
        let stage = Stage::start(version, servers).await;
        let mut times = Vec::new();
        for _ in 0..TIMES {
            let guard = stage.mutex("orders").lock().await.unwrap();
            let waiting = stage.java.ask("a", "try plain orders 60000 -1");
            stage.until_listening("orders").await;
            let watch = Stopwatch::start();
            guard.release().await.unwrap();
            assert_eq!(waiting.await.unwrap(), "true");
            times.push(watch.time());
            stage.java.does("a", "unlock plain orders").await;
        }
        median(&format!("Rust to Java, {servers} servers"), times);
    }
}
