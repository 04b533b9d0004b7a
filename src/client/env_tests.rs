//! Without the environment of the process: each test hands in its own.

use super::*;
use crate::client::Quorate;

const ONE: (&str, &str) = (VOTERS, "redis://10.0.0.1");

fn read(variables: &[(&str, &str)]) -> Result<Builder, Error> {
    let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
    Variables::of(variables)?.builder()
}

#[track_caller]
fn refused(variables: &[(&str, &str)], told: &str) {
    let error = read(variables).unwrap_err();
    assert!(error.is_invalid());
    assert_eq!(error.to_string(), told);
}

#[test]
fn every_setting_is_read() {
    let secs = Duration::from_secs;
    let read = read(&[
        (VOTERS, "redis://10.0.0.1 redis://10.0.0.2,redis://10.0.0.3"),
        ("QUORATE_LEASE", "20s"),
        ("QUORATE_LONGEST_LEASE", "1h"),
        ("QUORATE_VOTER_DEADLINE", " 500ms "),
        ("QUORATE_WAITER_DEADLINE", "6s"),
        ("QUORATE_QUORUM_TIMEOUT", "7s"),
        ("QUORATE_CONNECT_TIMEOUT", "8s"),
        ("QUORATE_POLL_INTERVAL", "9s"),
        ("QUORATE_FENCE_MEMORY", "2m"),
        ("QUORATE_REPLICA_TIMEOUT", "10ms"),
        ("QUORATE_REPLICA_ACKS", "2"),
        ("QUORATE_RESTART_GUARD", "strict"),
        ("QUORATE_PREFIX", "billing"),
        ("QUORATE_CLIENT_NAME", "web-1"),
        ("QUORATE_MINIMUM_VALIDITY", "11s"),
        ("QUORATE_DRIFT", "20000ppm 5ms"),
        ("QUORATE_BATCH_SIZE", "8"),
        ("QUORATE_ALLOW_EVICTION", "true"),
    ]);
    let set = Quorate::builder()
        .voters(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])
        .lease(secs(20))
        .longest_lease(secs(3_600))
        .voter_deadline(Duration::from_millis(500))
        .waiter_deadline(secs(6))
        .quorum_timeout(secs(7))
        .connect_timeout(secs(8))
        .poll_interval(secs(9))
        .fence_memory(secs(120))
        .replica_timeout(Duration::from_millis(10))
        .replica_acks(2)
        .restart_guard(RestartGuard::Strict)
        .prefix("billing")
        .client_name("web-1")
        .minimum_validity(secs(11))
        .drift(20_000, Duration::from_millis(5))
        .batch_size(8)
        .allow_eviction(true);
    assert_eq!(format!("{:?}", read.unwrap()), format!("{set:?}"));
}

#[test]
fn a_cluster_votes_alone_or_beside_servers() {
    let seeds = ["redis://10.0.0.1:7000", "redis://10.0.0.2:7000"];
    let text = seeds.join(" ");
    let cluster = || Cluster::new(seeds);
    for (variables, set) in [
        (vec![(CLUSTER, &*text)], Quorate::builder().cluster(cluster())),
        (
            vec![(CLUSTER, &*text), (CLUSTER_VOTERS, " 3 ")],
            Quorate::builder().cluster(cluster().voters(3)),
        ),
        (
            vec![ONE, (CLUSTER, &*text)],
            Quorate::builder().voter("redis://10.0.0.1").cluster(cluster()),
        ),
    ] {
        assert_eq!(format!("{:?}", read(&variables).unwrap()), format!("{set:?}"));
    }
    refused(&[ONE, (CLUSTER_VOTERS, "3")], "QUORATE_CLUSTER_VOTERS is set without QUORATE_CLUSTER");
    refused(
        &[(CLUSTER, &text), (CLUSTER_VOTERS, "all")],
        "QUORATE_CLUSTER_VOTERS is \"all\": a number of voters is expected",
    );
}

#[test]
fn without_variables_all_is_as_by_default() {
    let set = Quorate::builder().voter("redis://10.0.0.1");
    let empty = [ONE, ("QUORATE_LEASE", ""), (PASSWORD, " "), ("PATH", "/bin")];
    assert_eq!(format!("{:?}", read(&empty).unwrap()), format!("{set:?}"));
}

#[test]
fn addresses_are_separated_by_blanks_and_commas_but_sentinels_stay_together() {
    let sentinels = "redis-sentinel://10.0.0.1,10.0.0.2,10.0.0.3/lock-1";
    let text = format!(" redis://a, redis://:p,w@b,,{sentinels},rediss://c\nredis+unix:///d,");
    let expected = ["redis://a", "redis://:p,w@b", sentinels, "rediss://c", "redis+unix:///d"];
    assert_eq!(addresses(&text), expected);
    assert_eq!(addresses(",,").len(), 0);
}

#[test]
fn without_voters_it_is_said_how_to_set_them() {
    let told = "QUORATE_VOTERS is not set: it names the servers, for example \
                QUORATE_VOTERS=\"redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3\"; the \
                servers of a Redis Cluster go into QUORATE_CLUSTER";
    refused(&[], told);
    refused(&[(VOTERS, " ")], told);
}

