//! The smallest client that can ask a server something: one connection per command, RESP2.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::time::Duration;

use rmpv::ValueRef as Packed;

use super::process::connect;

/// A server's answer; an error reply is the `Err` of the call instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Nil,
    Int(i64),
    Text(String),
    List(Vec<Reply>),
}

impl Reply {
    /// Panics where it is none.
    #[track_caller]
    pub fn text(self) -> String {
        let Self::Text(text) = self else { panic!("no text: {self:?}") };
        text
    }

    /// The texts of a reply that is a list of them; panics at any other.
    #[track_caller]
    pub fn texts(self) -> Vec<String> {
        let Self::List(list) = self else { panic!("no list: {self:?}") };
        list.into_iter().map(Self::text).collect()
    }
}

/// Sends commands to the server that listens on `socket`, over one connection and each after the
/// reply to the one before it; each step has `limit` to finish.
pub(crate) fn talk(
    socket: &Path,
    commands: &[&[&str]],
    limit: Duration,
) -> Result<Vec<Result<Reply, String>>, String> {
    let all = || commands.iter().map(|words| words.join(" ")).collect::<Vec<_>>().join("; ");
    let failed = |cause: std::io::Error| format!("{}: {cause}", all());
    let mut stream = connect(socket).map_err(failed)?;
    stream.set_read_timeout(Some(limit)).map_err(failed)?;
    stream.set_write_timeout(Some(limit)).map_err(failed)?;
    let mut replies = BufReader::new(stream.try_clone().map_err(failed)?);
    let mut call = |words: &&[&str]| {
        stream.write_all(&encode(words))?;
        read_reply(&mut replies)
    };
    commands.iter().map(&mut call).collect::<std::io::Result<_>>().map_err(failed)
}

fn encode(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
    }
    bytes
}

/// The outer error is the connection's, the inner one the server's.
fn read_reply(from: &mut impl BufRead) -> std::io::Result<Result<Reply, String>> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    let line = line.trim_end();
    let (kind, rest) = line.split_at_checked(1).ok_or(std::io::ErrorKind::UnexpectedEof)?;
    let number = || rest.parse::<i64>().map_err(std::io::Error::other);
    Ok(match kind {
        "+" => Ok(Reply::Text(rest.to_owned())),
        "-" => Err(rest.to_owned()),
        ":" => Ok(Reply::Int(number()?)),
        "$" => Ok(match usize::try_from(number()?) {
            Ok(length) => read_text(from, length)?,
            Err(_) => Reply::Nil,
        }),
        "*" => match usize::try_from(number()?) {
            Ok(length) => read_list(from, length)?,
            Err(_) => Ok(Reply::Nil),
        },
        _ => return Err(std::io::Error::other(format!("not a reply: {line}"))),
    })
}

/// What a script packs is no text: it begins with a byte with which none begins.
fn read_text(from: &mut impl Read, length: usize) -> std::io::Result<Reply> {
    let mut bytes = vec![0; length + 2];
    from.read_exact(&mut bytes)?;
    bytes.truncate(length);
    Ok(match String::from_utf8(bytes) {
        Ok(text) => Reply::Text(text),
        Err(error) => unpacked(error.as_bytes())
            .unwrap_or_else(|| Reply::Text(String::from_utf8_lossy(error.as_bytes()).into_owned())),
    })
}

/// What a script packed into one text.
pub fn unpacked(packed: &[u8]) -> Option<Reply> {
    plain(rmpv::decode::read_value_ref(&mut &*packed).ok()?)
}

/// Texts as one, as `cmsgpack.unpack` reads them in a script.
pub fn packed(texts: &[&str]) -> Vec<u8> {
    let mut packed = Vec::new();
    let list = Packed::Array(texts.iter().map(|text| Packed::from(*text)).collect());
    rmpv::encode::write_value_ref(&mut packed, &list).expect("memory takes it");
    packed
}

fn plain(packed: Packed<'_>) -> Option<Reply> {
    Some(match packed {
        Packed::Nil => Reply::Nil,
        Packed::Integer(number) => Reply::Int(number.as_i64()?),
        Packed::String(text) => Reply::Text(text.as_str()?.to_owned()),
        Packed::Array(entries) => {
            Reply::List(entries.into_iter().map(plain).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

fn read_list(from: &mut impl BufRead, length: usize) -> std::io::Result<Result<Reply, String>> {
    // Every item is read, even after an error among them.
    let items = (0..length).map(|_| read_reply(from)).collect::<std::io::Result<Vec<_>>>()?;
    Ok(items.into_iter().collect::<Result<Vec<_>, _>>().map(Reply::List))
}
