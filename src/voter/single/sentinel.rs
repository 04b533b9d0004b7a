//! Asks sentinels which server is the primary.
//!
//! Not by fred's own way, which asks one sentinel after the other and believes the first: what one
//! of them says that is cut off from the others may be long past. Here a majority must answer, and
//! the latest of what it says counts.

use std::{fmt, sync::Arc, time::Duration};

use futures::{StreamExt, stream::FuturesUnordered};
use tokio::time;

use super::{
    address::{Secured, Sentinels},
    info::ask,
    link::{CONNECTING, Link, NO_BACKLOG, Router},
    replies,
};
use crate::{
    proto::{Cause, Quorum},
    scripts::Value,
};

/// How long one sentinel may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whom the sentinels name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Primary {
    /// An IPv6 address in brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// Grows with each failover.
    pub(super) epoch: u64,
    /// For how long, at least, it has been the primary.
    pub(super) tenure: Duration,
}

impl Primary {
    /// The same server, with no failover since.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let term = |primary: &Self| (primary.host.clone(), primary.port, primary.epoch);
        term(self) == term(other)
    }
}

impl fmt::Display for Primary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// The connections to all sentinels of a service, each kept for as long as it answers.
pub(super) struct Lookout {
    sentinels: Arc<Sentinels>,
    contacts: Vec<Contact>,
}

#[derive(Default)]
struct Contact(Option<(Arc<Link>, Router)>);

impl Lookout {
    pub(super) fn new(sentinels: Arc<Sentinels>) -> Self {
        let contacts = sentinels.all.iter().map(|_| Contact::default()).collect();
        Self { sentinels, contacts }
    }

    /// Whom a majority names: at once where it is of one mind, else the latest when all have
    /// answered or failed to.
    pub(super) async fn ask(&mut self) -> Result<Primary, Arc<str>> {
        let Sentinels { service, all } = &*self.sentinels;
        let needed = Quorum::of(all.len()).enough();
        let mut asked: FuturesUnordered<_> =
            self.contacts
                .iter_mut()
                .zip(all)
                .map(|(contact, (name, secured))| async move {
                    (name, contact.ask(secured, service).await)
                })
                .collect();
        let (mut named, mut causes): (Vec<Primary>, _) = (Vec::new(), Vec::new());
        while let Some((name, answer)) = asked.next().await {
            match answer {
                Ok(primary) => named.push(primary),
                Err(why) => causes.push(format!("{name}: {why}")),
            }
            if named.len() >= needed && named.iter().all(|one| one.is_same(&named[0])) {
                break;
            }
        }
        let heard = named.len();
        // Of those that say the same the one that has known it for longest.
        let latest = named.into_iter().max_by_key(|primary| (primary.epoch, primary.tenure));
        latest.filter(|_| heard >= needed).ok_or_else(|| {
            let (all, why) = (all.len(), causes.join("; "));
            format!("{heard} of {all} sentinels say where `{service}` is ({why})").into()
        })
    }
}

impl Contact {
    /// Asks on the connection that there is, and where that fails on a new one.
    async fn ask(&mut self, secured: &Secured, service: &str) -> Result<Primary, Arc<str>> {
        let asked = async {
            // Taken out, so that a question which is given up half way ends its connection.
            if let Some((link, router)) = self.0.take()
                && let Ok(primary) = question(&link, service).await
            {
                self.0 = Some((link, router));
                return Ok(primary);
            }
            let config = secured.fresh().await?;
            let (link, mut router) = Link::connected(config, CONNECTING, NO_BACKLOG).await?;
            let primary = tokio::select! {
                () = router.ended() => Err(link.trouble()),
                primary = question(&link, service) => primary,
            }?;
            self.0 = Some((link, router));
            Ok(primary)
        };
        let late = || Err(format!("no answer within {PATIENCE:?}").into());
        time::timeout(PATIENCE, asked).await.unwrap_or_else(|_| late())
    }
}

/// Where the primary is, which is what clients are to believe, and since when. A sentinel that
/// fails over names the successor before it takes note of it itself.
async fn question(link: &Link, service: &str) -> Result<Primary, Arc<str>> {
    let address = command(link, "GET-MASTER-ADDR-BY-NAME", service);
    let (address, state) = tokio::join!(address, command(link, "MASTER", service));
    primary(&address?, &state?).ok_or_else(|| "unexpected reply".into())
}

async fn command(link: &Link, name: &str, service: &str) -> Result<Vec<Value>, Arc<str>> {
    match ask(link, "SENTINEL", &[name, service]).await.and_then(replies::value) {
        Ok(Value::List(fields)) => Ok(fields),
        Ok(Value::Nil) => Err("no such service".into()),
        Ok(_) => Err("unexpected reply".into()),
        Err(Cause::Rejected(why) | Cause::Broken(why) | Cause::Unreachable(why)) => Err(why),
        Err(cause) => Err(cause.to_string().into()),
    }
}

/// From host and port, and from names and values in turn.
fn primary(address: &[Value], state: &[Value]) -> Option<Primary> {
    let [Value::Text(host), Value::Text(port)] = address else { return None };
    let field = |name: &str| {
        let pair = state.chunks_exact(2).find(|pair| pair[0] == Value::Text(name.to_owned()))?;
        if let Value::Text(value) = &pair[1] { Some(value.as_str()) } else { None }
    };
    let bare_ipv6 = host.contains(':') && !host.starts_with('[');
    let noted = field("ip") == Some(host) && field("port") == Some(port);
    // Counted anew with each failover that the sentinel hears of, and with its own start.
    let tenure = field("role-reported-time")?.parse().ok()?;
    Some(Primary {
        host: if bare_ipv6 { format!("[{host}]") } else { host.clone() },
        port: port.parse().ok()?,
        epoch: field("config-epoch")?.parse().ok()?,
        tenure: if noted { Duration::from_millis(tenure) } else { Duration::ZERO },
    })
}
