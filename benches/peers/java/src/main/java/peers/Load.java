package peers;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.api.RLock;

/** What tasks do with locks, a thread for each, and how long it takes. */
final class Load {
  private static final OperatingSystemMXBean SYSTEM =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
  /** Until all who wait have asked. */
  private static final long LEAD_IN_MILLIS = 300;
  /** So long that who asks again finds it taken, and has to wait as the others do. */
  private static final long HELD_MILLIS = 2;
  /** For those who are interrupted. */
  private static final long PATIENCE_MILLIS = 1000;

  private final Locks locks;
  private volatile boolean over;

  Load(Locks locks) {
    this.locks = locks;
  }

  private interface Body {
    void run(int task, Tally tally) throws Exception;
  }

  /** Each task takes and gives back a lock of its own, again and again. */
  Answer cycles(int tasks, long millis) throws InterruptedException {
    String name = locks.name();
    locks.have(1);
    Body body =
        (task, tally) -> {
          while (!over) {
            long started = System.nanoTime();
            try {
              RLock lock = locks.lock(0, name + ":" + task, false);
              lock.lock();
              lock.unlock();
              tally.time(System.nanoTime() - started);
            } catch (RuntimeException error) {
              tally.fail();
            }
          }
        };
    Crew crew = new Crew(tasks, body);
    long used = processor();
    long started = crew.start();
    Thread.sleep(millis);
    over = true;
    Tally tally = crew.end(Long.MAX_VALUE);
    return Answer.of(tally, System.nanoTime() - started, processor() - used);
  }

  /**
   * All want one lock, again and again; nobody asks again before another has had it. A time is from
   * a release until the next one has the lock. Two holders at once are a failure.
   */
  Answer handoff(boolean fair, int waiters, int count, long millis) throws InterruptedException {
    locks.have(count);
    String name = locks.name();
    AtomicLong released = new AtomicLong();
    AtomicLong grants = new AtomicLong();
    AtomicBoolean held = new AtomicBoolean();
    AtomicBoolean measuring = new AtomicBoolean();
    Body body =
        (task, tally) -> {
          while (!over) {
            RLock lock = locks.lock(task % count, name, fair);
            try {
              if (!locks.acquire(lock, () -> over)) {
                return;
              }
              long now = System.nanoTime();
              long grant = grants.incrementAndGet();
              long before = released.getAndSet(0);
              if (held.getAndSet(true)) {
                tally.fail();
              }
              if (before != 0 && measuring.get()) {
                tally.time(now - before);
              }
              Thread.sleep(HELD_MILLIS);
              held.set(false);
              released.set(System.nanoTime());
              lock.unlock();
              while (!over && grants.get() == grant) {
                Thread.sleep(1);
              }
            } catch (RuntimeException error) {
              if (!over) {
                tally.fail();
              }
            }
          }
        };
    Crew crew = new Crew(waiters, body);
    crew.start();
    Thread.sleep(LEAD_IN_MILLIS);
    long used = processor();
    long started = System.nanoTime();
    measuring.set(true);
    Thread.sleep(millis);
    measuring.set(false);
    long elapsed = System.nanoTime() - started;
    used = processor() - used;
    return Answer.of(end(crew), elapsed, used);
  }

  /** All want one lock once, at the same moment. A time is until one of them has it. */
  Answer crowd(boolean fair, int waiters, int count, long limitMillis) throws InterruptedException {
    locks.have(count);
    String name = locks.name();
    AtomicLong began = new AtomicLong();
    Body body =
        (task, tally) -> {
          RLock lock = locks.lock(task % count, name, fair);
          try {
            if (!locks.acquire(lock, () -> over)) {
              return;
            }
            long took = System.nanoTime() - began.get();
            lock.unlock();
            if (!over) {
              tally.time(took);
            }
          } catch (RuntimeException error) {
            if (!over) {
              tally.fail();
            }
          }
        };
    Crew crew = new Crew(waiters, body);
    long used = processor();
    began.set(System.nanoTime());
    crew.start();
    crew.join(limitMillis);
    long elapsed = System.nanoTime() - began.get();
    used = processor() - used;
    return Answer.of(end(crew), elapsed, used);
  }

  /** Has those leave who still wait. */
  private Tally end(Crew crew) throws InterruptedException {
    over = true;
    locks.close();
    crew.interrupt();
    return crew.end(PATIENCE_MILLIS);
  }

  /** The processor time of this process, in nanoseconds. */
  static long processor() {
    return SYSTEM.getProcessCpuTime();
  }

  /** A thread for each task, which all begin together. */
  private static final class Crew {
    private final List<Thread> threads = new ArrayList<>();
    private final List<Tally> tallies = new ArrayList<>();
    private final CountDownLatch begin = new CountDownLatch(1);

    Crew(int tasks, Body body) throws InterruptedException {
      CountDownLatch ready = new CountDownLatch(tasks);
      for (int at = 0; at < tasks; at++) {
        int task = at;
        Tally tally = new Tally();
        Thread thread =
            new Thread(
                () -> {
                  try {
                    ready.countDown();
                    begin.await();
                    body.run(task, tally);
                  } catch (InterruptedException error) {
                    // It is over.
                  } catch (Exception error) {
                    tally.fail();
                  }
                });
        thread.setDaemon(true);
        thread.start();
        threads.add(thread);
        tallies.add(tally);
      }
      ready.await();
    }

    long start() {
      begin.countDown();
      return System.nanoTime();
    }

    void interrupt() {
      threads.forEach(Thread::interrupt);
    }

    void join(long millis) throws InterruptedException {
      long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(Math.min(millis, 1L << 40));
      for (Thread thread : threads) {
        thread.join(Math.max(1, TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime())));
      }
    }

    /** What all of them have measured; those that do not end in time are left behind. */
    Tally end(long millis) throws InterruptedException {
      join(millis);
      Tally sum = new Tally();
      tallies.forEach(sum::add);
      sum.sort();
      return sum;
    }
  }
}
