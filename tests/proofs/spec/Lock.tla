-------------------------------- MODULE Lock --------------------------------
(***************************************************************************)
(* Who holds the lock, and for how long.                                   *)
(*                                                                         *)
(* Voters are servers. Each gives its vote to one hold at a time and keeps *)
(* it for a lease. A client holds the lock while it relies on the votes of *)
(* a majority. A voter that lost its data may vote again although its vote *)
(* is still relied on: for a while it does not count.                      *)
(*                                                                         *)
(* A step of a voter and its answer are one step here. An answer that is   *)
(* lost or late only leaves a client with fewer votes than it has in this  *)
(* specification, so whatever is true here is true with such answers, too. *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets, TLC

CONSTANTS
    Voters,      \* The servers.
    Majority,    \* So many of them decide.
    Holds,       \* Each is one attempt of one client, and what comes of it.
    Nobody,      \* Not a hold.
    Lease,       \* A voter keeps a vote for so long, by its clock.
    Margin,      \* A client relies on it for so much less: the setting `drift`.
    Drift,       \* Clocks really differ by so much over a lease.
    Quarantine,  \* A voter that lost its data does not count for so long.
    Notices,     \* TRUE where clients notice that a voter lost its data.
    Proves,      \* TRUE where a renewal counts a voter in quarantine only if the hold
                 \* had its vote before the loss.
    Losses,      \* So often voters may lose their data in all.
    AtOnce,      \* So many of them may have lost it within one quarantine.
    Renewals     \* So often holds may be renewed in all.

VARIABLES
    vote,        \* Who has the vote of each voter.
    left,        \* How long the voter keeps it.
    lost,        \* How long ago the voter lost its data.
    phase,       \* Of each hold: "new", "asking", "held", then "over".
    asked,       \* How long ago its latest requests were sent.
    open,        \* The voters that have not answered these.
    relies,      \* How long its client may rely on the vote of each voter.
    proven,      \* Voters that lost a vote on which its client relied then.
    unaware,     \* Voters of which its client does not know that they lost data.
    budget       \* How many losses and renewals are still to come.

vars == <<vote, left, lost, phase, asked, open, relies, proven, unaware, budget>>

-----------------------------------------------------------------------------

\* From when a request was sent, so long may its client rely on the vote.
Validity == Lease - Margin

\* That long ago is the same as never.
LongAgo == Quarantine + Validity

Max(a, b) == IF a > b THEN a ELSE b

\* Whether the client relies on a majority for so long.
ReliesFor(h, time) == Cardinality({v \in Voters : relies[h][v] >= time}) >= Majority

Trusted(h) == phase[h] = "held" /\ ReliesFor(h, 1)

\* Whether a vote counts that was asked for so long ago. The quarantine was over
\* when the request was sent. Or, in a renewal: the hold had the vote before the
\* voter lost it, so nobody else relies on that voter.
Counts(h, v, age) ==
    \/ lost[v] >= Quarantine + age
    \/ v \in proven[h]
    \/ v \in unaware[h]
    \/ ~Proves /\ phase[h] = "held"

\* What a client cannot know that meets these voters only now: it sees that a voter
\* is younger than another. Where all that it meets are equally young, that may be
\* their first start.
Unseen(met) ==
    IF Notices
    THEN {v \in met : lost[v] < Quarantine /\ \A u \in met : lost[u] <= lost[v]}
    ELSE Voters

-----------------------------------------------------------------------------

Init ==
    /\ vote = [v \in Voters |-> Nobody]
    /\ left = [v \in Voters |-> 0]
    /\ lost = [v \in Voters |-> LongAgo]
    /\ phase = [h \in Holds |-> "new"]
    /\ asked = [h \in Holds |-> 0]
    /\ open = [h \in Holds |-> {}]
    /\ relies = [h \in Holds |-> [v \in Voters |-> 0]]
    /\ proven = [h \in Holds |-> {}]
    /\ unaware = [h \in Holds |-> {}]
    /\ budget = [losses |-> Losses, renewals |-> Renewals]

\* A client that has met these voters asks all for their votes.
Ask(h, met) ==
    /\ phase[h] = "new"
    /\ Cardinality(met) >= Majority
    /\ phase' = [phase EXCEPT ![h] = "asking"]
    /\ asked' = [asked EXCEPT ![h] = 0]
    /\ open' = [open EXCEPT ![h] = Voters]
    /\ unaware' = [unaware EXCEPT ![h] = Unseen(met)]
    /\ UNCHANGED <<vote, left, lost, relies, proven, budget>>

\* A voter gives its vote, which nobody or this hold has, to a request that was sent
\* so long ago. For a hold that had it and lost it, this heals the loss.
Vote(h, v, age) ==
    /\ phase[h] \in {"asking", "held"}
    /\ v \in open[h]
    /\ vote[v] \in {Nobody, h}
    /\ vote' = [vote EXCEPT ![v] = h]
    /\ left' = [left EXCEPT ![v] = Lease]
    /\ open' = [open EXCEPT ![h] = open[h] \ {v}]
    /\ relies' = IF Counts(h, v, age)
                 THEN [relies EXCEPT ![h][v] = Max(relies[h][v], Validity - age)]
                 ELSE relies
    /\ UNCHANGED <<lost, phase, asked, proven, unaware, budget>>

\* The client has the votes of a majority, and holds the lock.
Win(h) ==
    /\ phase[h] = "asking"
    /\ ReliesFor(h, 1)
    /\ phase' = [phase EXCEPT ![h] = "held"]
    /\ UNCHANGED <<vote, left, lost, asked, open, relies, proven, unaware, budget>>

\* The client asks all voters to keep their votes, or to give them again.
Renew(h) ==
    /\ Trusted(h)
    /\ budget.renewals > 0
    /\ asked' = [asked EXCEPT ![h] = 0]
    /\ open' = [open EXCEPT ![h] = Voters]
    /\ budget' = [budget EXCEPT !.renewals = budget.renewals - 1]
    /\ UNCHANGED <<vote, left, lost, phase, relies, proven, unaware>>

\* The client gives up or releases: from now on it relies on nothing.
End(h) ==
    /\ phase[h] \in {"asking", "held"}
    /\ phase' = [phase EXCEPT ![h] = "over"]
    /\ open' = [open EXCEPT ![h] = {}]
    /\ relies' = [relies EXCEPT ![h] = [v \in Voters |-> 0]]
    /\ UNCHANGED <<vote, left, lost, asked, proven, unaware, budget>>

\* A voter hears that a hold is over. It may never hear it: then its lease ends.
Release(h, v) ==
    /\ phase[h] = "over"
    /\ vote[v] = h
    /\ vote' = [vote EXCEPT ![v] = Nobody]
    /\ left' = [left EXCEPT ![v] = 0]
    /\ UNCHANGED <<lost, phase, asked, open, relies, proven, unaware, budget>>

\* A request arrives when its hold is over. The vote is given, and nobody relies on it.
Late(h, v) ==
    /\ phase[h] = "over"
    /\ vote[v] = Nobody
    /\ vote' = [vote EXCEPT ![v] = h]
    /\ left' = [left EXCEPT ![v] = Lease]
    /\ UNCHANGED <<lost, phase, asked, open, relies, proven, unaware, budget>>

\* A lease ends by the clock of its voter, which is ahead.
EndEarly(v) ==
    /\ vote[v] # Nobody
    /\ left[v] <= Drift
    /\ vote' = [vote EXCEPT ![v] = Nobody]
    /\ left' = [left EXCEPT ![v] = 0]
    /\ UNCHANGED <<lost, phase, asked, open, relies, proven, unaware, budget>>

\* A voter loses its data. Clients that know it notice that with its next answer. The
\* hold whose vote it was knows that nobody else had it then.
Lose(v) ==
    /\ budget.losses > 0
    /\ Cardinality({u \in Voters \ {v} : lost[u] < Quarantine}) < AtOnce
    /\ vote' = [vote EXCEPT ![v] = Nobody]
    /\ left' = [left EXCEPT ![v] = 0]
    /\ lost' = [lost EXCEPT ![v] = 0]
    /\ proven' = [h \in Holds |->
            IF relies[h][v] > 0 THEN proven[h] \cup {v} ELSE proven[h] \ {v}]
    /\ unaware' = [h \in Holds |-> IF Notices THEN unaware[h] \ {v} ELSE unaware[h]]
    /\ budget' = [budget EXCEPT !.losses = budget.losses - 1]
    /\ UNCHANGED <<phase, asked, open, relies>>

