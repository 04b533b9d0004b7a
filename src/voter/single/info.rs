//! What a server answers when it is asked about itself.

use std::collections::BTreeMap;

use fred::{
    interfaces::ClientLike,
    types::{ClusterHash, CustomCommand, Resp3Frame as Frame, Value as Argument, config::Options},
};

use super::{IDENTIFICATION, link::Link, replies};
use crate::{
    proto::{Cause, Persistence},
    scripts::Value,
    voter::Outcome,
};

/// An error reply is a frame too.
pub(super) async fn ask(link: &Link, name: &'static str, words: &[&str]) -> Outcome<Frame> {
    // The news of a connection comes a little before fred counts it as one.
    let options = Options { fail_fast: false, ..Link::options(IDENTIFICATION) };
    let command = CustomCommand::new_static(name, ClusterHash::Custom(0), false);
    let client = link.client.with_options(&options);
    let words: Vec<Argument> = words.iter().map(|word| (*word).into()).collect();
    let reply = client.custom_raw(command, words).await;
    link.noted(reply, IDENTIFICATION)
}

/// One line of an answer to `INFO`.
pub(super) fn field<'a>(info: &'a str, name: &str) -> Outcome<&'a str> {
    let value = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':').map(str::trim);
    let missing = || Cause::Rejected(format!("the answer to INFO has no {name}").into());
    info.lines().find_map(value).ok_or_else(missing)
}

/// What an answer to `CONFIG GET` names; nothing where the server refuses to tell.
pub(super) fn pairs(reply: Frame) -> BTreeMap<String, String> {
    let Frame::Map { data, .. } = reply else { return BTreeMap::new() };
    let text = |frame| match replies::value(frame) {
        Ok(Value::Text(text)) => Some(text),
        _ => None,
    };
    data.into_iter().filter_map(|(name, value)| Some((text(name)?, text(value)?))).collect()
}

/// What a server writes to its disk, as far as it tells; whether it writes at all is in `INFO`. By
/// one pattern: what `CONFIG GET` takes several of is not known to older servers.
pub(super) async fn persistence(link: &Link) -> Outcome<Persistence> {
    let mut told = pairs(ask(link, "CONFIG", &["GET", "*a[op][fp]*"]).await?);
    let no_appendfsync_on_rewrite =
        told.get("no-appendfsync-on-rewrite").map(|value| value == "yes");
    Ok(Persistence {
        appendonly: true,
        no_appendfsync_on_rewrite,
        appendfsync: told.remove("appendfsync"),
        aof_load_corrupt_tail_max_size: told.remove("aof-load-corrupt-tail-max-size"),
        ..Persistence::default()
    })
}

/// What one setting of the server is; nothing where it refuses to tell.
pub(super) async fn setting(link: &Link, name: &'static str) -> Outcome<Option<String>> {
    Ok(pairs(ask(link, "CONFIG", &["GET", name]).await?).remove(name))
}

pub(super) fn is_replica(info: &str) -> bool {
    field(info, "role").is_ok_and(|role| role == "slave")
}
