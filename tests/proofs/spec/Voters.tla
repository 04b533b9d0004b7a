------------------------------- MODULE Voters -------------------------------
(***************************************************************************)
(* The voters are replaced by others while the lock is in use.             *)
(*                                                                         *)
(* Clients go from the old voters over both sets to the new ones. In the   *)
(* step between, a majority is a majority of each set. So two majorities   *)
(* of neighbouring steps share a voter. Two that are two steps apart need  *)
(* not: nobody may begin the third step before all have left the first.    *)
(*                                                                         *)
(* There is no time here. Of Lock only this is used: a vote stands for as  *)
(* long as its hold may be won or needs it for a majority.                 *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Old,         \* The servers before.
    New,         \* The servers after. Some may be in both sets.
    Holds,       \* Each is one attempt of one client, and what comes of it.
    Nobody,      \* Not a hold.
    Skips        \* TRUE where the step between is left out.

VARIABLES
    stage,       \* How far the change has come.
    step,        \* Of each hold: the step of its client; "none" before it asks.
    phase,       \* Of each hold: "new", "asking", "held", then "over".
    vote         \* Who has the vote of each voter.

vars == <<stage, step, phase, vote>>

All == Old \cup New

\* The steps that clients may be in at the same time, one stage after the other.
Stages ==
    IF Skips
    THEN <<{"old"}, {"old", "new"}, {"new"}>>
    ELSE <<{"old"}, {"old", "both"}, {"both"}, {"both", "new"}, {"new"}>>

\* The voters that a client asks.
Asked(s) == CASE s = "old" -> Old [] s = "new" -> New [] OTHER -> All

Most(by, set) == 2 * Cardinality(by \cap set) > Cardinality(set)

\* Whether these voters decide for a client.
Decide(s, by) ==
    /\ s \in {"old", "both"} => Most(by, Old)
    /\ s \in {"new", "both"} => Most(by, New)

Votes(h) == {v \in All : vote[v] = h}

-----------------------------------------------------------------------------

Init ==
    /\ stage = 1
    /\ step = [h \in Holds |-> "none"]
    /\ phase = [h \in Holds |-> "new"]
    /\ vote = [v \in All |-> Nobody]

\* The change goes on, or back. Whoever is in a step that is left has ended what it had.
Move(next) ==
    /\ next \in {stage - 1, stage + 1} \cap (1..Len(Stages))
    /\ \A h \in Holds : phase[h] \in {"asking", "held"} => step[h] \in Stages[next]
    /\ stage' = next
    /\ UNCHANGED <<step, phase, vote>>

\* A client in this step asks for the lock.
Ask(h, s) ==
    /\ phase[h] = "new"
    /\ s \in Stages[stage]
    /\ step' = [step EXCEPT ![h] = s]
    /\ phase' = [phase EXCEPT ![h] = "asking"]
    /\ UNCHANGED <<stage, vote>>

\* A voter gives its vote: for the first time, or again in a renewal.
Vote(h, v) ==
    /\ phase[h] \in {"asking", "held"}
    /\ v \in Asked(step[h])
    /\ vote[v] = Nobody
    /\ vote' = [vote EXCEPT ![v] = h]
    /\ UNCHANGED <<stage, step, phase>>

Win(h) ==
    /\ phase[h] = "asking"
    /\ Decide(step[h], Votes(h))
    /\ phase' = [phase EXCEPT ![h] = "held"]
    /\ UNCHANGED <<stage, step, vote>>

End(h) ==
    /\ phase[h] \in {"asking", "held"}
    /\ phase' = [phase EXCEPT ![h] = "over"]
    /\ UNCHANGED <<stage, step, vote>>

\* A vote ends, by a release or with its lease: its hold is over, or has a majority
\* without it.
Free(h, v) ==
    /\ vote[v] = h
    /\ \/ phase[h] = "over"
       \/ phase[h] = "held" /\ Decide(step[h], Votes(h) \ {v})
    /\ vote' = [vote EXCEPT ![v] = Nobody]
    /\ UNCHANGED <<stage, step, phase>>

Next ==
    \/ \E next \in 1..Len(Stages) : Move(next)
    \/ \E h \in Holds : \E s \in {"old", "both", "new"} : Ask(h, s)
    \/ \E h \in Holds : \E v \in All : Vote(h, v)
    \/ \E h \in Holds : Win(h)
    \/ \E h \in Holds : End(h)
    \/ \E h \in Holds : \E v \in All : Free(h, v)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------

\* No two hold the lock at the same time, whichever voters they have.
Exclusion == \A h \in Holds : \A k \in Holds \ {h} : ~(phase[h] = "held" /\ phase[k] = "held")

=============================================================================
