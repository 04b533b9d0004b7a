//! The file that has the settings.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use quorate::Builder;
use toml::{Table, Value};

use crate::{
    exit::{Code, Failure},
    setup::{Layer, variable},
};

/// The first that there is of those in the folders of the XDG specification.
pub(crate) fn usual() -> Option<PathBuf> {
    let folder = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let own = folder("XDG_CONFIG_HOME").map(PathBuf::from);
    let own = own.or_else(|| folder("HOME").map(|home| Path::new(&home).join(".config")));
    let shared = folder("XDG_CONFIG_DIRS").unwrap_or_else(|| "/etc/xdg".into());
    let shared: Vec<_> = env::split_paths(&shared).collect();
    // Relative ones do not count, says the specification.
    let folders = own.into_iter().chain(shared).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join("quorate/config.toml")).find(|path| path.exists())
}

pub(crate) fn read(path: &Path) -> Result<Layer, Failure> {
    let wrong = |what: String| Failure::new(Code::Config, format!("{}: {what}", path.display()));
    let text = fs::read_to_string(path).map_err(|cause| wrong(cause.to_string()))?;
    parse(path, &text).map_err(wrong)
}

fn parse(path: &Path, text: &str) -> Result<Layer, String> {
    let table: Table = text.parse().map_err(|error| explain(text, &error))?;
    let mut layer = Layer::file(path);
    for (key, value) in table {
        let name = variable(&key);
        if key != key.to_lowercase() || !Builder::variables().any(|known| known == name) {
            let keys: Vec<_> = Builder::variables().map(key_of).collect();
            return Err(format!("unknown key `{key}`; known are {}", keys.join(", ")));
        }
        let value = text_of(&value).ok_or_else(|| {
            format!("`{key}` is to be a text, a number, true, false, or a list of texts")
        })?;
        layer.set(&key, value);
    }
    Ok(layer)
}

fn key_of(variable: &str) -> String {
    variable.trim_start_matches("QUORATE_").to_lowercase()
}

/// As the library reads it from a variable.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Boolean(is_so) => Some(is_so.to_string()),
        Value::Array(list) => {
            let texts: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
            Some(texts?.join(" "))
        }
        _ => None,
    }
}

/// Where the error is, without the text of the line: a password may stand there.
fn explain(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map_or(1, |before| before.matches('\n').count() + 1);
    // Several lines where it lists what it had expected.
    let message: Vec<_> = error.message().lines().map(str::trim).collect();
    format!("line {line}: {}", message.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        parse(Path::new("a.toml"), text).expect_err("it is refused")
    }

    #[test]
    fn keys_are_those_of_the_library_in_small_letters() {
        let text = "voters = ['redis://a', 'redis://b']\nlease = '20s'\nreplica_acks = 1\n\
                    allow_eviction = false";
        let layer = parse(Path::new("a.toml"), text).unwrap();
        let of = |key: &str| layer.get(key).and_then(|value| value.to_str()).unwrap().to_owned();
        assert_eq!(of("voters"), "redis://a redis://b");
        assert_eq!([of("lease"), of("replica_acks")], ["20s", "1"]);
        assert_eq!(of("allow_eviction"), "false");
    }

    #[test]
    fn an_unknown_key_is_named_and_a_secret_is_not_shown() {
        assert!(refused("lease_ms = 5").starts_with("unknown key `lease_ms`; known are "));
        assert!(refused("Lease = '5s'").starts_with("unknown key `Lease`"));
        assert!(refused("[voters]\na = 1").starts_with("`voters` is to be a text"));
        let wrong = refused("lease = '5s'\npassword = secret\n");
        assert!(wrong.starts_with("line 2: ") && !wrong.contains("secret"), "{wrong}");
    }
}
