//! Finds out where the server is, by sentinels if there are any, and connects to it.

// fred's own way asks one sentinel after the other and believes the first. A sentinel that is cut
// off from the others may name a primary that was replaced long ago. Here a majority must answer,
// and the highest epoch among the answers counts.

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
    access::{Sentinels, server_at},
    carrier::{Config, Router},
    identity::{ask, setting},
    link::{BACKLOG, CONNECTING, Inspection, Link, NO_BACKLOG},
    wire,
};
use crate::{
    clock::{Clock, Moment},
    proto::{Cause, Quorum, Reason},
    scripts::Value,
    voter::{Identity, Outcome, lock},
};

/// The pause between two questions to the sentinels while a connection stands.
const INTERVAL: Duration = Duration::from_secs(1);
/// For how long scripts leave by a connection that no majority of the sentinels confirms.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest that connecting may take, however far away the server is.
const LONGEST_CONNECTING: Duration = Duration::from_secs(4);
/// How long it takes until all sentinels know of a failover.
// They publish it to each other every two seconds, and one such message may be lost.
const FAILOVER_IS_KNOWN: Duration = Duration::from_secs(4);
/// How long a connection for questions may take without the credentials, and how long an answer.
const LONGEST_QUESTION: Duration = Duration::from_secs(1);

/// Finds the server and connects, anew each time.
// Nothing that was true for the last connection is believed for the next: credentials expire,
// certificates are replaced, and the primary may be another.
pub(super) struct Dialer {
    pub(super) connector: Connector,
    pub(super) sentinel_lookup: Option<SentinelLookup>,
    /// How often the server was found to be a replica.
    demotions: u64,
    /// The run id and the tenure of the server on the latest connection.
    latest: Option<(String, Option<String>)>,
}

impl Dialer {
    pub(super) fn new(access: Access) -> Self {
        let sentinel_lookup = access.sentinels.as_deref().map(SentinelLookup::new);
        let connector = Connector { access, latest: None, patience: CONNECTING };
        Self { connector, sentinel_lookup, demotions: 0, latest: None }
    }

    /// Connects to the server, or to the primary that the sentinels name.
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

    /// A connection has ended.
    // Counted, because a replica that is promoted again has the same run id, and may lack votes.
    pub(super) fn note_end(&mut self, link: &Link) {
        self.demotions += u64::from(link.is_demoted.load(Relaxed));
    }

    /// The identity of a server since it last became a primary: its run id has the promotions in
    /// it. `named`: what the sentinels say.
    pub(super) fn since_promotion(
        &mut self,
        Inspection { identity, tenure, .. }: &mut Inspection,
        named: Option<&Primary>,
    ) -> Identity {
        if let Some(primary) = named {
            // It may lack all votes from before its promotion.
            identity.age = identity.age.min(primary.tenure);
            // A client that is cut off with the primary before goes on counting what that one
            // grants, until its `PATIENCE` ends. The successor knows nothing of these votes.
            if primary.epoch > 0 {
                identity.overlap = FAILOVER_IS_KNOWN + PATIENCE;
            }
        }
        // A server forgets its tenure after a while. It is the same server all the same.
        let former = self.latest.take().filter(|(run_id, _)| *run_id == identity.run_id);
        let tenure = tenure.clone().or_else(|| former?.1);
        // A copy: by the run id of the inspection, two voters are found to be one server.
        let mut promoted = identity.clone();
        let epoch = named.map_or(0, |primary| primary.epoch);
        // Saturating, as a sentinel may say any number.
        let promotions = self.demotions.saturating_add(epoch);
        let counted = (promotions > 0).then(|| promotions.to_string());
        for promotion in counted.iter().chain(&tenure) {
            promoted.run_id = format!("{}/{promotion}", promoted.run_id);
        }
        self.latest = Some((identity.run_id.clone(), tenure));
        promoted
    }
}

/// Makes connections to one server.
pub(super) struct Connector {
    access: Access,
    /// The answer to a look-up of its name that was used last.
    latest: Option<Moment>,
    /// How long the next attempt may take.
    // Twice the time of the last one: a distant server needs several round trips to connect.
    patience: Duration,
}

impl Connector {
    /// Another connection to the server of this link, for messages.
    // To the same address, not to whatever the sentinels name now: wake-ups must come from the
    // server that has the votes.
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
        let connected = Link::connect(config, &mut self.latest, self.patience, backlog).await;
        let took = Clock::System.now().since(started);
        if connected.is_ok() || took >= self.patience {
            self.patience = (2 * took).clamp(CONNECTING, LONGEST_CONNECTING);
        }
        connected
    }
}

/// Completes, with the reason, when the sentinels name another primary, or when no majority of them
/// has answered for a while.
// A primary that is cut off from the sentinels, together with this client, may have a successor
// that other clients use.
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

/// A connection for questions.
pub(in crate::voter) struct Inquirer {
    link: Arc<Link>,
    _router: Router,
}

impl Inquirer {
    /// Connects to a server that no sentinels name.
    pub(in crate::voter) async fn connect(access: Access) -> Outcome<Self> {
        // Not within the limit of the connection: the user's function for credentials has its own.
        let config = access.config().await.map_err(|why| Cause::Unreachable(why.into()))?;
        Self::connect_by(config, &mut None).await.map_err(Cause::Unreachable)
    }

