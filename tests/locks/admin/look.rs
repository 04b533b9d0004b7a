//! What is seen of a lock.

use std::time::Duration;

use quorate::{Admin, HolderKind, LockKind, LockView};

use crate::cancel::kinds::{Access, Held};
use quorate_support::eventually_async;
use quorate_tests::{
    claims,
    fixture::{Fixture, secs},
};

claims!(everywhere: what_is_seen_of_a_lock_follows_who_has_it_and_who_waits);

/// Waits until this is seen.
async fn until(admin: &Admin, kind: LockKind, says: impl Fn(&LockView) -> bool) {
    eventually_async(&format!("it is seen of a {kind}"), async || {
        admin.look(kind, "a").await.is_ok_and(|seen| says(&seen))
    })
    .await;
}

/// Whether the guard is the only holder that is seen, with all that is known of it.
fn is_held_by(seen: &LockView, held: &Held, kind: HolderKind) -> bool {
    let [holder] = &*seen.holders else { return false };
    let excludes = matches!(kind, HolderKind::Mutex | HolderKind::Write);
    let has_more = match held {
        Held::Mutex(guard) => seen.token == Some(guard.token()),
        Held::Write(guard) => seen.token == Some(guard.token()),
        Held::Lead(leadership) => {
            let leader = seen.leader.as_ref().and_then(|leader| leader.text());
            (seen.token, leader) == (Some(leadership.token()), Some("old"))
        }
        Held::Permits(_) => {
            (holder.slots.as_slice(), seen.permits, seen.free()) == (&[0, 1], Some(2), Some(0))
        }
        _ => true,
    };
    (&holder.hold, holder.kind) == (held.hold(), kind)
        && holder.client_name.as_deref() == Some("web-1.4711")
        && holder.count == excludes.then_some(1)
        && holder.ttl.is_some_and(|ttl| ttl <= secs(30) && ttl > secs(5))
        && has_more
        && !seen.is_free
}

async fn what_is_seen_of_a_lock_follows_who_has_it_and_who_waits(on: Fixture) {
    let ours = on.connect(on.builder().client_name("web-1.4711")).await;
    let theirs = on.connect(on.builder().client_name("Web_2")).await;
    let admin = on.client().await.admin();
    for (access, held_as, waits_for) in [
        (Access::Lock, HolderKind::Mutex, HolderKind::Mutex),
        (Access::FairLock, HolderKind::Mutex, HolderKind::Mutex),
        (Access::Read, HolderKind::Read, HolderKind::Write),
        (Access::Write, HolderKind::Write, HolderKind::Write),
        (Access::BothPermits, HolderKind::Permit, HolderKind::Permit),
        (Access::Lead, HolderKind::Leader, HolderKind::Leader),
    ] {
        let kind = access.lock();
        until(&admin, kind, |seen| seen.is_free && seen.holders.is_empty()).await;
        let held = access.have(&ours, None).await;
        until(&admin, kind, |seen| is_held_by(seen, &held, held_as)).await;
        let found = admin.find("*", 10).await;
        if let [missing] = &*found.missing {
            // Whoever may only lock may not list keys.
            assert!(missing.to_string().contains("'scan'"), "{found:?}");
        } else {
            let locks = found.locks.iter().map(|lock| (&*lock.name, lock.kind));
            assert!(locks.eq([("a", kind)]), "{found:?}");
        }
        let client = theirs.clone();
        let waiting = tokio::spawn(async move { access.excludes().have(&client, None).await });
        until(&admin, kind, |seen| {
            let [waiting] = &*seen.waiting else { return false };
            waiting.client_name.as_deref() == Some("Web_2") && waiting.kind == waits_for
        })
        .await;
        drop(held.release().await);
        drop(waiting.await.expect("no panic").release().await);
        on.until_clean().await;
    }
    // Whoever is refused is told the name as well.
    let _guard = ours.mutex("a").lock().await.unwrap();
    let error = theirs.mutex("a").lock_or_busy(Duration::ZERO).await.unwrap_err();
    assert_eq!(error.holder().and_then(|hold| hold.client_name()), Some("web-1.4711"), "{error}");
    assert!(error.to_string().starts_with("lock `a` is taken by web-1.4711@"), "{error}");
}

#[tokio::test]
async fn a_client_of_servers_is_called_by_its_host_and_process() {
    let on = Fixture::real(1);
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let name = guard.hold().client_name().expect("it has one");
    let (host, process) = name.rsplit_once('.').expect("two parts");
    assert!(!host.is_empty());
    assert_eq!(process, std::process::id().to_string());
    guard.release().await.unwrap();
}
