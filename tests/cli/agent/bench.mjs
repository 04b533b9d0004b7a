// Prints the median of a lock and its release, in microseconds.
import { connect } from "../../../deploy/clients/node/index.js";

const rounds = Number(process.argv[2]);
const quorum = await connect();
const took = [];
for (let round = 0; round < 2 * rounds; round += 1) {
  const started = process.hrtime.bigint();
  await (await quorum.lock("node")).release();
  // The first half is compiled meanwhile.
  if (round >= rounds) took.push(Number(process.hrtime.bigint() - started));
}
took.sort((one, other) => one - other);
console.log(Math.round(took[rounds / 2] / 1000));
await quorum.close();
