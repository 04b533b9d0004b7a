//! What users of the mutex rely on. Each test's name is the claim; each claim is written once and
//! holds on voters inside the process (in paused time: fast and exact) and on real servers.

mod basics;
mod busy;
mod contention;
mod ends;
mod expiry;
mod handing_on;
mod inputs;
mod kept;
mod limits;
mod local_queue;
mod outage;
mod overload;
mod passing;
mod pins;
mod race;
mod recorder;
mod reentry;
mod seen;
mod validity;
mod waiting;
mod work;
