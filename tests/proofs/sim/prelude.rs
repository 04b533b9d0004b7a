//! What nearly every file of the simulation names.

pub(crate) use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

pub(crate) use quorate::{
    Error, Owner, Preference, Quorate,
    embedded::{EmbeddedVoter, Machine, Ran, Record, Simulated as _},
};
pub(crate) use quorate_tests::{
    asking::{Asking, Guard, How, Kind, Lease},
    force::Access,
};
pub(crate) use rand::RngExt;
pub(crate) use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

pub(crate) use crate::sim::{
    laws::{
        Law,
        calm::{Calm, LEASE_MS, MS, Told, Waiting},
    },
    locks::{Lock, Rival, Vote, excludes},
    plan::{
        Cancel, ClientPlan, End, Further, Meanwhile, Mood, Part, Plan, Sets, Step, Times, Trouble,
        VoterPlan, What,
    },
    voters::{Ways, chance},
    world::{Breach, Held, Look, World, locked},
};
