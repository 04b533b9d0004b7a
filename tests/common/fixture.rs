//! Voters of either sort under one face, so that a claim is written once.

use std::{env, time::Duration};

use quorate::{
    Builder, Error, Quorate,
    embedded::{self, EmbeddedVoter, Fault, FaultGuard},
};
use tokio::{runtime::Handle, time::Instant};

use quorate_support::{
    NODE_PASSWORD, Proxy, RedisServer, Reply, Settings, lock_node, without_lasting,
};

use crate::{
    kind::{Client, Kind},
    rights, until,
};

pub const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

pub const fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// How much of a lease its holder trusts by default: a hundredth and 2 ms less than the voters
/// give.
pub fn trusted(lease: Duration) -> Duration {
    lease.saturating_sub(lease / 100 + ms(2))
}

/// The voters that a scenario runs on.
#[derive(Debug)]
pub struct Fixture {
    pub(crate) sites: Vec<Site>,
    /// User and password for servers.
    login: Option<(&'static str, &'static str)>,
    kind: Kind,
}

#[derive(Debug)]
pub(crate) enum Site {
    Embedded { voter: EmbeddedVoter, weather: Option<FaultGuard> },
    Real { server: RedisServer, proxy: Option<Proxy> },
}

impl Fixture {
    pub fn embedded(count: usize) -> Self {
        Self::of(&embedded::voters(count))
    }

    /// Voters inside the process, and a client of them.
    pub async fn with_client(count: usize) -> (Self, Client) {
        let on = Self::embedded(count);
        let client = on.client().await;
        (on, client)
    }

    /// Voters inside the process.
    pub fn of(voters: &[EmbeddedVoter]) -> Self {
        let site = |voter: &EmbeddedVoter| Site::Embedded { voter: voter.clone(), weather: None };
        Self { sites: voters.iter().map(site).collect(), login: None, kind: Kind::Mutex }
    }

    pub fn real(count: usize) -> Self {
        Self::servers(RedisServer::start_many(&Settings::new(), count))
    }

    /// Servers on which clients may do what the documentation asks for and nothing else.
    pub fn restricted(count: usize) -> Self {
        let servers = RedisServer::start_many(&Settings::new().users(&[&rights::user()]), count);
        Self { login: Some(("quorate", "password")), ..Self::servers(servers) }
    }

    /// Lock nodes as `deploy/` has them, durable and with its users.
    pub fn deployed(count: usize) -> Self {
        let servers = RedisServer::start_many(&lock_node(), count);
        Self { login: Some(("quorate", NODE_PASSWORD)), ..Self::servers(servers) }
    }

    /// Clients' mutexes are of this kind.
    #[must_use]
    pub fn of_kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What the fixture makes of a client.
    pub fn client_of(&self, client: Quorate) -> Client {
        Client::new(client, self.kind)
    }

    pub(crate) fn servers(servers: Vec<RedisServer>) -> Self {
        let site = |server| Site::Real { server, proxy: None };
        Self { sites: servers.into_iter().map(site).collect(), login: None, kind: Kind::Mutex }
    }

    pub fn voters(&self) -> usize {
        self.sites.len()
    }

    pub fn is_real(&self) -> bool {
        matches!(self.sites[0], Site::Real { .. })
    }

    /// `exact` in paused time; on servers only a bound that a busy machine keeps.
    pub fn at_most(&self, exact: Duration) -> Duration {
        if self.is_real() { exact + secs(15) } else { exact }
    }

    /// How many of `full` rounds to run: as many as fit into the suite's time, on voters inside the
    /// process and on servers, unless the environment's `QUORATE_TEST_SIZE` names a percentage.
    pub fn rounds(&self, full: u64, (embedded, real): (u64, u64)) -> u64 {
        let percentage = |size: String| size.parse::<u64>().expect("a percentage");
        match env::var("QUORATE_TEST_SIZE").map(percentage) {
            Ok(percent) => (full * percent / 100).max(1),
            Err(_) if self.is_real() => real,
            Err(_) => embedded,
        }
    }

    /// A client that is still to be set up. Servers on a busy machine get more time to answer than
    /// by default, but never more than a tenth of the lease.
    pub fn builder(&self) -> Builder {
        let mut builder = Quorate::builder();
        for site in &self.sites {
            builder = match site {
                Site::Embedded { voter, .. } => builder.embedded([voter]),
                Site::Real { proxy: Some(proxy), .. } => builder.voter(self.url(proxy.url())),
                Site::Real { server, proxy: None } => builder.voter(self.url(server.url())),
            };
        }
        if self.is_real() {
            builder = builder.voter_deadline(secs(3)).connect_timeout(secs(20));
            // It stands for a process of its own: it shares no thread with those of other tests.
            if let Ok(runtime) = Handle::try_current() {
                builder = builder.runtime(runtime);
            }
        }
        builder
    }

