//! The protected side: refuses work of a hold that is no longer the last one.

use std::{
    collections::HashMap,
    error, fmt,
    sync::{Arc, Mutex, MutexGuard},
};

use tokio::{
    sync::{Mutex as Turn, OwnedMutexGuard},
    task::unconstrained,
};

use crate::{
    proto::Token,
    sync::{lock, wait_for},
};

/// A token was lower than one seen before: its hold has ended, and a later one works already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stale {
    /// The token that was refused.
    pub presented: Token,
    /// The lowest one that would have passed.
    pub highest: Token,
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "token {} is stale: {} has been seen", self.presented, self.highest)
    }
}

impl error::Error for Stale {}

/// The check of the protected side, inside one process: of all tokens shown for a name it lets pass
/// those that are as high as or higher than the highest before.
///
/// The same hold passes as often as it comes. A holder that was paused past its lease is refused
/// once the next one has been here, however late it wakes.
///
/// # One step
///
/// Checking and doing must be one step. After [`check`](Self::check) has answered, a higher token
/// may pass and do its work first; the late write then overwrites it.
/// [`guarded`](Self::guarded) does the work while nobody else passes for that name, and
/// [`guarded_async`](Self::guarded_async) does so for work that awaits. Where the work is a write
/// to a database, let that write check the token itself; the book has the texts for it
/// (`docs/fencing.md`). A gate protects what only its own process changes.
///
/// # What it remembers
///
/// One number and the name, for each name that a token has passed for, until it is told to
/// [`forget`](Self::forget) the name or to [`forget_below`](Self::forget_below) a token. So check
/// that the resource exists before you call [`check`](Self::check). After a restart it knows
/// nothing: collect it again from what you have stored, which must not lag behind the work that was
/// done.
///
/// # Examples
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use quorate::{FenceGate, Token};
///
/// let (paused, next): (Token, Token) = ("1763766000123456".parse()?, "1763766030456789".parse()?);
/// let gate = FenceGate::new();
/// gate.check("invoice:42", paused)?;
/// gate.check("invoice:42", next)?; // it waited until the other's lease had ended
///
/// let refused = gate.check("invoice:42", paused).unwrap_err();
/// assert_eq!(refused.highest, next);
///
/// // What was stored before a restart is known after it.
/// let gate: FenceGate = gate.seen().into_iter().collect();
/// assert!(gate.check("invoice:42", paused).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct FenceGate {
    known: Mutex<LatestTokens>,
}

#[derive(Debug, Default)]
struct LatestTokens {
    /// Counts as seen for every name.
    mark: Option<Token>,
    names: HashMap<String, Name>,
}

#[derive(Debug)]
struct Name {
    /// Nothing between the making of this entry and the first token's turn.
    highest: Option<Token>,
    /// Locked while work for the name is done; nobody waits for it who has `known` locked.
    turn: Arc<Turn<()>>,
}

impl FenceGate {
    /// A gate that has seen nothing: the first token of each name passes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets a token pass that is as high as or higher than the highest seen for `name`, and
    /// remembers it.
    ///
    /// Blocks the thread while work for that name is done, but not to refuse. What the caller does
    /// next is not covered: see [one step](Self#one-step).
    ///
    /// # Errors
    ///
    /// [`Stale`] where a higher token has been seen.
    pub fn check(&self, name: &str, token: Token) -> Result<(), Stale> {
        self.guarded(name, token, || ())
    }

