//! A client's connection to the voter.

use std::{
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use futures::future::{self, BoxFuture};
use tokio::{runtime::Handle, sync::oneshot};

use super::{ConnectionId, Content, Server};
use crate::{
    clock::Clock,
    proto::{Cause, ClockOffset, ServerReport},
    scripts::{Answer, Value},
    voter::{Answers, Call, Identity, KeySearch, KeysFound, Node, Outcome, VoterEvents},
};

/// How long to wait for an answer to a request without a deadline of its own.
const PATIENCE: Duration = Duration::from_secs(1);

/// A client's connection. It ends when it is dropped.
pub(in crate::embedded) struct Connection {
    server: Arc<Server>,
    clock: Clock,
    id: ConnectionId,
    // Dropped with the connection, which ends the task that looks who answers. Otherwise the task
    // would sleep for up to ten seconds more.
    _open: oneshot::Sender<()>,
}

impl Connection {
    /// Connects a client of this clock. Timers run on the current runtime.
    pub(in crate::embedded) fn open(
        server: Arc<Server>,
        listener: Arc<dyn VoterEvents>,
        clock: Clock,
    ) -> Self {
        let id = server.act(|state| state.connect(listener, clock.clone()));
        let looks = look(Arc::downgrade(&server), id, clock.clone());
        let (open, closed) = oneshot::channel();
        clock.spawn(&Handle::current(), async move {
            tokio::select! {
                biased;
                _ = closed => {}
                () = looks => {}
            }
        });
        Self { server, clock, id, _open: open }
    }

    fn ask(
        &self,
        content: Content,
        deadline: Duration,
    ) -> impl Future<Output = Outcome<Value>> + use<> {
        // Sent when this returns, whether or not the future is ever polled (design 3).
        let sent = self.server.act(|state| state.send(self.id, content));
        let clock = self.clock.clone();
        async move {
            tokio::select! {
                // An answer that arrives at the deadline is in time, in each run of a simulation.
                biased;
                outcome = sent? => outcome.unwrap_or_else(|_| Err(Cause::Broken("closed".into()))),
                () = clock.sleep(deadline) => Err(Cause::TimedOut(deadline)),
            }
        }
    }

    fn ask_for_nothing(&self, content: Content) -> BoxFuture<'static, Outcome<()>> {
        let answer = self.ask(content, PATIENCE);
        Box::pin(async move { answer.await.map(drop) })
    }
}

/// Looks again and again who answers on a connection, until it is closed.
async fn look(server: Weak<Server>, id: ConnectionId, clock: Clock) {
    while let Some(pause) = server.upgrade().map(|server| server.act(|state| state.look_every)) {
        clock.sleep(pause).await;
        let asked = clock.now();
        let sent = server.upgrade().and_then(|server| server.act(|state| state.look(id)));
        let Some(sent) = sent else { return };
        let Ok(answer) = sent else { continue };
        let is_answered = tokio::select! {
            biased;
            answer = answer => answer.is_ok_and(|answer| answer.is_ok()),
            () = clock.sleep(PATIENCE) => false,
        };
        if is_answered && let Some(server) = server.upgrade() {
            server.act(|state| state.show(id, asked));
        }
    }
}

impl Node for Connection {
    fn send(&self, call: Call) -> BoxFuture<'static, Answers> {
        let (deadline, requests, width) = (call.deadline, call.requests.len(), call.script.width);
        let answer = self.ask(Content::Run(call), deadline);
        Box::pin(async move {
            match answer.await {
                Ok(value) => Answer::each(value, requests, width),
                Err(cause) => vec![Err(cause); requests],
            }
        })
    }

    fn subscribe(&self, channel: Arc<str>) -> BoxFuture<'static, Outcome<()>> {
        self.ask_for_nothing(Content::Subscribe(channel))
    }

    fn unsubscribe(&self, channel: Arc<str>) -> BoxFuture<'static, Outcome<()>> {
        self.ask_for_nothing(Content::Unsubscribe(channel))
    }

    fn identify(&self) -> BoxFuture<'static, Outcome<Identity>> {
        let (server, answer) = (Arc::clone(&self.server), self.ask(Content::Identify, PATIENCE));
        Box::pin(async move {
            answer.await?;
            Ok(server.act(|state| state.life.identity(state.machine.wall(), state.now)))
        })
    }

    fn rename(&self, _: usize) -> BoxFuture<'static, Outcome<()>> {
        self.server.act(|state| {
            // The name of when the client connected: if the data have another name by now, somebody
            // has renamed them before.
            let birth = state.links.get(&self.id).and_then(|link| link.birth.clone());
            state.life.rename(birth.as_ref(), state.now);
        });
        Box::pin(future::ready(Ok(())))
    }

    fn survey(&self, _calls: Arc<str>) -> BoxFuture<'static, Outcome<Vec<ServerReport>>> {
        let wall = self.clock.wall();
        let info = self.server.act(|state| {
            state.must_run()?;
            let clock = ClockOffset::new(state.machine.wall(), wall, Duration::ZERO);
            Ok(state.life.survey(clock, state.now))
        });
        let report = ServerReport { server: self.server.label.to_string(), info };
        Box::pin(future::ready(Ok(vec![report])))
    }

    fn search(&self, search: KeySearch) -> BoxFuture<'static, Outcome<KeysFound>> {
        let found = self.server.act(|state| state.search(&search));
        Box::pin(future::ready(found))
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
