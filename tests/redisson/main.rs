//! Redisson itself beside us on the same locks: each test's name is the claim.
//!
//! The other side is `java/`, with the newest jars of each line that is still used. Maven downloads
//! them.

mod contention;
mod expiry;
mod java;
mod kinds;
mod rw;
mod sharing;
mod stage;
mod wakes;

/// Each of these with both lines of Redisson.
macro_rules! with_each_redisson {
    ($($claim:ident),+ $(,)?) => {
        mod redisson_3 {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $claim() {
                super::$claim(crate::java::NEWEST_3).await;
            })+
        }

        mod redisson_4 {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $claim() {
                super::$claim(crate::java::NEWEST_4).await;
            })+
        }
    };
}

pub(crate) use with_each_redisson;
