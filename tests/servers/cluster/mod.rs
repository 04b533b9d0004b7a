//! Locks in a real cluster: where their keys are, and what redirects, migrations and failovers do
//! to them.

mod calls;
mod found;
mod moves;
mod promotion;
mod scene;
