//! A crowd of tasks on clients as users have them by default: on the thread of the clients, beside
//! the threads of the tasks.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
};

use quorate_tests::{
    failures::Failures,
    prelude::*,
    scene::{Ending, knob, rounds},
};
use rand::{RngExt, SeedableRng, rngs::StdRng};

const CLIENTS: u64 = 2;
/// Of each client.
const TASKS: u64 = 60;
const NAMES: [&str; 3] = ["a", "b", "c"];
const LEASE: Duration = Duration::from_secs(4);
/// Of what is not renewed.
const FIXED: Duration = Duration::from_secs(1);

/// What a lock protects.
#[derive(Debug, Default)]
struct Protected {
    latest: Mutex<Option<Writing>>,
    writings: AtomicU64,
    /// How often the hold of one task's token was the next one's, too.
    handed_on: AtomicU64,
}

/// What was written last: by whom, and with which token. Tasks of one owner share their hold.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Writing {
    by: u64,
    token: Token,
    hold: HoldId,
}

impl Protected {
    /// Writes while the lock is held; whether it was. Who is held has been so since it got its
    /// token: where a higher one has written before, or somebody else with the same, two held the
    /// lock at that moment, or the tokens did not grow.
    fn write(&self, guard: &MutexGuard, by: u64) -> bool {
        let mut latest = self.latest.lock().expect("nobody panics");
        let writing = Writing { by, token: guard.token(), hold: guard.hold().clone() };
        if !guard.is_held() {
            return false;
        }
        if let Some(before) = latest.replace(writing.clone()) {
            let is_later = before.token < writing.token;
            let is_same = before.token == writing.token && before.by == by;
            assert!(is_later || is_same, "{writing:?} is held after {before:?}");
            let is_handed_on = is_later && before.hold == writing.hold;
            self.handed_on.fetch_add(is_handed_on.into(), SeqCst);
        }
        self.writings.fetch_add(1, SeqCst);
        true
    }

    /// Writes again and again for so long, or until it is lost.
    async fn write_for(&self, guard: &MutexGuard, by: u64, time: Duration) {
        let began = now();
        while self.write(guard, by) && since(began) < time {
            if time < MS(1) {
                tokio::task::yield_now().await;
            } else {
                sleep(MS(1)).await;
            }
        }
    }
}

#[derive(Debug, Default)]
struct Crowd {
    locks: [Protected; NAMES.len()],
    failures: Failures,
    is_over: AtomicBool,
}

impl Crowd {
    /// Takes and writes once, in one of the ways in which users do.
    async fn take_once(
        &self,
        client: &Quorate,
        owner: &(Owner, u64),
        task: u64,
        chance: &mut StdRng,
    ) -> Result<(), Error> {
        let name = chance.random_range(0..NAMES.len());
        let (lock, mutex) = (&self.locks[name], client.mutex(NAMES[name]));
        let (short, way) = (Duration::from_micros(chance.random_range(0..300)), chance.random());
        // Most take it as it comes: so it is handed on.
        match way {
            0..20_u8 => {
                let patience = MS(chance.random_range(0..30));
                let Ok(taken) = timeout(patience, mutex.lock()).await else { return Ok(()) };
                lock.write_for(&taken?, task, short).await;
                Ok(())
            }
            20..50 => {
                let (mutex, by) = match way {
                    20..40 => (mutex.owner(&owner.0), owner.1),
                    _ => (mutex.lease(2 * LEASE), task),
                };
                let guard = mutex.lock().await?;
                lock.write_for(&guard, by, short).await;
                guard.release().await
            }
            50 if chance.random_ratio(1, 16) => {
                // Beyond its end.
                let guard = mutex.lease_fixed(FIXED).lock().await?;
                lock.write_for(&guard, task, 2 * FIXED).await;
                drop(guard);
                Ok(())
            }
            50..60 => {
                let guard = mutex.hold_at_most(MS(4)).lock().await?;
                lock.write_for(&guard, task, MS(chance.random_range(0..8))).await;
                drop(guard);
                Ok(())
            }
            60..80 => {
                let guard = mutex.lock().await?;
                lock.write(&guard, task);
                let again = guard.reenter().await?;
                guard.release().await?;
                lock.write_for(&again, task, short).await;
                again.release().await
            }
            80..90 => {
                let Some(guard) = mutex.lock_within(MS(20)).await? else { return Ok(()) };
                lock.write_for(&guard, task, short).await;
                guard.extend(LEASE).await?;
                lock.write(&guard, task);
                guard.release().await
            }
            90..100 => {
                let Some(guard) = mutex.try_lock().await? else { return Ok(()) };
                lock.write_for(&guard, task, short).await;
                Ok(())
            }
            _ => {
                let guard = mutex.lock().await?;
                lock.write_for(&guard, task, short).await;
                if way % 2 == 0 {
                    return guard.release().await;
                }
                Ok(())
            }
        }
    }

