//! Servers that clients have not known for long.

use quorate::{Quarantine, Quorate};
use quorate_support::{Proxy, RedisServer, eventually_async};
use quorate_tests::{
    scene::{MS, connect, now, servers, since},
    standing::{kept_out, make_old},
};
use tokio::time::sleep;

/// INFO without a section, as it is asked on each new connection; fred's own names one.
const INFO: &str = "*1\r\n$4\r\nINFO\r\n";

// Two have forgotten, and the third knows what they knew. It answers after all their deadlines, and
// before a second is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_meets_young_servers_waits_for_the_one_that_may_be_older() {
    let servers = servers(3);
    make_old(&servers[2..]);
    for _ in 0..20 {
        let slow = Proxy::start(servers[2].port()).await;
        slow.hold_replies_from(INFO);
        let urls = servers[..2].iter().map(RedisServer::url).chain([slow.url()]);
        let builder = Quorate::builder().voters(urls).voter_deadline(MS(50));
        let began = now();
        let connecting = tokio::spawn(connect(builder));
        eventually_async("it is asked", async || slow.holds_replies()).await;
        sleep(MS(300)).await;
        let was_connected = connecting.is_finished();
        slow.pass();
        let client = connecting.await.expect("no panic");
        if since(began) > MS(900) {
            // The machine is too busy: who says nothing for a second counts as one that is away.
            continue;
        }
        assert!(!was_connected, "it has not waited");
        for voter in 0..2 {
            let why = kept_out(&client, voter).await.map(|kept| kept.why);
            assert_eq!(why, Some(Quarantine::Young));
        }
        return;
    }
    panic!("a server had no second for an answer in twenty tries");
}
