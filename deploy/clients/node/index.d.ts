/// <reference lib="esnext.disposable" />
/** Locks of `quorate agent`. All times are milliseconds. */

export type Kind = "mutex" | "fair" | "read" | "write" | "semaphore" | "election" | "once";

export class QuorateError extends Error {
  readonly kind: string;
  /** When the same call can succeed, if that is known. */
  readonly retryAfter?: number;
  readonly holder?: string;
  readonly leaseLeft?: number;
}

export interface ConnectOptions {
  /** Of an agent that listens. Default: the variable `QUORATE_AGENT`; without it an agent is started. */
  socket?: string;
  /** The program to start, its further arguments, and variables besides those of this process. */
  program?: string;
  args?: string[];
  env?: Record<string, string>;
}

export interface AcquireOptions {
  /** 0 asks once. Default: waits for as long as it takes. */
  wait?: number;
  lease?: number;
  holdAtMost?: number;
  /** What the lock is held for, as others see it: up to 200 bytes. */
  note?: string;
  /** `expire`: if this process dies, the lock stays until its deadline. */
  onExit?: "release" | "expire";
  /** Gives up waiting. */
  signal?: AbortSignal;
}

export interface Lock extends AsyncDisposable {
  readonly name: string;
  /** Higher than that of every holder before. Reads and permits have none. */
  readonly token?: number;
  /** The number of the permit. */
  readonly slot?: number;
  readonly holdId: string;
  readonly isHeld: boolean;
  readonly remaining: number;
  /** Aborted when it is lost. */
  readonly signal: AbortSignal;
  /** Aborted when the work should come to its end: the lock may be lost soon. */
  readonly ending: AbortSignal;
  release(): Promise<void>;
  extend(lease: number): Promise<void>;
  keepFor(time: number): Promise<void>;
  /** Of a firing: it is not to be done again. */
  done(): Promise<void>;
}

export interface Leader {
  hold: string;
  token: number;
  value: string;
}

export interface Quorum extends AsyncDisposable {
  lock(name: string, options?: AcquireOptions): Promise<Lock>;
  fair(name: string, options?: AcquireOptions): Promise<Lock>;
  read(name: string, options?: AcquireOptions): Promise<Lock>;
  write(name: string, options?: AcquireOptions): Promise<Lock>;
  permit(name: string, permits: number, options?: AcquireOptions): Promise<Lock>;
  lead(name: string, value: string, options?: AcquireOptions): Promise<Lock>;
  /** `null`: the firing is done. */
  once(name: string, firing: number, options?: AcquireOptions & { keep?: number }): Promise<Lock | null>;
  /** `null`: nobody leads. `undefined`: that is not known. */
  observe(name: string): AsyncIterableIterator<Leader | null | undefined>;
  inspect(kind: Kind, name: string): Promise<any>;
  close(): Promise<void>;
}

export function connect(options?: ConnectOptions): Promise<Quorum>;
