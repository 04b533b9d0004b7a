//! What users of locks rely on: each test's name is the claim.

mod admin;
mod amnesia;
mod blocking;
mod cancel;
mod election;
mod fair;
mod found;
mod held_too_long;
mod joint;
mod kinds;
mod lead;
mod mutex;
mod notes;
mod once;
mod owned;
mod redisson;
mod rw;
mod semaphore;
mod several;
mod tasks;
mod ticket;
