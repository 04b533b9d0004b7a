//! The form of calls and answers on the wire: the arguments of `EVALSHA`, and frames as values.

use bytes::{BufMut, Bytes, BytesMut};
use rmp::{Marker, decode, encode};

use super::carrier::{Argument, Frame};
use crate::{
    proto::{Cause, Reason, ServerError},
    scripts::{Answer, Value},
    voter::{Call, Outcome},
};

/// How many bytes packing adds to each text at most, and to the list.
const PACKING: usize = 5;

/// The arguments of a call. `packs`: whether the server can unpack arguments. `fingerprint`: the
/// key of its fingerprint, if the answer shall name the data.
// All words are parts of one text. fred clones every argument: each that owned its bytes would be
// allocated once more.
pub(super) fn arguments(
    call: &Call,
    script: Bytes,
    publish: &'static str,
    packs: bool,
    fingerprint: Option<&str>,
) -> Vec<Argument> {
    let publish = call.script.publishes().then_some(publish);
    let shared = call.shared.iter().map(|text| &**text).chain(publish);
    let apart = call.keys().chain(fingerprint).chain(shared);
    let own = call.args();
    // Not for scripts with one argument for each request: they could not tell that argument from a
    // packed list. Packed, a call of 32 requests has one argument in place of up to 130, each of
    // which would be a frame for fred and an object for the server.
    let packs = packs && call.script.args.len() > 1;
    let count = apart.clone().count() + if packs { 1 } else { own.clone().count() };
    let length = apart.clone().chain(own.clone()).map(|text| text.len() + PACKING).sum::<usize>();

    let keys = call.requests.len() * call.script.keys.len() + usize::from(fingerprint.is_some());
    let mut words = Vec::with_capacity(2 + count);
    words.push(Argument::Bytes(script));
    words.push(Argument::Integer(i64::try_from(keys).unwrap_or(i64::MAX)));
    let mut text = BytesMut::with_capacity(length + PACKING);
    let mut push = |word: &str| {
        text.extend_from_slice(word.as_bytes());
        words.push(Argument::Bytes(text.split().freeze()));
    };
    apart.for_each(&mut push);
    if packs {
        pack(&mut text, own);
        words.push(Argument::Bytes(text.freeze()));
    } else {
        own.for_each(push);
    }
    words
}

/// Writes a list of texts for `cmsgpack.unpack`.
fn pack<'a>(to: &mut BytesMut, texts: impl Iterator<Item = &'a str> + Clone) {
    let mut to = to.writer();
    let count = u32::try_from(texts.clone().count()).unwrap_or(u32::MAX);
    encode::write_array_len(&mut to, count).expect("memory takes it");
    for text in texts {
        encode::write_str(&mut to, text).expect("memory takes it");
    }
}

/// The value of a reply; a cause if it is an error.
pub(super) fn value(frame: Frame) -> Outcome<Value> {
    Ok(match frame {
        Frame::Null => Value::Nil,
        Frame::Number { data, .. } => Value::Int(data),
        Frame::BlobString { data, .. }
        | Frame::SimpleString { data, .. }
        | Frame::VerbatimString { data, .. } => Value::Text(text(&data)),
        Frame::Array { data, .. } => {
            Value::List(data.into_iter().map(value).collect::<Outcome<_>>()?)
        }
        Frame::SimpleError { data, .. } => return Err(Cause::Rejected(Reason::of_server(&*data))),
        Frame::BlobError { data, .. } => {
            return Err(Cause::Rejected(Reason::of_server(text(&data))));
        }
        other => return Err(Cause::Rejected(format!("unexpected reply {other:?}").into())),
    })
}

/// The answer of a script, which servers pack into one text.
// A list of 32 answers would be 128 frames. A server without `cmsgpack` answers with that list.
pub(super) fn unpacked(frame: Frame) -> Outcome<Value> {
    let Frame::BlobString { data, .. } = frame else { return value(frame) };
    unpack(&mut &*data, DEPTH)
        .map_err(|why| Cause::Rejected(format!("the answer cannot be read: {why}").into()))
}

/// How many lists may stand in one another.
// No script answers with more than three. Without a limit, rubbish could overflow the stack.
const DEPTH: usize = 8;

/// Reads the first value in `rest`.
// Straight into our value. With a tree of another crate in between, this took 5 % of a client's
// time.
fn unpack(rest: &mut &[u8], depth: usize) -> Result<Value, String> {
    let marker = rest.first().map(|first| Marker::from_u8(*first)).ok_or(CUT)?;
    Ok(match marker {
        Marker::Null | Marker::False => {
            *rest = &rest[1..];
            Value::Nil
        }
        Marker::True => {
            *rest = &rest[1..];
            Value::Int(1)
        }
        // `cmsgpack` packs a number with a fraction as short as it can. Servers answer such a
        // number without its fraction if they do not pack.
        Marker::F32 => Value::Int(whole(decode::read_f32(rest).map_err(unreadable)?.into())),
        Marker::F64 => Value::Int(whole(decode::read_f64(rest).map_err(unreadable)?)),
        Marker::FixStr(_) | Marker::Str8 | Marker::Str16 | Marker::Str32 => {
            let length = decode::read_str_len(rest).map_err(unreadable)? as usize;
            let (words, behind) = rest.split_at_checked(length).ok_or(CUT)?;
            *rest = behind;
            Value::Text(text(words))
        }
        Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => {
            let depth = depth.checked_sub(1).ok_or("lists within lists")?;
            let count = decode::read_array_len(rest).map_err(unreadable)? as usize;
            // No more room than the rest has bytes, whatever the header says.
            let mut entries = Vec::with_capacity(count.min(rest.len()));
            for _ in 0..count {
                entries.push(unpack(rest, depth)?);
            }
            Value::List(entries)
        }
        _ => match decode::read_int(rest) {
            Ok(whole) => Value::Int(whole),
            Err(decode::NumValueReadError::OutOfRange) => Value::Int(i64::MAX),
            Err(error) => return Err(unreadable(error)),
        },
    })
}

