//! Credentials, and the user's function that gives them before each connection.

use std::{fmt, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use tokio::time::timeout;

/// How long the user's function for credentials may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The login for a server. Never shows its password.
///
/// See [`Builder::credentials`](crate::Builder::credentials).
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub(super) user: Option<String>,
    pub(super) password: String,
}

impl Credentials {
    /// A user and its password.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { user: Some(user.into()), password: password.into() }
    }

    /// The password of the user `default`, which is set by `requirepass`.
    pub fn password(password: impl Into<String>) -> Self {
        Self { user: None, password: password.into() }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

type Fetched = BoxFuture<'static, Result<Credentials, String>>;

/// The user's function for credentials.
#[derive(Clone)]
pub(crate) struct Provider(Arc<dyn Fn(&str) -> Fetched + Send + Sync>);

impl Provider {
    pub(crate) fn new<F, Asked, E>(ask: F) -> Self
    where
        F: Fn(&str) -> Asked + Send + Sync + 'static,
        Asked: Future<Output = Result<Credentials, E>> + Send + 'static,
        E: fmt::Display,
    {
        Self(Arc::new(move |voter| {
            let asked = ask(voter);
            async move { asked.await.map_err(|error| error.to_string()) }.boxed()
        }))
    }

    /// Asks for the credentials of one voter.
    pub(crate) async fn ask(&self, voter: &str) -> Result<Credentials, String> {
        // A panic of the user's function must not end the task that keeps up the connection: the
        // voter would be lost for as long as the client lives.
        let asked = async { (self.0)(voter).await };
        match timeout(PATIENCE, AssertUnwindSafe(asked).catch_unwind()).await {
            Ok(Ok(answer)) => answer.map_err(|error| format!("no credentials: {error}")),
            Ok(Err(_)) => Err("no credentials: whoever was asked for them panicked".to_owned()),
            Err(_) => Err(format!("no credentials within {PATIENCE:?}")),
        }
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<credentials>")
    }
}
