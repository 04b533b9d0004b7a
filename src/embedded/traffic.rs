//! Requests and messages on their ways, and what is done with each as it arrives.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{
    channels::ConnectionId,
    fault::{Fate, FaultTrouble},
    link::{Errand, Ghost, Letter, Parcel, Way, Wire, tell},
    observe,
    reply::Reply,
    sent::Sent,
    server::{ServerCondition, ServerState},
};
use crate::{
    proto::Cause,
    scripts::Value,
    voter::{Call, Outcome},
};

impl ServerState {
    /// Runs a script for a client, possibly not for the first time, and tells the observer.
    fn run(&mut self, client: &str, call: &Call, fate: Fate, again: bool) -> Outcome<Value> {
        *self.runs.entry(call.script.name).or_default() += call.requests.len() as u64;
        self.database.begin_script(fate.no_room);
        let database = &mut self.database;
        let mut reply = match &self.observer {
            None => observe::run(database, call),
            Some(observer) => observer.tell_each(database, client, call, again),
        };
        if let Ok(Reply::List(entries)) = &mut reply
            && call.script.votes
        {
            // Its mark is none of its keys.
            entries.push(Reply::Text(self.life.birth.clone()));
        }
        reply.map(Value::from).map_err(|message| Cause::Rejected(message.into()))
    }

    /// Sends a request on its way.
    pub(super) fn send(
        &mut self,
        id: ConnectionId,
        request: Errand,
    ) -> oneshot::Receiver<Outcome<Value>> {
        let number = self.count();
        let (answer, receiver) = oneshot::channel();
        let Some(link) = self.links.get_mut(&id).filter(|link| !link.closed) else {
            tell(answer, Err(Cause::Unreachable("closed".into())));
            return receiver;
        };
        match &request {
            Errand::Subscribe(channel) => drop(link.wanted.insert(Arc::clone(channel))),
            Errand::Unsubscribe(channel) => drop(link.wanted.remove(channel)),
            Errand::Run(_) | Errand::Identify => {}
        }
        if self.condition == ServerCondition::Killed {
            tell(answer, Err(Cause::Unreachable("killed".into())));
            return receiver;
        }
        if link.unmet > 0 && matches!(request, Errand::Run(_)) {
            tell(answer, Err(Cause::Unreachable("not met yet".into())));
            return receiver;
        }
        let fate = self.rules.fate(&Sent::of(&link.client, request.script(), false));
        if fate.trouble == FaultTrouble::RequestLost {
            link.forsake(answer);
            return receiver;
        }
        let letter = Letter { number, request, fate, answer };
        let at = link.there.push(self.now + fate.there, letter);
        if at > self.now {
            self.after.timers.push((link.runtime.clone(), at));
        }
        receiver
    }

    /// Does everything that is due, in the order of arrival.
    pub(super) fn settle(&mut self) {
        loop {
            self.announce();
            for link in self.links.values_mut() {
                link.deliver(self.now, &mut self.after.heard);
            }
            match self.next_arrival() {
                Some((id, Way::Present)) => self.serve(id),
                Some((id, Way::Former(index))) => self.serve_ghost(id, index),
                None => break,
            }
        }
        let is_over = |(_, link): &(&ConnectionId, &Wire)| link.is_over();
        let over: Vec<_> = self.links.iter().filter(is_over).map(|(id, _)| *id).collect();
        self.after.over.extend(over.iter().filter_map(|id| self.links.remove(id)));
    }

    /// Sends what was published on its way to the listeners.
    fn announce(&mut self) {
        for message in self.database.channels.take_published() {
            for id in self.database.channels.listeners_of(&message.channel) {
                let Some(link) = self.links.get_mut(&id) else { continue };
                if let Some(back) = self.rules.way_of_message(&Sent::of(&link.client, None, true)) {
                    let parcel = Parcel::Message(message.clone());
                    self.after.post(link, self.now, self.now + back, parcel);
                }
            }
        }
    }

    /// Which connection's request arrived first, and by which way.
    fn next_arrival(&self) -> Option<(ConnectionId, Way)> {
        if self.condition != ServerCondition::Running {
            return None;
        }
        let arrived = self.links.iter().flat_map(|(id, link)| {
            link.arrived(self.now).map(|(at, number, way)| (at, number, *id, way))
        });
        arrived.min().map(|(_, _, id, way)| (id, way))
    }

    fn serve(&mut self, id: ConnectionId) {
        let letter = self.links.get_mut(&id).and_then(|link| link.there.take_arrived(self.now));
        let Some(Letter { request, fate, answer, .. }) = letter else { return };
        let outcome = match fate.trouble {
            FaultTrouble::CutBeforeRun => Err(Cause::Unheard),
            _ => self.execute(id, &request, fate),
        };
        let Some(link) = self.links.get_mut(&id) else { return };
        match fate.trouble {
            FaultTrouble::None => {
                let parcel = Parcel::Asker(answer, outcome);
                self.after.post(link, self.now, self.now + fate.back, parcel);
            }
            FaultTrouble::ReplyLost | FaultTrouble::RequestLost => link.forsake(answer),
            FaultTrouble::CutBeforeRun | FaultTrouble::CutAfterRun => {
                link.forsake(answer);
                self.cut_off(id);
            }
        }
    }

    /// Serves a request that nobody waits for, of a connection that was cut.
    fn serve_ghost(&mut self, id: ConnectionId, index: usize) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let Some(Ghost { call, fate, .. }) = link.take_ghost(index, self.now) else { return };
        if fate.trouble != FaultTrouble::CutBeforeRun {
            drop(self.execute(id, &Errand::Run(call), fate));
        }
    }

    fn execute(&mut self, id: ConnectionId, request: &Errand, fate: Fate) -> Outcome<Value> {
        match request {
            Errand::Run(call) => {
                let client = self.links.get(&id).map(|link| Arc::clone(&link.client));
                let client = client.unwrap_or_default();
                let outcome = self.run(&client, call, fate, false);
                if fate.twice {
                    // What it leaves counts, not what it says.
                    drop(self.run(&client, call, fate, true));
                }
                return outcome;
            }
            // Who it is, is told where the answer arrives.
            Errand::Identify => {}
            Errand::Subscribe(channel) => {
                if self.links.get(&id).is_some_and(|link| !link.closed) {
                    self.database.channels.subscribe(id, Arc::clone(channel));
                }
            }
            Errand::Unsubscribe(channel) => {
                self.database.channels.unsubscribe(id, channel);
            }
        }
        Ok(Value::Nil)
    }
}
