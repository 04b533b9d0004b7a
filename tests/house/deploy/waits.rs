//! The waits of `deploy/` outlast every lease: no other test reads these files together.

use super::files::{NODES, Tree, UNIT, ensure, holds, number};

#[test]
fn a_node_without_its_data_and_the_next_update_wait_longer_than_the_longest_lease() {
    let claim = |tree: &Tree| {
        let longest = number(&tree.after("docs/settings.md", "| `longest_lease` | "));
        let waits = number(&tree.after(UNIT, "WITHOUT_DATA_WAIT="));
        ensure(waits > longest, format!("{waits} s are too short"))?;
        let start = number(&tree.unit("TimeoutStartSec"));
        ensure(start > 2 * waits, format!("{start} s end the wait"))?;
        let in_kubernetes = number(&tree.after(NODES, "|| exec sleep "));
        ensure(in_kubernetes == waits, "it is another wait in Kubernetes")?;
        let ready = number(&tree.after(NODES, "minReadySeconds: "));
        ensure(ready > longest, format!("{ready} s are no more than the longest lease"))
    };
    holds(
        claim,
        &[
            (UNIT, "WITHOUT_DATA_WAIT=31", "WITHOUT_DATA_WAIT=30"),
            (UNIT, "TimeoutStartSec=300", "TimeoutStartSec=30"),
            (NODES, "sleep 31", "sleep 30"),
            (NODES, "minReadySeconds: 35", "minReadySeconds: 30"),
            ("docs/settings.md", "| `longest_lease` | 30 s", "| `longest_lease` | 60 s"),
        ],
    );
}
