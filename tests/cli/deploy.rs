//! The jobs of `deploy/jobs` do what they say.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use quorate_support::read_file;
use rustix::process::Signal;

use crate::{
    listen::Desk,
    program::{Running, output, quorate},
    voters::Voters,
};

const SERVICE: &str = "deploy/jobs/nightly-report.service";
const CRON_JOB: &str = "deploy/jobs/cronjob.yaml";
const LEADER: &str = "deploy/jobs/leader.yaml";

/// The values of a line of the unit.
fn unit(name: &str) -> Vec<String> {
    let text = read_file(SERVICE);
    let values = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    values.map(str::to_owned).collect()
}

/// A list in brackets, of the manifest of the cron job.
fn list(name: &str) -> Vec<String> {
    list_of(CRON_JOB, name)
}

fn list_of(manifest: &str, name: &str) -> Vec<String> {
    let text = read_file(manifest);
    let (_, rest) = text.split_once(&format!("{name}: [")).expect("it is there");
    let list = rest.split(']').next().expect("it ends");
    list.split(", ").map(|word| word.trim_matches('"').to_owned()).collect()
}

/// Where the report is taken for one of its own.
fn report(folder: &Path, script: &str) -> String {
    let path = folder.join("make-report");
    fs::write(&path, format!("#!/bin/sh\necho $$\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn the_service_runs_its_job_on_one_host_and_another_one_takes_over() {
    let voters = Voters::start();
    let folder = tempfile::tempdir().unwrap();
    let start = unit("ExecStart").pop().expect("it starts something");
    let words: Vec<_> = start.split(' ').collect();
    // In /usr/bin or /usr/local/bin: systemd looks in both.
    assert_eq!(words[0], "quorate");
    let config = folder.path().join("config.toml");
    fs::write(&config, format!("voters = '{}'\nlease = '30s'\n", voters.urls())).unwrap();
    let environment = unit("Environment");
    let of_config = environment.iter().find_map(|line| line.strip_prefix("QUORATE_CONFIG="));
    assert_eq!(of_config, Some("/etc/quorate/config.toml"));
    let report = report(folder.path(), "exec sleep 1000");
    let host = || {
        let own = words[1..].iter().map(|word| word.replace("/usr/local/bin/make-report", &report));
        let mut command = quorate(own);
        command.env("QUORATE_CONFIG", &config).env("QUORATE_LONGEST_LEASE", "30s");
        command.env_remove("QUORATE_LEASE");
        command
    };
    let mut running = Running::start(&mut host());
    let next = Running::start_soon(&mut host());
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code(), Some(128 + 15));
    // The report begins there.
    next.says();
    assert!(unit("SuccessExitStatus").is_empty());
}

#[test]
fn the_cron_job_gives_up_where_another_try_would_not_help() {
    let folder = tempfile::tempdir().unwrap();
    let report = report(folder.path(), "exec sleep 1000");
    let (command, arguments) = (list("command"), list("args"));
    assert_eq!((&*command[0], &*arguments), ("quorate", &["make-report".to_owned()][..]));
    let pod = |voters: String| {
        let mut program = quorate(command[1..].iter().chain([&report]));
        program.env("QUORATE_VOTERS", voters).env("XDG_RUNTIME_DIR", folder.path());
        program.env("QUORATE_LEASE", "30s").env("QUORATE_LONGEST_LEASE", "30s");
        program
    };
    let final_codes = list("values");
    let (wrong, ..) = output(&mut pod("no address".into()));
    let (usage, ..) = output(&mut quorate(["run", "nightly-report"]));
    let mut found = [usage, wrong].map(|code| code.to_string());
    found.sort_unstable();
    assert_eq!(final_codes, found);
    let (away, ..) = output(&mut pod("redis://127.0.0.1:1".into()));
    assert!(!final_codes.contains(&away.to_string()), "servers come back");
}

#[test]
fn a_report_that_is_done_is_not_made_again_and_one_that_failed_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let start = unit("ExecStart").concat();
    for words in [start.split(' ').map(str::to_owned).collect(), list("command")] {
        let voters = Voters::start();
        let end = words.iter().position(|word| word == "--").expect("the report follows");
        let run = |script: &str| {
            let report = report(folder.path(), script);
            let mut program = quorate(words[1..=end].iter().chain([&report]));
            program.env("QUORATE_VOTERS", voters.urls());
            program.env("QUORATE_LEASE", "30s").env("QUORATE_LONGEST_LEASE", "30s");
            output(&mut program).0
        };
        // 75 of the report itself is not a lock that is taken.
        assert_eq!(["exit 75", "exit 3", "true", "exit 3"].map(run), [1, 3, 0, 0], "{words:?}");
    }
}

