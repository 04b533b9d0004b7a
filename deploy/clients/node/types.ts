// What the types let a program write, and what they do not. `tests/run full release types` compiles
// it.

import { type Leader, type Lock, type Quorum, QuorateError, connect } from "quorate";

export async function everything(stop: AbortSignal): Promise<number | undefined> {
  await using quorum: Quorum = await connect({ program: "quorate", args: ["-v"], env: { A: "b" } });
  await using lock: Lock = await quorum.lock("a", { wait: 0, lease: 4000, holdAtMost: 9000 });
  lock.signal.addEventListener("abort", () => console.log(lock.signal.reason, lock.ending.aborted));
  await quorum.fair("a", { signal: stop, onExit: "expire" }).then((fair) => fair.keepFor(100));
  const permit = await quorum.permit("a", 2);
  console.log(permit.slot, permit.isHeld && permit.remaining);
  const firing = await quorum.once("a", 7, { keep: 1000 });
  await firing?.done();
  // @ts-expect-error: it is null if the firing is done.
  await firing.done();
  // @ts-expect-error: there is no such kind.
  await quorum.inspect("spin", "a");
  // @ts-expect-error: it ends by itself.
  await quorum.lock("a", { timeout: 5 });
  for await (const leader of quorum.observe("a")) {
    const known: Leader | null | undefined = leader;
    console.log(known?.value);
  }
  return lock.token;
}

export async function work(quorum: Quorum): Promise<number | undefined> {
  try {
    await (await quorum.lead("a", "10.0.0.1")).release();
  } catch (error) {
    if (error instanceof QuorateError && error.kind === "busy") return error.retryAfter;
  }
  return undefined;
}
