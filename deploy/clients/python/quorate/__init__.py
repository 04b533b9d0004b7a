"""Distributed locks that a majority of independent Redis or Valkey servers grants.

For threads; with asyncio: `quorate.aio`.
"""

import contextlib
import math
import select
import socket as sockets
import threading
from concurrent.futures import Future

from ._session import Lock, QuorateError, Session, _ms, dial, request

__all__ = ["Lock", "QuorateError", "Quorum", "connect"]

_CLOSED = QuorateError("closed", "the connection was closed")


class _ThreadSession(Session):
    def __init__(self, options):
        super().__init__(Future, threading.Event)
        self._socket, self._process = dial(**options)
        self._guard = threading.RLock()
        threading.Thread(target=self._listen, name="quorate", daemon=True).start()
        with self._guard:
            self.say({"v": 1})
        try:
            self.greeted.result()
        except QuorateError:
            self.close()
            raise

    def write(self, data):
        try:
            self._socket.sendall(data)
        except OSError as error:
            self.end(QuorateError("disconnected", f"the agent has gone: {error}"))

    def ask(self, fields, hear=None):
        """Waits for the answer."""
        with self._guard:
            number, answer = self.call(fields, hear)
        try:
            return answer.result()
        except BaseException:
            # Also at Ctrl-C.
            with self._guard:
                self.give_up(number, answer)
            raise

    def close(self):
        for lock in self.locks():
            with contextlib.suppress(QuorateError):
                lock.release()
        with self._guard:
            self.end(_CLOSED)
        with contextlib.suppress(OSError):
            self._socket.shutdown(sockets.SHUT_RDWR)
        self._socket.close()
        if self._process:
            self._process.wait()

    def _listen(self):
        poll, channel = select.poll(), self._socket.fileno()
        poll.register(channel, select.POLLIN)
        while True:
            with self._guard:
                left, is_over = self.expire(), self.error is not None
            if is_over and left == math.inf:
                return
            # Not before the deadline, which is less than a millisecond after a whole one.
            if not poll.poll(min(left, 3600) * 1000 + 1):
                continue
            try:
                data = self._socket.recv(65536)
            except OSError:
                data = b""
            with self._guard:
                if data:
                    self.hear(data)
                else:
                    self.end(QuorateError("disconnected", "the agent has gone"))
                    # What is still held ends by the clock.
                    poll.unregister(channel)


class Acquisition:
    """How a lock is acquired: by `with`, which also releases it, or by `acquire`."""

    def __init__(self, quorum, fields):
        self._quorum, self._fields, self._lock = quorum, fields, None

    def acquire(self):
        """None: the firing is done."""
        return self._quorum._open().ask(self._fields)

    def __enter__(self):
        self._lock = self.acquire()
        return self._lock

    def __exit__(self, kind, error, trace):
        over = self._lock and self._lock._over
        try:
            if self._lock and not over:
                self._lock.release()
        except QuorateError as late:
            over = late
        self._raise_loss(kind, over)

    def _raise_loss(self, kind, over):
        # What no majority has confirmed goes on in the background.
        if kind is None and over and over.kind == "lost":
            raise over


class Quorum:
    """A connection to an agent. Threads may share it."""

    _acquisition = Acquisition

    def __init__(self, options, opening):
        self._options, self._opening, self._session = options, opening, None

    def lock(self, name, **options):
        return self._acquisition(self, request("mutex", name, **options))

    def fair(self, name, **options):
        return self._acquisition(self, request("fair", name, **options))

    def read(self, name, **options):
        return self._acquisition(self, request("read", name, **options))

    def write(self, name, **options):
        return self._acquisition(self, request("write", name, **options))

    def permit(self, name, permits, **options):
        return self._acquisition(self, request("semaphore", name, permits=permits, **options))

    def lead(self, name, value, **options):
        return self._acquisition(self, request("election", name, value=value, **options))

    def once(self, name, firing, keep=None, **options):
        more = {"firing": firing, "keep_ms": _ms(keep)}
        return self._acquisition(self, request("once", name, **more, **options))

    def inspect(self, kind, name):
        return self._open().ask({"op": "inspect", "kind": kind, "name": name})

    def close(self):
        self._session.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _open(self):
        with self._opening:
            if not (self._session and self._session.is_of_use()):
                self._session = _ThreadSession(self._options)
            return self._session


def connect(socket=None, program=None, args=(), env=None):
    """Starts an agent, or uses one that listens: on `socket`, or where QUORATE_AGENT says."""
    options = {"path": socket, "program": program, "args": args, "env": env}
    quorum = Quorum(options, threading.Lock())
    quorum._open()
    return quorum
