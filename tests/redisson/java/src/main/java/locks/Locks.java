package locks;

import java.io.IOException;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.RedissonRedLock;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Redisson's locks: each of them on one server, its RedLock of one on each of several. */
final class Locks {
  private final List<RedissonClient> clients;

  Locks(long watchdogMillis, List<String> servers) {
    clients = servers.stream().map(server -> connect(watchdogMillis, server)).toList();
  }

  private static RedissonClient connect(long watchdogMillis, String server) {
    Config config = new Config();
    config.setLockWatchdogTimeout(watchdogMillis);
    config
        .useSingleServer()
        .setAddress(server)
        .setConnectionMinimumIdleSize(2)
        .setConnectionPoolSize(8)
        .setTimeout(1000)
        .setRetryAttempts(1);
    return Redisson.create(config);
  }

  String answer(List<String> words) throws InterruptedException, IOException {
    String name = words.get(2);
    if (words.get(0).equals("force")) {
      return String.valueOf(force(words.get(1), name));
    }
    RLock lock = lock(words.get(1), name);
    switch (words.get(0)) {
      case "lock":
        lock.lock(number(words, 3), TimeUnit.MILLISECONDS);
        return "";
      case "try":
        return String.valueOf(
            lock.tryLock(number(words, 3), number(words, 4), TimeUnit.MILLISECONDS));
      case "token":
        return String.valueOf(((RFencedLock) lock).lockAndGetToken());
      case "unlock":
        lock.unlock();
        return "";
      case "count":
        return String.valueOf(lock.getHoldCount());
      case "left":
        return String.valueOf(lock.remainTimeToLive());
      case "contend":
        return new Contention(lock, words.subList(3, words.size())).run();
      default:
        throw new IllegalArgumentException("there is no request " + words);
    }
  }

  private static long number(List<String> words, int at) {
    return Long.parseLong(words.get(at));
  }

  private RLock lock(String kind, String name) {
    RLock[] locks = clients.stream().map(client -> one(client, kind, name)).toArray(RLock[]::new);
    return locks.length == 1 ? locks[0] : new RedissonRedLock(locks);
  }

  private static RLock one(RedissonClient client, String kind, String name) {
    switch (kind) {
      case "plain":
        return client.getLock(name);
      case "fenced":
        return client.getFencedLock(name);
      case "spin":
        return client.getSpinLock(name);
      case "fair":
        return client.getFairLock(name);
      case "read":
        return client.getReadWriteLock(name).readLock();
      case "write":
        return client.getReadWriteLock(name).writeLock();
      default:
        throw new IllegalArgumentException("there is no kind " + kind);
    }
  }

  /** A RedLock cannot do this; whoever needs it does it server by server. */
  private boolean force(String kind, String name) {
    boolean forced = false;
    for (RedissonClient client : clients) {
      forced |= one(client, kind, name).forceUnlock();
    }
    return forced;
  }
}
