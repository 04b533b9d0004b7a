"""Against the real program and real servers: QUORATE_PROGRAM and QUORATE_VOTERS name them, with a
lease of four seconds. `tests/run full cli agent` runs it."""

import asyncio
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import quorate
import quorate.aio

FOLDER = tempfile.TemporaryDirectory()


class Daemon:
    """An agent that listens."""

    def __init__(self, name):
        self.socket = os.path.join(FOLDER.name, name, "agent.sock")
        command = [os.environ["QUORATE_PROGRAM"], "agent", "--socket", self.socket]
        self.process = subprocess.Popen(command)
        while not os.path.exists(self.socket):
            time.sleep(0.005)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


class Threads(unittest.TestCase):
    def refused(self, kind, call):
        with self.assertRaises(quorate.QuorateError) as refused:
            call()
        self.assertEqual(refused.exception.kind, kind, refused.exception)
        return refused.exception

    def test_every_kind_is_locked_and_released(self):
        with quorate.connect() as quorum:
            with quorum.lock("p:kinds") as first:
                self.assertTrue(first.is_held and 1 < first.remaining <= 4)
                first.check()
            self.assertFalse(first.is_held)
            self.refused("released", first.release)
            second = quorum.fair("p:kinds").acquire()
            self.assertGreater(second.token, first.token)
            second.keep_for(0.9)
            with quorum.read("p:kinds"), quorum.read("p:kinds"):
                pass
            with quorum.write("p:kinds", wait=5) as write:
                write.extend(4)
            with quorum.permit("p:kinds", 2) as permit:
                self.assertIn(permit.slot, (0, 1))
                self.assertIsNone(permit.token)
            with quorum.lead("p:kinds", "10.0.0.1:80", note="job 42"):
                seen = quorum.inspect("election", "p:kinds")
                self.assertFalse(seen["is_free"])
                self.assertEqual(seen["holders"][0]["note"], "job 42")
            with quorum.once("p:kinds", 7, keep=86_400) as firing:
                firing.done()
            with quorum.once("p:kinds", 7) as firing:
                self.assertIsNone(firing)

    def test_a_lock_that_is_taken_names_its_holder(self):
        with quorate.connect() as one, quorate.connect() as other:
            with one.lock("p:busy"):
                busy = self.refused("busy", other.lock("p:busy", wait=0).acquire)
                self.assertTrue(busy.holder and busy.lease_left > 0)
                turns = []
                wait = other.lock("p:busy")
                waiter = threading.Thread(target=lambda: turns.append(wait.acquire()))
                waiter.start()
            waiter.join()
            self.assertTrue(turns[0].is_held)

    def test_a_lock_outlives_its_lease_while_the_program_lives(self):
        with quorate.connect() as quorum, quorum.lock("p:renewed") as lock:
            time.sleep(6)
            self.assertTrue(lock.is_held and not lock.ending.is_set())

    def test_the_loss_of_the_agent_is_that_of_the_lock_at_its_deadline(self):
        with Daemon("killed") as agent:
            quorum = quorate.connect(socket=agent.socket)
            lock = quorum.lock("p:killed").acquire()
            agent.kill()
            self.assertTrue(lock.is_held, "nobody else can have it yet")
            self.assertTrue(lock.lost.wait(10))
            self.assertTrue(lock.ending.is_set() and not lock.is_held)
            self.refused("lost", lock.check)
            self.refused("lost", lock.release)
            os.remove(agent.socket)
            self.refused("disconnected", quorum.lock("p:killed").acquire)
        with Daemon("killed"):
            with quorum.lock("p:killed") as again:
                self.assertGreater(again.token, lock.token)
            quorum.close()

    def test_a_loss_is_raised_at_the_end_of_the_work(self):
        with quorate.connect() as quorum:
            with self.assertRaises(quorate.QuorateError) as lost:
                with quorum.lock("p:broken") as lock:
                    command = [os.environ["QUORATE_PROGRAM"], "break", "p:broken", "--yes"]
                    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                    self.assertTrue(lock.lost.wait(10))
            self.assertEqual(lost.exception.kind, "lost")

    def test_a_forked_process_holds_nothing_and_connects_anew(self):
        with quorate.connect() as quorum, quorum.lock("p:forked") as lock:
            fork = multiprocessing.get_context("fork")
            seen = fork.Queue()

            def child():
                with quorum.lock("p:forked by a child") as own:
                    seen.put((lock.is_held, own.is_held))
                quorum.close()

            process = fork.Process(target=child)
            process.start()
            self.assertEqual(seen.get(timeout=20), (False, True))
            process.join()
            self.assertTrue(lock.is_held)

    def test_an_agent_that_cannot_be_started_or_reaches_no_servers_is_an_error(self):
        self.refused("disconnected", lambda: quorate.connect(program="/nowhere"))
        self.refused("disconnected", lambda: quorate.connect(socket="/nowhere"))
        env = {"QUORATE_VOTERS": "redis://127.0.0.1:1"}
        self.refused("not_connected", lambda: quorate.connect(env=env))


class Loops(unittest.IsolatedAsyncioTestCase):
    async def test_tasks_lock_and_release(self):
        async with await quorate.aio.connect() as quorum:
            async with quorum.lock("a:one", wait=5) as lock:
                self.assertTrue(lock.is_held)
                with self.assertRaises(quorate.QuorateError) as busy:
                    await quorum.lock("a:one", wait=0)
                self.assertEqual(busy.exception.kind, "busy")
            again = await quorum.lock("a:one")
            await again.extend(4)
            await again.release()
            async with quorum.once("a:one", 7) as firing:
                await firing.done()
            self.assertIsNone(await quorum.once("a:one", 7))
            self.assertTrue((await quorum.inspect("mutex", "a:one"))["is_free"])

    async def test_whoever_gives_up_stands_in_nobodys_way(self):
        async with await quorate.aio.connect() as quorum:
            lock = await quorum.lock("a:given up")
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(quorum.lock("a:given up").acquire(), 0.2)
            await lock.release()
            await asyncio.wait_for(quorum.lock("a:given up").acquire(), 20)

    async def test_each_change_of_the_leader_is_seen(self):
        async with await quorate.aio.connect() as quorum:
            seen = quorum.observe("a:leader")
            self.assertIsNone(await seen.__anext__())
            lead = await quorum.lead("a:leader", "10.0.0.1:80")
            self.assertEqual((await seen.__anext__())["value"], "10.0.0.1:80")
            await lead.release()
            self.assertIsNone(await seen.__anext__())
            await seen.aclose()

    async def test_work_is_cancelled_when_its_lock_is_lost(self):
        with Daemon("cancelled") as agent:
            quorum = await quorate.aio.connect(socket=agent.socket)
            with self.assertRaises(quorate.QuorateError) as lost:
                async with quorum.lock("a:cancelled"):
                    agent.kill()
                    await asyncio.sleep(20)
                    self.fail("it went on")
            self.assertEqual(lost.exception.kind, "lost")
            # The task itself was not.
            await asyncio.sleep(0)

    async def test_a_blocked_loop_loses_its_lock_at_the_deadline(self):
        async with await quorate.aio.connect() as blocked, await quorate.aio.connect() as other:
            lock = await blocked.lock("a:blocked")
            time.sleep(9)
            self.assertFalse(lock.is_held)
            await other.lock("a:blocked", wait=1)
            await asyncio.wait_for(lock.lost.wait(), 10)


if __name__ == "__main__":
    unittest.main()
