//! A tour of what a lock does when all is well, and when it is not: five voters and three clients
//! in one process, in real time. Every scene is checked; the program fails where one turns out
//! otherwise than told.
//!
//! `cargo run --example tour`

#![expect(clippy::disallowed_methods, reason = "a tour measures the time from outside")]

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use quorate::{
    FenceGate, Holder, Mutex, MutexGuard, Owner, Quorate,
    embedded::{self, EmbeddedVoter},
};
use tokio::time::sleep;

type Scene = Result<(), Box<dyn Error>>;

/// Short, so that the tour is. Renewed from a third of it on.
const LEASE: Duration = Duration::from_secs(1);
const LOCK: &str = "invoice:42";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Scene {
    let tour = Tour::start().await?;
    tour.contention().await?;
    tour.entering_again().await?;
    tour.waiting().await?;
    tour.many_read_or_one_writes().await?;
    tour.a_voter_dies().await?;
    tour.a_voter_forgets().await?;
    tour.the_lock_is_lost().await?;
    tour.cleaning_up().await
}

struct Tour {
    started: Instant,
    voters: Vec<EmbeddedVoter>,
    ada: Quorate,
    ben: Quorate,
    cleo: Quorate,
}

impl Tour {
    async fn start() -> Result<Self, Box<dyn Error>> {
        println!("Five voters: a lock belongs to whoever has the votes of three.");
        println!("Ada, Ben and Cleo are clients of their own, as if in three processes.");
        println!("A lease lasts {LEASE:?} and is renewed from a third of it on.");
        let voters = embedded::voters(5);
        let client = || {
            let settings = Quorate::builder().embedded(&voters).lease(LEASE).longest_lease(LEASE);
            settings.voter_deadline(Duration::from_millis(100)).connect()
        };
        let (ada, ben, cleo) = (client().await?, client().await?, client().await?);
        Ok(Self { started: now(), voters, ada, ben, cleo })
    }

    async fn contention(&self) -> Scene {
        title("Three workers, one lock");
        self.tell("Ada, Ben and Cleo each add 1 to a counter 20 times: read, pause, write");
        let counter = Arc::new(AtomicU32::new(0));
        let add = |client: &Quorate| {
            let (mutex, counter) = (client.mutex(LOCK), Arc::clone(&counter));
            async move {
                for _ in 0..20 {
                    let guard = mutex.lock().await?;
                    let read = counter.load(Ordering::Relaxed);
                    sleep(Duration::from_millis(1)).await;
                    counter.store(read + 1, Ordering::Relaxed);
                    guard.release().await?;
                }
                Ok::<(), quorate::Error>(())
            }
        };
        tokio::try_join!(add(&self.ada), add(&self.ben), add(&self.cleo))?;
        let counted = counter.load(Ordering::Relaxed);
        check(counted == 60, "no addition is lost")?;
        self.tell(&format!("the counter stands at {counted}"));
        self.show(None).await
    }

    async fn entering_again(&self) -> Scene {
        title("The same owner enters again");
        let (mutex, others) = (self.ada.mutex(LOCK).owner(&Owner::new()), self.ben.mutex(LOCK));
        let outer = mutex.lock().await?;
        let inner = mutex.lock().await?;
        check(outer.hold() == inner.hold() && outer.count() == 2, "both guards are one hold")?;
        self.tell("Ada has entered twice: one hold, and the count stands on every voter");
        self.show(Some(("Ada", &outer))).await?;
        inner.release().await?;
        check(others.try_lock().await?.is_none(), "one of two releases frees nothing")?;
        self.tell("she has left once: Ben still cannot enter");
        outer.release().await?;
        let guard = others.try_lock().await?;
        let guard = guard.ok_or("two of two releases free the lock")?;
        self.tell("she has left twice: Ben enters");
        guard.release().await?;
        Ok(())
    }

