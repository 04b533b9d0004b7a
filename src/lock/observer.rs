//! Who leads, as it changes.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use futures::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};

use crate::{
    coordinator::{Coordinator, ElectionAsked, ElectionWatch},
    words::{Error, Leader},
};

/// Who leads an [`Election`](crate::Election), by what the voters say together.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Observed {
    /// A majority names this leader.
    Leader(Leader),
    /// Nobody leads: no candidate can have a majority.
    NoLeader,
    /// Whether anybody leads cannot be known: too few voters answer, or those that do may have
    /// forgotten whom they voted for. The error has what each of them said.
    Unknown(Error),
}

/// A stream of who leads an [`Election`](crate::Election): first who leads now, and then each
/// change.
///
/// Made by [`Election::observe`](crate::Election::observe). It ends when the client is closed, or
/// with an error as [`Observed::Unknown`] if the election cannot be asked for at all. It listens to
/// the voters from when it is first polled until it is dropped. Of changes that follow each other
/// faster than it is polled it tells the last.
#[must_use = "it does nothing until it is polled"]
pub struct Observer {
    name: String,
    /// In a mutex that nobody waits for, so that it may be shared.
    stream: Mutex<BoxStream<'static, Observed>>,
}

impl Observer {
    pub(super) fn new(
        name: &str,
        coordinator: &Arc<Coordinator>,
        asked: Result<ElectionAsked, Error>,
    ) -> Self {
        let stream = match asked {
            Ok(asked) => changes(Arc::clone(coordinator), asked).boxed(),
            Err(error) => stream::iter([Observed::Unknown(error)]).boxed(),
        };
        Self { name: name.to_owned(), stream: Mutex::new(stream) }
    }

    /// The next change, without a need for `StreamExt`; `None` once the client is closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: the next call goes on.
    pub async fn next(&mut self) -> Option<Observed> {
        self.changes().next().await
    }

    fn changes(&mut self) -> &mut BoxStream<'static, Observed> {
        self.stream.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

fn changes(
    coordinator: Arc<Coordinator>,
    asked: ElectionAsked,
) -> impl Stream<Item = Observed> + Send {
    // Nothing is sent before it is polled.
    let begin = async move { ElectionWatch::start(&coordinator, asked) };
    stream::once(begin).flat_map(|watch| {
        stream::unfold(watch, async |mut watch| {
            let observed = match watch.next().await.ok()? {
                Ok(Some(leader)) => Observed::Leader(leader),
                Ok(None) => Observed::NoLeader,
                Err(error) => Observed::Unknown(error),
            };
            Some((observed, watch))
        })
    })
}

impl Stream for Observer {
    type Item = Observed;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Observed>> {
        self.changes().poll_next_unpin(context)
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").field("name", &self.name).finish_non_exhaustive()
    }
}