\* Whether the hold is over by then: it lost its majority, or never had one in time.
Ends(h, d) ==
    \/ phase[h] = "held" /\ ~ReliesFor(h, d + 1)
    \/ phase[h] = "asking" /\ asked[h] + d >= Validity

\* Whether it still waits for answers then.
Waits(h, d) ==
    /\ ~Ends(h, d)
    /\ phase[h] = "asking" \/ (phase[h] = "held" /\ open[h] # {})

\* So much time passes. Trust ends by itself, whoever is told or not.
Pass(d) ==
    /\ vote' = [v \in Voters |-> IF left[v] > d THEN vote[v] ELSE Nobody]
    /\ left' = [v \in Voters |-> IF left[v] > d THEN left[v] - d ELSE 0]
    /\ lost' = [v \in Voters |-> IF lost[v] + d < LongAgo THEN lost[v] + d ELSE LongAgo]
    /\ phase' = [h \in Holds |-> IF ~Ends(h, d) THEN phase[h] ELSE "over"]
    /\ asked' = [h \in Holds |->
            IF ~Waits(h, d) THEN 0
            ELSE IF asked[h] + d < Validity THEN asked[h] + d ELSE Validity]
    /\ open' = [h \in Holds |-> IF ~Ends(h, d) THEN open[h] ELSE {}]
    /\ relies' = [h \in Holds |-> [v \in Voters |->
            IF ~Ends(h, d) /\ relies[h][v] > d THEN relies[h][v] - d ELSE 0]]
    /\ UNCHANGED <<proven, unaware, budget>>

Next ==
    \/ \E h \in Holds : \E met \in SUBSET Voters : Ask(h, met)
    \/ \E h \in Holds : \E v \in Voters : Vote(h, v, asked[h])
    \/ \E h \in Holds : Win(h)
    \/ \E h \in Holds : Renew(h)
    \/ \E h \in Holds : End(h)
    \/ \E h \in Holds : \E v \in Voters : Release(h, v)
    \/ \E h \in Holds : \E v \in Voters : Late(h, v)
    \/ \E v \in Voters : EndEarly(v)
    \/ \E v \in Voters : Lose(v)
    \/ Pass(1)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------

\* No two holds are trusted at the same time.
Exclusion == \A h \in Holds : \A k \in Holds \ {h} : ~(Trusted(h) /\ Trusted(k))

Symmetry == Permutations(Voters)

=============================================================================
