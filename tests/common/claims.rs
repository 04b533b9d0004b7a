//! One claim, many sets of voters.

/// Makes tests of scenarios: a module of the claim's name, with a test for each set of voters.
///
/// `everywhere` is one, three and five voters inside the process, one lock node as `deploy/` has
/// it, and five servers; `forgetful` is the same, but that no server keeps anything over a restart,
/// and on the one clients have no more rights than the documentation asks for; `minority` is where
/// some voters may be away: five inside the process, and five servers; `three` is three voters
/// inside the process, and three servers; `keeping` is the same, but that the servers keep all data
/// over a restart, except the second; `inside` is one, three and five voters inside the process.
///
/// `everywhere of FairMutex` is that with the fixture's mutexes of this kind, and
/// `everywhere of both` with mutexes, and once more with fair ones.
///
/// Without the feature `full` the sets are three voters inside the process and five servers, or
/// those of `minority`, `three` and `keeping`.
#[macro_export]
macro_rules! claims {
    ($which:ident of both: $($claim:ident),+ $(,)?) => { $(
        mod $claim {
            mod mutex {
                use super::super::$claim;
                $crate::claims!(@$which Mutex, $claim);
            }
            mod fair_mutex {
                use super::super::$claim;
                $crate::claims!(@$which FairMutex, $claim);
            }
        }
    )+ };
    ($which:ident of $kind:ident: $($claim:ident),+ $(,)?) => { $(
        mod $claim {
            use super::$claim;
            $crate::claims!(@$which $kind, $claim);
        }
    )+ };
    ($which:ident: $($claim:ident),+ $(,)?) => {
        $crate::claims!($which of Mutex: $($claim),+);
    };
    (@everywhere $kind:ident, $claim:ident) => {
        $crate::claims!(@inside $kind, $claim);
        #[cfg(feature = "full")]
        $crate::claims!(@servers on_one_lock_node, deployed(1), $kind, $claim);
        $crate::claims!(@servers on_five_servers, real(5), $kind, $claim);
    };
    (@forgetful $kind:ident, $claim:ident) => {
        $crate::claims!(@inside $kind, $claim);
        #[cfg(feature = "full")]
        $crate::claims!(@servers on_one_server, restricted(1), $kind, $claim);
        $crate::claims!(@servers on_five_servers, real(5), $kind, $claim);
    };
    (@minority $kind:ident, $claim:ident) => {
        $crate::claims!(@embedded on_five_embedded_voters, 5, $kind, $claim);
        $crate::claims!(@servers on_five_servers, real(5), $kind, $claim);
    };
    (@three $kind:ident, $claim:ident) => {
        $crate::claims!(@embedded on_three_embedded_voters, 3, $kind, $claim);
        $crate::claims!(@servers on_three_servers, real(3), $kind, $claim);
    };
    (@keeping $kind:ident, $claim:ident) => {
        $crate::claims!(@embedded on_three_embedded_voters, 3, $kind, $claim);
        $crate::claims!(@servers on_three_servers, durable_but_the_second(3), $kind, $claim);
    };
    (@inside $kind:ident, $claim:ident) => {
        #[cfg(feature = "full")]
        $crate::claims!(@embedded on_one_embedded_voter, 1, $kind, $claim);
        $crate::claims!(@embedded on_three_embedded_voters, 3, $kind, $claim);
        #[cfg(feature = "full")]
        $crate::claims!(@embedded on_five_embedded_voters, 5, $kind, $claim);
    };
    (@embedded $name:ident, $count:literal, $kind:ident, $claim:ident) => {
        #[tokio::test(start_paused = true)]
        async fn $name() {
            let voters = $crate::fixture::Fixture::embedded($count);
            $claim(voters.of_kind($crate::kind::Kind::$kind)).await;
        }
    };
    (@servers $name:ident, $make:ident($count:literal), $kind:ident, $claim:ident) => {
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            let voters = $crate::fixture::Fixture::$make($count);
            $claim(voters.of_kind($crate::kind::Kind::$kind)).await;
        }
    };
}

/// Waits until this is so, while other tasks run; there may be awaits in it.
#[macro_export]
macro_rules! until {
    ($what:expr, $is_so:expr $(,)?) => {
        $crate::prelude::eventually_async($what, async || $is_so).await
    };
}
