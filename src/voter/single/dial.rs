//! What has to be asked before each connection: where the server is, and with which credentials.
//!
//! Where sentinels know the server, not by fred's own way, which asks one sentinel after the other
//! and believes the first: what one of them says that is cut off from the others may be long past.
//! Here a majority must answer, and the latest of what it says counts.

use std::{
    future,
    num::NonZeroU16,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use futures::{StreamExt, stream::FuturesUnordered};
use tokio::time;

use super::{
    Access,
    access::{Secured, Sentinels, server_at},
    carrier::{Config, Router},
    identity::{ask, setting},
    link::{BACKLOG, CONNECTING, Link, Met, NO_BACKLOG},
    wire,
};
use crate::{
    clock::{Clock, Moment},
    proto::{Cause, Quorum, Reason},
    scripts::Value,
    voter::{Identity, Outcome, lock},
};

/// Between two questions to the sentinels while a connection stands.
const INTERVAL: Duration = Duration::from_secs(1);
/// For how long scripts leave by a connection that no majority of the sentinels confirms.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest that connecting may take, however far away the server is.
const LONGEST_CONNECTING: Duration = Duration::from_secs(4);
/// Sentinels tell each other of a failover every two seconds; once that may be lost.
const TOLD: Duration = Duration::from_secs(4);
/// How long a connection for questions may take, without that for the credentials; and an answer.
const LONGEST_QUESTION: Duration = Duration::from_secs(1);

/// Finds out how to connect, anew each time.
pub(super) struct Dialer {
    pub(super) connector: Connector,
    pub(super) sentinel_lookup: Option<SentinelLookup>,
    /// How often the server was found to be a replica.
    demotions: u64,
    /// Whom it met last, and the tenure that was told last of that one.
    latest: Option<(String, Option<String>)>,
}

impl Dialer {
    pub(super) fn new(access: Access) -> Self {
        let sentinel_lookup = access.sentinels.as_ref().map(|sentinels| SentinelLookup {
            contacts: sentinels.all.iter().map(|_| Contact::default()).collect(),
            sentinels: Arc::clone(sentinels),
        });
        let connector = Connector { access, latest: None, patience: CONNECTING };
        Self { connector, sentinel_lookup, demotions: 0, latest: None }
    }

    /// Connects, to whom the sentinels name where there are any.
    pub(super) async fn connect(&mut self) -> Result<(Arc<Link>, Router, Option<Primary>), Reason> {
        let mut config = self.connector.access.config().await?;
        let primary = match &mut self.sentinel_lookup {
            Some(sentinel_lookup) => Some(sentinel_lookup.ask().await?),
            None => None,
        };
        if let Some(Primary { host, port, .. }) = &primary {
            config.server = server_at(host, *port);
        }
        let (link, router) = self.connector.connect(config, NO_BACKLOG).await?;
        Ok((link, router, primary))
    }

    /// This connection is over: whether its server was a replica by then.
    pub(super) fn parted(&mut self, link: &Link) {
        self.demotions += u64::from(link.is_demoted.load(Relaxed));
    }

    /// Who a server is since it last became a primary, for whoever keeps account of what it may
    /// have forgotten: another with each promotion. As one that sentinels name it is as young as
    /// its promotion, and clients that did not hear of the promotion counted what its predecessor
    /// granted until their patience ended.
    pub(super) fn since_promotion(
        &mut self,
        Met { identity, tenure, .. }: &mut Met,
        named: Option<&Primary>,
    ) -> Identity {
        if let Some(primary) = named {
            identity.age = identity.age.min(primary.tenure);
            if primary.epoch > 0 {
                identity.overlap = TOLD + PATIENCE;
            }
        }
        // A server forgets its tenure, and goes on all the same.
        let former = self.latest.take().filter(|(run_id, _)| *run_id == identity.run_id);
        let tenure = tenure.clone().or_else(|| former?.1);
        // Not in the other, by which two voters are known to be one server.
        let mut told = identity.clone();
        let epoch = named.map_or(0, |primary| primary.epoch);
        // A sentinel may say any number.
        let promotions = self.demotions.saturating_add(epoch);
        let counted = (promotions > 0).then(|| promotions.to_string());
        for promotion in counted.iter().chain(&tenure) {
            told.run_id = format!("{}/{promotion}", told.run_id);
        }
        self.latest = Some((identity.run_id.clone(), tenure));
        told
    }
}

/// Makes connections to one server. A server that is too far away for the time that it had gets
/// more the next time.
pub(super) struct Connector {
    access: Access,
    /// The answer to a look-up of its name that was used last.
    latest: Option<Moment>,
    /// How long the next attempt may take.
    patience: Duration,
}

impl Connector {
    /// Another connection to the server of this one, on which messages are heard.
    pub(super) async fn connect_beside(
        &mut self,
        link: &Link,
    ) -> Result<(Arc<Link>, Router), Reason> {
        let server = link.carrier.server();
        let config = Config { server, ..self.access.config().await? };
        self.connect(config, BACKLOG).await
    }

    async fn connect(
        &mut self,
        config: Config,
        backlog: usize,
    ) -> Result<(Arc<Link>, Router), Reason> {
        let started = Clock::System.now();
        let connected = Link::connected(config, &mut self.latest, self.patience, backlog).await;
        let took = Clock::System.now().since(started);
        if connected.is_ok() || took >= self.patience {
            self.patience = (2 * took).clamp(CONNECTING, LONGEST_CONNECTING);
        }
        connected
    }
}

/// Completes, with the reason, when the connection to this primary is to be given up because the
/// sentinels name another one, or because no majority of them says anything any more: a primary
/// that is cut off from them with this client may have a successor that others use.
pub(super) async fn superseded(
    named: Option<(&mut SentinelLookup, Primary)>,
    link: &Link,
) -> Reason {
    let Some((sentinel_lookup, mut named)) = named else { return future::pending().await };
    loop {
        time::sleep(INTERVAL).await;
        match sentinel_lookup.ask().await {
            Ok(primary) if primary.is_same(&named) => {
                named = primary;
                *lock(&link.trusted) = Some(named.trusted_until());
            }
            Ok(Primary { host, port, .. }) => {
                return format!("the sentinels name {host}:{port} now").into();
            }
            Err(why) if Clock::System.now() >= named.trusted_until() => return why,
            Err(_) => {}
        }
    }
}

/// A connection for questions. It is never made again.
#[derive(Debug)]
pub(in crate::voter) struct Inquirer {
    link: Arc<Link>,
    _router: Router,
}

impl Inquirer {
    /// To a server that no sentinels name.
    pub(in crate::voter) async fn connect(access: Access) -> Outcome<Self> {
        // The user's function has a limit of its own.
        let config = access.config().await.map_err(|why| Cause::Unreachable(why.into()))?;
        Self::connect_by(config, &mut None).await.map_err(Cause::Unreachable)
    }

    async fn connect_by(config: Config, latest: &mut Option<Moment>) -> Result<Self, Reason> {
        let connected = Link::connected(config, latest, CONNECTING, NO_BACKLOG);
        let connected = time::timeout(LONGEST_QUESTION, connected).await;
        let late = || format!("no connection within {LONGEST_QUESTION:?}").into();
        let (link, router) = connected.unwrap_or_else(|_| Err(late()))?;
        Ok(Self { link, _router: router })
    }

    pub(in crate::voter) async fn ask(&self, name: &'static str, words: &[&str]) -> Outcome<Value> {
        let answer = async { ask(&self.link, name, words).await.and_then(wire::value) };
        let answer = time::timeout(LONGEST_QUESTION, answer).await;
        answer.unwrap_or(Err(Cause::TimedOut(LONGEST_QUESTION)))
    }

    /// What one setting of the server is; nothing where it does not tell.
    pub(in crate::voter) async fn setting(&self, name: &'static str) -> Option<String> {
        time::timeout(LONGEST_QUESTION, setting(&self.link, name)).await.ok()?.ok()?
    }
}

/// Whom the sentinels name.
#[derive(Debug)]
pub(super) struct Primary {
    /// An IPv6 address in brackets.
    host: String,
    port: u16,
    /// Grows with each failover.
    epoch: u64,
    /// For how long, at least, it has been the primary.
    tenure: Duration,
    /// When the sentinels were asked.
    asked: Moment,
}

impl Primary {
    /// The same server, with no failover since.
    fn is_same(&self, other: &Self) -> bool {
        (&self.host, self.port, self.epoch) == (&other.host, other.port, other.epoch)
    }

    /// Until when scripts may leave to it, unless it is named again.
    pub(super) fn trusted_until(&self) -> Moment {
        self.asked + PATIENCE
    }
}

/// The connections to all sentinels of a service, each kept for as long as it answers.
pub(super) struct SentinelLookup {
    sentinels: Arc<Sentinels>,
    contacts: Vec<Contact>,
}

#[derive(Default)]
struct Contact {
    inquirer: Option<Inquirer>,
    /// The answer to a look-up of its name that was used last.
    latest: Option<Moment>,
}

impl SentinelLookup {
    /// Whom a majority names: at once where it is of one mind, else the latest when all have
    /// answered or failed to.
    async fn ask(&mut self) -> Result<Primary, Reason> {
        let Sentinels { service, all } = &*self.sentinels;
        let (needed, asked) = (Quorum::of(all.len()).enough(), Clock::System.now());
        let mut answers: FuturesUnordered<_> = self
            .contacts
            .iter_mut()
            .zip(all)
            .map(|(contact, (name, secured))| async move {
                (name, ask_sentinel(contact, secured, service, asked).await)
            })
            .collect();
        let (mut named, mut causes): (Vec<Primary>, _) = (Vec::new(), Vec::new());
        while let Some((name, answer)) = answers.next().await {
            match answer {
                Ok(primary) => named.push(primary),
                Err(why) => causes.push(why.reworded(format!("{name}: {why}"))),
            }
            if named.len() >= needed && named.iter().all(|one| one.is_same(&named[0])) {
                break;
            }
        }
        let heard = named.len();
        // Of those that say the same the one that has known it for longest.
        let latest = named.into_iter().max_by_key(|primary| (primary.epoch, primary.tenure));
        latest.filter(|_| heard >= needed).ok_or_else(|| {
            let listed: Vec<_> = causes.iter().map(|cause| &**cause.text()).collect();
            let (all, listed) = (all.len(), listed.join("; "));
            let why = format!("{heard} of {all} sentinels say where `{service}` is ({listed})");
            let hopeless = causes.iter().find(|cause| cause.needs_an_operator());
            hopeless.map_or_else(|| why.as_str().into(), |cause| cause.reworded(&*why))
        })
    }
}

/// Asks on the connection that there is, and where that fails on a new one.
async fn ask_sentinel(
    contact: &mut Contact,
    secured: &Secured,
    service: &str,
    asked: Moment,
) -> Result<Primary, Reason> {
    let answer = async {
        // Taken out, so that a question which is given up half way ends its connection.
        if let Some(kept) = contact.inquirer.take()
            && let Ok(primary) = ask_for_primary(&kept, service, asked).await
        {
            contact.inquirer = Some(kept);
            return Ok(primary);
        }
        let config = secured.fresh().await?;
        let inquirer = Inquirer::connect_by(config, &mut contact.latest).await?;
        let primary = ask_for_primary(&inquirer, service, asked).await?;
        contact.inquirer = Some(inquirer);
        Ok(primary)
    };
    let late = || Err(format!("no answer within {LONGEST_QUESTION:?}").into());
    time::timeout(LONGEST_QUESTION, answer).await.unwrap_or_else(|_| late())
}

/// Where the primary is, which is what clients are to believe, and since when. A sentinel that
/// fails over names the successor before it takes note of it itself.
async fn ask_for_primary(
    sentinel: &Inquirer,
    service: &str,
    asked: Moment,
) -> Result<Primary, Reason> {
    let ask = async |name| match sentinel.ask("SENTINEL", &[name, service]).await {
        Ok(Value::List(fields)) => Ok(fields),
        Ok(Value::Nil) => Err("no such service".into()),
        Ok(_) => Err("unexpected reply".into()),
        Err(Cause::Rejected(why) | Cause::Broken(why) | Cause::Unreachable(why)) => Err(why),
        Err(cause) => Err(cause.to_string().into()),
    };
    let (address, state) = tokio::join!(ask("GET-MASTER-ADDR-BY-NAME"), ask("MASTER"));
    primary(&address?, &state?, asked).ok_or_else(|| "unexpected reply".into())
}

/// From host and port, and from names and values in turn.
fn primary(address: &[Value], state: &[Value], asked: Moment) -> Option<Primary> {
    let [Value::Text(host), Value::Text(port)] = address else { return None };
    if host.is_empty() {
        return None;
    }
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
        port: port.parse::<NonZeroU16>().ok()?.get(),
        epoch: field("config-epoch")?.parse().ok()?,
        tenure: if noted { Duration::from_millis(tenure) } else { Duration::ZERO },
        asked,
    })
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::voter::Security;

    fn any_value() -> impl Strategy<Value = Value> {
        let word = "host|ip|port|config-epoch|role-reported-time|[0-9]{1,20}|::1|(?s).{0,12}";
        let value = prop_oneof![
            8 => word.prop_map(Value::Text),
            1 => any::<i64>().prop_map(Value::Int),
            1 => Just(Value::Nil),
        ];
        value.prop_recursive(2, 8, 4, |inner| vec(inner, 0..4).prop_map(Value::List))
    }

    /// Names and values, most of which are those of a sentinel.
    fn any_state() -> impl Strategy<Value = Vec<Value>> {
        let names = ["ip", "port", "config-epoch", "role-reported-time"];
        let text = |name: &str| Value::Text(name.to_owned());
        let fields =
            vec("[0-9]{1,20}|18446744073709551615|::1|10.0.0.1", 4).prop_map(move |values| {
                let pairs = names.iter().zip(values);
                pairs.flat_map(|(name, value)| [text(name), Value::Text(value)]).collect()
            });
        prop_oneof![vec(any_value(), 0..12), fields]
    }

    proptest! {
        #[test]
        fn whatever_a_sentinel_says_names_a_server_or_nobody(
            address in prop_oneof![
                vec(any_value(), 0..4),
                ("::1|10.0.0.1|", "[0-9]{1,6}")
                    .prop_map(|(host, port)| vec![Value::Text(host), Value::Text(port)]),
            ],
            state in any_state(),
            demotions in 0..3_u64,
        ) {
            let asked = Clock::System.now();
            let Some(primary) = primary(&address, &state, asked) else { return Ok(()) };
            prop_assert!(!primary.host.is_empty() && primary.port != 0);
            prop_assert!(primary.host.starts_with('[') || !primary.host.contains(':'));
            // It is as old as the sentinel has known it, at most.
            let access = Access::new(&"redis://a".into(), &Security::default()).unwrap();
            let mut dialer = Dialer { demotions, ..Dialer::new(access) };
            let identity = Identity { run_id: "life".into(), age: Duration::MAX, ..Identity::default() };
            let (life, stamp, tenure, evicts) = (String::new(), None, None, None);
            let mut met = Met { identity, life, stamp, tenure, evicts, syncs: false };
            let told = dialer.since_promotion(&mut met, Some(&primary));
            prop_assert!(told.run_id.starts_with("life") && told.age == primary.tenure);
        }
    }
}