const CUT: &str = "it ends too soon";

fn unreadable(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn whole(number: f64) -> i64 {
    format!("{:.0}", number.trunc()).parse().unwrap_or(0)
}

/// Whether the server does not have the script, and so ran nothing.
pub(super) fn is_unknown_script(answer: &Outcome<Answer>) -> bool {
    matches!(answer, Err(Cause::Rejected(why)) if why.is(ServerError::UnknownScript))
}

/// Whether the server is a replica now, which may not write.
pub(super) fn is_of_a_replica(answer: &Outcome<Answer>) -> bool {
    matches!(answer, Err(Cause::Rejected(why)) if why.is(ServerError::ReadOnly))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripts::mutex;

    fn words(packs: bool, call: &Call, fingerprint: Option<&str>) -> Vec<Vec<u8>> {
        let word = |word: Argument| word.into_bytes().map(|word| word.to_vec());
        let words = arguments(call, Bytes::from_static(b"sha"), "PUBLISH", packs, fingerprint);
        words.into_iter().filter_map(word).collect()
    }

    fn texts(words: &[&str]) -> Vec<Vec<u8>> {
        words.iter().map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn own_arguments_are_one_text_where_the_server_can_read_it() {
        let keys = ["lock", "queue", "alive"];
        let args = ["calls:", "", "a:1", "0", "", "wake"];
        let call = Call::of(&mutex::RELEASE, &keys, &args);
        let before = texts(&["sha", "3", "lock", "queue", "alive", "calls:", "", "PUBLISH"]);
        let apart = texts(&["a:1", "0", "", "wake"]);
        assert_eq!(words(false, &call, None), [&before[..], &apart].concat());
        let packed = [b"\x94\xa3a:1\xa10\xa0\xa4wake".to_vec()];
        assert_eq!(words(true, &call, None), [&before[..], &packed].concat());
    }

    #[test]
    fn requests_without_arguments_of_their_own_or_with_one_are_not_packed() {
        let keys = ["lock", "revoked", "fence", "queue", "alive"];
        let inspect = Call::of(&crate::scripts::semaphore::INSPECT, &keys, &["0"]);
        assert_eq!(words(true, &inspect, None), words(false, &inspect, None));
        let clear = Call::of(&mutex::CLEAR, &keys, &[]);
        let expected = ["sha", "6", "lock", "revoked", "fence", "queue", "alive", "fingerprint"];
        assert_eq!(
            words(true, &clear, Some("fingerprint")),
            texts(&expected),
            "the fingerprint is the last key"
        );
    }

    #[test]
    fn a_packed_answer_reads_as_the_one_that_the_server_would_give() {
        // As `cmsgpack.pack` has {1, 1763987654321, '', 'text', {-1, 300}, 2.9, 1.5, false, true}.
        let packed = b"\x99\x01\xcf\0\0\x01\x9a\xb5\xdb\x86\xb1\xa0\xa4text\x92\xff\xcd\x01\x2c\
            \xcb\x40\x07\x33\x33\x33\x33\x33\x33\xca\x3f\xc0\0\0\xc2\xc3";
        let whole = vec![
            Value::Int(1),
            Value::Int(1_763_987_654_321),
            Value::Text(String::new()),
            Value::Text("text".into()),
            Value::List(vec![Value::Int(-1), Value::Int(300)]),
            Value::Int(2),
            Value::Int(1),
            Value::Nil,
            Value::Int(1),
        ];
        let blob = |data: &[u8]| Frame::BlobString { data: data.to_vec().into(), attributes: None };
        assert_eq!(unpacked(blob(packed)), Ok(Value::List(whole)));
        // A server that cannot pack it answers with the list.
        let list = Frame::Array { data: vec![1.into()], attributes: None };
        assert_eq!(unpacked(list), Ok(Value::List(vec![Value::Int(1)])));
        let cut = [0, 1, packed.len() - 1].map(|end| packed[..end].to_vec());
        let nested = vec![0x91; 100_000];
        let too_long = [&b"\xdd\xff\xff\xff\xff\x01"[..], b"\xdb\xff\xff\xff\xff", b"\xc1"];
        let rubbish = too_long.map(<[u8]>::to_vec).into_iter().chain([nested]).chain(cut);
        for bytes in rubbish {
            let Err(Cause::Rejected(why)) = unpacked(blob(&bytes)) else {
                panic!("it reads {bytes:?}")
            };
            assert!(why.text().starts_with("the answer cannot be read: "), "{why}");
        }
        assert_eq!(
            unpacked(blob(b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff")),
            Ok(Value::Int(i64::MAX))
        );
    }
}
