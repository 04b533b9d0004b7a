//! The way for scripts: open while a connection stands on which the server has said who it is.

use std::sync::Arc;

use tokio::sync::watch;

use super::link::Link;
use crate::{
    proto::Cause,
    voter::{Identity, Outcome},
};

/// The trouble where nothing has been tried.
pub(super) const UNTRIED: &str = "not connected yet";
/// The trouble where the connection is about to end.
const UNCONFIRMED: &str = "no majority of the sentinels has named this server of late";

/// Who answers on a connection.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) identity: Identity,
    /// Its life, as its mark names it.
    pub(super) life: Arc<str>,
}

#[derive(Debug)]
pub(super) struct Gate(watch::Sender<GateState>);

#[derive(Debug)]
enum GateState {
    /// No attempt to connect has come to anything yet.
    Untried,
    /// With what last went wrong.
    Closed(Arc<str>),
    /// For this link, until the next change.
    Open(Arc<Link>, Known),
}

impl Gate {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(GateState::Untried))
    }

    /// An attempt to connect has failed.
    pub(super) fn failed(&self, why: Arc<str>) {
        self.0.send_replace(GateState::Closed(why));
    }

    /// Lets scripts pass to this link, until what this returns is dropped or the link is
    /// [over](Self::over).
    pub(super) fn open(&self, link: &Arc<Link>, known: Known) -> Opened<'_> {
        self.0.send_replace(GateState::Open(Arc::clone(link), known));
        Opened { gate: self, link: Arc::clone(link) }
    }

    /// Closes the gate if it is open for this link.
    pub(super) fn over(&self, link: &Arc<Link>, why: &Arc<str>) {
        self.0.send_if_modified(|state| {
            let open = matches!(state, GateState::Open(open, _) if Arc::ptr_eq(open, link));
            if open {
                *state = GateState::Closed(Arc::clone(why));
            }
            open
        });
    }

    /// The link that a script may be sent by now.
    pub(super) fn pass(&self) -> Outcome<Passage> {
        let mut changes = self.0.subscribe();
        let link = {
            let state = changes.borrow_and_update();
            Arc::clone(state.standing()?.0)
        };
        if !link.is_trusted() {
            return Err(Cause::Unreachable(UNCONFIRMED.into()));
        }
        Ok(Passage { link, changes })
    }

    /// Completes when the first attempt to connect has come to something.
    pub(super) async fn tried(&self) {
        let tried = |state: &GateState| !matches!(state, GateState::Untried);
        // The sender is here, so this cannot fail.
        let _ = self.0.subscribe().wait_for(tried).await;
    }

    /// Completes when it is open for a link to another place than this.
    pub(super) async fn elsewhere(&self, place: &str) {
        let elsewhere = |state: &GateState| match state {
            GateState::Open(link, _) => **link.place() != *place,
            _ => false,
        };
        // The sender is here, so this cannot fail.
        let _ = self.0.subscribe().wait_for(elsewhere).await;
    }

    /// What last went wrong.
    pub(super) fn trouble(&self) -> Arc<str> {
        match &*self.0.borrow() {
            GateState::Closed(why) => Arc::clone(why),
            GateState::Untried | GateState::Open(..) => UNTRIED.into(),
        }
    }

    /// Who answers on the connection that stands.
    pub(super) fn known(&self) -> Outcome<Known> {
        self.0.borrow().standing().map(|(_, known)| known.clone())
    }
}

impl GateState {
    fn standing(&self) -> Outcome<(&Arc<Link>, &Known)> {
        match self {
            Self::Open(link, known) => Ok((link, known)),
            Self::Closed(why) => Err(Cause::Unreachable(Arc::clone(why))),
            Self::Untried => Err(Cause::Unreachable(UNTRIED.into())),
        }
    }
}

/// Keeps the gate open.
#[must_use]
pub(super) struct Opened<'a> {
    gate: &'a Gate,
    link: Arc<Link>,
}

impl Opened<'_> {
    /// Completes when whoever used the link has found it [over](Gate::over).
    pub(super) async fn closed(&self) {
        if let Ok(mut passage) = self.gate.pass() {
            passage.closed().await;
        }
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        self.gate.over(&self.link, &self.link.trouble());
    }
}

/// A way through the gate.
pub(super) struct Passage {
    pub(super) link: Arc<Link>,
    changes: watch::Receiver<GateState>,
}

impl Passage {
    /// Completes when the gate has closed behind it.
    pub(super) async fn closed(&mut self) {
        // Whatever the change is, the link is over; where there is no gate any more, too.
        let _ = self.changes.changed().await;
    }
}
