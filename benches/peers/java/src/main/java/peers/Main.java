package peers;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.List;
import org.redisson.Redisson;

/**
 * Does with Redisson what each line of its input asks for, and answers with one line.
 * `benches/peers/program.rs` has the list of requests.
 */
public final class Main {
  private Locks locks;
  private Holds holds;

  public static void main(String[] arguments) throws IOException {
    String version = Redisson.class.getPackage().getImplementationVersion();
    System.out.println("Redisson " + version + " (Java " + Runtime.version().feature() + ")");
    Main main = new Main();
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      String answer;
      try {
        answer = main.answer(List.of(line.split(" "))).line();
      } catch (Exception error) {
        answer = "error " + error.toString().replace('\n', ' ');
      }
      System.out.println(answer);
    }
    System.exit(0);
  }

  private Answer answer(List<String> words) throws InterruptedException {
    List<String> rest = words.subList(1, words.size());
    switch (words.get(0)) {
      case "connect":
        if (locks != null) {
          locks.close();
        }
        locks = new Locks(rest);
        holds = new Holds(locks);
        return new Answer(0, 0, 0, 0, 0, 0, 0, 0);
      case "cycles":
        int[] cell = numbers(rest);
        return new Load(locks).cycles(cell[0], cell[1]);
      case "handoff":
      case "crowd":
        boolean fair = rest.get(0).equals("fair");
        int[] all = numbers(rest.subList(1, rest.size()));
        Load load = new Load(locks);
        return words.get(0).equals("crowd")
            ? load.crowd(fair, all[0], all[1], all[2])
            : load.handoff(fair, all[0], all[1], all[2]);
      case "take":
        return holds.take(numbers(rest)[0]);
      case "keep":
        return holds.keep(numbers(rest)[0]);
      case "count":
        return holds.count();
      default:
        throw new IllegalArgumentException(words.get(0));
    }
  }

  private static int[] numbers(List<String> words) {
    return Arrays.stream(words.toArray(String[]::new)).mapToInt(Integer::parseInt).toArray();
  }
}
