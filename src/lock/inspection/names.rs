//! Which client each hold belongs to.

use super::{Inspection, RwInspection, SemaphoreInspection};
use crate::words::HoldId;

/// What names holds, each with its client's name.
pub(in crate::lock) trait NamesHolds {
    /// Calls `visit` for each hold and place in it.
    fn visit(&mut self, visit: impl FnMut(&HoldId, &mut Option<String>));
}

impl NamesHolds for Inspection {
    fn visit(&mut self, mut visit: impl FnMut(&HoldId, &mut Option<String>)) {
        for view in &mut self.voters {
            if let Ok(Some(holder)) = &mut view.holder {
                visit(&holder.hold, &mut holder.client_name);
            }
            for waiting in &mut view.queue {
                visit(&waiting.place, &mut waiting.client_name);
            }
        }
    }
}

impl NamesHolds for RwInspection {
    fn visit(&mut self, mut visit: impl FnMut(&HoldId, &mut Option<String>)) {
        for state in self.voters.iter_mut().filter_map(|view| view.state.as_mut().ok()) {
            if let Some(writer) = &mut state.writer {
                visit(&writer.hold, &mut writer.client_name);
            }
            for reader in &mut state.readers {
                visit(&reader.hold, &mut reader.client_name);
            }
            for waiting in state.waiting_writers.iter_mut().chain(&mut state.waiting_readers) {
                visit(&waiting.place, &mut waiting.client_name);
            }
        }
    }
}

impl NamesHolds for SemaphoreInspection {
    fn visit(&mut self, mut visit: impl FnMut(&HoldId, &mut Option<String>)) {
        for state in self.voters.iter_mut().filter_map(|view| view.state.as_mut().ok()) {
            for held in &mut state.holders {
                visit(&held.hold, &mut held.client_name);
            }
            for waiting in &mut state.queue {
                visit(&waiting.place, &mut waiting.client_name);
            }
        }
    }
}
