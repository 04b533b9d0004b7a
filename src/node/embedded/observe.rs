//! What a voter shows of itself: each script that ran, and its records.

use std::fmt;

use super::{
    commands::Database, fault::Fate, keyspace::Keyspace, lua, reply::Reply, server::ServerState,
    voter::EmbeddedVoter,
};
use crate::{
    node::{Call, Outcome},
    scripts::{Arg, Value},
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

/// A request for which a script ran, as [`EmbeddedVoter::observe`] tells it.
#[derive(Debug)]
pub struct Ran<'a> {
    client: &'a str,
    /// Of this request alone.
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

    /// What `KEYS` had of it.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.call.keys().map(|key| &**key)
    }

    /// What `ARGV` had of it, by the names in the script's header.
    pub fn args(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let Call { script, shared, .. } = self.call;
        let names = script.shared.iter().filter(|arg| **arg != Arg::Publish).chain(script.args);
        let args = shared.iter().chain(self.call.args());
        names.zip(args).map(|(name, arg)| (name.name(), &**arg))
    }

    /// The argument with this name; `None` where the script takes no such one.
    pub fn arg(&self, name: &str) -> Option<&str> {
        self.args().find_map(|(named, arg)| (named == name).then_some(arg))
    }

    /// Its answer begins with `code, ms, id`. What they mean stands at the top of the script's
    /// file.
    ///
    /// # Errors
    ///
    /// The message with which the script failed as a whole, or that the reply is of another shape.
    pub fn answer(&self) -> Result<(i64, i64, &str), &str> {
        if let Reply::List(entries) = self.reply.as_ref().map_err(String::as_str)?
            && let [Reply::Int(code), Reply::Int(ms), Reply::Text(id), ..] = entries.as_slice()
        {
            return Ok((*code, *ms, id));
        }
        Err("the reply does not begin with code, ms, id")
    }

    /// The entries of its answer behind these three.
    pub fn more(&self) -> &[Reply] {
        match self.reply {
            Ok(Reply::List(entries)) => entries.get(3..).unwrap_or_default(),
            _ => &[],
        }
    }

    /// Whether it is the second run of one request, by [`Fault::RunTwice`](super::Fault::RunTwice).
    pub fn again(&self) -> bool {
        self.again
    }

    /// The live keys after it, sorted.
    pub fn records(&self) -> Vec<Record> {
        self.keyspace.records().collect()
    }
}

impl EmbeddedVoter {
    /// Tells each request for which a script ran, right after it ran and before anything else does;
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

impl ServerState {
    /// Runs a script for a client, possibly not for the first time, and tells the observer.
    pub(super) fn run(
        &mut self,
        client: &str,
        call: &Call,
        (fate, again): (Fate, bool),
    ) -> Outcome<Value> {
        *self.runs.entry(call.script.name).or_default() += call.requests.len() as u64;
        self.database.begin_script(fate.no_room);
        let database = &mut self.database;
        let reply = match &self.observer {
            None => run(database, call),
            Some(observer) => observer.tell_each(database, (client, call, again)),
        };
        reply.map(Value::from).map_err(|message| Cause::Rejected(message.into()))
    }
}

impl Observer {
    /// Runs the requests of a call one by one, so that the records after each can be seen. It comes
    /// to what it would together: they share nothing but the voter's data.
    fn tell_each(
        &self,
        database: &mut Database,
        (client, call, again): (&str, &Call, bool),
    ) -> Result<Reply, String> {
        let mut entries = Vec::new();
        for request in 0..call.requests.len() {
            let call = &call.pick(&[request]);
            let reply = run(database, call);
            let keyspace = &database.keyspace;
            (self.0)(&Ran { client, call, reply: &reply, again, keyspace });
            match reply? {
                Reply::List(of_one) => entries.extend(of_one),
                other => return Ok(other),
            }
        }
        Ok(Reply::List(entries))
    }
}

fn run(database: &mut Database, call: &Call) -> Result<Reply, String> {
    let keys: Vec<&str> = call.keys().map(|key| &**key).collect();
    let publish = call.script.publishes().then_some("PUBLISH");
    let (shared, own) = (call.shared.iter().map(|arg| &**arg), call.args().map(|arg| &**arg));
    let args: Vec<&str> = shared.chain(publish).chain(own).collect();
    lua::run(database, call.script, &keys, &args)
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}
