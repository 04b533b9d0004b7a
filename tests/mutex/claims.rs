//! One claim, many sets of voters.

/// Makes tests of scenarios: a module of the claim's name, with a test for each set of voters.
///
/// `everywhere` is one, three and five voters inside the process, one lock node as `deploy/` has
/// it, and five servers; `forgetful` is the same, but that no server keeps anything over a restart,
/// and on the one clients have no more rights than the README asks for; `minority` is where some
/// voters may be away: five inside the process, and five servers; `inside` is one, three and five
/// voters inside the process.
macro_rules! claims {
    ($which:ident: $($claim:ident),+ $(,)?) => { $(
        mod $claim {
            $crate::claims!(@$which $claim);
        }
    )+ };
    (@everywhere $claim:ident) => {
        $crate::claims!(@inside $claim);
        $crate::claims!(@test on_one_lock_node, deployed(1), $claim, flavor = "multi_thread");
        $crate::claims!(@test on_five_servers, real(5), $claim, flavor = "multi_thread");
    };
    (@forgetful $claim:ident) => {
        $crate::claims!(@inside $claim);
        $crate::claims!(@test on_one_server, restricted(1), $claim, flavor = "multi_thread");
        $crate::claims!(@test on_five_servers, real(5), $claim, flavor = "multi_thread");
    };
    (@minority $claim:ident) => {
        $crate::claims!(@test on_five_embedded_voters, embedded(5), $claim, start_paused = true);
        $crate::claims!(@test on_five_servers, real(5), $claim, flavor = "multi_thread");
    };
    (@inside $claim:ident) => {
        $crate::claims!(@test on_one_embedded_voter, embedded(1), $claim, start_paused = true);
        $crate::claims!(@test on_three_embedded_voters, embedded(3), $claim, start_paused = true);
        $crate::claims!(@test on_five_embedded_voters, embedded(5), $claim, start_paused = true);
    };
    (@test $name:ident, $make:ident($count:literal), $claim:ident, $($flag:tt)+) => {
        #[tokio::test($($flag)+)]
        async fn $name() {
            super::$claim($crate::fixture::Fixture::$make($count)).await;
        }
    };
}
pub(crate) use claims;
