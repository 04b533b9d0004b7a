package peers;

/** What a request came to: one line of whole numbers, times in microseconds. */
record Answer(
    long count,
    long failed,
    long elapsed,
    long p50,
    long p99,
    long p999,
    long processor,
    long memory) {

  static Answer of(Tally tally, long elapsedNanos, long processorNanos) {
    return new Answer(
        tally.count(),
        tally.failed(),
        elapsedNanos / 1000,
        tally.permille(500),
        tally.permille(990),
        tally.permille(999),
        processorNanos / 1000,
        0);
  }

  String line() {
    return "ok %d %d %d %d %d %d %d %d"
        .formatted(count, failed, elapsed, p50, p99, p999, processor, memory);
  }
}