#[test]
fn a_value_that_cannot_be_read_is_named_with_its_variable() {
    let time = "a time is a whole number and `ms`, `s`, `m` or `h`, as in `30s`";
    for value in ["30", "s", "1.5s", "-1s", "30 s", "30sec", "99999999999999999999s", "9e9h"] {
        refused(&[ONE, ("QUORATE_LEASE", value)], &format!("QUORATE_LEASE is {value:?}: {time}"));
    }
    refused(
        &[ONE, ("QUORATE_REPLICA_ACKS", "all")],
        "QUORATE_REPLICA_ACKS is \"all\": a number of replicas is expected",
    );
    for value in ["10000ppm", "10000 2ms", "1%", "10000ppm 2", "-1ppm 2ms"] {
        refused(
            &[ONE, ("QUORATE_DRIFT", value)],
            &format!(
                "QUORATE_DRIFT is {value:?}: parts per million of the lease and a time are \
                 expected, as in `10000ppm 2ms`"
            ),
        );
    }
    refused(
        &[ONE, ("QUORATE_BATCH_SIZE", "-1")],
        "QUORATE_BATCH_SIZE is \"-1\": a number of requests is expected",
    );
    refused(
        &[ONE, ("QUORATE_ALLOW_EVICTION", "yes")],
        "QUORATE_ALLOW_EVICTION is \"yes\": `true` or `false` is expected",
    );
    refused(
        &[ONE, ("QUORATE_RESTART_GUARD", "on")],
        "QUORATE_RESTART_GUARD is \"on\": `relative`, `strict` or `off` is expected",
    );
}

#[test]
fn a_name_that_is_probably_misspelt_is_refused_and_others_are_left_alone() {
    for (name, meant) in [
        ("QUORATE_LAESE", "QUORATE_LEASE"),
        ("QUORATE_VOTER", VOTERS),
        ("QUORATE_VOTER_DEADLINE_MS", "QUORATE_VOTER_DEADLINE"),
        ("QUORATE_LEASE_SECONDS", "QUORATE_LEASE"),
        ("QUORATE_PASWORD", PASSWORD),
    ] {
        let told = format!("{name} is unknown; is {meant} meant?");
        refused(&[ONE, (name, "secret")], &told);
    }
    for name in ["QUORATE_LISTEN", "QUORATE_PEERS", "QUORATE_TEST_SERVER", "QUORAT_LEASE"] {
        assert!(read(&[ONE, (name, "1")]).is_ok(), "{name}");
    }
}

#[tokio::test]
async fn the_login_is_that_of_the_variables_or_of_the_file() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/LICENSE-MIT");
    let text = fs::read_to_string(file).unwrap();
    for (variables, expected) in [
        ([ONE, (USER, "ann"), (PASSWORD, "pw")], Credentials::new("ann", "pw")),
        ([ONE, (USER, ""), (PASSWORD, "pw")], Credentials::password("pw")),
        ([ONE, (USER, "ann"), (PASSWORD_FILE, file)], Credentials::new("ann", text.trim_end())),
    ] {
        let builder = read(&variables).unwrap();
        let provider = builder.security.credentials.as_ref().expect("there is a login");
        assert_eq!(provider.ask("10.0.0.1:6379").await.unwrap(), expected);
    }
    let builder = read(&[ONE, (PASSWORD_FILE, "no such file")]).unwrap();
    let provider = builder.security.credentials.as_ref().expect("there is a login");
    let told = provider.ask("10.0.0.1:6379").await.unwrap_err();
    assert!(told.contains("no such file: "), "{told}");
}

#[test]
fn settings_that_need_or_exclude_each_other_are_refused() {
    refused(
        &[ONE, (PASSWORD, "secret"), (PASSWORD_FILE, "a")],
        "QUORATE_PASSWORD and QUORATE_PASSWORD_FILE are both set",
    );
    refused(
        &[ONE, (USER, "ann")],
        "QUORATE_USER is set without QUORATE_PASSWORD or QUORATE_PASSWORD_FILE",
    );
    #[cfg(feature = "tls")]
    {
        let told = "QUORATE_TLS_CERTIFICATE_FILE and QUORATE_TLS_KEY_FILE need each other";
        refused(&[ONE, (KEY_FILE, "a")], told);
        refused(&[ONE, (CA_FILE, "a"), (CERTIFICATE_FILE, "a")], told);
        assert!(read(&[ONE, (CA_FILE, "a")]).unwrap().security.tls.is_some());
        let both = [ONE, (KEY_FILE, "a"), (CERTIFICATE_FILE, "a")];
        assert!(read(&both).unwrap().security.tls.is_some());
        assert!(read(&[ONE]).unwrap().security.tls.is_none());
    }
    #[cfg(not(feature = "tls"))]
    refused(&[ONE, (KEY_FILE, "a")], "QUORATE_TLS_KEY_FILE is set, but the feature `tls` is off");
}

#[cfg(unix)]
#[test]
fn a_value_that_is_no_text_is_refused() {
    use std::os::unix::ffi::OsStringExt;
    let variable = (VOTERS.into(), OsString::from_vec(vec![0xff]));
    let told = Variables::of([variable]).map(drop).unwrap_err().to_string();
    assert_eq!(told, "QUORATE_VOTERS is not UTF-8");
}
