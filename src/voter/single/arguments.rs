//! A call in the words that stand behind `EVALSHA`.

use bytes::{BufMut, Bytes, BytesMut};
use fred::types::Value as Argument;
use rmp::encode;

use crate::voter::Call;

/// What packing adds to each text, at most; and to all of them.
const PACKING: usize = 5;

/// `packs`: the server can read arguments that are packed into one. `mark`: the key of its mark,
/// where the call is to say what its data are called.
///
/// All words of a call are parts of one text: fred clones every argument, and each that owned its
/// bytes would be allocated once more for that.
pub(super) fn of(
    call: &Call,
    script: Bytes,
    publish: &'static str,
    packs: bool,
    mark: Option<&str>,
) -> Vec<Argument> {
    let publish = call.script.publishes().then_some(publish);
    let shared = call.shared.iter().map(|text| &**text).chain(publish);
    let apart = call.keys().chain(mark).chain(shared);
    let own = call.args();
    // The one argument of a request could not be told from what is packed.
    let packs = packs && call.script.args.len() > 1;
    let count = apart.clone().count() + if packs { 1 } else { own.clone().count() };
    let length = apart.clone().chain(own.clone()).map(|text| text.len() + PACKING).sum::<usize>();

    let keys = call.requests.len() * call.script.keys.len() + usize::from(mark.is_some());
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

/// A list of texts, as `cmsgpack.unpack` reads it.
fn pack<'a>(to: &mut BytesMut, texts: impl Iterator<Item = &'a str> + Clone) {
    let mut to = to.writer();
    let count = u32::try_from(texts.clone().count()).unwrap_or(u32::MAX);
    encode::write_array_len(&mut to, count).expect("memory takes it");
    for text in texts {
        encode::write_str(&mut to, text).expect("memory takes it");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripts::mutex;

    fn words(packs: bool, call: &Call, mark: Option<&str>) -> Vec<Vec<u8>> {
        let word = |word: Argument| word.into_bytes().map(|word| word.to_vec());
        let words = of(call, Bytes::from_static(b"sha"), "PUBLISH", packs, mark);
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
        let expected = ["sha", "6", "lock", "revoked", "fence", "queue", "alive", "mark"];
        assert_eq!(words(true, &clear, Some("mark")), texts(&expected), "the mark is the last key");
    }
}
