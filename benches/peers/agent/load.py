"""Takes locks from Python, as its argument `asyncio` or `threads` says, by the `quorate agent` of
the program that the next argument names. Of the requests that benches/peers/program.rs lists it
knows `connect` and `cycles`."""

import asyncio
import pathlib
import platform
import sys
import threading
import time

ROOT = pathlib.Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "deploy/clients/python"))

import quorate
import quorate.aio


def micros():
    return time.monotonic_ns() // 1000


class Tally:
    def __init__(self, tasks):
        self.tasks, self.took, self.failed, self.is_over = tasks, [], 0, False
        self.used, self.started = time.process_time_ns(), micros()

    def answer(self):
        elapsed, used = micros() - self.started, time.process_time_ns() - self.used
        took = sorted(self.took)
        at = [took[len(took) * permille // 1000] if took else 0 for permille in (500, 990, 999)]
        return len(took), self.failed, elapsed, *at, used // 1000, 0


class Threads:
    def connect(self, **options):
        self.quorum = quorate.connect(**options)

    def close(self):
        self.quorum.close()

    def cycles(self, tally, prefix, seconds):
        def cycle(task):
            while not tally.is_over:
                started = micros()
                try:
                    self.quorum.lock(f"{prefix}:{task}").acquire().release()
                    tally.took.append(micros() - started)
                except quorate.QuorateError:
                    tally.failed += 1

        threads = [threading.Thread(target=cycle, args=(task,)) for task in range(tally.tasks)]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        tally.is_over = True
        for thread in threads:
            thread.join()


class Loop:
    def __init__(self):
        self.loop = asyncio.new_event_loop()

    def connect(self, **options):
        self.quorum = self.loop.run_until_complete(quorate.aio.connect(**options))

    def close(self):
        self.loop.run_until_complete(self.quorum.close())

    def cycles(self, tally, prefix, seconds):
        async def cycle(task):
            while not tally.is_over:
                started = micros()
                try:
                    lock = await self.quorum.lock(f"{prefix}:{task}")
                    await lock.release()
                    tally.took.append(micros() - started)
                except quorate.QuorateError:
                    tally.failed += 1

        async def all_of_them():
            running = asyncio.gather(*(cycle(task) for task in range(tally.tasks)))
            await asyncio.sleep(seconds)
            tally.is_over = True
            await running

        self.loop.run_until_complete(all_of_them())


how, program = sys.argv[1:]
side = Threads() if how == "threads" else Loop()
print(f"Python {platform.python_version()}, {how}", flush=True)
is_connected = False
for number, line in enumerate(sys.stdin):
    request, *words = line.split()
    if request == "cycles":
        tally = Tally(int(words[0]))
        side.cycles(tally, f"{how}:{number}", int(words[1]) / 1000)
        answer = tally.answer()
    else:
        if is_connected:
            side.close()
        side.connect(program=program, env={"QUORATE_VOTERS": " ".join(words)})
        is_connected, answer = True, [0] * 8
    print("ok", *answer, flush=True)
side.close()
