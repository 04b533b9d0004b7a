//! Scripts touch no key that they do not declare: a cluster, and whoever watches over a managed
//! server, counts on that. Those of an `RReadWriteLock` declare what the keys of its readers begin
//! with: nobody but the script knows who reads, in Java's own scripts either.

use std::{cell::RefCell, collections::BTreeSet};

use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{TestCaseResult, TestRunner},
};

use crate::scripts::{
    Step,
    calls::{any_call, calls_of, with_leases},
    config, words,
};
use quorate_support::{RedisServer, Reply, eventually};

/// All keys of one call are in its slot.
const TAG: &str = "{slot}";

/// A cluster of one server, which refuses keys of several slots in one call.
fn cluster() -> RedisServer {
    let server = RedisServer::start_with(&["--cluster-enabled", "yes"]);
    let mut all = vec!["CLUSTER".to_owned(), "ADDSLOTS".to_owned()];
    all.extend((0..16_384).map(|slot: u32| slot.to_string()));
    server.command(&all.iter().map(String::as_str).collect::<Vec<_>>()).expect("all slots are its");
    eventually("the cluster is whole", || {
        let info = server.command(&["CLUSTER", "INFO"]);
        matches!(info, Ok(Reply::Text(info)) if info.contains("cluster_state:ok"))
    });
    server
}

/// Runs a call where nothing may be touched but the keys that it declares.
fn run_confined(server: &RedisServer, call: &Step) -> Result<Reply, String> {
    let count: usize = call[2].parse().expect("the number of keys");
    let keys: Vec<_> = call[3..3 + count].iter().map(|key| format!("{TAG}{key}")).collect();
    let pattern = |key: &String| {
        let begins = key.contains("java-stem").then(|| format!("~{key}:*"));
        [Some(format!("~{key}")), begins].into_iter().flatten()
    };
    let patterns: Vec<_> = keys.iter().flat_map(pattern).collect();
    let rules = ["ACL", "SETUSER", "default", "resetkeys"].into_iter();
    let rules: Vec<_> = rules.chain(patterns.iter().map(String::as_str)).collect();
    server.command(&rules)?;
    let (head, args) = (&call[..3], &call[3 + count..]);
    let words: Vec<_> = head.iter().chain(&keys).chain(args).map(String::as_str).collect();
    server.command(&words)
}

/// No request of the call failed, but for want of tokens or of permits.
fn must_be_content(reply: Result<Reply, String>) -> TestCaseResult {
    let reply = reply.map_err(TestCaseError::fail)?;
    let Reply::List(entries) = &reply else { panic!("no list: {reply:?}") };
    for answer in entries.chunks(3) {
        if let [Reply::Int(-1), _, Reply::Text(message)] = answer {
            let is_want = message.contains("used up") || message.contains("permit");
            prop_assert!(is_want, "{message}");
        }
    }
    Ok(())
}

#[test]
fn every_script_touches_the_keys_that_it_declares_and_no_other() {
    let server = cluster();
    let ran = RefCell::new(BTreeSet::new());
    for seed in 1..=2 {
        let call = prop_oneof![any_call(), calls_of("rw/")];
        let checked = TestRunner::new(config(seed, 40)).run(&vec(call, 1..40), |calls| {
            server.command(&["FLUSHALL"]).map_err(TestCaseError::fail)?;
            for (number, call) in calls.iter().enumerate() {
                let call = &with_leases(call, number);
                ran.borrow_mut().insert(call[1].clone());
                must_be_content(run_confined(&server, call))?;
            }
            Ok(())
        });
        checked.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    }
    let all: BTreeSet<_> = quorate::scripts().map(|(_, source)| source.to_owned()).collect();
    assert_eq!(*ran.borrow(), all);
}

/// The check above would see it.
#[test]
fn a_key_that_is_not_declared_or_in_another_slot_is_refused() {
    let server = cluster();
    let refused = server.command(&["EVAL", "return 1", "2", "{a}", "{b}"]).unwrap_err();
    assert!(refused.starts_with("CROSSSLOT"), "{refused}");
    let more = "return redis.call('GET', KEYS[1] .. ':more')";
    let call = words(&["EVAL", more, "1", "lock"]);
    let refused = must_be_content(run_confined(&server, &call)).expect_err("it is not declared");
    // Servers word it in several ways.
    assert!(refused.to_string().contains("access"), "{refused}");
}
