"""What the types let a program write, and what they do not: `tests/run full release types`."""

from typing import Optional

import quorate
import quorate.aio


def threads() -> Optional[int]:
    with quorate.connect(args=["-v"], env={"A": "b"}) as quorum:
        with quorum.lock("a", wait=0, on_exit="expire") as lock:
            lock.check()
            token = lock.token
        with quorum.once("a", 7, keep=10) as firing:
            if firing:
                firing.done()
            firing.done()  # type: ignore[union-attr]
        quorum.lock("a", timeout=3)  # type: ignore[call-arg]
        try:
            quorum.permit("a", 2).acquire().release()
        except quorate.QuorateError as error:
            print(error.kind, (error.retry_after or 1) + 1)
    return token


async def loop() -> None:
    async with await quorate.aio.connect() as quorum:
        async with quorum.fair("a", wait=5) as lock:
            await lock.lost.wait()
        again = await quorum.lock("a")
        again.release()  # type: ignore[unused-coroutine]
        async for leader in quorum.observe("a"):
            print(leader)
