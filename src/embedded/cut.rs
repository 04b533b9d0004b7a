//! Connections that break while their voter lives.

use super::{
    channels::ConnectionId,
    link::Wire,
    server::{ServerCondition, ServerState, reconnect},
};

/// What becomes of the requests that are on their way as their connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InFlight {
    /// They never run.
    Lost,
    /// Scripts run when they would have arrived, and nobody hears the answers: possibly after what
    /// was sent later, on the new connection, as a server may read the old one later.
    Arrives,
}

impl ServerState {
    pub(super) fn cut(&mut self, in_flight: InFlight, is_meant: impl Fn(&Wire) -> bool) {
        if self.condition == ServerCondition::Killed {
            return;
        }
        let mut cut = Vec::new();
        for (id, link) in self.links.iter_mut().filter(|(_, link)| is_meant(link)) {
            match in_flight {
                InFlight::Lost => {}
                InFlight::Arrives => link.leave_ghosts(),
            }
            cut.push(*id);
        }
        for id in cut {
            self.cut_off(id);
        }
    }

    /// Breaks a connection, which then stands again. Its ear is to be told.
    pub(super) fn cut_off(&mut self, id: ConnectionId) {
        let news = self.news();
        let Some(link) = self.links.get_mut(&id) else { return };
        self.after.heard.extend(link.break_off("cut"));
        self.database.channels.unsubscribe_all(id);
        self.after.heard.extend(reconnect(&mut self.database, id, link, &news));
    }
}
