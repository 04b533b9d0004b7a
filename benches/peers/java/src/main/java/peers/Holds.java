package peers;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.api.RLock;

/** Locks that are taken and kept, each by an owner of its own; Redisson's watchdog renews them. */
final class Holds {
  private static final int AT_ONCE = 256;

  private final Locks locks;
  private final List<String> names = new ArrayList<>();
  /** Users keep them, to give them back. */
  private final List<RLock> held = new ArrayList<>();

  Holds(Locks locks) {
    this.locks = locks;
  }

  /** Takes so many more. */
  Answer take(int count) throws InterruptedException {
    Semaphore places = new Semaphore(AT_ONCE);
    AtomicLong failed = new AtomicLong();
    long used = Load.processor();
    long started = System.nanoTime();
    for (int at = 0; at < count; at++) {
      String name = locks.name();
      RLock lock = locks.lock(0, name, false);
      names.add(name);
      held.add(lock);
      places.acquire();
      // The number stands for the thread that holds the lock.
      lock.lockAsync(names.size())
          .whenComplete(
              (taken, error) -> {
                failed.addAndGet(error == null ? 0 : 1);
                places.release();
              });
    }
    places.acquire(AT_ONCE);
    long elapsed = System.nanoTime() - started;
    used = Load.processor() - used;
    return answer(count - failed.get(), failed.get(), elapsed, used);
  }

  /** Keeps them for a while. */
  Answer keep(long millis) throws InterruptedException {
    long used = Load.processor();
    long started = System.nanoTime();
    Thread.sleep(millis);
    long elapsed = System.nanoTime() - started;
    return answer(0, 0, elapsed, Load.processor() - used);
  }

  /** Counts those that a majority of the servers has, and those that are lost. */
  Answer count() {
    long standing = locks.standing(names);
    return answer(standing, names.size() - standing, 0, 0);
  }

  /** With the memory that is in use when all garbage is gone. */
  private static Answer answer(long count, long failed, long elapsed, long used) {
    System.gc();
    Runtime runtime = Runtime.getRuntime();
    long memory = runtime.totalMemory() - runtime.freeMemory();
    return new Answer(count, failed, elapsed / 1000, 0, 0, 0, used / 1000, memory);
  }
}
