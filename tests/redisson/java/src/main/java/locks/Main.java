package locks;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.redisson.Redisson;

/**
 * Does with Redisson what each line of its input asks for: a number, the thread that is to do it,
 * and the request, as in `tests/redisson/java.rs`. Answers with the number, and `ok` or `error` and
 * what there is to say. Ends with its input.
 */
public final class Main {
  private final Map<String, ExecutorService> threads = new HashMap<>();
  private final Locks locks;

  private Main(Locks locks) {
    this.locks = locks;
  }

  /** The arguments: how long a lock without a lease is kept in ms, and the servers. */
  public static void main(String[] arguments) throws IOException {
    List<String> words = List.of(arguments);
    Main main = new Main(new Locks(Long.parseLong(words.get(0)), words.subList(1, words.size())));
    String version = Redisson.class.getPackage().getImplementationVersion();
    System.out.println("Redisson " + version + " (Java " + Runtime.version().feature() + ")");
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      main.start(List.of(line.split(" ")));
    }
    Runtime.getRuntime().halt(0);
  }

  private void start(List<String> words) {
    String number = words.get(0);
    List<String> request = words.subList(2, words.size());
    ExecutorService thread =
        threads.computeIfAbsent(words.get(1), name -> Executors.newSingleThreadExecutor());
    thread.execute(
        () -> {
          String answer;
          try {
            answer = "ok " + locks.answer(request);
          } catch (Throwable error) {
            answer = "error " + error.toString().replace('\n', ' ');
          }
          say(number + " " + answer);
        });
  }

  private static synchronized void say(String line) {
    System.out.println(line);
  }
}
