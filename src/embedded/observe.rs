//! What a voter shows of each script that runs.

use super::{
    commands::Reply,
    data::{Database, Keyspace, Record},
    lua,
};
use crate::voter::Call;

/// A request for which a script ran, as
/// [`EmbeddedVoter::observe`](super::EmbeddedVoter::observe) tells it.
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
        self.call.keys()
    }

    /// What `ARGV` had of it, by the names in the script's header.
    pub fn args(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let Call { script, shared, .. } = self.call;
        let names =
            script.shared.iter().filter(|name| **name != "publish").chain(script.args.iter());
        let args = shared.iter().map(|arg| &**arg).chain(self.call.args());
        names.copied().zip(args)
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

/// Is told of each script that ran, under the voter's lock.
pub(super) type Observe = dyn Fn(&Ran<'_>) + Send + Sync;

/// Runs a call. Where somebody observes, its requests run one by one, so that the records after
/// each can be seen. It comes to what it would together: they share nothing but the voter's data.
pub(super) fn run(
    database: &mut Database,
    observe: Option<&Observe>,
    client: &str,
    call: &Call,
    again: bool,
) -> Result<Reply, String> {
    let Some(observe) = observe else { return lua::run(database, call) };
    let mut entries = Vec::new();
    for request in 0..call.requests.len() {
        let call = &call.pick(&[request]);
        let reply = lua::run(database, call);
        observe(&Ran { client, call, reply: &reply, again, keyspace: &database.keyspace });
        match reply? {
            Reply::List(of_one) => entries.extend(of_one),
            other => return Ok(other),
        }
    }
    Ok(Reply::List(entries))
}
