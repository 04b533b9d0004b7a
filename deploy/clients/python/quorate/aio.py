"""The same with asyncio."""

import asyncio
import math

from . import _CLOSED, Acquisition as _Acquisition, Quorum as _Quorum
from ._session import Lock, QuorateError, Session, dial

__all__ = ["Lock", "QuorateError", "Quorum", "connect"]


class _LoopSession(Session, asyncio.Protocol):
    def __init__(self):
        self._loop = asyncio.get_running_loop()
        super().__init__(self._loop.create_future, asyncio.Event)
        self._transport, self._process, self._timer, self._wakes = None, None, None, math.inf

    @classmethod
    async def open(cls, options):
        session = cls()
        channel, session._process = dial(**options)
        await session._loop.create_connection(lambda: session, sock=channel)
        session.say({"v": 1})
        return await session.greeted

    def write(self, data):
        self._transport.write(data)

    async def ask(self, fields, hear=None):
        number, answer = self.call(fields, hear)
        try:
            return await answer
        except asyncio.CancelledError:
            self.give_up(number, answer)
            raise

    async def close(self):
        releases = [lock.release() for lock in self.locks()]
        await asyncio.gather(*releases, return_exceptions=True)
        self.end(_CLOSED)
        self._transport.close()
        if self._process:
            await self._loop.run_in_executor(None, self._process.wait)

    def connection_made(self, transport):
        self._transport = transport

    def data_received(self, data):
        self.hear(data)
        if self.soonest < self._wakes:
            self._watch()

    def connection_lost(self, error):
        self.end(QuorateError("disconnected", f"the agent has gone: {error or 'end of stream'}"))

    def _watch(self):
        """Wakes at the next deadline."""
        if self._timer:
            self._timer.cancel()
        left, self._wakes = self.expire(), self.soonest
        self._timer = None if left == math.inf else self._loop.call_later(left, self._watch)


class Acquisition(_Acquisition):
    """How a lock is acquired: by `async with`, which also releases it, or by `await`."""

    def __await__(self):
        return self.acquire().__await__()

    async def acquire(self):
        return await (await self._quorum._open()).ask(self._fields)

    async def __aenter__(self):
        self._lock = await self.acquire()
        if self._lock:
            self._lock._on_lost = asyncio.current_task().cancel
            self._lock.check()
        return self._lock

    async def __aexit__(self, kind, error, trace):
        if self._lock is None:
            return
        self._lock._on_lost, over = None, self._lock._over
        try:
            if not over:
                await self._lock.release()
        except QuorateError as late:
            over = late
        if self._lock.lost.is_set() and kind is asyncio.CancelledError:
            # Python 3.11 says whether another has cancelled the task, too.
            if not getattr(asyncio.current_task(), "uncancel", int)():
                raise over from error
        self._raise_loss(kind, over)


class Quorum(_Quorum):
    """A connection to an agent, for the tasks of one loop."""

    _acquisition = Acquisition

    async def inspect(self, kind, name):
        return await (await self._open()).ask({"op": "inspect", "kind": kind, "name": name})

    async def observe(self, name):
        """Who leads now, and each change; None where nobody does, or it is not known."""
        session, seen = await self._open(), asyncio.Queue()
        asked = session.ask({"op": "observe", "name": name}, seen.put_nowait)
        asking = asyncio.ensure_future(asked)
        asking.add_done_callback(seen.put_nowait)
        try:
            while True:
                leader = await seen.get()
                if leader is asking:
                    await asking
                yield leader
        finally:
            asking.cancel()

    async def close(self):
        await self._session.close()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.close()

    async def _open(self):
        async with self._opening:
            if not (self._session and self._session.is_of_use()):
                self._session = await _LoopSession.open(self._options)
            return self._session


async def connect(socket=None, program=None, args=(), env=None):
    """Starts an agent, or uses one that listens: on `socket`, or where QUORATE_AGENT says."""
    options = {"path": socket, "program": program, "args": args, "env": env}
    quorum = Quorum(options, asyncio.Lock())
    await quorum._open()
    return quorum
