"""What is said to `quorate agent` and heard of it. Who carries the bytes is another's business.

The protocol, and what a client may trust: docs/any-language.md.
"""

import json
import math
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path


_encode = json.JSONEncoder(separators=(",", ":")).encode


class QuorateError(Exception):
    """Times are seconds, and None where they are not known."""

    def __init__(self, kind, text, holder=None, retry_after_ms=None, lease_left_ms=None, **_new):
        super().__init__(text)
        self.kind, self.message, self.holder = kind, text, holder
        self.retry_after = retry_after_ms and retry_after_ms / 1000
        self.lease_left = lease_left_ms and lease_left_ms / 1000


def _ms(seconds):
    return None if seconds is None else round(seconds * 1000)


def _now():
    """CLOCK_MONOTONIC, in microseconds: the clock of all deadlines."""
    return time.monotonic_ns() // 1000


class Lock:
    """A lock that was acquired. It is held for as long as `is_held` says so.

    `lost` is an event that is set when it is lost, and `ending` one that is set when the work is to
    come to its end. With asyncio, what the methods return is awaited.
    """

    def __init__(self, session, name, told):
        self.name, self.hold_id = name, told["hold_id"]
        self.token, self.slot = told.get("token"), told.get("slot")
        self.lost, self.ending = session.new_event(), session.new_event()
        self._session, self._hold, self._deadline = session, told["hold"], told["deadline_us"]
        self._over = self._on_lost = None

    @property
    def is_held(self):
        """Read from the clock at each call. In a forked process it is false."""
        return self.remaining > 0

    @property
    def remaining(self):
        """The seconds until the deadline, if no renewal succeeds."""
        is_ours = self._over is None and self._session.pid == os.getpid()
        return max(self._deadline - _now(), 0) / 1e6 if is_ours else 0.0

    def check(self):
        """Raises if it is not held."""
        if not self.is_held:
            raise self._over or QuorateError("lost", f"{self.name}: its deadline has come")

    def release(self):
        return self._leave({"op": "release"})

    def done(self):
        """Of a firing: it is not to be done again."""
        return self._leave({"op": "release", "done": True})

    def keep_for(self, seconds):
        return self._leave({"op": "keep_for", "time_ms": _ms(seconds)})

    def extend(self, lease):
        self.check()
        fields = {"op": "extend", "hold": self._hold, "lease_ms": _ms(lease)}
        return self._session.ask(fields, lambda told: self._move(told["deadline_us"]))

    def _move(self, deadline):
        self._deadline = max(deadline, self._deadline)

    def _leave(self, fields):
        self.check()
        self._session.forget(self, QuorateError("released", f"{self.name} was released"))
        return self._session.ask({**fields, "hold": self._hold})

    def _lose(self, error):
        self._session.forget(self, error)
        self.ending.set()
        self.lost.set()
        if self._on_lost:
            self._on_lost()


def request(kind, name, wait=None, lease=None, hold_at_most=None, **more):
    """What acquires a lock."""
    times = {"wait_ms": _ms(wait), "lease_ms": _ms(lease), "hold_at_most_ms": _ms(hold_at_most)}
    return {"op": "acquire", "kind": kind, "name": name, **times, **more}


