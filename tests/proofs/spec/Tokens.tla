------------------------------- MODULE Tokens -------------------------------
(***************************************************************************)
(* The token of each owner of the lock is higher than all before.          *)
(*                                                                         *)
(* Each voter counts for itself, so the counts differ. A hold takes the    *)
(* highest count of the voters that gave it their votes, and has it stored *)
(* by a majority before its first owner gets the lock. Each later hold is  *)
(* granted by one of these voters at least, which counts on from there.    *)
(*                                                                         *)
(* A hold has a block of numbers. Tasks of its client may have the lock    *)
(* one after the other, each with the next number of the block.            *)
(*                                                                         *)
(* There is no time here. Of Lock only this is used: a vote stands for as  *)
(* long as its hold may be won or needs it for a majority, unless its      *)
(* voter loses its data; and such a voter does not count before all this   *)
(* is over.                                                                *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets, TLC

CONSTANTS
    Voters,      \* The servers.
    Majority,    \* So many of them decide.
    Keepers,     \* So many store a number before the lock is handed out.
    Holds,       \* Each is one attempt of one client, and what comes of it.
    Nobody,      \* Not a hold.
    Block,       \* How many numbers a hold has.
    Apart,       \* At first the counts differ by so much at most.
    Ahead,       \* Clocks of clients differ by so much at most.
    Losses,      \* So often voters may lose their data, one at a time.
    Step         \* By so much the token grows when the lock is handed on.

VARIABLES
    count,       \* Of each voter: the last number of the latest hold it voted for.
    vote,        \* Who has its vote.
    away,        \* The voters that lost their data and do not count yet.
    phase,       \* Of each hold: "new", "asking", "storing", "held", then "over".
    open,        \* The voters that it asked, and whose votes would count.
    floor,       \* The least that its number may be, by its client's clock.
    told,        \* The number that each voter answered; 0 is none.
    number,      \* The number that it took: the last of its block.
    kept,        \* The voters that store that.
    token,       \* The token of its present owner.
    highest,     \* The highest token that anybody had so far.
    grows,       \* FALSE once an owner had no higher token than all before.
    clock,       \* What the clocks of clients show at least.
    budget       \* How many losses are still to come.

vars == <<count, vote, away, phase, open, floor, told, number, kept, token,
          highest, grows, clock, budget>>

-----------------------------------------------------------------------------

Max(a, b) == IF a > b THEN a ELSE b
Highest(numbers) == CHOOSE n \in numbers : \A m \in numbers : m <= n

\* Whose votes a hold has.
Votes(h) == {v \in Voters : vote[v] = h}

\* The voters that answered a hold.
Answered(h) == {v \in Voters : told[h][v] > 0}

Asks(h) == phase[h] \in {"asking", "storing"}

\* The highest number that a majority knows: no token can have been higher.
Known(counts) == Highest({n \in {counts[v] : v \in Voters} :
                             Cardinality({v \in Voters : counts[v] >= n}) >= Majority})

\* Somebody gets the lock with this token.
Give(n) ==
    /\ grows' = (grows /\ n > highest)
    /\ highest' = Max(highest, n)

-----------------------------------------------------------------------------

\* Any counts, whatever has been before.
Init ==
    /\ count \in [Voters -> 0..Apart]
    /\ vote = [v \in Voters |-> Nobody]
    /\ away = {}
    /\ phase = [h \in Holds |-> "new"]
    /\ open = [h \in Holds |-> {}]
    /\ floor = [h \in Holds |-> 0]
    /\ told = [h \in Holds |-> [v \in Voters |-> 0]]
    /\ number = [h \in Holds |-> 0]
    /\ kept = [h \in Holds |-> {}]
    /\ token = [h \in Holds |-> 0]
    /\ highest = Known(count)
    /\ grows = TRUE
    /\ clock = 0
    /\ budget = Losses

\* A client asks all voters for their votes. The first number of its block is to be no
\* lower than its clock. A voter that is away now does not count for it later either.
Ask(h, wall) ==
    /\ phase[h] = "new"
    /\ phase' = [phase EXCEPT ![h] = "asking"]
    /\ open' = [open EXCEPT ![h] = Voters \ away]
    /\ floor' = [floor EXCEPT ![h] = wall + Block - 1]
    /\ UNCHANGED <<count, vote, away, told, number, kept, token, highest, grows,
                   clock, budget>>

\* A voter gives its vote, with the last number of the next block.
Vote(h, v, least) ==
    /\ v \in open[h]
    /\ vote[v] = Nobody
    /\ vote' = [vote EXCEPT ![v] = h]
    /\ count' = [count EXCEPT ![v] = Max(count[v] + Block, least)]
    /\ open' = [open EXCEPT ![h] = open[h] \ {v}]
    /\ told' = [told EXCEPT ![h][v] = Max(count[v] + Block, least)]
    /\ UNCHANGED <<away, phase, floor, number, kept, token, highest, grows, clock,
                   budget>>

\* The client has heard of the votes of these voters, which are a majority, and takes
\* the highest of their numbers.
Win(h, heard) ==
    /\ phase[h] = "asking"
    /\ heard \subseteq Answered(h)
    /\ Cardinality(heard) >= Majority
    /\ phase' = [phase EXCEPT ![h] = "storing"]
    /\ number' = [number EXCEPT ![h] = Highest({told[h][v] : v \in heard})]
    /\ kept' = [kept EXCEPT ![h] = {v \in heard :
            \A u \in heard : told[h][u] <= told[h][v]}]
    /\ UNCHANGED <<count, vote, away, open, floor, told, token, highest, grows, clock,
                   budget>>

