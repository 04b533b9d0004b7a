# Prints the median of a lock and its release, in microseconds.
import asyncio
import sys
import time

sys.path.insert(0, "deploy/clients/python")

import quorate.aio

ROUNDS = int(sys.argv[1])


async def main():
    took = []
    async with await quorate.aio.connect() as quorum:
        for _ in range(ROUNDS):
            started = time.monotonic_ns()
            lock = await quorum.lock("python")
            await lock.release()
            took.append(time.monotonic_ns() - started)
    print(sorted(took)[ROUNDS // 2] // 1000)


asyncio.run(main())