    async fn waiting(&self) -> Scene {
        title("Waiting, and being woken");
        let held = self.ben.mutex(LOCK).lock().await?;
        let asked_before = self.voters[0].runs("mutex/acquire");
        let waiter = tokio::spawn(self.ada.mutex(LOCK).lock());
        let queues = |voter: &EmbeddedVoter| voter.keys().iter().any(|key| key.ends_with(":queue"));
        eventually("Ada waits", async || self.voters.iter().all(queues)).await?;
        self.tell("Ben holds; Ada stands in the queue on every voter");
        sleep(Duration::from_millis(300)).await;
        let released = now();
        held.release().await?;
        let guard = waiter.await??;
        let took = released.elapsed();
        check(took < LEASE / 2, "she is woken, long before Ben's lease ends")?;
        let asked = self.voters[0].runs("mutex/acquire") - asked_before;
        self.tell(&format!(
            "Ben releases; {took:.1?} later Ada has it, having asked {asked} times"
        ));
        self.show(Some(("Ada", &guard))).await?;
        guard.release().await?;
        Ok(())
    }

    async fn many_read_or_one_writes(&self) -> Scene {
        title("Many read, or one writes");
        let [ada, ben, cleo] = [&self.ada, &self.ben, &self.cleo].map(|it| it.rw_lock("prices"));
        let reading = [ada.read().await?, ben.read().await?];
        check(cleo.try_write().await?.is_none(), "nobody writes while others read")?;
        self.tell("Ada and Ben read, so Cleo cannot write: she waits");
        let wanted = cleo.clone();
        let writer = tokio::spawn(async move { wanted.write().await });
        let waits = async || matches!(ada.inspect().await, Ok(it) if it.waiting.len() == 1);
        eventually("Cleo stands in the queue", waits).await?;
        check(ada.try_read().await?.is_none(), "readers to come stand behind a writer")?;
        self.tell("whoever comes to read now comes behind her");
        for guard in reading {
            guard.release().await?;
        }
        let writing = writer.await??;
        self.tell("both have left, and she writes");
        let (one, other) = (ada.clone(), ben.clone());
        let readers = [
            tokio::spawn(async move { one.read().await }),
            tokio::spawn(async move { other.read().await }),
        ];
        let wait = async || matches!(ada.inspect().await, Ok(it) if it.waiting.len() == 2);
        eventually("Ada and Ben stand in the queue", wait).await?;
        let reading = writing.downgrade().await?;
        for reader in readers {
            let guard = reader.await??;
            check(reading.is_held() && guard.is_held(), "all three read")?;
            guard.release().await?;
        }
        self.tell("she makes a read of her write: Ada and Ben enter, and nobody wrote in between");
        reading.release().await?;
        Ok(())
    }

    async fn a_voter_dies(&self) -> Scene {
        title("A voter dies while the lock is held");
        let guard = self.ada.mutex(LOCK).lock().await?;
        self.voters[2].kill();
        self.tell("Ada holds, and voter 3 is killed");
        self.show(Some(("Ada", &guard))).await?;
        sleep(LEASE + LEASE / 2).await;
        check(guard.is_held(), "four voters go on renewing")?;
        check(self.ben.mutex(LOCK).try_lock().await?.is_none(), "nobody else gets in")?;
        self.tell("one and a half leases later it is still held: four voters renewed it");
        self.show(Some(("Ada", &guard))).await?;
        guard.release().await?;
        self.voters[2].restart();
        self.tell("Ada releases, and voter 3 is back");
        Ok(())
    }

    async fn a_voter_forgets(&self) -> Scene {
        title("A voter loses its data while the lock is held");
        let mutex = self.ada.mutex(LOCK);
        let guard = mutex.lock().await?;
        // A majority is enough to hold, so the last voters may answer a little later.
        eventually("all five voted", async || votes(&mutex, &guard).await == 5).await?;
        self.voters[4].restart_empty();
        self.tell("Ada holds, and voter 5 comes back as a new process, without its data");
        self.show(Some(("Ada", &guard))).await?;
        eventually("the vote is back", async || votes(&mutex, &guard).await == 5).await?;
        check(guard.is_held(), "it was held all along")?;
        self.tell("her client saw it come, and gave it the vote again at once");
        self.show(Some(("Ada", &guard))).await?;
        let seen = self.ben.mutex(LOCK).inspect().await?;
        let quarantined = seen.voters[4].quarantine.ok_or("it is kept out")?;
        self.tell(&format!("Ben would not count its vote: {quarantined}"));
        guard.release().await?;
        Ok(())
    }

