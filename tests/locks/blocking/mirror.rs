//! Each call does what its async call does: it comes to the same, and the voters are asked for the
//! same.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use quorate::{
    Builder, Quorate,
    embedded::{self, EmbeddedVoter, Machine},
};
use quorate_support::eventually_async;
use quorate_tests::fixture::secs;
use tokio::runtime::Runtime;

use super::calls::{self, Outcome};

/// The scripts that voters ran for a client of locks, and with which settings.
type Asked = BTreeSet<String>;

/// Times and tokens are of each run alone.
fn without_numbers(text: &str) -> String {
    text.chars().filter(|it| !it.is_ascii_digit() && *it != '.').collect()
}

/// All clients of one name have the same ids.
fn builder(voters: &[EmbeddedVoter], name: &str) -> Builder {
    let builder =
        Quorate::builder().embedded(voters).voter_deadline(secs(2)).longest_lease(secs(60));
    builder.seed(name.len() as u64).machine(&Machine::new(name))
}

fn observe(voters: &[EmbeddedVoter]) -> Arc<Mutex<Asked>> {
    let asked = Arc::<Mutex<Asked>>::default();
    for voter in voters {
        let notes = Arc::clone(&asked);
        voter.observe(move |ran| {
            // A release and the renewal that stores a token come or do not, as time has it.
            let kinds = ["mutex/", "rw/", "semaphore/", "election/"];
            let is_of_locks = kinds.iter().any(|kind| ran.script().starts_with(kind));
            if ran.client() == "us" && is_of_locks && !ran.script().ends_with("/release") {
                let script = ran.script().replace("/renew", "/acquire");
                let settings = ["lease_ms", "wanted", "mode"].map(|name| (name, ran.arg(name)));
                let settings = settings.map(|(name, value)| format!("{script} {name} {value:?}"));
                let set = settings.into_iter().filter(|setting| !setting.ends_with("None"));
                notes.lock().unwrap().extend(set.chain([script]));
            }
        });
    }
    asked
}

/// Another client has everything with this name.
async fn take_all(voters: &[EmbeddedVoter]) -> impl Send + use<> {
    let other = builder(voters, "other").connect().await.unwrap();
    let mutex = other.mutex("a").lock().await.unwrap();
    let write = other.rw_lock("a").write().await.unwrap();
    let permits = other.semaphore("a", 2).acquire_many(2).await.unwrap();
    let lead = other.election("a").campaign("other").await.unwrap();
    // A majority is enough for a guard; whoever looks is to see the same of all voters.
    eventually_async("every voter has voted", async || {
        [mutex.votes(), write.votes(), permits.votes(), lead.votes()] == [3; 4]
    })
    .await;
    (mutex, write, permits, lead)
}

/// What a call comes to on voters of its own, when all that its guards left is gone.
fn came_to(
    runtime: &Runtime,
    is_taken: bool,
    call: impl FnOnce(&[EmbeddedVoter]) -> Outcome,
) -> (String, Asked) {
    let voters = embedded::voters(3);
    let others = is_taken.then(|| runtime.block_on(take_all(&voters)));
    let asked = observe(&voters);
    let outcome = call(&voters).unwrap_or_else(|error| error.to_string());
    let asked = std::mem::take(&mut *asked.lock().unwrap());
    let _inside = runtime.enter();
    drop(others);
    (without_numbers(&outcome), asked)
}

/// Where it would wait for ever for another client.
fn waits(name: &str) -> bool {
    ["lock()", "read()", "write()", "acquire()", "acquire_many(2)", "campaign(\"x\")"]
        .iter()
        .any(|end| name.ends_with(end) && !name.contains("try_"))
}

fn must_be_alike(is_taken: bool) {
    let runtime = Runtime::new().unwrap();
    for row in calls::all() {
        let Some(mirrored) = row.mirrored else { continue };
        if is_taken && (waits(row.name) || row.name.contains("; ")) {
            continue;
        }
        let blocking = came_to(&runtime, is_taken, |voters| {
            let quorum = builder(voters, "us").connect_blocking().unwrap();
            let outcome = (row.blocking)(&quorum)();
            quorum.close().unwrap();
            outcome
        });
        let with_async = came_to(&runtime, is_taken, |voters| {
            runtime.block_on(async {
                let quorum = builder(voters, "us").connect().await.unwrap();
                let outcome = mirrored(quorum.clone()).await;
                quorum.close().await;
                outcome
            })
        });
        assert_eq!(blocking, with_async, "{}", row.name);
    }
}

#[test]
fn each_call_does_what_its_async_call_does_where_nobody_else_is() {
    must_be_alike(false);
}

#[test]
fn each_call_does_what_its_async_call_does_where_another_client_has_the_lock() {
    must_be_alike(true);
}

/// What a guard of each kind says of itself, the times that are left apart.
macro_rules! said {
    ($mutex:expr, $write:expr, $permits:expr, $lead:expr, $all:expr) => {{
        let (mutex, write, permits, lead, all) = ($mutex, $write, $permits, $lead, $all);
        let left = [mutex.remaining(), write.remaining(), permits.remaining(), lead.remaining()];
        assert!(left.into_iter().chain([all.remaining()]).all(|left| left > secs(9)));
        let held = [mutex.is_held(), write.is_held(), permits.is_held(), lead.is_held()];
        let names = (mutex.name(), write.name(), permits.name(), lead.name());
        let holds = (mutex.hold(), write.hold(), permits.hold(), lead.hold());
        let counts = (mutex.count(), write.count(), permits.count(), all.is_held());
        let votes = [mutex.votes(), write.votes(), permits.votes(), lead.votes()];
        assert!(votes.iter().all(|votes| *votes >= 2));
        assert!(mutex.token() != write.token() && lead.token() != mutex.token());
        let slots = (permits.permits(), permits.slot(), permits.slots());
        let several: Vec<_> = all.names().zip(all.holds()).map(|all| format!("{all:?}")).collect();
        let tokens: Vec<_> = all.tokens().map(|(_, token)| token.is_some()).collect();
        format!("{held:?} {names:?} {holds:?} {counts:?} {slots:?} {several:?} {tokens:?}")
    }};
}

#[test]
fn a_guard_says_of_itself_what_its_async_guard_says() {
    let voters = [(); 2].map(|()| embedded::voters(3));
    let q = builder(&voters[0], "us").connect_blocking().unwrap();
    let blocking = said!(
        q.mutex("m").lock().unwrap().reenter().unwrap(),
        q.rw_lock("w").write().unwrap(),
        q.semaphore("s", 3).acquire_many(2).unwrap(),
        q.election("e").campaign("x").unwrap(),
        q.lock_all([q.rw_lock("b").reading(), q.fair_mutex("a").into()]).lock().unwrap()
    );
    let with_async = Runtime::new().unwrap().block_on(async {
        let q = builder(&voters[1], "us").connect().await.unwrap();
        said!(
            q.mutex("m").lock().await.unwrap().reenter().await.unwrap(),
            q.rw_lock("w").write().await.unwrap(),
            q.semaphore("s", 3).acquire_many(2).await.unwrap(),
            q.election("e").campaign("x").await.unwrap(),
            q.lock_all([q.rw_lock("b").reading(), q.fair_mutex("a").into()]).lock().await.unwrap()
        )
    });
    assert_eq!(blocking, with_async);
}