#[test]
fn both_have_the_time_to_release_the_lock() {
    let seconds = |text: &str| text.trim_end_matches('s').parse::<u32>().expect("a number");
    let start = unit("ExecStart").concat();
    let (_, grace) = start.split_once("--grace ").expect("it has a grace");
    let grace = seconds(grace.split(' ').next().expect("a time"));
    assert!(seconds(&unit("TimeoutStopSec").concat()) > grace + 5);
    assert_eq!(unit("KillMode"), ["mixed"]);
    let pod = read_file(CRON_JOB);
    let (_, period) = pod.split_once("terminationGracePeriodSeconds: ").expect("it is there");
    let period = seconds(period.lines().next().expect("a number"));
    let command = list("command");
    let at = command.iter().position(|word| word == "--grace").expect("it has a grace");
    assert!(period > seconds(&command[at + 1]) + 5);
}

#[test]
fn one_of_the_pods_leads_and_the_other_when_it_ends() {
    let voters = Voters::start();
    let command = list_of(LEADER, "command");
    let desks = [Desk::new(), Desk::new()];
    let pod = |address: &str, desk: Desk| {
        let own = command[1..].iter().map(|word| match &**word {
            "$(POD_IP):4040" => desk.0.to_string(),
            word => word.replace("$(POD_IP)", address),
        });
        let mut program =
            quorate(own.chain(["sh", "-c", "echo $$; exec sleep 1000"].map(Into::into)));
        program.env("QUORATE_VOTERS", voters.urls());
        program.env("QUORATE_LEASE", "30s").env("QUORATE_LONGEST_LEASE", "30s");
        program
    };
    let leader = || {
        let mut asks = voters.quorate(&["leader", &command[2]]);
        output(asks.env("QUORATE_LEASE", "30s").env("QUORATE_LONGEST_LEASE", "30s"))
    };
    let first = Running::start(&mut pod("10.0.0.1", desks[0]));
    let mut second = Running::start_soon(&mut pod("10.0.0.2", desks[1]));
    assert_eq!(leader().1, "10.0.0.1:8080\n");
    assert!(desks[0].leads());
    first.signal(Signal::TERM);
    second.group = second.says().parse().expect("its command runs");
    assert_eq!(leader().1, "10.0.0.2:8080\n");
    assert!(desks[1].leads());
}

// Whoever takes all places there has each leader restarted in turn.
#[test]
fn only_its_node_reaches_the_port_of_a_leader_that_probes_ask() {
    let text = read_file(LEADER);
    let (pods, policy) = text.split_once("\n---\n").expect("a policy follows");
    assert!(pods.contains("containerPort: 4040"), "{pods}");
    assert!(policy.contains("kind: NetworkPolicy") && policy.contains("policyTypes: [Ingress]"));
    let label = "app.kubernetes.io/name: scheduler";
    assert!(pods.contains(label) && policy.contains(label));
    let ports: Vec<_> =
        policy.lines().filter_map(|line| line.trim().strip_prefix("port: ")).collect();
    assert_eq!(ports, ["8080"]);
}

#[test]
fn the_nodes_of_kubernetes_are_those_that_the_jobs_name() {
    for pod in [CRON_JOB, LEADER].map(read_file) {
        for node in 1..=5 {
            assert_eq!(pod.matches(&format!("redis://lock-{node}.locks.quorate.svc")).count(), 1);
        }
        assert!(pod.contains("quorate-client: \"true\""));
        assert!(pod.contains("secretName: lock-password"));
    }
}
