package peers;

import java.util.Arrays;

/** Times that were measured, and failures. One for each task; they are added up at the end. */
final class Tally {
  private long[] nanos = new long[64];
  private int count;
  private long failed;

  synchronized void time(long took) {
    if (count == nanos.length) {
      nanos = Arrays.copyOf(nanos, 2 * count);
    }
    nanos[count++] = took;
  }

  synchronized void fail() {
    failed++;
  }

  synchronized void add(Tally other) {
    synchronized (other) {
      for (int at = 0; at < other.count; at++) {
        time(other.nanos[at]);
      }
      failed += other.failed;
    }
  }

  void sort() {
    Arrays.sort(nanos, 0, count);
  }

  long count() {
    return count;
  }

  long failed() {
    return failed;
  }

  /** In microseconds, of sorted times; 0 where there are none. */
  long permille(int permille) {
    return count == 0 ? 0 : nanos[(int) ((long) count * permille / 1000)] / 1000;
  }
}
