//! Clients of a cluster.

use quorate_support::succeeds_async;
use quorate_tests::prelude::*;

/// Leases as short as the tests are patient.
pub(crate) const LEASE: Duration = Duration::from_secs(12);

/// Of every cluster that tests start. For so long after a failover the former primary may have
/// served clients that it was cut off with.
pub(crate) const NODE_TIMEOUT: Duration = Duration::from_millis(1_500);

/// A client of three voters of the cluster, or of one.
pub(crate) fn builder(urls: &[String], voters: u16) -> Builder {
    leased(Quorate::builder().cluster(Voters::new(urls).voters(voters)), LEASE)
}

/// Asks for the lease again, now.
pub(crate) async fn renew(guard: &MutexGuard) {
    // A redirect that later requests have overtaken confirms nothing: then it is held as before.
    let again = async || match guard.reenter().await {
        Err(error) if error.is_not_entered() => Err(error.to_string()),
        again => Ok(again.expect("it is held")),
    };
    let again = succeeds_async("it is entered again", again).await;
    again.release().await.expect("it is confirmed");
}
