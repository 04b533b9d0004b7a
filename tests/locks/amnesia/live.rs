//! Clients take one lock in turn over real servers without persistence, which are killed and come
//! back empty, one at a time and at bad moments, and are cut off.

use quorate_tests::{
    load::Load,
    prelude::*,
    scene::{knob, rounds},
};
use rand::{RngExt, SeedableRng, rngs::StdRng};

const VOTERS: usize = 5;
/// The longest there is: so far apart servers forget. A voter has a tenth of it to answer, and the
/// machine may be busy: of 100 ms nothing was left beside twenty programs on two cores.
const LEASE: Duration = Duration::from_secs(3);

/// `QUORATE_TEST_SIZE=100` makes it fifty restarts, `QUORATE_FAULT_SEED` repeats the choices of a
/// run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_grow_and_nobody_holds_with_another_while_servers_restart_empty_in_turn() {
    let seed = knob("QUORATE_FAULT_SEED", rand::random());
    println!("QUORATE_FAULT_SEED={seed}");
    let mut chance = StdRng::seed_from_u64(seed);
    let mut servers = servers(VOTERS);
    let proxies = proxies(&servers).await;
    let urls: Vec<String> = proxies.iter().map(Proxy::url).collect();
    let builder = || Quorate::builder().voters(&urls).lease(LEASE).longest_lease(LEASE);
    let load = Load::start(6, builder, 1).await;
    let restarts = rounds(50);
    for _ in 0..restarts {
        let server = chance.random_range(0..VOTERS);
        // As somebody enters.
        load.goes_on(10).await;
        servers[server].kill();
        sleep(MS(chance.random_range(0..300))).await;
        servers[server].restart();
        let pause = LEASE + MS(chance.random_range(0..500));
        for _ in 0..3 {
            sleep(pause / 3).await;
            cut(&proxies[chance.random_range(0..VOTERS)], &mut chance).await;
        }
    }
    load.judge(usize::try_from(10 * restarts).expect("there are few")).await;
    until!("no key is left", are_empty(&servers));
}

/// Cuts the connections, and refuses others for a moment or not.
async fn cut(proxy: &Proxy, chance: &mut StdRng) {
    let refuses: bool = chance.random();
    if refuses {
        proxy.refuse().await;
    }
    proxy.cut().await;
    if refuses {
        sleep(MS(chance.random_range(0..50))).await;
        proxy.accept();
    }
}
