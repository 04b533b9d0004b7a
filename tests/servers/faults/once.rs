//! The connection is cut between execution and reply: nothing runs twice, and nothing is orphaned.

use quorate::{Mutex, MutexGuard};

use quorate_support::{Proxy, RedisServer, eventually_async};
use quorate_tests::scene::{
    MS, SCRIPTS, are_empty, builder_through, calls, connect, count, forget_calls, key, proxies,
    rounds, servers,
};

/// Three voters behind proxies, and the next request for the lock at some of them is to be cut off.
struct Cuts {
    servers: Vec<RedisServer>,
    proxies: Vec<Proxy>,
    victims: Vec<usize>,
    carried_out: Vec<usize>,
}

impl Cuts {
    fn plan(&mut self, victims: &[usize]) {
        self.victims = victims.to_vec();
        self.carried_out = self.proxies.iter().map(Proxy::cuts).collect();
        self.servers.iter().for_each(forget_calls);
        for &victim in victims {
            self.proxies[victim].cut_after_request_naming(&key("a"), 1);
        }
    }

    async fn carried_out(&self) {
        eventually_async("the planned cuts are carried out", async || {
            self.victims.iter().all(|&at| self.proxies[at].cuts() > self.carried_out[at])
        })
        .await;
    }

    /// Every voter ran one script, and knows the hold with this count.
    fn expect_once(&self, guard: &MutexGuard, entries: u32) {
        assert_eq!(guard.count(), entries);
        for server in &self.servers {
            assert_eq!(calls(server, &SCRIPTS), 1, "a script ran more than once");
            assert_eq!(count(server, "a", guard.hold().as_str()), Some(entries));
        }
    }

    /// Acquires with the votes of all three: by then all connections stand again.
    async fn lock_everywhere(&self, mutex: &Mutex) -> MutexGuard {
        let mut everywhere = None;
        eventually_async("all voters vote", async || {
            let guard = mutex.lock().await.expect("a majority is up");
            let hold = guard.hold().as_str().to_owned();
            // The third vote may come a little later than the majority.
            tokio::time::sleep(MS(2)).await;
            if self.servers.iter().all(|server| count(server, "a", &hold) == Some(1)) {
                everywhere = Some(guard);
            }
            everywhere.is_some()
        })
        .await;
        everywhere.expect("it was acquired")
    }

    /// By what is repeated, not by the lease of 30 seconds.
    async fn no_key_is_left(&self) {
        let empty = async || are_empty(&self.servers);
        eventually_async("no key is left", empty).await;
    }
}

#[tokio::test]
async fn a_connection_cut_between_execution_and_reply_runs_nothing_twice() {
    let servers = servers(3);
    let proxies = proxies(&servers).await;
    let quorum = connect(builder_through(&proxies)).await;
    let mutex = quorum.mutex("a");
    let mut cuts = Cuts { servers, proxies, victims: Vec::new(), carried_out: Vec::new() };
    for round in 0..rounds(1000) {
        let victim = usize::try_from(round % 3).expect("it is small");
        match round / 3 % 4 {
            0 => cut_acquire(&mut cuts, &mutex, victim).await,
            1 => cut_reentry(&mut cuts, &mutex, victim).await,
            2 => cut_release(&mut cuts, &mutex, &[victim]).await,
            _ => cut_all(&mut cuts, &mutex).await,
        }
        cuts.no_key_is_left().await;
    }
}

async fn cut_acquire(cuts: &mut Cuts, mutex: &Mutex, victim: usize) {
    drop(cuts.lock_everywhere(mutex).await);
    cuts.no_key_is_left().await;
    cuts.plan(&[victim]);
    let guard = mutex.lock().await.expect("a majority answers");
    cuts.carried_out().await;
    cuts.expect_once(&guard, 1);
    guard.release().await.expect("a majority confirms");
}

async fn cut_reentry(cuts: &mut Cuts, mutex: &Mutex, victim: usize) {
    let guard = cuts.lock_everywhere(mutex).await;
    cuts.plan(&[victim]);
    let again = guard.reenter().await.expect("a majority answers");
    cuts.carried_out().await;
    cuts.expect_once(&guard, 2);
    again.release().await.expect("a majority confirms");
    assert_eq!(guard.count(), 1);
    guard.release().await.expect("a majority confirms");
}

async fn cut_release(cuts: &mut Cuts, mutex: &Mutex, victims: &[usize]) {
    let guard = cuts.lock_everywhere(mutex).await;
    cuts.plan(victims);
    guard.release().await.expect("a majority confirms");
    cuts.carried_out().await;
}

/// No voter's answer arrives: the attempt is undone, and the next one succeeds.
async fn cut_all(cuts: &mut Cuts, mutex: &Mutex) {
    drop(cuts.lock_everywhere(mutex).await);
    cuts.no_key_is_left().await;
    cuts.plan(&[0, 1, 2]);
    let guard = mutex.lock().await.expect("the voters are back soon");
    cuts.carried_out().await;
    assert!(guard.is_held());
    let hold = guard.hold().as_str();
    let votes = cuts.servers.iter().filter(|server| count(server, "a", hold) == Some(1)).count();
    assert!(votes >= 2, "{votes} votes");
    guard.release().await.expect("a majority confirms");
}
