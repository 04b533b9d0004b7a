//! What processes use.

use std::{fs, time::Duration};

use quorate_support::RedisServer;
use rustix::time::{ClockId, clock_gettime};

/// The kernel counts in hundredths of a second.
const TICKS: f64 = 100.0;

/// The processor time of this process.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures in real time")]
pub fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The processor time of another process.
pub fn used_by_process(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs, on Linux");
    // The name of the program may have any sign in it.
    let (_, rest) = stat.rsplit_once(") ").expect("a name in brackets");
    let ticks = rest.split(' ').skip(11).take(2).map(|word| word.parse::<f64>().expect("a number"));
    Duration::from_secs_f64(ticks.sum::<f64>() / TICKS)
}

/// The processor time of all servers so far.
pub fn used_by(servers: &[RedisServer]) -> Duration {
    let of = |server: &RedisServer, name| {
        let text = server.info(&["INFO", "cpu"], name).expect("it says so");
        text.parse::<f64>().expect("a number")
    };
    let used = |server| of(server, "used_cpu_user") + of(server, "used_cpu_sys");
    Duration::from_secs_f64(servers.iter().map(used).sum())
}

/// The memory of this process, in bytes.
pub fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is there");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    1024 * kib
}
