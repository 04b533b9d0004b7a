//! What every type of this module is: its async namesake, each call of which is waited for.

use crate::{locks::LockView, proto::Leader};

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

same!((), bool, usize, Leader, LockView);

/// Defines the mirror of a type: `with` are its settings, `get` what it knows, `call` what it waits
/// for, and `last` what it waits
/// for and ends with, or what happens where it may not wait.
macro_rules! mirror {
    (
        $(#[$about:meta])* $name:ident
        $(with $set:ident($value:ident: $setting:ty);)*
        $(get $get:ident -> $known:ty;)*
        $($(#[$more:meta])* call $call:ident($($arg:ident: $type:ty),*) -> $given:ty;)*
        $(last $last:ident($($own:ident: $owned:ty),*) or $left:literal;)*
    ) => {
        $(#[$about])*
        pub struct $name {
            inner: locks::$name,
        }

        impl Mirrored for locks::$name {
            type Mirror = $name;

            fn mirrored(self) -> $name {
                $name { inner: self }
            }
        }

        impl $name {
            $(
                #[doc = concat!("[`", stringify!($name), "::", stringify!($set), "`](crate::",
                    stringify!($name), "::", stringify!($set), ").")]
                pub fn $set(self, $value: $setting) -> Self {
                    Self { inner: self.inner.$set($value) }
                }
            )*
            $(
                #[doc = concat!("[`", stringify!($name), "::", stringify!($get), "`](crate::",
                    stringify!($name), "::", stringify!($get), ").")]
                pub fn $get(&self) -> $known {
                    self.inner.$get()
                }
            )*
            $(
                #[doc = concat!("[`", stringify!($name), "::", stringify!($call), "`](crate::",
                    stringify!($name), "::", stringify!($call), "); blocks.")]
                ///
                /// # Errors
                ///
                #[doc = concat!("As [there](crate::", stringify!($name), "::", stringify!($call),
                    "), and [`is_inside_runtime`](Error::is_inside_runtime): nothing was sent.")]
                $(#[$more])*
                pub fn $call(&self, $($arg: $type),*) -> Result<$given, Error> {
                    Ok(caller::wait(self.inner.$call($($arg),*))??.mirrored())
                }
            )*
            $(
                #[doc = concat!("[`", stringify!($name), "::", stringify!($last), "`](crate::",
                    stringify!($name), "::", stringify!($last), "); blocks.")]
                ///
                /// # Errors
                ///
                #[doc = concat!("As [there](crate::", stringify!($name), "::", stringify!($last),
                    "), and [`is_inside_runtime`](Error::is_inside_runtime): ", $left, ".")]
                pub fn $last(self, $($own: $owned),*) -> Result<(), Error> {
                    caller::wait(self.inner.$last($($own),*))?
                }
            )*
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.inner.fmt(f)
            }
        }
    };
}

pub(super) use mirror;