    /// Checks the token, and does the work before any other token can pass for that name.
    ///
    /// The token is remembered from before the work begins, so it counts as seen if the work
    /// panics. Other names are not kept waiting. The work must be short, as it blocks the thread of
    /// whoever waits for the same name, and must not come back to the gate with it: that waits
    /// for itself. It must not be a future: that would be done after the step. For work that awaits
    /// there is [`guarded_async`](Self::guarded_async).
    ///
    /// # Errors
    ///
    /// [`Stale`] where a higher token has been seen; then the work was not begun.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let file = std::env::temp_dir().join(format!("quorate-fence-{}", std::process::id()));
    /// # let (gate, token) = (quorate::FenceGate::new(), "7".parse()?);
    /// gate.guarded("report", token, || std::fs::write(&file, "done"))??;
    /// # assert_eq!(std::fs::read_to_string(&file)?, "done");
    /// # std::fs::remove_file(&file)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn guarded<T>(
        &self,
        name: &str,
        token: Token,
        work: impl FnOnce() -> T,
    ) -> Result<T, Stale> {
        let _turn = wait_for(self.enter(name, token))?;
        Ok(work())
    }

    /// The same for work that awaits: no other token passes for the name before its future has
    /// completed.
    ///
    /// Whoever waits for a name blocks no thread. If some work for a name awaits, call this one
    /// from all async code: a thread that [`guarded`](Self::guarded) or [`check`](Self::check)
    /// blocks may be the one that the work needs.
    ///
    /// # Errors
    ///
    /// [`Stale`] where a higher token has been seen; then the work was not begun.
    ///
    /// # Cancel safety
    ///
    /// Dropped while it waits, it changes nothing. Dropped while the work is done, it ends the work
    /// and lets the next token pass. **What the work has sent may still arrive then, after the work
    /// of a higher token.** Where the caller may be cancelled, as a handler of a web server is, spawn
    /// the call in a task.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let file = std::env::temp_dir().join(format!("quorate-async-{}", std::process::id()));
    /// # let (gate, token) = (quorate::FenceGate::new(), "7".parse()?);
    /// gate.guarded_async("report", token, || tokio::fs::write(&file, "done")).await??;
    /// # assert_eq!(std::fs::read_to_string(&file)?, "done");
    /// # std::fs::remove_file(&file)?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn guarded_async<W: Future>(
        &self,
        name: &str,
        token: Token,
        work: impl FnOnce() -> W,
    ) -> Result<W::Output, Stale> {
        let _turn = self.enter(name, token).await?;
        Ok(work().await)
    }

    /// Lets the token pass when it is the turn of the name, which goes on until this is dropped.
    async fn enter(&self, name: &str, token: Token) -> Result<OwnedMutexGuard<()>, Stale> {
        loop {
            let turn = self.known().turn(name, token)?;
            let mine = locked(&turn).await;
            if self.known().enter(name, token, &turn)? {
                return Ok(mine);
            }
            // The name was forgotten meanwhile, and whoever comes now waits for another turn.
        }
    }

    /// The highest token seen for `name`, or the mark of [`forget_below`](Self::forget_below) where
    /// that is higher.
    pub fn highest(&self, name: &str) -> Option<Token> {
        self.known().highest(name)
    }

    /// Every name with its highest token, in no order: to be stored, and collected into a gate
    /// after a restart. The mark of [`forget_below`](Self::forget_below) is not among them.
    pub fn seen(&self) -> Vec<(String, Token)> {
        let known = self.known();
        let seen = |(name, it): (&String, &Name)| Some((name.clone(), it.highest?));
        known.names.iter().filter_map(seen).collect()
    }

    /// Forgets one name, say of a resource that is no more; blocks the thread while work for it is
    /// done.
    ///
    /// Any token passes for it afterwards, that of a holder from before too. Where this would do
    /// harm, use [`forget_below`](Self::forget_below).
    pub fn forget(&self, name: &str) {
        let Some(turn) = self.known().names.get(name).map(|it| Arc::clone(&it.turn)) else {
            return;
        };
        let _mine = wait_for(locked(&turn));
        let mut known = self.known();
        if known.is_turn(name, &turn) {
            known.names.remove(name);
        }
    }

    /// Forgets each name whose highest token is below `mark`, and lets no token below it pass from
    /// now on, for any name. A mark below an earlier one changes nothing.
    ///
    /// So nothing that is forgotten comes in again, whatever the clocks say. The price is paid by a
    /// hold that is older than the mark and yet the last one: it is refused, and has to acquire
    /// anew. A token is about the time of its hold in microseconds since 1970, or higher. So a mark
    /// of a day ago refuses holds that last for longer than a day, and those of a client whose
    /// clock is a day late where no voter knew a higher token of the lock.
    ///
    /// After a restart, give the stored mark again.
    pub fn forget_below(&self, mark: Token) {
        let mut known = self.known();
        known.mark = known.mark.max(Some(mark));
        let mark = known.mark;
        // Where work is done, the next one must wait for it: the entry stays until another time.
        known.names.retain(|_, it| it.highest >= mark || it.is_busy());
    }

    fn known(&self) -> MutexGuard<'_, LatestTokens> {
        lock(&self.known)
    }
}

impl FromIterator<(String, Token)> for FenceGate {
    /// A gate that has seen these; of several tokens of one name the highest counts.
    fn from_iter<I: IntoIterator<Item = (String, Token)>>(seen: I) -> Self {
        let mut known = LatestTokens::default();
        for (name, token) in seen {
            let entry = known.names.entry(name).or_insert_with(Name::new);
            entry.highest = entry.highest.max(Some(token));
        }
        Self { known: Mutex::new(known) }
    }
}

impl LatestTokens {
    fn highest(&self, name: &str) -> Option<Token> {
        self.names.get(name).and_then(|it| it.highest).max(self.mark)
    }

    fn judge(&self, name: &str, token: Token) -> Result<(), Stale> {
        match self.highest(name) {
            Some(highest) if token < highest => Err(Stale { presented: token, highest }),
            _ => Ok(()),
        }
    }

    /// What to lock before the token may enter. A stale one leaves no entry behind.
    fn turn(&mut self, name: &str, token: Token) -> Result<Arc<Turn<()>>, Stale> {
        self.judge(name, token)?;
        if let Some(it) = self.names.get(name) {
            return Ok(Arc::clone(&it.turn));
        }
        let it = Name::new();
        let turn = Arc::clone(&it.turn);
        self.names.insert(name.to_owned(), it);
        Ok(turn)
    }

    /// Remembers the token, if the turn is still that of the name.
    fn enter(&mut self, name: &str, token: Token, turn: &Arc<Turn<()>>) -> Result<bool, Stale> {
        self.judge(name, token)?;
        let is_turn = self.is_turn(name, turn);
        if let Some(it) = self.names.get_mut(name).filter(|_| is_turn) {
            it.highest = Some(token);
        }
        Ok(is_turn)
    }

    fn is_turn(&self, name: &str, turn: &Arc<Turn<()>>) -> bool {
        self.names.get(name).is_some_and(|it| Arc::ptr_eq(&it.turn, turn))
    }
}

impl Name {
    fn new() -> Self {
        Self { highest: None, turn: Arc::default() }
    }

    fn is_busy(&self) -> bool {
        self.turn.try_lock().is_err()
    }
}

/// Not limited by how much a task may do before it yields: a thread that waits would never yield.
async fn locked(turn: &Arc<Turn<()>>) -> OwnedMutexGuard<()> {
    unconstrained(Arc::clone(turn).lock_owned()).await
}
