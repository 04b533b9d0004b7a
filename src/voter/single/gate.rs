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

#[derive(Debug, Default)]
pub(super) struct Gate(watch::Sender<GateState>);

#[derive(Debug, Default)]
enum GateState {
    /// No attempt to connect has come to anything yet.
    #[default]
    Untried,
    /// With what last went wrong.
    Closed(Arc<str>),
    /// For this link, until the next change.
    Open(Arc<Link>, Known),
}

impl Gate {
    /// An attempt to connect has failed.
    pub(super) fn failed(&self, why: Arc<str>) {
        self.0.send_replace(GateState::Closed(why));
    }

    /// Lets scripts pass to this link, until it is [over](Self::over).
    pub(super) fn open(&self, link: &Arc<Link>, known: Known) {
        self.0.send_replace(GateState::Open(Arc::clone(link), known));
    }

    /// Closes the gate if it is open for this link. It never opens for the same one again.
    pub(super) fn over(&self, link: &Arc<Link>, why: &Arc<str>) {
        self.0.send_if_modified(|state| {
            let open = state.is_open_for(link);
            if open {
                *state = GateState::Closed(Arc::clone(why));
            }
            open
        });
    }

    /// Completes when it is not open for this link.
    pub(super) async fn closed(&self, link: &Arc<Link>) {
        // The sender is here, so this cannot fail.
        let _ = self.0.subscribe().wait_for(|state| !state.is_open_for(link)).await;
    }

    /// The link that a script may be sent by now.
    pub(super) fn pass(&self) -> Outcome<Arc<Link>> {
        let link = Arc::clone(self.0.borrow().standing()?.0);
        if !link.is_trusted() {
            return Err(Cause::Unreachable(UNCONFIRMED.into()));
        }
        Ok(link)
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
            GateState::Open(link, _) => *link.place != *place,
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
    fn is_open_for(&self, link: &Arc<Link>) -> bool {
        matches!(self, Self::Open(open, _) if Arc::ptr_eq(open, link))
    }

    fn standing(&self) -> Outcome<(&Arc<Link>, &Known)> {
        match self {
            Self::Open(link, known) => Ok((link, known)),
            Self::Closed(why) => Err(Cause::Unreachable(Arc::clone(why))),
            Self::Untried => Err(Cause::Unreachable(UNTRIED.into())),
        }
    }
}
