//! What nearly every test of locks names: `use quorate_tests::prelude::*;`.

pub use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

pub use futures::future::join_all;
pub use quorate::{
    Builder, Cause, Cluster as Voters, Error, HoldId, HolderKind, LockKind, LockView, Lockable,
    MutexGuard, Observed, Owner, PermitGuard, Preference, Quarantine, Quorate, ReadGuard,
    RestartGuard, Token, Verdict, VoterReport, VoterView, WriteGuard,
    embedded::{self, EmbeddedVoter, Fault, FaultGuard, InFlight, Machine, Simulated as _},
    metric,
};
pub use quorate_support::{
    Cluster, Proxy, ROOT, RedisServer, Reply, Sentinels, Settings, eventually, eventually_async,
    read_file, without_lasting,
};
pub use tokio::{
    task::{JoinHandle, JoinSet},
    time::{sleep, timeout},
};

pub use crate::{
    asking::{Guard, How},
    claims,
    failures::assert_invalid,
    fixture::{Fixture, Stopwatch, ms, secs, trusted},
    inside::{all, client, heal, impatient, with_client},
    kind::{Client, Kind, turn},
    recorded::{added, counted, record, recorded},
    scene::{
        MS, are_empty, builder, connect, key, leased, now, patient, proxies, servers,
        servers_and_client, servers_with, since, timed, votes_for,
    },
    standing::{kept_out, make_old, until_given, until_kept_out, until_waiting},
    until,
};
