//! Compares with other clients who the voters are. When, with which voter, and what follows is
//! decided by [`Comparison`](crate::proto::Comparison).

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

/// For how long voters keep what clients believe.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3_600);

impl Coordinator {
    /// Compares for the first time, by `due`; then again and again, for as long as the client
    /// lives. Fails if a voter has clients that believe otherwise, and if too few can be asked.
    pub(crate) async fn join_configuration(self: &Arc<Self>, due: Moment) -> Result<(), Error> {
        if self.settings.only_looks {
            return Ok(());
        }
        let Self { panel, clock, .. } = &**self;
        let (started, standings) = (clock.now(), &panel.standings);
        standings.configuration.comparison().begin(started);
        let mut replies = Replies::new(panel.voters.len(), 1);
        loop {
            let seen = standings.connected().version();
            self.ask_configurations(&mut replies);
            let next = standings.configuration.comparison().join(clock.now(), due);
            let until = match next {
                JoinNext::Ask => continue,
                JoinNext::Wait(until) => until,
                JoinNext::Joined => break,
                JoinNext::Refused(why) => {
                    return Err(Error::new(
                        Kind::ConfigurationMismatch(why.to_string()),
                        Vec::new(),
                    ));
                }
                JoinNext::Failed(verdicts) => {
                    let (needed, after) = (panel.quorum.needed(), clock.now().since(started));
                    return Err(Error::new(
                        Kind::Connect { needed, after },
                        panel.report(verdicts),
                    ));
                }
            };
            hear_configuration(clock, standings, &mut replies, seen, until).await;
        }
        self.spawn(self.keep_comparing(replies));
        Ok(())
    }

    fn keep_comparing(
        self: &Arc<Self>,
        mut replies: Replies,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (coordinator, closing) = (Arc::downgrade(self), Arc::clone(self.gate.closing()));
        let (clock, standings) = (self.clock.clone(), Arc::clone(&self.panel.standings));
        async move {
            loop {
                let seen = standings.connected().version();
                let Some(this) = coordinator.upgrade() else { return };
                this.ask_configurations(&mut replies);
                drop(this);
                let until = standings.configuration.comparison().due();
                tokio::select! {
                    biased;
                    // Or the client is dropped. Nothing is compared any more once it is closed.
                    () = closing.until(|closing| *closing) => return,
                    () = hear_configuration(&clock, &standings, &mut replies, seen, until) => {}
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

    /// What clients of these voters believe; the latest first.
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

    /// `tells`: the voter keeps what this client believes, if it agrees with others.
    fn configuration_call(&self, tells: bool, heard: &str) -> Call {
        let who = if tells { self.client().to_string() } else { String::new() };
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

/// Waits for an answer, a new connection or the end of this time. What is to be told of an answer
/// is told.
async fn hear_configuration(
    clock: &Clock,
    standings: &Standings,
    replies: &mut Replies,
    seen: u64,
    until: Option<Moment>,
) {
    tokio::select! {
        biased;
        (voter, outcome) = replies.next() => {
            standings.configuration.note_answer(voter, entries(&outcome), clock.now());
        }
        () = standings.connected().changed_since(seen) => {}
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
