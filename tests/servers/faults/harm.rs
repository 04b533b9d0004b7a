//! Voters that are killed, stopped and cut off, again and again.

use std::time::Duration;

use rand::{
    RngExt,
    rngs::StdRng,
    seq::{IndexedRandom, SliceRandom},
};
use tokio::{
    runtime::{Builder, Runtime},
    time::sleep,
};

use quorate_support::{Proxy, RedisServer};
use quorate_tests::scene::{DURABLE, MS, now, proxies, servers_with, since};

const VOTERS: usize = 5;
/// Of five: a majority is always left.
const TROUBLED: usize = 2;

/// Where the proxies live.
pub(crate) fn network() -> Runtime {
    let network = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    network.expect("a runtime")
}

/// Killed servers keep their data, as their clients were promised. Without it a voter would forget
/// whom it gave its vote to.
pub(crate) async fn nodes() -> Vec<Node> {
    let servers = servers_with(VOTERS, &DURABLE);
    let proxies = proxies(&servers).await;
    servers.into_iter().zip(proxies).map(|(server, proxy)| Node { server, proxy }).collect()
}

/// A server and the way to it.
pub(crate) struct Node {
    pub(crate) server: RedisServer,
    pub(crate) proxy: Proxy,
}

#[derive(Clone, Copy, Debug)]
enum Harm {
    Kill,
    Stop,
    Cut,
    Refuse,
    BlackHole,
    HoldReplies,
    Delay,
}

impl Harm {
    fn drawn(chance: &mut StdRng) -> Self {
        use Harm::{BlackHole, Cut, Delay, HoldReplies, Kill, Refuse, Stop};
        let all = [Kill, Stop, Cut, Refuse, BlackHole, HoldReplies, Delay];
        *all.choose(chance).expect("there are some")
    }
}

impl Node {
    async fn suffer(&mut self, harm: Harm) {
        match harm {
            Harm::Kill => self.server.kill(),
            Harm::Stop => self.server.stop(),
            Harm::Cut => self.proxy.cut().await,
            Harm::Refuse => {
                self.proxy.refuse().await;
                self.proxy.cut().await;
            }
            Harm::BlackHole => self.proxy.black_hole(),
            Harm::HoldReplies => self.proxy.hold_replies(),
            Harm::Delay => self.proxy.delay(MS(40), MS(40)),
        }
    }

    fn recover(&mut self, harm: Harm) {
        match harm {
            Harm::Kill => self.server.restart(),
            Harm::Stop => self.server.resume(),
            Harm::Cut => {}
            Harm::Refuse => self.proxy.accept(),
            Harm::BlackHole | Harm::HoldReplies | Harm::Delay => self.proxy.pass(),
        }
    }
}

/// Never more than a minority at a time, and each whole again before the next.
pub(crate) async fn harm(voters: &mut [Node], length: Duration, mut chance: StdRng) {
    let started = now();
    while since(started) < length {
        let mut places: Vec<usize> = (0..VOTERS).collect();
        places.shuffle(&mut chance);
        places.truncate(chance.random_range(1..=TROUBLED));
        let harms: Vec<_> =
            places.into_iter().map(|place| (place, Harm::drawn(&mut chance))).collect();
        for &(place, harm) in &harms {
            voters[place].suffer(harm).await;
        }
        sleep(MS(chance.random_range(20..700))).await;
        for (place, harm) in harms {
            voters[place].recover(harm);
        }
        sleep(MS(chance.random_range(0..300))).await;
    }
}
