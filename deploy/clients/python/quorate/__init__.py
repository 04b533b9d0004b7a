"""Distributed locks that a majority of independent Redis or Valkey servers grants.

For threads; with asyncio: `quorate.aio`.
"""

import contextlib
import os
import select
import socket as sockets
import threading
import time
from concurrent.futures import Future

from ._session import Lock, QuorateError, Session, dial, request

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
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        while True:
            with self._guard:
                left, error = self.expire(), self.error
            if error:
                # What is still held ends by the clock.
                if left is None:
                    return
                time.sleep(left)
                continue
            try:
                # Not before the deadline, which is less than a millisecond after a whole one.
                if not poll.poll(None if left is None else left * 1000 + 1):
                    continue
                data = self._socket.recv(65536)
            except OSError:
                data = b""
            with self._guard:
                if data:
                    self.hear(data)
                else:
                    self.end(QuorateError("disconnected", "the agent has gone"))


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

    def once(self, name, firing, **options):
        return self._acquisition(self, request("once", name, firing=firing, **options))

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
            if self._is_to_be_opened():
                self._session = _ThreadSession(self._options)
        return self._session

    def _is_to_be_opened(self):
        """Also in a forked process, and where the agent has gone: another may have come."""
        session = self._session
        is_gone = session and getattr(session.error, "kind", None) == "disconnected"
        return session is None or is_gone or session.pid != os.getpid()


def connect(socket=None, program=None, args=(), env=None):
    """Starts an agent, or uses one that listens: on `socket`, or where QUORATE_AGENT says."""
    options = {"path": socket, "program": program, "args": args, "env": env}
    quorum = Quorum(options, threading.Lock())
    quorum._open()
    return quorum
