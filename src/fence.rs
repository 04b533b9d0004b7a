//! A gate for protected resources: it refuses the work of a hold that is no longer the latest.

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

/// The error for a token that is lower than an earlier one: its hold has ended, and a later hold
/// has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stale {
    /// The token that was refused.
    pub presented: Token,
    /// The lowest token that would have passed.
    pub highest: Token,
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "token {} is stale: {} has been seen", self.presented, self.highest)
    }
}

impl error::Error for Stale {}

/// Checks tokens for resources that only this process changes. For each name, a token passes if no
/// higher token has passed before.
///
/// A hold passes as often as it comes. A holder that was paused until its lease ended is refused
/// once the next holder has passed.
///
/// # One step
///
/// Check and work must be one step. After [`check`](Self::check) has returned, a higher token may
/// pass and do its work first; the late write then overwrites it. [`guarded`](Self::guarded) does
/// the work while no other token passes for that name, and [`guarded_async`](Self::guarded_async)
/// does so for work that awaits. If the work is a write to a database, let the write check the
/// token itself: `docs/fencing.md` has the statements.
///
/// # What it remembers
///
/// Each name with its highest token, until you [`forget`](Self::forget) the name or
/// [`forget_below`](Self::forget_below) a token. So check that a resource exists before you call
/// [`check`](Self::check) with its name. After a restart the gate is empty: collect it from stored
/// tokens, which must not lag behind the work.
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
/// gate.check("invoice:42", next)?; // the lease of `paused` has ended
///
/// let refused = gate.check("invoice:42", paused).unwrap_err();
/// assert_eq!(refused.highest, next);
///
/// // After a restart: a gate from stored tokens.
/// let gate: FenceGate = gate.seen().into_iter().collect();
/// assert!(gate.check("invoice:42", paused).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct FenceGate {
    tokens: Mutex<LatestTokens>,
}

#[derive(Debug, Default)]
struct LatestTokens {
    /// The highest limit of [`FenceGate::forget_below`].
    limit: Option<Token>,
    names: HashMap<String, Name>,
}

#[derive(Debug, Default)]
struct Name {
    /// `None` until the first token has its turn.
    highest: Option<Token>,
    /// Locked while work for the name is done.
    // A mutex for each name, so that slow work holds up no other name. Nobody waits for it with
    // `tokens` locked: that would hold up all names.
    turn: Arc<Turn<()>>,
}

impl FenceGate {
    /// An empty gate: the first token of each name passes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets a token pass unless a higher one has passed for `name`, and remembers it.
    ///
    /// Blocks the thread while work for that name is done; a refusal does not wait. The caller's
    /// next step is not protected: see [one step](Self#one-step).
    ///
    /// # Errors
    ///
    /// [`Stale`] if a higher token has passed.
    pub fn check(&self, name: &str, token: Token) -> Result<(), Stale> {
        self.guarded(name, token, || ())
    }

    /// Checks the token, and does the work before any other token can pass for that name.
    ///
    /// The token is remembered before the work begins, also if the work panics. Other names do not
    /// wait. The work must be short, as it blocks the threads that wait for the same name. It must
    /// not use the gate with that name: it would wait for itself. It must not return a future,
    /// which would run after the step: for work that awaits, use
    /// [`guarded_async`](Self::guarded_async).
    ///
    /// # Errors
    ///
    /// [`Stale`] if a higher token has passed; then the work has not begun.
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

    /// The same for work that awaits: no other token passes for the name before the work's future
    /// has completed.
    ///
    /// Waiting blocks no thread. If some work for a name awaits, use this method in all async code:
    /// a thread that [`guarded`](Self::guarded) or [`check`](Self::check) blocks may be the one
    /// that the work needs.
    ///
    /// # Errors
    ///
    /// [`Stale`] if a higher token has passed; then the work has not begun.
    ///
    /// # Cancel safety
    ///
    /// If this is dropped while it waits, nothing changes. If it is dropped during the work, the
    /// work ends and the next token can pass. **A request that the work has sent may then arrive
    /// after the work of a higher token.** If the caller may be cancelled, like a handler of a web
    /// server, spawn the call in a task.
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

