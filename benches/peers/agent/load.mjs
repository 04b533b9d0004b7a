// Takes locks from Node by the `quorate agent` of the program that its argument names. Of the
// requests that benches/peers/program.rs lists it knows `connect` and `cycles`.
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "../../../deploy/clients/node/index.js";

const program = process.argv[2];
let quorum;
let names = 0;

const micros = () => Number(process.hrtime.bigint() / 1000n);

async function cycles(tasks, within) {
  const prefix = `node:${names++}`;
  const took = [];
  let failed = 0;
  let over = false;
  const cycle = async (task) => {
    while (!over) {
      const started = micros();
      try {
        await (await quorum.lock(`${prefix}:${task}`)).release();
        took.push(micros() - started);
      } catch {
        failed += 1;
      }
    }
  };
  const [used, started] = [process.cpuUsage(), micros()];
  const running = Array.from({ length: tasks }, (_, task) => cycle(task));
  await sleep(within);
  over = true;
  await Promise.all(running);
  const elapsed = micros() - started;
  const { user, system } = process.cpuUsage(used);
  took.sort((one, other) => one - other);
  const at = (permille) => took[Math.floor((took.length * permille) / 1000)] ?? 0;
  return [took.length, failed, elapsed, ...[500, 990, 999].map(at), user + system, 0];
}

console.log(`Node ${process.versions.node}`);
for await (const line of createInterface({ input: process.stdin })) {
  const [request, ...words] = line.split(" ");
  if (request === "cycles") {
    const answer = await cycles(...words.map(Number));
    console.log(`ok ${answer.join(" ")}`);
  } else {
    await quorum?.close();
    quorum = await connect({ program, env: { QUORATE_VOTERS: words.join(" ") } });
    console.log("ok 0 0 0 0 0 0 0 0");
  }
}
await quorum.close();
