//! What is under a key, to be shown.

/// A key of an embedded voter with its value and what is left of its time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Record {
    /// The key.
    pub key: String,
    /// The fields of a hash with their values, in order. A text is one field with an empty name;
    /// a sorted set has its members with their scores, in the order of the set.
    pub fields: Vec<(String, String)>,
    /// The milliseconds until the key expires, by the voter's own clock; `None`: it does not.
    pub left_ms: Option<i64>,
}