    async fn take_turns(&self, client: Quorate, owner: (Owner, u64), task: u64, seed: u64) {
        let mut chance = StdRng::seed_from_u64(seed.wrapping_add(task));
        while !self.is_over.load(SeqCst) {
            self.failures.note(self.take_once(&client, &owner, task, &mut chance).await);
        }
    }
}

/// Ends connections, on the way or by the server, one server after the other.
async fn cut(servers: &[RedisServer], proxies: &[Proxy], mut chance: StdRng) {
    loop {
        sleep(MS(chance.random_range(50..400))).await;
        let one = chance.random_range(0..servers.len());
        match chance.random_range(0..3) {
            0 => proxies[one].cut().await,
            1 => drop(servers[one].command(&["CLIENT", "KILL", "TYPE", "normal"])),
            _ => drop(servers[one].command(&["CLIENT", "KILL", "TYPE", "pubsub"])),
        }
    }
}

/// The full length in seconds; `QUORATE_TEST_SIZE` says how much of it is run.
const FULL: u64 = 40;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_of_tasks_on_the_clients_thread_is_let_in_one_by_one() {
    let seed = knob("QUORATE_FAULT_SEED", rand::random());
    println!("QUORATE_FAULT_SEED={seed}");
    let servers = servers(3);
    let proxies = proxies(&servers).await;
    // As by default, but for the lease, and for how long answers may take on a busy machine.
    let builder = || {
        let urls = proxies.iter().map(Proxy::url);
        leased(Quorate::builder().voters(urls), LEASE)
            .longest_lease(2 * LEASE)
            .connect_timeout(MS(60_000))
    };
    let crowd = Arc::new(Crowd::default());
    let _ending = Ending(&crowd.is_over);
    let (mut clients, mut tasks) = (Vec::new(), JoinSet::new());
    for number in 0..CLIENTS {
        let client = builder().connect().await.expect("all are up");
        let owners = [(); 4].map(|()| Owner::new());
        for task in 0..TASKS {
            let shared = task % 4;
            let owner = (owners[usize::try_from(shared).expect("it is small")], 1_000 + shared);
            let owner = (owner.0, owner.1 + 10 * number);
            let (crowd, client) = (Arc::clone(&crowd), client.clone());
            let task = TASKS * number + task;
            tasks.spawn(async move { crowd.take_turns(client, owner, task, seed).await });
        }
        clients.push(client);
    }
    let cuts = timeout(
        Duration::from_secs(rounds(FULL)),
        cut(&servers, &proxies, StdRng::seed_from_u64(seed)),
    );
    assert!(cuts.await.is_err(), "it goes on until then");
    crowd.is_over.store(true, SeqCst);
    tasks.join_all().await;
    for client in clients {
        drop(client.close().await);
    }
    println!("{}", crowd.failures);
    for (name, lock) in NAMES.iter().zip(&crowd.locks) {
        let [writings, handed_on] = [&lock.writings, &lock.handed_on].map(|it| it.load(SeqCst));
        println!("{name}: written {writings} times, handed on {handed_on} times");
        assert!(handed_on > 0, "{name}");
    }
    until!("no key is left", are_empty(&servers));
}