\* A voter stores the number of a hold that has its vote, or gets it again now. If
\* another hold has the vote, that hold may have a lower number from this voter.
Store(h, v) ==
    /\ phase[h] \in {"storing", "held"}
    /\ vote[v] \in {h, Nobody}
    /\ vote' = [vote EXCEPT ![v] = h]
    /\ count' = [count EXCEPT ![v] = Max(count[v], number[h])]
    /\ kept' = [kept EXCEPT ![h] = kept[h] \cup {v}]
    /\ UNCHANGED <<away, phase, open, floor, told, number, token, highest, grows,
                   clock, budget>>

\* The first owner gets the lock, with the first number of the block if other tasks of
\* its client wait for it; otherwise with the last.
HandOut(h, first) ==
    /\ phase[h] = "storing"
    /\ Cardinality(kept[h]) >= Keepers
    /\ first \in {(number[h] + 1) - Block, number[h]}
    /\ phase' = [phase EXCEPT ![h] = "held"]
    /\ token' = [token EXCEPT ![h] = first]
    /\ Give(first)
    /\ UNCHANGED <<count, vote, away, open, floor, told, number, kept, clock, budget>>

\* The next task of the same client gets the lock. No voter is asked.
HandOn(h) ==
    /\ phase[h] = "held"
    /\ token[h] < number[h]
    /\ token' = [token EXCEPT ![h] = token[h] + Step]
    /\ Give(token[h] + Step)
    /\ UNCHANGED <<count, vote, away, phase, open, floor, told, number, kept, clock,
                   budget>>

\* The client gives up or releases. What it knew of the hold does not matter any more.
End(h) ==
    /\ phase[h] \in {"asking", "storing", "held"}
    /\ phase' = [phase EXCEPT ![h] = "over"]
    /\ open' = [open EXCEPT ![h] = {}]
    /\ floor' = [floor EXCEPT ![h] = 0]
    /\ told' = [told EXCEPT ![h] = [v \in Voters |-> 0]]
    /\ number' = [number EXCEPT ![h] = 0]
    /\ kept' = [kept EXCEPT ![h] = {}]
    /\ token' = [token EXCEPT ![h] = 0]
    /\ UNCHANGED <<count, vote, away, highest, grows, clock, budget>>

\* A request arrives when its hold is over. The vote is given, and nobody relies on it. The
\* voter may count further for it, up to this number.
Late(h, v, least) ==
    /\ phase[h] = "over"
    /\ vote[v] = Nobody
    /\ vote' = [vote EXCEPT ![v] = h]
    /\ count' = [count EXCEPT ![v] = Max(count[v], least)]
    /\ UNCHANGED <<away, phase, open, floor, told, number, kept, token, highest, grows,
                   clock, budget>>

\* A vote ends, by a release or with its lease: its hold is over, or has a majority
\* without it.
Free(h, v) ==
    /\ vote[v] = h
    /\ \/ phase[h] = "over"
       \/ phase[h] = "held" /\ Cardinality(Votes(h) \ {v}) >= Majority
    /\ vote' = [vote EXCEPT ![v] = Nobody]
    /\ UNCHANGED <<count, away, phase, open, floor, told, number, kept, token, highest,
                   grows, clock, budget>>

\* A voter loses its data. What it is asked now counts for nobody that asks for the lock.
Lose(v) ==
    /\ budget > 0
    /\ away = {}
    /\ count' = [count EXCEPT ![v] = 0]
    /\ vote' = [vote EXCEPT ![v] = Nobody]
    /\ away' = {v}
    /\ open' = [h \in Holds |-> open[h] \ {v}]
    /\ budget' = budget - 1
    /\ UNCHANGED <<phase, floor, told, number, kept, token, highest, grows, clock>>

\* It counts again, when nobody relies on what it lost: a quarantine later. By then the
\* clocks of clients have passed all numbers that were given.
Return(v) ==
    /\ v \in away
    /\ \A h \in Holds : Asks(h) => told[h][v] = 0
    /\ \A h \in Holds : phase[h] = "held" => Cardinality(Votes(h)) >= Majority
    /\ away' = {}
    /\ clock' = 1 + Highest({clock, highest} \cup {count[u] : u \in Voters}
                                \cup {number[h] : h \in Holds})
    /\ UNCHANGED <<count, vote, phase, open, floor, told, number, kept, token, highest,
                   grows, budget>>

Next ==
    \/ \E h \in Holds : \E wall \in clock..(clock + Ahead) : Ask(h, wall)
    \/ \E h \in Holds : \E v \in Voters : Vote(h, v, floor[h])
    \/ \E h \in Holds : \E heard \in SUBSET Voters : Win(h, heard)
    \/ \E h \in Holds : \E v \in Voters : Store(h, v)
    \/ \E h \in Holds : \E first \in {(number[h] + 1) - Block, number[h]} : HandOut(h, first)
    \/ \E h \in Holds : HandOn(h)
    \/ \E h \in Holds : End(h)
    \/ \E h \in Holds : \E v \in Voters : Late(h, v, 0)
    \/ \E h \in Holds : \E v \in Voters : Free(h, v)
    \/ \E v \in Voters : Lose(v)
    \/ \E v \in Voters : Return(v)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------

\* The token of each owner is higher than all before.
TokensGrow == grows

Symmetry == Permutations(Voters)

=============================================================================
