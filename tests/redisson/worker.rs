//! Contends for the lock `orders` in Rust, as `Contention.java` does in Java.
//!
//! Arguments: the lease, for how long it contends and for how long it holds each entry in ms, the
//! number of tasks, the folder of the gate, its own name, and the servers. Says of each task the
//! entries, what went wrong of them, and the longest wait in ms.

use std::{env, fs, io::ErrorKind, path::PathBuf};

use quorate_tests::prelude::*;

#[derive(Debug)]
struct Contest {
    lease: Duration,
    time: Duration,
    held: Duration,
    gate: PathBuf,
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [lease, time, held, tasks, folder, name, urls @ ..] = &arguments[..] else {
        panic!("too few arguments: {arguments:?}")
    };
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let [lease, time, held] = [lease, time, held].map(|text| ms(number(text)));
    let folder = PathBuf::from(folder);
    let plan = Contest { lease, time, held, gate: folder.join("gate") };
    let builder = Quorate::builder().voters(urls);
    let builder = builder.restart_guard(RestartGuard::Off).voter_deadline(ms(500));
    let client = builder.connect().await.expect("it connects");
    let tasks = (0..number(tasks)).map(|task| {
        let own = folder.join(format!("{name}-{task}"));
        fs::write(&own, format!("{name}-{task}")).expect("it can be written");
        contend(&client, &plan, own)
    });
    join_all(tasks).await;
}

async fn contend(client: &Quorate, plan: &Contest, own: PathBuf) {
    let Contest { lease, time, held, gate } = plan;
    let mutex = client.redisson().mutex("orders").lease(*lease);
    let (mut entries, mut failed, mut longest) = (0, 0, Duration::ZERO);
    // Whoever is stopped for longer than a server has time to answer may not hear of the release
    // that was on its way. That happens to a process once at most.
    let mut was_unconfirmed = false;
    let mut fail = |reason: String| {
        eprintln!("{}: {reason}", own.display());
        failed += 1;
    };
    let watch = Stopwatch::start();
    while watch.time() < *time {
        let asked = Stopwatch::start();
        let entered = mutex.lock_within(*time).await.expect("the servers answer");
        let Some(guard) = entered else { continue };
        longest = longest.max(asked.time());
        entries += 1;
        match fs::hard_link(&own, gate) {
            Ok(()) => {
                sleep(*held).await;
                if !guard.is_held() {
                    fail(guard.lost().await.to_string());
                }
                fs::remove_file(gate).expect("nobody else takes it away");
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                fail("somebody else is inside".to_owned());
            }
            Err(error) => panic!("{}: {error}", gate.display()),
        }
        match guard.release().await {
            Ok(()) => {}
            Err(error) if error.is_unconfirmed() && !was_unconfirmed => was_unconfirmed = true,
            Err(error) => fail(error.to_string()),
        }
    }
    println!("{entries} {failed} {}", longest.as_millis());
}