    async fn connect_by(config: Config, latest: &mut Option<Moment>) -> Result<Self, Reason> {
        let connected = Link::connect(config, latest, CONNECTING, NO_BACKLOG);
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

    /// A setting of the server; none if it does not tell.
    pub(in crate::voter) async fn setting(&self, name: &'static str) -> Option<String> {
        time::timeout(LONGEST_QUESTION, setting(&self.link, name)).await.ok()?.ok()?
    }
}

/// The primary that the sentinels name.
pub(super) struct Primary {
    /// An IPv6 address is in brackets.
    host: String,
    port: u16,
    /// Grows with each failover.
    epoch: u64,
    /// How long at least it has been the primary.
    tenure: Duration,
    /// When the sentinels were asked.
    asked: Moment,
}

impl Primary {
    /// Whether this is the same server, without a failover in between.
    fn is_same(&self, other: &Self) -> bool {
        (&self.host, self.port, self.epoch) == (&other.host, other.port, other.epoch)
    }

    /// Until when scripts may leave to it, unless the sentinels name it again.
    pub(super) fn trusted_until(&self) -> Moment {
        // From the question on, as with a lease: the answer may have been under way for long.
        self.asked + PATIENCE
    }
}

/// The connections to all sentinels of a service, each kept for as long as it answers.
pub(super) struct SentinelLookup {
    service: String,
    contacts: Vec<Contact>,
}

struct Contact {
    access: Access,
    inquirer: Option<Inquirer>,
    /// The answer to a look-up of its name that was used last.
    latest: Option<Moment>,
}

impl SentinelLookup {
    fn new(Sentinels { service, all }: &Sentinels) -> Self {
        let contact = |access: &Access| {
            let access = access.clone();
            Contact { access, inquirer: None, latest: None }
        };
        Self { service: service.clone(), contacts: all.iter().map(contact).collect() }
    }

    /// The primary with the highest epoch that the sentinels name, if a majority of them answers.
    async fn ask(&mut self) -> Result<Primary, Reason> {
        let Self { service, contacts } = self;
        let (count, asked) = (contacts.len(), Clock::System.now());
        let needed = Quorum::of(count).enough();
        let mut answers: FuturesUnordered<_> =
            contacts.iter_mut().map(|contact| contact.ask(service, asked)).collect();
        let (mut named, mut causes): (Vec<Primary>, _) = (Vec::new(), Vec::new());
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(primary) => named.push(primary),
                Err(why) => causes.push(why),
            }
            // A majority that agrees is enough. If it does not, all are heard: the one that knows
            // of the failover may be the slowest.
            if named.len() >= needed && named.iter().all(|one| one.is_same(&named[0])) {
                break;
            }
        }
        let answered = named.len();
        // Among equals, the sentinel that has counted the tenure for longest: a sentinel begins
        // anew with its own start.
        let latest = named.into_iter().max_by_key(|primary| (primary.epoch, primary.tenure));
        latest.filter(|_| answered >= needed).ok_or_else(|| {
            let listed: Vec<_> = causes.iter().map(|cause| &**cause.text()).collect();
            let listed = listed.join("; ");
            let why =
                format!("{answered} of {count} sentinels say where `{service}` is ({listed})");
            // The reason of one that an operator must mend decides the pause before the next try.
            let for_operator = causes.iter().find(|cause| cause.needs_an_operator());
            for_operator.map_or_else(|| why.as_str().into(), |cause| cause.reworded(&*why))
        })
    }
}

impl Contact {
    /// Asks on the connection that was kept, and if that fails on a new one.
    async fn ask(&mut self, service: &str, asked: Moment) -> Result<Primary, Reason> {
        let Self { access, inquirer, latest } = self;
        let answer = async {
            // Taken out, so that a question that is given up half-way ends its connection.
            if let Some(kept) = inquirer.take()
                && let Ok(primary) = ask_for_primary(&kept, service, asked).await
            {
                *inquirer = Some(kept);
                return Ok(primary);
            }
            let new = Inquirer::connect_by(access.config().await?, latest).await?;
            let primary = ask_for_primary(&new, service, asked).await?;
            *inquirer = Some(new);
            Ok(primary)
        };
        let late = || Err(format!("no answer within {LONGEST_QUESTION:?}").into());
        let answer = time::timeout(LONGEST_QUESTION, answer).await.unwrap_or_else(|_| late());
        answer.map_err(|why: Reason| why.reworded(format!("{}: {why}", access.label())))
    }
}

/// The primary that a sentinel names, and since when.
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
    // Two questions: during a failover, a sentinel names the successor by the first some time
    // before it has it in its own record, which is what the second shows.
    let (address, state) = tokio::join!(ask("GET-MASTER-ADDR-BY-NAME"), ask("MASTER"));
    primary(&address?, &state?, asked).ok_or_else(|| "unexpected reply".into())
}

/// Reads the answers: host and port, and names and values in turn.
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
    let is_noted = field("ip") == Some(host) && field("port") == Some(port);
    // Counted anew with each failover that the sentinel hears of, and with its own start. If the
    // record still shows the primary before, the time is that one's, and the new one has none.
    let tenure = field("role-reported-time")?.parse().ok()?;
    Some(Primary {
        host: if bare_ipv6 { format!("[{host}]") } else { host.clone() },
        port: port.parse::<NonZeroU16>().ok()?.get(),
        epoch: field("config-epoch")?.parse().ok()?,
        tenure: if is_noted { Duration::from_millis(tenure) } else { Duration::ZERO },
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
            // At most as old as its tenure by the sentinel.
            let access = Access::new(&"redis://a".into(), &Security::default()).unwrap();
            let mut dialer = Dialer { demotions, ..Dialer::new(access) };
            let identity = Identity { run_id: "life".into(), age: Duration::MAX, ..Identity::default() };
            let (life, stamp, tenure, evicts) = (String::new(), None, None, None);
            let mut inspection = Inspection { identity, life, stamp, tenure, evicts, syncs: false };
            let told = dialer.since_promotion(&mut inspection, Some(&primary));
            prop_assert!(told.run_id.starts_with("life") && told.age == primary.tenure);
        }
    }
}
