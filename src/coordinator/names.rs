//! What other clients are called, by what they said to the voters.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::join_all;

use super::Coordinator;
use crate::{
    clock::Moment,
    keys::Word,
    node::{Call, Request, Requests},
    scripts::{Script, voter},
    words::{ClientName, HoldId, Verdict, VoterReport},
};

/// For how long a voter keeps a name that is not said again.
const KEPT: Duration = Duration::from_secs(10 * 60);
/// For how long it is believed that nobody knows a name.
const UNKNOWN: Duration = Duration::from_secs(10);
/// So many names are remembered.
const MOST: usize = 1024;

/// What is known of a client.
#[derive(Clone, Debug)]
enum KnownClient {
    Name(Arc<str>),
    /// No voter has its name; until then nobody is asked again.
    Nothing(Moment),
}

/// The names that this client knows, its own first.
#[derive(Debug)]
pub(super) struct ClientNames {
    own: Option<ClientName>,
    /// By the ids of their clients.
    known: Mutex<HashMap<String, KnownClient>>,
}

impl ClientNames {
    pub(super) fn new(own: Option<ClientName>) -> Self {
        Self { own, known: Mutex::default() }
    }

    pub(super) fn own(&self) -> Option<&ClientName> {
        self.own.as_ref()
    }

    /// Nothing where a voter is to be asked.
    fn recall(&self, client: &str, now: Moment) -> Option<KnownClient> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(client)? {
            KnownClient::Nothing(until) if *until <= now => None,
            known => Some(known.clone()),
        }
    }

    fn remember(&self, client: &str, name: Option<&Arc<str>>, now: Moment) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        let what = name.cloned().map_or(KnownClient::Nothing(now + UNKNOWN), KnownClient::Name);
        known.insert(client.to_owned(), what);
    }
}

impl Coordinator {
    /// Says the client's name to all voters, now and from time to time.
    pub(super) fn introduce(&self) {
        let Some(name) = &self.names.own else { return };
        let client = self.client().to_string();
        tracing::info!(client, name = &**name.text(), "client connected");
        self.names.remember(&client, Some(name.text()), self.clock.now());
        let kept = [KEPT.as_millis().to_string().into()].into();
        let call = self.about(&client, &voter::INTRODUCE, kept, &[name.text().into()]);
        self.panel.voters.iter().for_each(|voter| voter.introduce(call.clone()));
    }

    /// The names of the clients of these holds, by the ids of the clients, as far as the voters
    /// know them. A client without a name asks for none.
    pub(crate) async fn names_of<'a>(
        &self,
        holds: impl IntoIterator<Item = &'a HoldId>,
    ) -> BTreeMap<String, Arc<str>> {
        let all: Vec<usize> = (0..self.panel.voters.len()).collect();
        self.names_by(&all, holds).await
    }

    /// As far as these voters know them.
    pub(super) async fn names_by<'a>(
        &self,
        voters: &[usize],
        holds: impl IntoIterator<Item = &'a HoldId>,
    ) -> BTreeMap<String, Arc<str>> {
        if self.names.own.is_none() {
            return BTreeMap::new();
        }
        let clients: BTreeSet<&str> = holds.into_iter().filter_map(HoldId::client).collect();
        let asked = clients.into_iter().map(async |client| {
            let name = self.name_of(client, voters).await?;
            Some((client.to_owned(), name))
        });
        join_all(asked).await.into_iter().flatten().collect()
    }

    /// What each voter said, with the names of clients that are known by now.
    pub(crate) fn report(&self, verdicts: Vec<Verdict>) -> Vec<VoterReport> {
        let now = self.clock.now();
        let mut reports = self.panel.report(verdicts);
        for report in &mut reports {
            let client = report.verdict.obstacle().and_then(|(hold, _)| hold.client());
            if let Some(KnownClient::Name(name)) = client.and_then(|it| self.names.recall(it, now))
            {
                report.client_name = Some(name.to_string());
            }
        }
        reports
    }

    /// What the first of these voters says that knows it. Where a majority does not, nobody waits
    /// for the rest.
    async fn name_of(&self, client: &str, voters: &[usize]) -> Option<Arc<str>> {
        match self.names.recall(client, self.clock.now()) {
            Some(KnownClient::Name(name)) => return Some(name),
            Some(KnownClient::Nothing(_)) => return None,
            None => {}
        }
        let call = self.about(client, &voter::NAME, [].into(), &[]);
        let quorum = self.panel.quorum;
        let mut replies = self.panel.ask(voters, &call);
        let due = self.clock.now() + self.voter_deadline();
        let (mut name, mut ignorant) = (None, vec![false; quorum.voters()]);
        while name.is_none() && !quorum.reached(|voter| ignorant[voter]) && replies.are_open() {
            tokio::select! {
                biased;
                (voter, answer) = replies.next() => {
                    let answer = answer.ok();
                    name = answer.as_ref().and_then(|answer| answer.name().map(Arc::from));
                    ignorant[voter] = answer.is_some();
                }
                () = self.clock.sleep_until(due) => break,
            }
        }
        // Some voters alone cannot say that nobody knows it.
        if name.is_some() || voters.len() == quorum.voters() {
            self.names.remember(client, name.as_ref(), self.clock.now());
        }
        name
    }

    /// A request about a client's name.
    fn about(
        &self,
        client: &str,
        script: &'static Script,
        shared: Arc<[Arc<str>]>,
        args: &[Word<'_>],
    ) -> Call {
        let key = self.settings.keys.client(client);
        let request = Request::new([Word::from(&key)], args.iter().copied(), None);
        let deadline = self.voter_deadline();
        Call { script, shared, requests: Requests::One(request), deadline, longest: deadline }
    }
}
