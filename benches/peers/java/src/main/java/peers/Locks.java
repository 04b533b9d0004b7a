package peers;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import org.redisson.Redisson;
import org.redisson.RedissonRedLock;
import org.redisson.api.RBatch;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Redisson with default settings: its lock on one server, its RedLock on several. */
final class Locks {
  private final List<String> servers;
  /** For each client, a connection manager to each server. */
  private final List<List<RedissonClient>> clients = new ArrayList<>();
  private final AtomicLong names = new AtomicLong();

  Locks(List<String> servers) {
    this.servers = servers;
    have(1);
  }

  /** Connects so many clients. */
  void have(int count) {
    while (clients.size() < count) {
      clients.add(servers.stream().map(Locks::connect).toList());
    }
  }

  private static RedissonClient connect(String server) {
    Config config = new Config();
    config.useSingleServer().setAddress(server);
    return Redisson.create(config);
  }

  /** Ends all that the clients still do, and leaves none. */
  void close() {
    clients.parallelStream()
        .flatMap(List::stream)
        .forEach(one -> one.shutdown(0, 1, TimeUnit.SECONDS));
    clients.clear();
  }

  /** A name that nothing has had. */
  String name() {
    return "redisson:" + names.incrementAndGet();
  }

  RLock lock(int client, String name, boolean fair) {
    List<RedissonClient> all = clients.get(client);
    RLock[] locks =
        all.stream()
            .map(one -> fair ? one.getFairLock(name) : one.getLock(name))
            .toArray(RLock[]::new);
    return locks.length == 1 ? locks[0] : new RedissonRedLock(locks);
  }

  /**
   * Waits for a lock, as its own `lock` does. That of several servers does so by turns of 1.5
   * seconds for each, and hears no interrupt. Returns whether it has the lock.
   */
  boolean acquire(RLock lock, BooleanSupplier over) throws InterruptedException {
    if (servers.size() == 1) {
      lock.lockInterruptibly();
      return true;
    }
    while (!over.getAsBoolean()) {
      if (lock.tryLock(1500L * servers.size(), TimeUnit.MILLISECONDS)) {
        return true;
      }
    }
    return false;
  }

  /** How many of these names a majority of the servers has. */
  long standing(List<String> names) {
    int[] votes = new int[names.size()];
    for (RedissonClient server : clients.get(0)) {
      for (int from = 0; from < votes.length; from += 1000) {
        List<String> some = names.subList(from, Math.min(from + 1000, votes.length));
        RBatch batch = server.createBatch();
        some.forEach(name -> batch.getBucket(name).isExistsAsync());
        List<?> answers = batch.execute().getResponses();
        for (int at = 0; at < answers.size(); at++) {
          votes[from + at] += Boolean.TRUE.equals(answers.get(at)) ? 1 : 0;
        }
      }
    }
    long standing = 0;
    for (int vote : votes) {
      standing += vote > servers.size() / 2 ? 1 : 0;
    }
    return standing;
  }
}
