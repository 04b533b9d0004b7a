//! One client's connection to an embedded voter.

use std::{fmt, sync::Arc, time::Duration};

use futures::future::{self, BoxFuture};
use tokio::runtime::Handle;

use super::{
    data::ConnectionId,
    server::{Errand, Server, ServerState},
};
use crate::{
    clock::Clock,
    proto::{Cause, ServerReport},
    scripts::{Answer, Value},
    voter::{Answers, Call, Ear, Identity, KeySearch, KeysFound, Node, Outcome},
};

/// How long an answer is waited for where the request says nothing about it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Ends when it is dropped.
pub(super) struct Connection {
    server: Arc<Server>,
    clock: Clock,
    id: ConnectionId,
}

impl Connection {
    /// Connects a client of this clock. Timers run on the current runtime.
    pub(super) fn open(server: Arc<Server>, ear: Arc<dyn Ear>, clock: Clock) -> Self {
        let id = server.act(|state| state.connect(ear, clock.clone(), Handle::current()));
        Self { server, clock, id }
    }

    fn ask(
        &self,
        errand: Errand,
        deadline: Duration,
    ) -> impl Future<Output = Outcome<Value>> + use<> {
        let sent = self.server.act(|state| state.send(self.id, errand));
        let clock = self.clock.clone();
        async move {
            tokio::select! {
                biased;
                outcome = sent? => outcome.unwrap_or_else(|_| Err(Cause::Broken("closed".into()))),
                () = clock.sleep(deadline) => Err(Cause::TimedOut(deadline)),
            }
        }
    }

    fn ask_for_nothing(&self, errand: Errand) -> BoxFuture<'static, Outcome<()>> {
        let answer = self.ask(errand, PATIENCE);
        Box::pin(async move { answer.await.map(drop) })
    }
}

impl Node for Connection {
    fn send(&self, call: Call) -> BoxFuture<'static, Answers> {
        let (deadline, requests, width) = (call.deadline, call.requests.len(), call.script.width);
        let answer = self.ask(Errand::Run(call), deadline);
        Box::pin(async move {
            match answer.await {
                Ok(value) => Answer::each(value, requests, width),
                Err(cause) => vec![Err(cause); requests],
            }
        })
    }

    fn subscribe(&self, channel: Arc<str>) -> BoxFuture<'static, Outcome<()>> {
        self.ask_for_nothing(Errand::Subscribe(channel))
    }

    fn unsubscribe(&self, channel: Arc<str>) -> BoxFuture<'static, Outcome<()>> {
        self.ask_for_nothing(Errand::Unsubscribe(channel))
    }

    fn identify(&self) -> BoxFuture<'static, Outcome<Identity>> {
        let (server, answer) = (Arc::clone(&self.server), self.ask(Errand::Identify, PATIENCE));
        Box::pin(async move {
            answer.await?;
            Ok(server.act(|state| state.life.identity(state.now)))
        })
    }

    fn rename(&self, _: usize) -> BoxFuture<'static, Outcome<()>> {
        self.server.act(ServerState::rename);
        Box::pin(future::ready(Ok(())))
    }

    fn survey(&self, _calls: Arc<str>) -> BoxFuture<'static, Outcome<Vec<ServerReport>>> {
        let wall = self.clock.wall();
        let info = self.server.act(|state| state.survey(wall));
        let report = ServerReport { server: self.server.label.to_string(), info };
        Box::pin(async move { Ok(vec![report]) })
    }

    fn search(&self, search: KeySearch) -> BoxFuture<'static, Outcome<KeysFound>> {
        let found = self.server.act(|state| state.search(&search));
        Box::pin(async move { found })
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let (server, id) = (Arc::clone(&self.server), self.id);
        Box::pin(async move { server.act(|state| state.close(id)) })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.server.act(|state| state.close(self.id));
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connection({} to {})", self.id, self.server.label)
    }
}