    async fn the_lock_is_lost(&self) -> Scene {
        title("A majority falls silent: the lock is lost, on time");
        let guard = self.ada.mutex(LOCK).lock().await?;
        let steps = AtomicU32::new(0);
        let work = async {
            loop {
                sleep(Duration::from_millis(10)).await;
                steps.fetch_add(1, Ordering::Relaxed);
            }
        };
        self.voters[..3].iter().for_each(EmbeddedVoter::stop);
        let (silent, trusted) = (now(), guard.remaining());
        self.tell(&format!("voters 1 to 3 stop; Ada may rely on the lock for {trusted:.2?} more"));
        let (Err(stopped), lost) = tokio::join!(guard.while_held(work), guard.lost());
        let took = silent.elapsed();
        check(stopped.is_lost() && lost.is_lost() && !guard.is_held(), "it was told as lost")?;
        check(took >= trusted && took < trusted + LEASE / 4, "at the deadline")?;
        let steps = steps.load(Ordering::Relaxed);
        check(steps > 0, "she worked until then")?;
        self.tell(&format!("{took:.2?} later it is lost, and her work is dropped in step {steps}"));
        for report in lost.voters() {
            println!("            {report}");
        }
        self.voters.iter().for_each(EmbeddedVoter::resume);
        let next = self.ben.mutex(LOCK).lock().await?;
        self.tell("the voters go on, and Ben enters");
        self.show(Some(("Ben", &next))).await?;
        let (late, token) = (guard.token(), next.token());
        let gate = FenceGate::new();
        gate.check(LOCK, token)?;
        let stale = gate.check(LOCK, late).err().ok_or("late work is refused")?;
        self.tell(&format!("he has written; what Ada still sends is refused: {stale}"));
        let late = guard.release().await.err().ok_or("a late release is told")?;
        check(late.is_lost() && next.is_held(), "and takes nothing of the next holder's")?;
        next.release().await?;
        Ok(())
    }

    async fn cleaning_up(&self) -> Scene {
        title("Nothing is left behind");
        // But for the latest token of each lock, for ten minutes.
        let forgotten =
            |voter: &EmbeddedVoter| voter.keys().iter().all(|key| key.ends_with(":fence"));
        let clean = |voter: &EmbeddedVoter| forgotten(voter) && voter.subscriptions().is_empty();
        eventually("no lock is left", async || self.voters.iter().all(forgotten)).await?;
        for client in [&self.ada, &self.ben, &self.cleo] {
            client.close().await?;
        }
        eventually("all voters are clean", async || self.voters.iter().all(clean)).await?;
        self.tell("no subscription and no key on any voter but the last token of each lock");
        println!("\nAll scenes turned out as told.");
        Ok(())
    }

    fn tell(&self, what: &str) {
        println!("  {:5.2} s  {what}", self.started.elapsed().as_secs_f64());
    }

    /// Prints what each voter says of the lock.
    async fn show(&self, guard: Option<(&str, &MutexGuard)>) -> Scene {
        let cell = |holder: &Holder| match guard {
            Some((name, guard)) if *guard.hold() == holder.hold => {
                let left = holder.ttl.unwrap_or_default().as_secs_f64();
                format!("{name} x{} {left:.2} s", holder.count)
            }
            _ => "another".into(),
        };
        let views = self.cleo.mutex(LOCK).inspect().await?.voters;
        let cells = views.iter().map(|view| match &view.state {
            Ok(state) => state.holders.first().map_or_else(|| "free".into(), cell),
            Err(_) => "no answer".into(),
        });
        let row: Vec<String> = cells.map(|cell| format!("{cell:^13}")).collect();
        println!("          | {} |", row.join(" | "));
        Ok(())
    }
}

/// How many voters have given their vote to the guard's hold.
async fn votes(mutex: &Mutex, guard: &MutexGuard) -> usize {
    mutex.inspect().await.map_or(0, |seen| seen.votes(guard.hold()))
}

async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) -> Scene {
    let started = now();
    while !condition().await {
        check(started.elapsed() < 2 * LEASE, what)?;
        sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

fn check(holds: bool, claim: &str) -> Scene {
    if holds { Ok(()) } else { Err(format!("not as told: {claim}").into()) }
}

fn title(text: &str) {
    println!("\n{text}");
}

fn now() -> Instant {
    Instant::now()
}