    /// Waits for the turn of the name, and lets the token pass. The turn ends when the guard is
    /// dropped.
    async fn enter(&self, name: &str, token: Token) -> Result<OwnedMutexGuard<()>, Stale> {
        loop {
            let turn = self.tokens().turn(name, token)?;
            let mine = locked(&turn).await;
            // Checked again, as a higher token may have passed during the wait. If the name was
            // forgotten meanwhile, later callers wait for another turn: so does this one.
            if self.tokens().enter(name, token, &turn)? {
                return Ok(mine);
            }
        }
    }

    /// The highest token that has passed for `name`, or the limit of
    /// [`forget_below`](Self::forget_below) if that is higher.
    pub fn highest(&self, name: &str) -> Option<Token> {
        self.tokens().highest(name)
    }

    /// Each name with its highest token, in no order. Store them, and collect them into a gate
    /// after a restart. The limit of [`forget_below`](Self::forget_below) is not among them.
    pub fn seen(&self) -> Vec<(String, Token)> {
        let entry = |(name, it): (&String, &Name)| Some((name.clone(), it.highest?));
        self.tokens().names.iter().filter_map(entry).collect()
    }

    /// Forgets one name, say of a resource that was deleted. Blocks the thread while work for it is
    /// done.
    ///
    /// Afterwards any token passes for it, also that of an earlier holder. If that would do harm,
    /// use [`forget_below`](Self::forget_below).
    pub fn forget(&self, name: &str) {
        let Some(turn) = self.tokens().names.get(name).map(|it| Arc::clone(&it.turn)) else {
            return;
        };
        // If the name were forgotten during work for it, a lower token would pass beside that work.
        let _mine = wait_for(locked(&turn));
        let mut tokens = self.tokens();
        if tokens.is_turn(name, &turn) {
            tokens.names.remove(name);
        }
    }

    /// Forgets each name whose highest token is below `limit`. From now on no token below `limit`
    /// passes, for any name. A limit below an earlier one changes nothing.
    ///
    /// So no earlier holder of a forgotten name can pass. But a hold that is older than the limit
    /// is refused even if it is the latest, and must acquire the lock again. A token is about the
    /// time of its hold in microseconds since 1970, or higher. So a limit of a day ago refuses
    ///
    /// - holds that last for longer than a day,
    /// - holds of a client whose clock is a day late, if no voter had a higher token of the lock.
    ///
    /// After a restart, give the stored limit again.
    pub fn forget_below(&self, limit: Token) {
        let mut tokens = self.tokens();
        tokens.limit = tokens.limit.max(Some(limit));
        let limit = tokens.limit;
        // A name with work under way stays: the next token must wait for that work.
        tokens.names.retain(|_, it| it.highest >= limit || it.is_busy());
    }

    fn tokens(&self) -> MutexGuard<'_, LatestTokens> {
        lock(&self.tokens)
    }
}

impl FromIterator<(String, Token)> for FenceGate {
    /// A gate that these tokens have passed; of several tokens of one name, the highest applies.
    fn from_iter<I: IntoIterator<Item = (String, Token)>>(seen: I) -> Self {
        let mut tokens = LatestTokens::default();
        for (name, token) in seen {
            let entry = tokens.names.entry(name).or_default();
            entry.highest = entry.highest.max(Some(token));
        }
        Self { tokens: Mutex::new(tokens) }
    }
}

impl LatestTokens {
    fn highest(&self, name: &str) -> Option<Token> {
        self.names.get(name).and_then(|it| it.highest).max(self.limit)
    }

    fn judge(&self, name: &str, token: Token) -> Result<(), Stale> {
        match self.highest(name) {
            Some(highest) if token < highest => Err(Stale { presented: token, highest }),
            _ => Ok(()),
        }
    }

    /// The mutex to lock before the token may enter.
    // A stale token makes no entry: it would bring back names that were forgotten.
    fn turn(&mut self, name: &str, token: Token) -> Result<Arc<Turn<()>>, Stale> {
        self.judge(name, token)?;
        if !self.names.contains_key(name) {
            self.names.insert(name.to_owned(), Name::default());
        }
        Ok(Arc::clone(&self.names[name].turn))
    }

    /// Remembers the token if the name still has this turn. Returns whether it has.
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
    fn is_busy(&self) -> bool {
        self.turn.try_lock().is_err()
    }
}

async fn locked(turn: &Arc<Turn<()>>) -> OwnedMutexGuard<()> {
    // Not limited by tokio's budget of a task. If a task that has spent its budget blocks here, by
    // `check`, the budget never comes back, and the mutex would never be polled.
    unconstrained(Arc::clone(turn).lock_owned()).await
}
