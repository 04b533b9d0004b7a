//! Voters that restart, and how old they are: more of [`Fixture`].

use std::{slice, time::Duration};

use quorate::{
    Builder, Quorate,
    embedded::{Fault, InFlight, Machine, Simulated as _},
};

use crate::{
    fixture::{Fixture, Site},
    inside::fault_client,
    scene::{DURABLE, key, servers_with},
    standing::make_old,
};
use quorate_support::{Proxy, RedisServer, Reply};

/// A voter that one client does not reach; while it lasts.
#[derive(Debug)]
pub struct Apart(#[expect(dead_code, reason = "what is refused there")] Option<Proxy>);

impl Fixture {
    /// Servers that forget nothing by a restart, but for the second.
    pub fn durable_but_the_second(count: usize) -> Self {
        let mut servers = servers_with(count, &DURABLE);
        servers[1] = RedisServer::start();
        Self::servers(servers)
    }

    /// Until no voter is taken for young.
    pub fn grow_old(&self) {
        for site in &self.sites {
            if let Site::Embedded { voter, .. } = site {
                voter.set_uptime(Duration::from_hours(1));
            }
        }
        make_old(self.all_servers());
    }

    /// Starts a voter again that has its data still.
    pub fn restart_with_data(&mut self, voter: usize) {
        match &mut self.sites[voter] {
            Site::Embedded { voter, .. } => voter.restart(),
            Site::Real { server, .. } => server.restart(),
        }
    }

    /// From now on a voter confirms what it does not keep.
    pub fn lose_writes(&self, voter: usize) {
        match &self.sites[voter] {
            Site::Embedded { voter, .. } => voter.lose_writes(),
            Site::Real { server, .. } => server.copy_file(),
        }
    }

    /// Starts a voter again that [loses writes](Self::lose_writes).
    pub fn restart_with_older_data(&mut self, voter: usize) {
        match &mut self.sites[voter] {
            Site::Embedded { voter, .. } => voter.restart(),
            Site::Real { server, .. } => server.restart_from_copy(),
        }
    }

    /// Starts a voter again with a copy of the data of another in place of its own.
    pub fn restart_with_copy(&mut self, voter: usize, of: usize) {
        let [one, other] = self.sites.get_disjoint_mut([voter, of]).expect("there are two");
        match (one, other) {
            (Site::Embedded { voter, .. }, Site::Embedded { voter: other, .. }) => {
                voter.restart_with_copy_of(other);
            }
            (Site::Real { server, .. }, Site::Real { server: other, .. }) => {
                server.restart_with_copy_of(other);
            }
            _ => unreachable!("all are of one kind"),
        }
    }

    /// What the data of a server are called; clients give another name to those that lack
    /// something.
    pub fn name_of_data(&self, voter: usize) -> Option<String> {
        match &self.sites[voter] {
            Site::Embedded { .. } => None,
            Site::Real { .. } => match self.ask(voter, &["GET", "quorate:{%voter}"]) {
                Reply::Text(fingerprint) => fingerprint.split(' ').next().map(str::to_owned),
                _ => None,
            },
        }
    }

    /// Whether this hold has a voter's vote for the mutex of this name.
    pub fn has_vote(&self, voter: usize, name: &str, hold: &str) -> bool {
        self.ask(voter, &["HGET", &key(name), hold]) != Reply::Nil
    }

    /// Cuts the connections to a voter, whose way is [longer](Self::make_way_longer).
    pub async fn cut(&self, voter: usize, in_flight: InFlight) {
        match &self.sites[voter] {
            Site::Embedded { voter, .. } => voter.cut(in_flight),
            Site::Real { proxy, .. } => proxy.as_ref().expect("there is a proxy").cut().await,
        }
    }

    /// A client that reaches all voters but one.
    pub async fn client_apart_from(
        &self,
        apart: usize,
        set: impl FnOnce(Builder) -> Builder,
    ) -> (Quorate, Apart) {
        match &self.sites[apart] {
            Site::Embedded { voter, .. } => {
                let name = format!("apart from {apart}");
                let machine = Machine::new(&name);
                fault_client(slice::from_ref(voter), &name, Fault::DropRequests);
                let client = set(self.builder()).machine(&machine).connect().await;
                (client.expect("a majority answers"), Apart(None))
            }
            Site::Real { server, .. } => {
                let proxy = Proxy::start(server.port()).await;
                proxy.refuse().await;
                let urls = self.all_servers().map(RedisServer::url).enumerate();
                let urls = urls.map(|(at, url)| if at == apart { proxy.url() } else { url });
                let client = set(Quorate::builder().voters(urls)).connect().await;
                (client.expect("a majority answers"), Apart(Some(proxy)))
            }
        }
    }
}
