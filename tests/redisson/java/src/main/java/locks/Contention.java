package locks;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;

/** One thread takes a lock again and again, and looks each time whether it is alone. */
final class Contention {
  private final RLock lock;
  private final long millis;
  private final long heldMicros;
  /** A file that exists while somebody is inside. */
  private final Path gate;
  /** What it is a link to then. */
  private final Path own;

  Contention(RLock lock, List<String> words) {
    this.lock = lock;
    millis = Long.parseLong(words.get(0));
    heldMicros = Long.parseLong(words.get(1));
    gate = Path.of(words.get(2));
    own = Path.of(words.get(3));
  }

  /** The entries, how many were not alone or not given back, and the longest wait in ms. */
  String run() throws IOException, InterruptedException {
    long entries = 0;
    long failed = 0;
    long longest = 0;
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
    Files.writeString(own, own.getFileName().toString());
    while (System.nanoTime() < end) {
      long asked = System.nanoTime();
      if (!lock.tryLock(millis, TimeUnit.MILLISECONDS)) {
        continue;
      }
      longest = Math.max(longest, System.nanoTime() - asked);
      entries++;
      try {
        Files.createLink(gate, own);
        TimeUnit.MICROSECONDS.sleep(heldMicros);
        Files.delete(gate);
      } catch (FileAlreadyExistsException overlap) {
        failed++;
      }
      try {
        lock.unlock();
      } catch (IllegalMonitorStateException lost) {
        failed++;
      }
    }
    return "%d %d %d".formatted(entries, failed, TimeUnit.NANOSECONDS.toMillis(longest));
  }
}
