//! Who did what, when, and on which voter.

use std::{collections::BTreeMap, fmt::Write};

pub(crate) struct Trace {
    /// Whether it is written. It costs as much as the schedule itself, so that a sweep does without
    /// and runs a seed that fails once more.
    is_on: bool,
    text: String,
    /// The labels of the clients, by their ids.
    names: BTreeMap<String, String>,
}

impl Trace {
    pub(crate) fn new(is_on: bool) -> Self {
        Self { is_on, text: String::new(), names: BTreeMap::new() }
    }

    pub(crate) fn note(&mut self, now_ms: u64, who: &str, what: impl FnOnce() -> String) {
        if !self.is_on {
            return;
        }
        let mut what = what();
        for (id, name) in &self.names {
            what = what.replace(id, name);
        }
        writeln!(self.text, "{now_ms:>7} ms  {who:<5} {what}").expect("a string takes all");
    }

    /// Calls the holds `<id>:<number>` of a client by its label.
    pub(crate) fn introduce(&mut self, hold: &str, client: &str) {
        if self.is_on
            && let Some((id, _)) = hold.rsplit_once(':')
        {
            self.names.entry(id.to_owned()).or_insert_with(|| client.to_owned());
        }
    }

    pub(crate) fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }
}
