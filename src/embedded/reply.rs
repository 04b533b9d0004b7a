use crate::scripts::Value;

/// What a command or a script answers, as a server's client would see it.
///
/// ```
/// use quorate::embedded::{EmbeddedVoter, Reply};
///
/// let voter = EmbeddedVoter::new("a");
/// let status = Reply::Text("OK".into());
/// assert_eq!(voter.command(&["SET", "key", "value"]), Ok(status));
/// assert_eq!(voter.command(&["GET", "no such key"]), Ok(Reply::Nil));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing: the key or the field is not there.
    Nil,
    /// A number.
    Int(i64),
    /// A text or a status.
    Text(String),
    /// Several replies.
    List(Vec<Reply>),
}

impl Reply {
    pub(super) fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::List(texts.into_iter().map(|text| Self::Text(text.into())).collect())
    }
}

impl From<Reply> for Value {
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::Nil => Self::Nil,
            Reply::Int(number) => Self::Int(number),
            Reply::Text(text) => Self::Text(text),
            Reply::List(replies) => Self::List(replies.into_iter().map(Self::from).collect()),
        }
    }
}
