//! The commands for sorted sets, as a server of version 7 answers them.

use super::{
    command::{Answered, Command, CommandResult, Database, count, integer, wrong_type},
    keyspace::Stored,
    reply::Reply,
    score::Score,
    sorted_set::SortedSet,
};

pub(super) static COMMANDS: [Command; 8] = [
    Command { name: "zadd", arity: -4, run: zadd },
    Command { name: "zrem", arity: -3, run: zrem },
    Command { name: "zscore", arity: 3, run: zscore },
    Command { name: "zrank", arity: 3, run: zrank },
    Command { name: "zcard", arity: 2, run: zcard },
    Command { name: "zcount", arity: 4, run: zcount },
    Command { name: "zrange", arity: -4, run: zrange },
    Command { name: "zrangebyscore", arity: -4, run: zrangebyscore },
];

/// The words of `ZADD` before its first score, in any order.
struct Flags<'a>(&'a [&'a str]);

impl<'a> Flags<'a> {
    fn split_off(words: &'a [&'a str]) -> (Self, &'a [&'a str]) {
        let is_flag = |word: &&&str| {
            ["NX", "XX", "GT", "LT", "CH", "INCR"]
                .iter()
                .any(|flag| flag.eq_ignore_ascii_case(word))
        };
        let (flags, rest) = words.split_at(words.iter().take_while(is_flag).count());
        (Self(flags), rest)
    }

    fn has(&self, flag: &str) -> bool {
        self.0.iter().any(|word| word.eq_ignore_ascii_case(flag))
    }

    fn check(&self) -> Result<(), String> {
        let [nx, xx, gt, lt] = ["NX", "XX", "GT", "LT"].map(|flag| self.has(flag));
        if nx && xx {
            return Err("ERR XX and NX options at the same time are not compatible".into());
        }
        if nx && (gt || lt) || gt && lt {
            return Err("ERR GT, LT, and/or NX options at the same time are not compatible".into());
        }
        if self.has("INCR") {
            return Err(not_here("ZADD", "INCR"));
        }
        Ok(())
    }

    /// Whether a member with this score, or none, gets that score.
    fn allow(&self, former: Option<Score>, score: Score) -> bool {
        let Some(former) = former else { return !self.has("XX") };
        !self.has("NX")
            && (!self.has("GT") || score > former)
            && (!self.has("LT") || score < former)
    }
}

fn zadd(database: &mut Database, words: &[&str]) -> CommandResult {
    let (flags, words_left) = Flags::split_off(&words[1..]);
    let (pairs, odd) = words_left.as_chunks::<2>();
    if pairs.is_empty() || !odd.is_empty() {
        return Err(syntax_error());
    }
    flags.check()?;
    let scores = pairs.iter().map(|[score, _]| Score::parse(score));
    // All are read before the key is looked at.
    let scores = scores.collect::<Result<Vec<_>, _>>()?;
    let stored = database.keyspace.get_or_set(words[0], Stored::SortedSet(SortedSet::default()));
    let Stored::SortedSet(set) = stored else { return Err(wrong_type()) };
    let (mut added, mut changed) = (0, 0);
    for (score, [_, member]) in scores.into_iter().zip(pairs) {
        let former = set.score(member);
        if former != Some(score) && flags.allow(former, score) {
            set.put(member, score);
            *(if former.is_none() { &mut added } else { &mut changed }) += 1;
        }
    }
    if set.is_empty() {
        database.keyspace.remove(words[0]);
    }
    Ok(count(if flags.has("CH") { added + changed } else { added }))
}

fn zrem(database: &mut Database, words: &[&str]) -> CommandResult {
    let set = match database.keyspace.get_mut(words[0]) {
        None => return Ok(0.into()),
        Some(Stored::SortedSet(set)) => set,
        Some(_) => return Err(wrong_type()),
    };
    let gone = words[1..].iter().filter(|member| set.remove(member)).count();
    if set.is_empty() {
        database.keyspace.remove(words[0]);
    }
    Ok(count(gone))
}