class Session:
    """A connection. Its subclass has `write`, `ask`, and the futures and events that it takes."""

    def __init__(self, new_future, new_event):
        self._new_future, self.new_event = new_future, new_event
        self.error, self.pid, self.greeted = None, os.getpid(), new_future()
        self._calls, self._locks, self._latest, self._rest = {}, {}, 0, b""
        # No deadline is before this.
        self.soonest, self._started = math.inf, _now()

    def call(self, fields, hear=None):
        """The number of the call, and the future of its answer."""
        if self.error:
            raise self.error
        answer = self._new_future()
        self._calls[self._latest + 1] = (answer, hear, fields.get("name"))
        return self._tell(fields), answer

    def give_up(self, call, answer):
        """A lock that was granted at the same moment is released."""
        if self.error:
            return
        if answer.cancel() or answer.cancelled():
            self._tell({"op": "cancel", "request": call})
        elif not answer.exception() and isinstance(answer.result(), Lock):
            self.forget(answer.result(), QuorateError("cancelled", "the caller gave up"))
            self._tell({"op": "release", "hold": answer.result()._hold})

    def forget(self, lock, over):
        """From here on it is not held."""
        lock._over = over
        self._locks.pop(lock._hold, None)

    def is_of_use(self):
        """Not in a forked process, and not where the agent has gone: another may have come."""
        return self.pid == os.getpid() and getattr(self.error, "kind", None) != "disconnected"

    def locks(self):
        """Other threads may release some meanwhile."""
        return list(self._locks.values())

    def expire(self):
        """Ends what has come to its deadline. The seconds until the next one, or infinity."""
        for lock in self.locks():
            if _now() >= lock._deadline:
                lock._lose(QuorateError("lost", "its deadline has come, and no renewal was told"))
                # The agent may not know yet that nobody relies on it.
                if not self.error:
                    self._tell({"op": "release", "hold": lock._hold})
        self.soonest = min((lock._deadline for lock in self.locks()), default=math.inf)
        return max(self.soonest - _now(), 0) / 1e6

    def hear(self, data):
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            said = json.loads(line.decode())
            if not self.greeted.done():
                self._hear_greeting(said)
            elif "event" in said:
                self._hear_event(said)
            elif "id" in said:
                self._hear_answer(said)
            else:
                # Why the connection ends.
                self.end(QuorateError(**said["error"]))

    def end(self, error):
        """Nothing more is heard. Each lock is relied on until its deadline, which stays."""
        if self.error:
            return
        self.error = error
        for answer in [self.greeted, *(answer for answer, *_ in self._calls.values())]:
            if not answer.done():
                answer.set_exception(error)
        self._calls.clear()
        for lock in self.locks():
            lock.ending.set()

    def _tell(self, fields):
        """Nobody waits for the answer, unless it is a call."""
        self._latest += 1
        self.say({"id": self._latest, **fields})
        return self._latest

    def say(self, message):
        self.write(_encode(message).encode() + b"\n")

    def _hear_greeting(self, said):
        if "error" in said:
            self.end(QuorateError(**said["error"]))
        elif self._started <= said["now_us"] <= _now():
            self.greeted.set_result(self)
        else:
            self.end(QuorateError("protocol", "the agent goes by another clock than this process"))

    def _hear_answer(self, said):
        answer, hear, name = self._calls.pop(said["id"], (None, None, None))
        told = said.get("ok") or {}
        if answer is None or answer.done():
            # The caller gave up.
            if "hold" in told:
                self._tell({"op": "release", "hold": told["hold"]})
        elif "error" in said:
            answer.set_exception(QuorateError(**said["error"]))
        elif "hold" in told:
            self._locks[told["hold"]] = lock = Lock(self, name, told)
            self.soonest = min(self.soonest, lock._deadline)
            answer.set_result(lock)
        else:
            if hear:
                hear(told)
            answer.set_result(None if told.get("passed") else told)

    def _hear_event(self, said):
        lock = self._locks.get(said.get("hold"))
        if said["event"] == "ping":
            # What has ended by the clock stays so.
            self.expire()
            for hold, deadline in said["deadlines"]:
                if hold in self._locks:
                    self._locks[hold]._move(deadline)
            self.say({"pong": said["n"]})
        elif said["event"] == "leader" and said["request"] in self._calls:
            self._calls[said["request"]][1](said.get("leader"))
        elif said["event"] == "lost" and lock:
            lock._lose(QuorateError(**said["error"]))
        elif said["event"] == "ending" and lock:
            lock.ending.set()


def dial(path=None, program=None, args=(), env=None):
    """The socket that leads to an agent, and the process where one is started."""
    path = path or (None if program else os.environ.get("QUORATE_AGENT"))
    own = shutil.which("quorate", path=f"{Path(__file__).parent}/bin") or "quorate"
    program = program or os.environ.get("QUORATE_PROGRAM", own)
    try:
        if path:
            ours = socket.socket(socket.AF_UNIX)
            ours.connect(path)
            return ours, None
        ours, theirs = socket.socketpair()
        with theirs:
            command, env = [program, "agent", *args], {**os.environ, **(env or {})}
            return ours, subprocess.Popen(command, stdin=theirs, stdout=theirs, env=env)
    except OSError as error:
        why = f"no agent at {path}" if path else "install it, or set QUORATE_PROGRAM"
        raise QuorateError("disconnected", f"{error}: {why}") from error
