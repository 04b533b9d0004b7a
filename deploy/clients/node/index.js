// Locks of `quorate agent`. What a client may trust, and the protocol: docs/any-language.md.

import { spawn } from "node:child_process";
import { EventEmitter, on } from "node:events";
import { createRequire } from "node:module";
import { createConnection } from "node:net";

Symbol.asyncDispose ??= Symbol("Symbol.asyncDispose");

// CLOCK_MONOTONIC, in microseconds: the clock of all deadlines.
const now = () => Number(process.hrtime.bigint() / 1000n);

export class QuorateError extends Error {
  name = "QuorateError";

  constructor(kind, message, { retry_after_ms, holder, lease_left_ms } = {}) {
    super(message);
    const known = { kind, retryAfter: retry_after_ms, holder, leaseLeft: lease_left_ms };
    for (const name in known) if (known[name] !== undefined) this[name] = known[name];
  }

  static of(error) {
    return new QuorateError(error.kind, error.text, error);
  }
}

// A connection to an agent, and what is held by it.
class Session {
  error = null;
  #input;
  #output;
  #rest = "";
  #calls = new Map();
  #holds = new Map();
  #latest = 0;
  #timer;
  #wakes = Infinity;
  #greet;
  #handles;
  #started = now();

  static open(options) {
    const session = new Session();
    const greeted = new Promise((resolve, reject) => (session.#greet = { resolve, reject }));
    const { socket = process.env.QUORATE_AGENT, program = findProgram(), args = [], env } = options;
    const gone = (why) => session.#end(new QuorateError("disconnected", why));
    if (socket && !options.program) {
      session.#input = session.#output = createConnection(socket);
      session.#handles = [session.#input];
    } else {
      const child = spawn(program, ["agent", ...args], {
        stdio: ["pipe", "pipe", "inherit"],
        env: { ...process.env, ...env },
      });
      child.on("error", ({ message }) => gone(`${message}: install it, or set QUORATE_PROGRAM`));
      [session.#input, session.#output] = [child.stdout, child.stdin];
      session.#handles = [child, child.stdout, child.stdin];
    }
    session.#output.on("error", ({ message }) => gone(`no agent: ${message}`));
    session.#input.on("close", () => gone("the agent has gone"));
    session.#input.setEncoding("utf8").on("data", (text) => session.#hear(text));
    session.#send({ v: 1 });
    return greeted;
  }

  // The promise of its answer.
  call(fields, { hear, signal } = {}) {
    if (this.error) return traced(Promise.reject(this.error));
    const id = ++this.#latest;
    const cancel = () => this.#send({ id: ++this.#latest, op: "cancel", request: id });
    const answer = new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject, hear });
    });
    this.#send({ id, ...fields });
    if (signal?.aborted) cancel();
    signal?.addEventListener("abort", cancel, { once: true });
    this.#keepAlive();
    return traced(answer).finally(() => {
      signal?.removeEventListener("abort", cancel);
      this.#keepAlive();
    });
  }

  moveDeadline(hold, deadline) {
    if (!hold.over && deadline > hold.deadline) hold.deadline = deadline;
  }

  // From here on it is not held, for a reason of which an error is made when somebody asks.
  forget(id, hold, over) {
    hold.over = over;
    this.#holds.delete(id);
    if (this.#holds.size === 0) this.#expire();
    this.#keepAlive();
  }

  async close() {
    const closed = { kind: "closed", text: "the connection was closed" };
    const releases = [...this.#holds].map(([id, hold]) => {
      this.forget(id, hold, closed);
      return this.call({ op: "release", hold: id });
    });
    await Promise.allSettled(releases);
    this.#end(QuorateError.of(closed));
  }

  #send(message) {
    this.#output.write(JSON.stringify(message) + "\n");
  }

  #hear(text) {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop();
    for (const line of lines) this.#hearMessage(JSON.parse(line));
  }

  #hearMessage(message) {
    if (this.#greet) return this.#hearGreeting(message);
    if (message.event) return this.#hearEvent(message);
    const call = this.#calls.get(message.id);
    // A connection that is refused is told why, without an id.
    if (!("id" in message) && message.error) return this.#end(QuorateError.of(message.error));
    if (!call) return;
    this.#calls.delete(message.id);
    if (message.error) return call.reject(QuorateError.of(message.error));
    if (message.ok.hold) message.ok.state = this.#hold(message.ok);
    call.resolve(message.ok);
  }

  // Before the next message, which may be about it.
  #hold({ hold: id, deadline_us: deadline }) {
    const hold = { deadline, lost: new AbortController(), ending: new AbortController() };
    this.#holds.set(id, hold);
    if (deadline < this.#wakes) this.#expire();
    return hold;
  }

  #hearGreeting({ error, now_us }) {
    if (error) return this.#end(QuorateError.of(error));
    if (!(now_us >= this.#started && now_us <= now())) {
      return this.#end(new QuorateError("protocol", "the agent goes by another clock"));
    }
    this.#greet.resolve(this);
    this.#greet = null;
    this.#keepAlive();
  }

  #hearEvent({ event, n, deadlines, hold: id, error, request, leader }) {
    if (event === "ping") {
      // What has ended by the clock stays so.
      this.#expire();
      for (const [id, deadline] of deadlines) {
        const hold = this.#holds.get(id);
        if (hold) this.moveDeadline(hold, deadline);
      }
      return this.#send({ pong: n });
    }
    if (event === "leader") return this.#calls.get(request)?.hear(error ? undefined : leader);
    const hold = this.#holds.get(id);
    if (event === "ending") hold?.ending.abort();
    if (event === "lost" && hold) this.#lose(id, hold, error);
  }

  #lose(id, hold, over) {
    this.forget(id, hold, over);
    const error = QuorateError.of(over);
    hold.ending.abort(error);
    hold.lost.abort(error);
  }

  // Ends what has come to its deadline, and wakes at the next one.
  #expire() {
    for (const [id, hold] of this.#holds) {
      if (now() < hold.deadline) continue;
      this.#lose(id, hold, { kind: "lost", text: "its deadline has come without a renewal" });
      // The agent may not know yet that nobody relies on it.
      if (!this.error) this.#send({ id: ++this.#latest, op: "release", hold: id });
    }
    clearTimeout(this.#timer);
    this.#wakes = Math.min(...[...this.#holds.values()].map((hold) => hold.deadline));
    if (this.#wakes === Infinity) return;
    this.#timer = setTimeout(() => this.#expire(), Math.max(this.#wakes - now(), 0) / 1000 + 1);
  }

  // A connection that is not in use does not keep the program from its end.
  #keepAlive() {
    const inUse = this.#greet || this.#calls.size > 0 || this.#holds.size > 0;
    for (const handle of this.#handles) inUse ? handle.ref() : handle.unref();
  }

  #end(error) {
    if (this.error) return;
    this.error = error;
    this.#greet?.reject(error);
    this.#greet = null;
    for (const call of this.#calls.values()) call.reject(error);
    this.#calls.clear();
    // Each is relied on until its deadline, which nobody moves any more.
    for (const hold of this.#holds.values()) hold.ending.abort(error);
    // Of an agent that is a child this is the end.
    this.#output.destroy();
    this.#input.destroy();
    this.#keepAlive();
  }
}

class Lock {
  #session;
  #hold;
  #id;

  constructor(session, name, told) {
    [this.#session, this.#id, this.#hold] = [session, told.hold, told.state];
    [this.name, this.token, this.slot, this.holdId] = [name, told.token, told.slot, told.hold_id];
  }

  get isHeld() {
    return this.remaining > 0;
  }

  // In milliseconds.
  get remaining() {
    return this.#hold.over ? 0 : Math.max(this.#hold.deadline - now(), 0) / 1000;
  }

  // Aborted when it is lost.
  get signal() {
    return this.#hold.lost.signal;
  }

  // Aborted when the work is to come to its end.
  get ending() {
    return this.#hold.ending.signal;
  }

  release() {
    return this.#leave({ op: "release" });
  }

  // Of a firing.
  done() {
    return this.#leave({ op: "release", done: true });
  }

  keepFor(time) {
    return this.#leave({ op: "keep_for", time_ms: time });
  }

  async extend(lease) {
    if (this.#hold.over) throw QuorateError.of(this.#hold.over);
    const told = await this.#session.call({ op: "extend", hold: this.#id, lease_ms: lease });
    this.#session.moveDeadline(this.#hold, told.deadline_us);
  }

  // A loss is told by `signal`. What no majority has confirmed goes on in the background.
  async [Symbol.asyncDispose]() {
    if (!this.#hold.over) await this.release().catch(() => {});
  }

  async #leave(fields) {
    if (this.#hold.over) throw QuorateError.of(this.#hold.over);
    const asked = this.#session.call({ ...fields, hold: this.#id });
    const over = { kind: "released", text: `${this.name} was released` };
    this.#session.forget(this.#id, this.#hold, over);
    await asked;
  }
}

class Quorum {
  #options;
  #opened;

  constructor(options, session) {
    [this.#options, this.#opened] = [options, Promise.resolve(session)];
  }

  static {
    const kinds = { lock: "mutex", fair: "fair", read: "read", write: "write" };
    for (const [call, kind] of Object.entries(kinds)) {
      this.prototype[call] = function (name, options) {
        return this.#acquire(kind, name, options);
      };
    }
  }

  permit(name, permits, options) {
    return this.#acquire("semaphore", name, options, { permits });
  }

  lead(name, value, options) {
    return this.#acquire("election", name, options, { value });
  }

  once(name, firing, options) {
    return this.#acquire("once", name, options, { firing, keep_ms: options?.keep });
  }

  async inspect(kind, name) {
    return (await this.#open()).call({ op: "inspect", kind, name });
  }

  // Who leads now, and each change: null where nobody does, undefined where it is not known.
  async *observe(name) {
    const session = await this.#open();
    const [changes, stop] = [new EventEmitter(), new AbortController()];
    const hear = (leader) => changes.emit("leader", leader);
    const asked = session.call({ op: "observe", name }, { hear, signal: stop.signal });
    // Also where nobody looks any more.
    asked.catch((error) => changes.on("error", () => {}).emit("error", error));
    try {
      for await (const [leader] of on(changes, "leader")) yield leader;
    } finally {
      stop.abort();
    }
  }

  async close() {
    await (await this.#opened.catch(() => null))?.close();
  }

  async [Symbol.asyncDispose]() {
    await this.close();
  }

  // An agent that has gone may have been replaced.
  async #open() {
    const opened = this.#opened;
    const session = await opened.catch(() => null);
    if (session && session.error?.kind !== "disconnected") return session;
    // Whoever finds that first opens another for all.
    if (this.#opened === opened) this.#opened = Session.open(this.#options);
    return this.#opened;
  }

  async #acquire(kind, name, { wait, lease, holdAtMost, note, onExit, signal } = {}, more = {}) {
    signal?.throwIfAborted();
    const session = await this.#open();
    const times = { wait_ms: wait, lease_ms: lease, hold_at_most_ms: holdAtMost };
    const fields = { op: "acquire", kind, name, ...times, note, on_exit: onExit, ...more };
    const told = await session.call(fields, { signal }).catch((error) => {
      throw error.kind === "cancelled" ? signal.reason : error;
    });
    if (told.passed) return null;
    const lock = new Lock(session, name, told);
    if (!signal?.aborted) return lock;
    await lock.release();
    throw signal.reason;
  }
}

export async function connect(options = {}) {
  return new Quorum(options, await traced(Session.open(options)));
}

// An error has the trace of whoever asked.
async function traced(answer) {
  try {
    return await answer;
  } catch (error) {
    Error.captureStackTrace(error, traced);
    throw error;
  }
}

// The one of the package for this machine, or else the one that is installed.
function findProgram() {
  if (process.env.QUORATE_PROGRAM) return process.env.QUORATE_PROGRAM;
  try {
    const own = `quorate-${process.platform}-${process.arch}/bin/quorate`;
    return createRequire(import.meta.url).resolve(own);
  } catch {
    return "quorate";
  }
}