fn zscore(database: &mut Database, words: &[&str]) -> CommandResult {
    let score = sorted_set(database, words[0])?.and_then(|set| set.score(words[1]));
    Ok(Answered::Reply(score.map_or(Reply::Nil, |score| Reply::Text(score.to_string()))))
}

fn zrank(database: &mut Database, words: &[&str]) -> CommandResult {
    let rank = sorted_set(database, words[0])?.and_then(|set| set.rank(words[1]));
    Ok(rank.map_or(Answered::Reply(Reply::Nil), count))
}

fn zcard(database: &mut Database, words: &[&str]) -> CommandResult {
    Ok(count(sorted_set(database, words[0])?.map_or(0, SortedSet::len)))
}

fn zcount(database: &mut Database, words: &[&str]) -> CommandResult {
    let range = (Score::parse_bound(words[1])?, Score::parse_bound(words[2])?);
    let set = sorted_set(database, words[0])?;
    Ok(count(set.map_or(0, |set| set.within(range).count())))
}

fn zrange(database: &mut Database, words: &[&str]) -> CommandResult {
    let shown = ScoresShown::read("ZRANGE", &words[3..], &["BYSCORE", "BYLEX", "REV", "LIMIT"])?;
    let (start, stop) = (integer(words[1])?, integer(words[2])?);
    let Some(set) = sorted_set(database, words[0])? else { return Ok(no_entries()) };
    let (first, end) = (index(start, set).max(0), index(stop, set).saturating_add(1));
    let length = usize::try_from(end.saturating_sub(first)).unwrap_or(0);
    let entries = set.entries().skip(usize::try_from(first).unwrap_or(usize::MAX));
    Ok(shown.list(entries.take(length)))
}

fn zrangebyscore(database: &mut Database, words: &[&str]) -> CommandResult {
    let shown = ScoresShown::read("ZRANGEBYSCORE", &words[3..], &["LIMIT"])?;
    let range = (Score::parse_bound(words[1])?, Score::parse_bound(words[2])?);
    let Some(set) = sorted_set(database, words[0])? else { return Ok(no_entries()) };
    Ok(shown.list(set.within(range)))
}

/// What a range shows of its members.
#[derive(Clone, Copy)]
enum ScoresShown {
    Members,
    WithScores,
}

impl ScoresShown {
    fn read(command: &str, options: &[&str], missing: &[&str]) -> Result<Self, String> {
        let mut shown = Self::Members;
        for option in options {
            let is_option = |known: &&&str| known.eq_ignore_ascii_case(option);
            if let Some(missing) = missing.iter().find(is_option) {
                return Err(not_here(command, missing));
            }
            if !is_option(&&"WITHSCORES") {
                return Err(syntax_error());
            }
            shown = Self::WithScores;
        }
        Ok(shown)
    }

    fn list<'a>(self, entries: impl Iterator<Item = (&'a str, Score)>) -> Answered {
        Answered::Reply(match self {
            Self::Members => Reply::texts(entries.map(|(member, _)| member)),
            Self::WithScores => Reply::texts(
                entries.flat_map(|(member, score)| [member.to_owned(), score.to_string()]),
            ),
        })
    }
}

fn no_entries() -> Answered {
    Answered::Reply(Reply::List(Vec::new()))
}

/// Where an index points that may be counted from the end; -1 where that is before the beginning.
fn index(index: i64, set: &SortedSet) -> i64 {
    let length = i64::try_from(set.len()).unwrap_or(i64::MAX);
    if index < 0 { (index + length).max(-1) } else { index }
}

fn sorted_set<'a>(database: &'a Database, key: &str) -> Result<Option<&'a SortedSet>, String> {
    match database.keyspace.get(key) {
        None => Ok(None),
        Some(Stored::SortedSet(set)) => Ok(Some(set)),
        Some(_) => Err(wrong_type()),
    }
}

fn syntax_error() -> String {
    "ERR syntax error".into()
}

/// A server has this option.
fn not_here(command: &str, option: &str) -> String {
    format!("ERR {command} has no {option} on an embedded voter")
}
