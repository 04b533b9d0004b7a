//! What a voter shows of itself: each script that ran, and its records.

use std::fmt;

use super::{
    fault::Fate, keyspace::Keyspace, lua, reply::Reply, server::State, voter::EmbeddedVoter,
};
use crate::{
    node::{Call, Outcome},
    scripts::Value,
    words::Cause,
};

/// A key of an embedded voter with its value and what is left of its time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Record {
    /// The key.
    pub key: String,
    /// The fields of a hash with their values, in order. A text is one field with an empty name;
    /// a sorted set has its members with their scores, in the order of the set.
    pub fields: Vec<(String, String)>,
    /// The milliseconds until the key expires, by the voter's own clock; `None`: it does not.
    pub left_ms: Option<i64>,
}

/// A script that ran for a client, as [`EmbeddedVoter::observe`] tells it.
#[derive(Debug)]
pub struct Ran<'a> {
    client: &'a str,
    call: &'a Call,
    reply: &'a Result<Reply, String>,
    again: bool,
    keyspace: &'a Keyspace,
}

impl Ran<'_> {
    /// Which client sent it: the label of its machine, or the number of its connection.
    pub fn client(&self) -> &str {
        self.client
    }

    /// The script's name, `mutex/acquire` for one.
    pub fn script(&self) -> &'static str {
        self.call.script.name
    }

    /// What was in `KEYS`.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.call.keys.iter().map(|key| &**key)
    }

    /// What was in `ARGV`.
    pub fn args(&self) -> impl Iterator<Item = &str> {
        self.call.args.iter().map(|arg| &**arg)
    }

    /// The whole reply.
    ///
    /// # Errors
    ///
    /// The message with which the script failed as a whole.
    pub fn reply(&self) -> Result<&Reply, &str> {
        self.reply.as_ref().map_err(String::as_str)
    }

    /// The answer to the first of the call's requests: `code, ms, text`. What they mean stands at
    /// the top of the script's file.
    ///
    /// # Errors
    ///
    /// The message with which the script failed as a whole, or that the reply is of another shape.
    pub fn answer(&self) -> Result<(i64, i64, &str), &str> {
        if let Reply::List(entries) = self.reply()?
            && let [Reply::Int(code), Reply::Int(ms), Reply::Text(text), ..] = entries.as_slice()
        {
            return Ok((*code, *ms, text));
        }
        Err("the reply does not begin with code, ms, text")
    }

    /// Whether it is the second run of one request, by [`Fault::RunTwice`](super::Fault::RunTwice).
    pub fn again(&self) -> bool {
        self.again
    }

    /// The live keys after the script, sorted.
    pub fn records(&self) -> Vec<Record> {
        self.keyspace.records().collect()
    }
}

impl EmbeddedVoter {
    /// Tells each script that ran for a client, right after it ran and before anything else does;
    /// [`command`](Self::command) is not told. There is one observer: the next call replaces it.
    ///
    /// `tell` is called under the voter's lock: it must not call this voter, nor drop what does (a
    /// client, a guard). One that keeps a clone of the voter keeps it alive for ever.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// let voters = quorate::embedded::voters(1);
    /// let seen = Arc::new(Mutex::new(Vec::new()));
    /// let notes = Arc::clone(&seen);
    /// voters[0].observe(move |ran| {
    ///     let granted = ran.answer().is_ok_and(|(code, ..)| code == 1);
    ///     notes.lock().unwrap().push((ran.script(), granted, ran.records().len()));
    /// });
    /// let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// quorum.mutex("invoice:42").lock().await?.release().await?;
    /// // The token stays.
    /// let expected = [("mutex/acquire", true, 2), ("mutex/release", true, 1)];
    /// assert_eq!(*seen.lock().unwrap(), expected);
    /// # Ok(())
    /// # }
    /// ```
    pub fn observe(&self, tell: impl Fn(&Ran<'_>) + Send + Sync + 'static) {
        let observer = Observer(Box::new(tell));
        // What is replaced is dropped outside the lock: it may own what calls the voter.
        drop(self.0.act(|state| state.observer.replace(observer)));
    }

    /// The live keys with their values, sorted.
    ///
    /// ```
    /// let voter = quorate::embedded::EmbeddedVoter::new("a");
    /// voter.command(&["HSET", "lock", "holder", "1"])?;
    /// let records = voter.records();
    /// assert_eq!(records[0].key, "lock");
    /// assert_eq!(records[0].fields, [("holder".to_owned(), "1".to_owned())]);
    /// assert_eq!(records[0].left_ms, None);
    /// # Ok::<(), String>(())
    /// ```
    pub fn records(&self) -> Vec<Record> {
        self.0.act(|state| state.database.keyspace.records().collect())
    }
}

/// Whom [`EmbeddedVoter::observe`] put there.
pub(super) struct Observer(Box<dyn Fn(&Ran<'_>) + Send + Sync>);

impl State {
    /// Runs a script for a client, possibly not for the first time, and tells the observer.
    pub(super) fn run(
        &mut self,
        client: &str,
        call: &Call,
        (fate, again): (Fate, bool),
    ) -> Outcome<Value> {
        *self.runs.entry(call.script.name).or_default() += 1;
        self.database.begin_script(fate.no_room);
        let reply = lua::run(&mut self.database, call.script, &call.keys, &call.args);
        if let Some(Observer(tell)) = &self.observer {
            let keyspace = &self.database.keyspace;
            tell(&Ran { client, call, reply: &reply, again, keyspace });
        }
        reply.map(Value::from).map_err(|message| Cause::Rejected(message.into()))
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}
