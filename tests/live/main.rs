//! A round of troubles: processes take locks of all kinds on real servers, while servers, networks,
//! clocks and the processes themselves fail. What each of them saw is on disk, and a checker that
//! shares nothing with the library reads it afterwards: `tests/common/check.rs`.
//!
//! | file | what it has |
//! |---|---|
//! | `worker` | a process that takes locks |
//! | `troubles` | what befalls servers, networks and workers |
//! | `round` | the servers, the workers, and one trouble after the other |
//! | `report` | the table and the picture |
//! | `clock.c` | what steps the wall clocks of servers and workers |
//! | `integers` | what stopped holders do to data, with tokens and without |
#![cfg(target_os = "linux")]

mod integers;
mod report;
mod round;
mod troubles;
mod worker;