    /// As clients name it.
    fn url(&self, url: String) -> String {
        match self.login {
            Some((user, password)) => url.replacen("://", &format!("://{user}:{password}@"), 1),
            None => url,
        }
    }

    /// One more client: another party.
    pub async fn client(&self) -> Client {
        self.connect(self.builder()).await
    }

    /// Connects to all voters: by itself a client is content with a majority.
    pub async fn connect(&self, builder: Builder) -> Client {
        let client = self.client_of(builder.connect().await.expect("a majority answers"));
        until!("the client reaches every voter", {
            let seen = client.mutex("none").inspect().await;
            seen.is_ok_and(|seen| seen.voters.iter().all(|view| view.state.is_ok()))
        });
        client
    }

    /// A client with this lease, and with voter deadlines that fit it.
    pub async fn client_with_lease(&self, lease: Duration) -> Client {
        self.connect(self.builder().lease(lease).voter_deadline(lease / 10)).await
    }

    /// Releases. Servers on a busy machine may not confirm it in time: then it goes on by itself.
    pub async fn release(&self, released: impl Future<Output = Result<(), Error>>) {
        match released.await {
            Err(error) if self.is_real() && error.is_unconfirmed() => {}
            released => released.expect("it is held"),
        }
    }

    /// Nobody was let in. Servers on a busy machine may not have said so in time.
    pub fn must_be_refused<T>(&self, tried: Result<Option<T>, Error>) {
        match tried {
            Err(error) if self.is_real() && error.is_no_quorum() => {}
            tried => assert!(tried.expect("a majority answers").is_none(), "it was let in"),
        }
    }

    /// Each voter's keys but for the fences, which outlast their locks.
    pub fn keys(&self) -> Vec<Vec<String>> {
        let keys = |site: &Site| match site {
            Site::Embedded { voter, .. } => without_lasting(voter.keys()),
            Site::Real { server, .. } => without_lasting(server.keys()),
        };
        self.sites.iter().map(keys).collect()
    }

    /// Each voter's channels that somebody listens to.
    fn subscriptions(&self) -> Vec<Vec<String>> {
        let channels = |site: &Site| match site {
            Site::Embedded { voter, .. } => voter.subscriptions(),
            Site::Real { server, .. } => {
                server.command(&["PUBSUB", "CHANNELS"]).expect("it answers").texts()
            }
        };
        self.sites.iter().map(channels).collect()
    }

    /// Each voter's channels of locks that somebody listens to: not those by which each client is
    /// called for as long as it lives.
    pub fn lock_channels(&self) -> Vec<Vec<String>> {
        let mut channels = self.subscriptions();
        for there in &mut channels {
            there.retain(|channel| !channel.starts_with("quorate:calls:"));
        }
        channels
    }

    /// Waits until there is neither a key nor a listener on any voter.
    pub async fn until_clean(&self) {
        self.until_only(&[]).await;
    }

    /// Waits until every voter has just these keys and nobody listens to anything.
    pub async fn until_only(&self, keys: &[&str]) {
        until!(&format!("no voter has keys but {keys:?}, nor listeners"), {
            let nobody_listens = self.lock_channels().iter().all(Vec::is_empty);
            nobody_listens && self.keys().iter().all(|there| there == keys)
        });
    }

    /// Waits until every voter has these keys and no others but those of places in the queue of a
    /// read/write lock: a reader that came by the queue keeps its place for a while.
    pub async fn until_clean_but_for_places(&self, keys: &[&str]) {
        let lasts = |key: &&String| !key.ends_with(":rw:queue") && !key.ends_with(":rw:alive");
        until!(
            &format!("no voter has keys but {keys:?} and places"),
            self.keys().iter().all(|there| there.iter().filter(lasts).eq(keys))
        );
    }

    /// Waits until somebody listens to the channel of a lock on every voter.
    pub async fn until_listening(&self) {
        until!(
            "every voter has a listener",
            self.lock_channels().iter().all(|channels| !channels.is_empty())
        );
    }

    /// Waits until somebody stands in the queue of a lock on every voter.
    pub async fn until_queued(&self) {
        let is_queue = |key: &String| key.ends_with(":queue");
        until!("every voter has a queue", self.keys().iter().all(|keys| keys.iter().any(is_queue)));
    }

