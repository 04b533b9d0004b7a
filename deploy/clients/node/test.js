// Against the real program and real servers: QUORATE_PROGRAM and QUORATE_VOTERS name them, with a
// lease of four seconds. `tests/run full cli agent` runs it.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { QuorateError, connect } from "./index.js";

const folder = mkdtempSync(join(tmpdir(), "quorate-"));
after(() => rmSync(folder, { recursive: true }));

// An agent that listens.
async function daemon(name) {
  const socket = join(folder, name, "agent.sock");
  const listen = ["agent", "--socket", socket];
  const agent = spawn(process.env.QUORATE_PROGRAM, listen, { stdio: "inherit" });
  after(() => agent.kill("SIGKILL"));
  while (!existsSync(socket)) await sleep(5);
  return { agent, socket };
}

const aborted = (signal) =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", resolve);
  });

const refusedAs = (kind) => (error) => error instanceof QuorateError && error.kind === kind;

test("every kind is locked and released", async () => {
  const quorum = await connect();
  const first = await quorum.lock("kinds");
  assert(first.isHeld && first.remaining > 1000 && first.remaining <= 4000);
  await first.release();
  assert(!first.isHeld);
  const second = await quorum.fair("kinds");
  assert(second.token > first.token);
  await assert.rejects(first.release(), refusedAs("released"));
  await second.keepFor(900);
  const [one, other] = await Promise.all([quorum.read("kinds"), quorum.read("kinds")]);
  await Promise.all([one.release(), other.release()]);
  const write = await quorum.write("kinds");
  await write.extend(4000);
  await write.release();
  const permit = await quorum.permit("kinds", 2);
  assert([0, 1].includes(permit.slot) && permit.token === undefined);
  await permit[Symbol.asyncDispose]();
  const firing = await quorum.once("kinds", 7);
  await firing.done();
  assert.equal(await quorum.once("kinds", 7), null);
  await quorum.close();
});

test("a lock that is taken names its holder, and waiting is given up", async () => {
  const { socket } = await daemon("busy");
  const [first, second] = [await connect({ socket }), await connect({ socket })];
  const lock = await first.lock("busy", { note: "job 42" });
  await assert.rejects(second.lock("busy", { wait: 0 }), (error) => {
    return error.kind === "busy" && error.holder && error.leaseLeft > 0;
  });
  const stop = new AbortController();
  const waiting = second.lock("busy", { signal: stop.signal });
  stop.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
  const seen = await second.inspect("mutex", "busy");
  assert.equal(seen.holders[0].hold, lock.holdId);
  assert.equal(seen.holders[0].note, "job 42");
  await first.close();
  const next = await second.lock("busy");
  assert(next.token > lock.token);
  await second.close();
});

test("each change of the leader is seen", async () => {
  const quorum = await connect();
  const seen = quorum.observe("leader");
  assert.equal((await seen.next()).value, null);
  const lead = await quorum.lead("leader", "10.0.0.1:80");
  assert.equal((await seen.next()).value.value, "10.0.0.1:80");
  await lead.release();
  assert.equal((await seen.next()).value, null);
  await seen.return();
  await quorum.close();
});

test("a lock outlives its lease while the program lives", async () => {
  const quorum = await connect();
  const lock = await quorum.lock("renewed");
  await sleep(6000);
  assert(lock.isHeld && !lock.ending.aborted);
  await lock.release();
  await quorum.close();
});

test("a program whose event loop is blocked loses its lock at the deadline", async () => {
  const { socket } = await daemon("blocked");
  const [blocked, other] = [await connect({ socket }), await connect()];
  const lock = await blocked.lock("blocked");
  const until = Date.now() + 9000;
  while (Date.now() < until);
  assert(!lock.isHeld, "by the clock, before anything is heard");
  const next = await other.lock("blocked", { wait: 0 });
  assert(next.token > lock.token);
  await aborted(lock.signal);
  assert.equal(lock.signal.reason.kind, "lost");
  await assert.rejects(lock.release(), refusedAs("lost"));
  await Promise.all([blocked.close(), other.close()]);
});

test("the loss of the agent is told at once, that of the lock at its deadline", async () => {
  const { agent, socket } = await daemon("killed");
  const quorum = await connect({ socket });
  const lock = await quorum.lock("killed");
  agent.kill("SIGKILL");
  await aborted(lock.ending);
  assert(lock.isHeld, "nobody else can have it yet");
  await aborted(lock.signal);
  assert(!lock.isHeld);
  rmSync(socket);
  await assert.rejects(quorum.lock("killed"), refusedAs("disconnected"));
  await daemon("killed");
  const again = await quorum.lock("killed");
  assert(again.token > lock.token);
  await quorum.close();
});

test("an agent that cannot be started or reaches no servers is an error", async () => {
  await assert.rejects(connect({ program: "/nowhere" }), refusedAs("disconnected"));
  await assert.rejects(connect({ socket: join(folder, "nowhere") }), refusedAs("disconnected"));
  const env = { QUORATE_VOTERS: "redis://127.0.0.1:1" };
  await assert.rejects(connect({ env }), refusedAs("not_connected"));
});

test("a connection that is not in use does not keep the program from its end", () => {
  const script = `
    import { connect } from ${JSON.stringify(new URL("./index.js", import.meta.url).href)};
    const lock = await (await connect()).lock("idle");
    await lock.release();
    console.log("released");`;
  const run = ["--input-type=module", "-e", script];
  const ended = spawnSync(process.execPath, run, { timeout: 20000 });
  assert.equal(`${ended.stdout}`, "released\n", `${ended.stderr}`);
  assert.equal(ended.status, 0);
});
