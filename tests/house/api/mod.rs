//! `api.txt` lists what users of the library can name, with all features. Whoever changes that
//! changes the file too, so that each change of the public interface is seen in a review.

mod expand;
mod list;
mod shown;
mod source;

use std::{collections::BTreeMap, env, fs};

use quorate_support::ROOT;

use self::source::Source;
use crate::tidy::tree;

const FILE: &str = "tests/house/api.txt";

fn listed(files: &[(&str, &str)]) -> Vec<String> {
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
    list_of(&files.collect()).lines().map(str::to_owned).collect()
}

fn list_of(files: &BTreeMap<String, String>) -> String {
    list::list(&Source::read(files))
}

/// The lines that the second list has and the first has not, and those it has not any more.
fn changes(old: &str, new: &str) -> Vec<String> {
    let lacks = |list: &str, line: &str| !list.lines().any(|other| other == line);
    let gone = old.lines().filter(|line| lacks(new, line)).map(|line| format!("- {line}"));
    let come = new.lines().filter(|line| lacks(old, line)).map(|line| format!("+ {line}"));
    gone.chain(come).collect()
}

#[test]
fn the_list_of_the_public_interface_is_that_of_the_code() {
    let list = list_of(&tree::files().into_iter().collect());
    let file = format!("{ROOT}/{FILE}");
    if env::var("QUORATE_API").is_ok_and(|to_do| to_do == "write") {
        fs::write(file, list).expect("the list can be written");
        return;
    }
    let written = fs::read_to_string(file).unwrap_or_default();
    assert!(
        written == list,
        "{FILE} is not what `src/` has; `tests/run api` writes it:\n{}",
        changes(&written, &list).join("\n")
    );
}

/// A library with one of each.
const LIB: &str = "
//! A library.
mod inner;
mod hidden;
#[cfg(test)]
mod tests_of_lib;
pub use inner::{Kind, Lock as Door, shown};
pub use other_crate::Foreign;
/// A function.
pub fn scripts() -> impl Iterator<Item = &'static str> { [].into_iter() }
fn private() {}
";

const INNER: &str = "
use super::hidden::Secret;
pub mod shown;
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Kind { One, Two(u8), Three { left: crate::inner::Kind } }
pub struct Lock { pub name: String, secret: Secret }
impl Lock {
    pub async fn lock(mut self, limit: Duration) -> Result<(), Error> { todo(self) }
    pub(crate) fn quiet(&self) {}
    fn quieter(&self) {}
}
impl Drop for Lock { fn drop(&mut self) {} }
impl From<Secret> for Lock { fn from(secret: Secret) -> Self { todo(secret) } }
impl From<Kind> for u64 { fn from(kind: Kind) -> Self { 1 } }
impl FromStr for Lock { type Err = Error; fn from_str(_: &str) -> Result<Self, Error> { todo() } }
macro_rules! guard {
    ($(#[$about:meta])* $name:ident, $text:literal) => {
        $(#[$about])*
        pub struct $name($crate::hidden::Secret);
        impl $name { #[doc = concat!(\"a\", $text)] pub fn hold(&self) -> &$crate::inner::Kind {
            todo()
        } }
    };
}
guard! {
    /// Made by a macro.
    Guard, \"text\"
}
pub use self::Guard as NotSeen;
";

const SHOWN: &str = "
#[cfg(feature = \"extra\")]
pub const MOST: u32 = 7;
pub const ALL: &[u32] = &[MOST];
pub use super::Guard;
";

const HIDDEN: &str = "pub struct Secret;\nimpl Clone for Secret {}\n";

fn planted(changed: &str, from: &str, to: &str) -> Vec<String> {
    let files = [
        ("src/lib.rs", LIB),
        ("src/inner/mod.rs", INNER),
        ("src/inner/shown.rs", SHOWN),
        ("src/hidden.rs", HIDDEN),
    ];
    let text = files.map(|(path, text)| {
        let is_changed = path == changed;
        assert!(!is_changed || text.contains(from), "{path}: {from}");
        (path, if is_changed { text.replacen(from, to, 1) } else { text.to_owned() })
    });
    listed(&text.each_ref().map(|(path, text)| (*path, text.as_str())))
}

#[test]
fn the_list_has_what_users_can_name_and_nothing_else() {
    let expected = [
        "async fn quorate::Door::lock(self, limit: Duration) -> Result<(), Error>",
        "const quorate::shown::ALL: &[u32]",
        "const quorate::shown::MOST: u32 = 7 [extra]",
        "enum quorate::Kind (non-exhaustive)",
        "field quorate::Door.name: String",
        "fn quorate::scripts() -> impl Iterator<Item = &'static str>",
        "fn quorate::shown::Guard::hold(&self) -> &Kind",
        "impl Clone for quorate::Kind",
        "impl Debug for quorate::Kind",
        "impl Drop for quorate::Door",
        "impl From<Kind> for u64",
        "impl FromStr for quorate::Door { type Err = Error }",
        "mod quorate",
        "mod quorate::shown",
        "struct quorate::Door (with private fields)",
        "struct quorate::shown::Guard (with private fields)",
        "use quorate::Foreign = other_crate::Foreign",
        "variant quorate::Kind::One",
        "variant quorate::Kind::Three { left: Kind }",
        "variant quorate::Kind::Two(u8)",
    ];
    assert_eq!(planted("", "", ""), expected);
}

#[test]
fn every_change_of_the_public_interface_changes_the_list() {
    let before = planted("", "", "");
    for (file, from, to) in [
        ("src/inner/mod.rs", "fn quieter", "pub fn louder() {}\nfn quieter"),
        ("src/inner/mod.rs", "limit: Duration", "limit: Option<Duration>"),
        ("src/inner/mod.rs", "pub async fn lock", "pub fn lock"),
        ("src/inner/mod.rs", "Clone, Debug", "Debug"),
        ("src/inner/mod.rs", "One,", "One, Four,"),
        ("src/inner/mod.rs", "Two(u8)", "Two(u16)"),
        ("src/inner/mod.rs", "#[non_exhaustive]", ""),
        ("src/inner/mod.rs", "impl Drop for Lock { fn drop(&mut self) {} }", ""),
        ("src/inner/mod.rs", "pub name: String", "name: String"),
        ("src/inner/mod.rs", "type Err = Error", "type Err = Infallible"),
        ("src/inner/mod.rs", "pub fn hold(&self)", "pub fn hold(self)"),
        ("src/inner/shown.rs", "= 7", "= 8"),
        ("src/inner/shown.rs", "#[cfg(feature = \"extra\")]", ""),
        ("src/lib.rs", "fn private", "pub fn private"),
        ("src/lib.rs", "Lock as Door", "Lock"),
    ] {
        assert_ne!(planted(file, from, to), before, "{file}: `{from}` became `{to}`");
    }
    for (file, from, to) in [
        ("src/inner/mod.rs", "todo(self)", "other(self)"),
        ("src/inner/mod.rs", "mut self", "self"),
        ("src/inner/mod.rs", "fn quieter", "fn silent"),
        ("src/hidden.rs", "pub struct Secret;", "#[derive(Debug)] pub struct Secret;"),
        ("src/lib.rs", "/// A function.", "/// Another text."),
    ] {
        assert_eq!(planted(file, from, to), before, "{file}: `{from}` became `{to}`");
    }
}