    /// What one voter answers to a command, past all faults.
    pub fn ask(&self, voter: usize, words: &[&str]) -> Reply {
        match &self.sites[voter] {
            Site::Embedded { voter, .. } => plain(voter.command(words).expect("it answers")),
            Site::Real { server, .. } => server.command(words).expect("it answers"),
        }
    }

    /// How often a script has run on each voter; only voters inside the process count that.
    pub fn runs(&self, script: &str) -> Option<Vec<u64>> {
        let runs = |site: &Site| match site {
            Site::Embedded { voter, .. } => Some(voter.runs(script)),
            Site::Real { .. } => None,
        };
        self.sites.iter().map(runs).collect()
    }

    /// Runs one command on one voter, past all faults.
    pub fn command(&self, voter: usize, words: &[&str]) {
        self.ask(voter, words);
    }

    /// What errors call a voter.
    pub fn label(&self, voter: usize) -> String {
        match &self.sites[voter] {
            Site::Embedded { voter, .. } => voter.label().to_owned(),
            Site::Real { server, .. } => format!("127.0.0.1:{}", server.port()),
        }
    }

    /// The addresses of servers.
    pub fn urls(&self) -> Vec<String> {
        self.all_servers().map(|server| self.url(server.url())).collect()
    }

    /// How many calls of the locks' scripts the servers have run. The first call of each script is
    /// not counted: it carries the source (`EVAL`). Nor is the regular look at a server.
    pub fn scripts_run(&self) -> u64 {
        self.all_servers().map(|server| server.calls("evalsha")).sum()
    }

    pub(crate) fn all_servers(&self) -> impl Iterator<Item = &RedisServer> {
        self.sites.iter().filter_map(|site| match site {
            Site::Real { server, .. } => Some(server),
            Site::Embedded { .. } => None,
        })
    }

    /// Ends a voter at once.
    pub fn kill(&mut self, voter: usize) {
        match &mut self.sites[voter] {
            Site::Embedded { voter, .. } => voter.kill(),
            Site::Real { server, .. } => server.kill(),
        }
    }

    pub fn kill_all(&mut self) {
        (0..self.voters()).for_each(|voter| self.kill(voter));
    }

    /// Starts all voters again, without their data.
    pub fn restart_all(&mut self) {
        (0..self.voters()).for_each(|voter| self.restart(voter));
    }

    /// Starts a voter again, without its data.
    pub fn restart(&mut self, voter: usize) {
        match &mut self.sites[voter] {
            Site::Embedded { voter, .. } => voter.restart_empty(),
            Site::Real { server, .. } => server.restart(),
        }
    }

    /// Lets a voter stand still, as by SIGSTOP.
    pub fn stop(&self, voter: usize) {
        match &self.sites[voter] {
            Site::Embedded { voter, .. } => voter.stop(),
            Site::Real { server, .. } => server.stop(),
        }
    }

    pub fn resume(&self, voter: usize) {
        match &self.sites[voter] {
            Site::Embedded { voter, .. } => voter.resume(),
            Site::Real { server, .. } => server.resume(),
        }
    }

    /// Makes a voter's way one that [`delay`](Self::delay) can lengthen, for clients to come.
    pub async fn make_way_longer(&mut self, voter: usize) {
        if let Site::Real { server, proxy } = &mut self.sites[voter] {
            *proxy = Some(Proxy::start(server.port()).await);
        }
    }

    /// From now on a round trip to the voter takes so much longer.
    pub fn delay(&mut self, voter: usize, time: Duration) {
        let (there, back) = (time / 2, time / 2);
        match &mut self.sites[voter] {
            Site::Embedded { voter, weather } => {
                *weather = Some(voter.fault(Fault::Delay { there, back }));
            }
            Site::Real { proxy, .. } => {
                proxy.as_ref().expect("there is a proxy").delay(there, back);
            }
        }
    }
}

/// An embedded voter's reply as a server's.
pub fn plain(reply: embedded::Reply) -> Reply {
    match reply {
        embedded::Reply::Nil => Reply::Nil,
        embedded::Reply::Int(number) => Reply::Int(number),
        embedded::Reply::Text(text) => Reply::Text(text),
        embedded::Reply::List(replies) => Reply::List(replies.into_iter().map(plain).collect()),
    }
}

/// Measures time, in paused time as well.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "tests measure the time from outside")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    #[expect(clippy::disallowed_methods, reason = "tests measure the time from outside")]
    pub fn time(self) -> Duration {
        self.0.elapsed()
    }

    pub async fn sleep_until(self, time: Duration) {
        tokio::time::sleep_until(self.0 + time).await;
    }
}
