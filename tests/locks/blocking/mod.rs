//! What users of the locks without async rely on. Their threads live in real time, so each claim is
//! tried on voters inside the process and on servers by plain tests.

mod basics;
mod kinds;
mod runtime;
#[cfg(target_os = "linux")]
mod thread;
mod work;

/// Makes two tests of each claim: on three voters inside the process, and on three servers.
macro_rules! on_three {
    ($($claim:ident),+ $(,)?) => { $(
        mod $claim {
            use quorate_tests::fixture::Fixture;

            #[test]
            fn on_three_embedded_voters() {
                super::$claim(&mut Fixture::embedded(3));
            }

            #[test]
            fn on_three_servers() {
                super::$claim(&mut Fixture::real(3));
            }
        }
    )+ };
}

use on_three;
