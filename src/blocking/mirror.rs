//! What every type of this module is: its async namesake, each call of which is waited for.

use crate::{
    locks::{LockView, SemaphoreView},
    proto::{HoldId, HoldTicket, Leader},
};

/// What an async call gives, as programs without async get it.
pub(super) trait Mirrored {
    type Mirror;
    fn mirrored(self) -> Self::Mirror;
}

impl<T: Mirrored> Mirrored for Option<T> {
    type Mirror = Option<T::Mirror>;

    fn mirrored(self) -> Self::Mirror {
        self.map(Mirrored::mirrored)
    }
}

macro_rules! same {
    ($($type:ty),+) => {$(
        impl Mirrored for $type {
            type Mirror = Self;

            fn mirrored(self) -> Self {
                self
            }
        }
    )+};
}

same!((), bool, usize, HoldTicket, Vec<HoldId>, Vec<String>, Leader, LockView, SemaphoreView);

/// Defines the mirror of a type, a row for each of its methods. The rules that begin with `@` say
/// what the first word of a row means: `with` is a setting, `make` gives another type, `get` is
/// what it knows, `call` is waited for, `ask` is one that cannot fail but where it may not wait,
/// `last` is one that ends it, or else does what the row says, `run` works with something that the
/// guard has which another call gives, and `lost` waits for a loss.
macro_rules! mirror {
    (
        $(#[$about:meta])* $module:ident::$name:ident;
        $($(#[$more:meta])* $how:ident $method:ident($($arg:ident: $type:ty),*)
            $(-> $given:ty)? $(= $other:tt)?;)*
    ) => {
        $(#[$about])*
        pub struct $name {
            inner: $module::$name,
        }

        impl Mirrored for $module::$name {
            type Mirror = $name;

            fn mirrored(self) -> $name {
                $name { inner: self }
            }
        }

        impl $name {
            $(mirror! {
                @$how $name $(#[$more])* $method($($arg: $type),*) $(-> $given)? $(= $other)?
            })*
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.inner.fmt(f)
            }
        }
    };
    (@with $name:ident $method:ident($($value:ident: $type:ty)?)) => {
        #[doc = mirror!(@there $name $method ".")]
        pub fn $method(self $(, $value: $type)?) -> Self {
            Self { inner: self.inner.$method($($value)?) }
        }
    };
    (@make $name:ident $method:ident($($arg:ident: $type:ty),*) -> $made:ty) => {
        #[doc = mirror!(@there $name $method ".")]
        pub fn $method(&self, $($arg: $type),*) -> $made {
            self.inner.$method($($arg),*).mirrored()
        }
    };
    (@get $name:ident $method:ident() -> $known:ty) => {
        #[doc = mirror!(@there $name $method ".")]
        pub fn $method(&self) -> $known {
            self.inner.$method()
        }
    };
    (
        @call $name:ident $(#[$more:meta])* $method:ident($($arg:ident: $type:ty),*) -> $given:ty
    ) => {
        #[doc = mirror!(@there $name $method "; blocks.")]
        ///
        /// # Errors
        ///
        #[doc = mirror!(@as_there $name $method "nothing was sent")]
        $(#[$more])*
        pub fn $method(&self, $($arg: $type),*) -> Result<$given, Error> {
            Ok(caller::wait(self.inner.$method($($arg),*))??.mirrored())
        }
    };
    (
        @ask $name:ident $(#[$more:meta])* $method:ident($($arg:ident: $type:ty),*) -> $told:ty
    ) => {
        #[doc = mirror!(@there $name $method "; blocks.")]
        ///
        /// # Errors
        ///
        /// [`is_inside_runtime`](Error::is_inside_runtime) only: nothing was sent.
        $(#[$more])*
        pub fn $method(&self, $($arg: $type),*) -> Result<$told, Error> {
            caller::wait(self.inner.$method($($arg),*))
        }
    };
    (
        @last $name:ident $(#[$more:meta])* $method:ident($($arg:ident: $type:ty),*) -> $given:ty
            = $left:tt
    ) => {
        #[doc = mirror!(@there $name $method "; blocks.")]
        ///
        /// # Errors
        ///
        #[doc = mirror!(@as_there $name $method $left)]
        $(#[$more])*
        pub fn $method(self, $($arg: $type),*) -> Result<$given, Error> {
            Ok(caller::wait(self.inner.$method($($arg),*))??.mirrored())
        }
    };
    (
        @run $name:ident $(#[$more:meta])* $method:ident($($arg:ident: $asked:ty),*) -> $given:ty
            = ($take:ident, $get:ident)
    ) => {
        $(#[$more])*
        pub fn $method<T, E: From<Error>>(
            &self,
            $($arg: $asked,)*
            work: impl FnOnce($given) -> Result<T, E>,
        ) -> Result<T, E> {
            let guard = self.$take($($arg),*)?;
            // Outside of the clients' runtime: the work may have one of its own.
            let done = work(guard.$get());
            after_work(done, guard.release())
        }
    };
    (@lost $name:ident $method:ident($limit:ident: $type:ty)) => {
        /// Waits until it is lost, no longer than `limit`, and returns why; `None` if it is
        /// still held then. A pause between two steps of work that ends at once when there is
        /// no point in going on.
        ///
        /// # Errors
        ///
        /// [`is_inside_runtime`](Error::is_inside_runtime) only.
        ///
        /// # Examples
        ///
        /// ```
        /// # fn main() -> Result<(), quorate::Error> {
        /// # let voters = quorate::embedded::voters(3);
        /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
        /// # let mut steps = 0;
        /// use std::time::Duration;
        ///
        /// let guard = quorum.mutex("invoice:42").lock()?;
        /// while guard.lost_within(Duration::from_millis(10))?.is_none() {
        ///     // one step of the work
        /// #   steps += 1;
        /// #   if steps == 2 { quorum.close()?; }
        /// }
        /// # assert!(!guard.is_held() && steps == 2);
        /// # Ok(())
        /// # }
        /// ```
        pub fn $method(&self, $limit: $type) -> Result<Option<Error>, Error> {
            let lost = self.inner.lost();
            caller::wait(async move { tokio::time::timeout($limit, lost).await.ok() })
        }
    };
    (@there $name:ident $method:ident $end:literal) => {
        concat!("[`", stringify!($name), "::", stringify!($method), "`](crate::",
            stringify!($name), "::", stringify!($method), ")", $end)
    };
    (@as_there $name:ident $method:ident $left:tt) => {
        concat!("As [there](crate::", stringify!($name), "::", stringify!($method),
            "), and [`is_inside_runtime`](Error::is_inside_runtime): ", $left, ".")
    };
}

pub(super) use mirror;
