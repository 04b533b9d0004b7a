//! Compares with other clients who the voters are.
//! [`Comparison`](crate::proto::Comparison) decides when which voter is asked, and what follows.

use std::{sync::Arc, time::Duration};

use futures::future::OptionFuture;

use super::Coordinator;
use crate::{
    clock::{Clock, Moment},
    keys::Word,
    proto::{Cause, ConfigurationEntry, Error, JoinNext, Kind},
    scripts::{Answer, voter},
    voter::{Call, Outcome, Replies, Request, Standings},
};

/// For how long voters keep a client's configuration.
// For as long, a client with the voters of two steps ago is refused, for example a job that runs
// rarely. A majority of its voters and one of the new ones need not share a voter: two clients
// would hold one lock (`a_step_that_is_skipped_breaks_exclusion`).
const KEPT: Duration = Duration::from_secs(30 * 24 * 3_600);

impl Coordinator {
    /// Compares for the first time, by `due`, and then again and again while the client lives.
    /// Fails if clients of a voter disagree, and if too few voters can be asked.
    pub(crate) async fn join_configuration(self: &Arc<Self>, due: Moment) -> Result<(), Error> {
        // It takes no lock, so it need not agree, and a look should leave no trace on the voters
        // (`who_only_looks_connects_and_leaves_no_trace_and_sees_what_the_clients_believe`).
        if self.settings.only_looks {
            return Ok(());
        }
        let Self { panel, clock, .. } = &**self;
        let (started, standings) = (clock.now(), &panel.standings);
        standings.configuration.comparison().begin(started);
        let mut replies = Replies::new(panel.voters.len(), 1);
        loop {
            // The version first: a connection that comes during the question is asked after it.
            let version = standings.connected().version();
            self.ask_configurations(&mut replies);
            let next = standings.configuration.comparison().join(clock.now(), due);
            let until = match next {
                JoinNext::Ask => continue,
                JoinNext::Wait(until) => until,
                JoinNext::Joined => break,
                JoinNext::Refused(why) => {
                    let kind = Kind::ConfigurationMismatch(why.to_string());
                    return Err(Error::new(kind, Vec::new()));
                }
                JoinNext::Failed(verdicts) => {
                    let (needed, after) = (panel.quorum.needed(), clock.now().since(started));
                    let kind = Kind::Connect { needed, after };
                    return Err(Error::new(kind, panel.report(verdicts)));
                }
            };
            hear_configuration(clock, standings, &mut replies, version, until).await;
        }
        self.spawn(self.keep_comparing(replies));
        Ok(())
    }

    /// Compares again and again until the client is closed or dropped.
    fn keep_comparing(
        self: &Arc<Self>,
        mut replies: Replies,
    ) -> impl Future<Output = ()> + Send + use<> {
        // A strong reference would keep a client that its user has dropped.
        let (coordinator, closing) = (Arc::downgrade(self), Arc::clone(self.gate.closing()));
        let (clock, standings) = (self.clock.clone(), Arc::clone(&self.panel.standings));
        async move {
            loop {
                let version = standings.connected().version();
                let Some(this) = coordinator.upgrade() else { return };
                this.ask_configurations(&mut replies);
                drop(this);
                let until = standings.configuration.comparison().due();
                tokio::select! {
                    biased;
                    // The gate is closed when the client is closed, and when it is dropped.
                    () = closing.until(|closing| *closing) => return,
                    () = hear_configuration(&clock, &standings, &mut replies, version, until) => {}
                }
            }
        }
    }

    fn ask_configurations(&self, replies: &mut Replies) {
        let (panel, now) = (&self.panel, self.clock.now());
        let questions = panel.standings.configuration.comparison().ask(now);
        for question in questions {
            let call = self.configuration_call(question.tells, &question.heard);
            panel.ask_again(replies, &[question.voter], &call, now);
        }
    }

    /// The configurations of the clients of these voters; the latest first.
    pub(crate) async fn voter_configuration(&self) -> Vec<ConfigurationEntry> {
        let now = self.clock.now();
        let mut replies = self.panel.ask_all(&self.configuration_call(false, ""), now);
        let (due, mut all) = (now + self.voter_deadline(), Vec::new());
        while replies.are_open() {
            let Some((_, outcome)) = self.clock.in_time(due, replies.next()).await else { break };
            all.extend(entries(&outcome).unwrap_or_default());
        }
        ConfigurationEntry::merge(all)
    }

    /// `stores`: the voter keeps the configuration of this client, if it agrees with others.
    fn configuration_call(&self, stores: bool, heard: &str) -> Call {
        let who = if stores { self.client().to_string() } else { String::new() };
        let (mine, counts) = {
            let comparison = self.panel.standings.configuration.comparison();
            (comparison.configuration().text(), comparison.counts().as_millis().to_string())
        };
        let args = [&*mine, &*counts, &*who, heard].map(Word::from);
        let request =
            Request::new([Word::from(&self.settings.keys.voter_configuration())], args, None);
        let deadline = self.voter_deadline();
        Call {
            script: &voter::CONFIGURATION,
            shared: [KEPT.as_millis().to_string().into()].into(),
            requests: [request].into(),
            deadline,
            longest: deadline,
        }
    }
}

/// Waits for an answer, which it notes, a new connection or the end of this time.
async fn hear_configuration(
    clock: &Clock,
    standings: &Standings,
    replies: &mut Replies,
    connected_version: u64,
    until: Option<Moment>,
) {
    tokio::select! {
        biased;
        (voter, outcome) = replies.next() => {
            standings.configuration.note_answer(voter, entries(&outcome), clock.now());
        }
        () = standings.connected().changed_since(connected_version) => {}
        Some(()) = OptionFuture::from(until.map(|until| clock.sleep_until(until))) => {}
    }
}

/// The configurations in a voter's answer.
fn entries(outcome: &Outcome<Answer>) -> Outcome<Vec<ConfigurationEntry>> {
    let answer = outcome.as_ref().map_err(Cause::clone)?;
    let entries =
        answer.text().and_then(|text| text.lines().map(ConfigurationEntry::read).collect());
    entries.ok_or_else(|| answer.unexpected())
}
