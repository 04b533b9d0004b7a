//! What a call costs beyond fred's own work. Not a test: run it by name, with `--release`.

use std::time::Duration;

use fred::{
    interfaces::ClientLike,
    types::{ClusterHash, CustomCommand, Value as Argument},
};
use futures::future::join_all;

use super::{Call, RedisServer, answers, call, start};
use crate::{
    clock::Clock,
    node::single::{Address, link::Link},
    scripts::mutex,
};

const DEADLINE: Duration = Duration::from_secs(5);

/// What acquire and release take, by what is measured.
async fn timed(tasks: u32, cycles: u32, cycle: impl AsyncFn(u32)) -> f64 {
    let started = Clock::System.now();
    let one = async |task| {
        for _ in 0..cycles {
            cycle(task).await;
        }
    };
    join_all((0..tasks).map(one)).await;
    Clock::System.now().since(started).as_secs_f64() * 1e6 / f64::from(tasks * cycles)
}

#[tokio::test]
#[ignore = "a measurement"]
async fn an_acquire_and_release_against_raw_fred() {
    let server = RedisServer::start();
    let (node, _) = start(&server.url());
    answers(&node).await;
    let link = std::sync::Arc::new(Link::new(&Address::parse(&server.url()).unwrap(), 32));
    tokio::spawn(std::sync::Arc::clone(&link).keep(|| ()));
    link.client().wait_for_connect().await.unwrap();

    let scripts = [(&mutex::ACQUIRE, "1", "5000"), (&mutex::RELEASE, "0", "")];
    let ours = async |task: u32| {
        for (script, second, third) in scripts {
            let call = call(script, &format!("q:{{lock:{task}}}"), &["c:1", second, third]);
            node.run(Call { deadline: DEADLINE, ..call }).await.unwrap();
        }
    };
    let shas = scripts.map(|(script, ..)| fred::util::sha1_hash(script.source));
    let raw = async |task: u32| {
        for ((_, second, third), sha) in scripts.iter().zip(&shas) {
            let key = format!("q:{{lock:{task}}}");
            let arguments: Vec<Argument> = vec![
                sha.clone().into(),
                1.into(),
                key.into(),
                "c:1".into(),
                (*second).into(),
                (*third).into(),
            ];
            let command = CustomCommand::new_static("EVALSHA", ClusterHash::Custom(0), false);
            let client = link.client().with_options(&Link::options(DEADLINE));
            client.custom::<Argument, _>(command, arguments).await.unwrap();
        }
    };
    timed(1, 10, &ours).await;
    for tasks in [1, 16, 64, 256] {
        for _ in 0..3 {
            let cycles = 40_000 / tasks.max(4);
            let (raw, ours) = (timed(tasks, cycles, &raw).await, timed(tasks, cycles, &ours).await);
            println!("{tasks:4} tasks: raw {raw:6.1} us, ours {ours:6.1} us, {:.3}", ours / raw);
        }
    }
}
