//! The macro that makes each blocking type from its async namesake.

use crate::{
    locks::{LockView, SemaphoreView},
    proto::{HoldId, HoldTicket, Leader},
};

/// Turns the value of an async call into the value of the blocking call.
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

// A list: an async call that gives a new type of guard does not compile here until it has a mirror.
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

/// Defines the mirror of a type, with a row for each method. The first word of a row says what kind
/// of method it is:
///
/// | word | the method |
/// |---|---|
/// | `with` | is a setting |
/// | `make` | gives another type, without a request |
/// | `get` | reads what the value knows |
/// | `call` | blocks, and can fail |
/// | `ask` | blocks, and fails only inside a runtime |
/// | `last` | consumes the value; the row says what happens to it if the call is refused |
/// | `run` | takes a guard by one method, and works with what another method of the guard gives |
/// | `lost` | waits for a loss |
// Rows and no methods by hand: so what a method does and says cannot differ from its async
// namesake.
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
    (@get $name:ident $method:ident() -> $given:ty) => {
        #[doc = mirror!(@there $name $method ".")]
        pub fn $method(&self) -> $given {
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
        @ask $name:ident $(#[$more:meta])* $method:ident($($arg:ident: $type:ty),*) -> $given:ty
    ) => {
        #[doc = mirror!(@there $name $method "; blocks.")]
        ///
        /// # Errors
        ///
        /// [`is_inside_runtime`](Error::is_inside_runtime) only: nothing was sent.
        $(#[$more])*
        pub fn $method(&self, $($arg: $type),*) -> Result<$given, Error> {
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
        /// still held then. Use it as a pause between two steps of work: it ends at once when
        /// there is no point in going on.
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
            // The timer is made when this is polled, within a runtime: the caller may have none.
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
