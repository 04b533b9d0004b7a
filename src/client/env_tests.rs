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

/// A variable, its value, and the call that does the same.
type Row = (&'static str, &'static str, fn(Builder) -> Builder);

#[test]
fn every_setting_is_read() {
    const SECS: fn(u64) -> Duration = Duration::from_secs;
    const MS: fn(u64) -> Duration = Duration::from_millis;
    let settings: [Row; SETTINGS.len()] = [
        ("QUORATE_LEASE", "20", |builder| builder.lease(SECS(20))),
        ("QUORATE_HOLD_AT_MOST", "5m", |builder| builder.hold_at_most(SECS(300))),
        ("QUORATE_LONGEST_LEASE", "1h", |builder| builder.longest_lease(SECS(3_600))),
        ("QUORATE_VOTER_DEADLINE", " 500ms ", |builder| builder.voter_deadline(MS(500))),
        ("QUORATE_WAITER_DEADLINE", "6s", |builder| builder.waiter_deadline(SECS(6))),
        ("QUORATE_QUORUM_TIMEOUT", "7s", |builder| builder.quorum_timeout(SECS(7))),
        ("QUORATE_CONNECT_TIMEOUT", "8s", |builder| builder.connect_timeout(SECS(8))),
        ("QUORATE_POLL_INTERVAL", "9s", |builder| builder.poll_interval(SECS(9))),
        ("QUORATE_FENCE_MEMORY", "2m", |builder| builder.fence_memory(SECS(120))),
        ("QUORATE_REPLICA_TIMEOUT", "10ms", |builder| builder.replica_timeout(MS(10))),
        ("QUORATE_REPLICA_ACKS", "2", |builder| builder.replica_acks(2)),
        ("QUORATE_MINIMUM_VALIDITY", "11s", |builder| builder.minimum_validity(SECS(11))),
        ("QUORATE_DRIFT", "20000ppm 5ms", |builder| builder.drift(20_000, MS(5))),
        ("QUORATE_BATCH_SIZE", "8", |builder| builder.batch_size(8)),
        ("QUORATE_ALLOW_EVICTION", "true", |builder| builder.allow_eviction(true)),
        ("QUORATE_RESTART_GUARD", "strict", |it| it.restart_guard(RestartGuard::Strict)),
        ("QUORATE_VOTER_CONFIGURATION", "3", |builder| builder.voter_configuration(3)),
        ("QUORATE_CLIENT_NAME", "web-1", |builder| builder.client_name("web-1")),
        ("QUORATE_PREFIX", "billing", |builder| builder.prefix("billing")),
    ];
    for ((name, value, set), (known, _)) in settings.into_iter().zip(SETTINGS) {
        let set = set(Quorate::builder().voter("redis://10.0.0.1"));
        let read = read(&[ONE, (name, value)]).unwrap();
        assert_eq!((name, format!("{read:?}")), (known, format!("{set:?}")));
    }
}

#[test]
fn a_cluster_votes_alone_or_beside_servers_and_what_is_empty_is_not_set() {
    let seeds = ["redis://10.0.0.1:7000", "redis://10.0.0.2:7000"];
    let text = seeds.join(" ");
    let (cluster, one) = (|| Cluster::new(seeds), || Quorate::builder().voter("redis://10.0.0.1"));
    for (variables, set) in [
        (vec![(CLUSTER, &*text)], Quorate::builder().cluster(cluster())),
        (
            vec![(CLUSTER, &*text), (CLUSTER_VOTERS, " 3 ")],
            Quorate::builder().cluster(cluster().voters(3)),
        ),
        (vec![ONE, (CLUSTER, &*text)], one().cluster(cluster())),
        (vec![ONE, ("QUORATE_LEASE", ""), (PASSWORD, " "), ("PATH", "/bin")], one()),
    ] {
        assert_eq!(format!("{:?}", read(&variables).unwrap()), format!("{set:?}"));
    }
}

#[test]
fn addresses_are_separated_by_blanks_and_commas_but_sentinels_stay_together() {
    let sentinels = "redis-sentinel://10.0.0.1,10.0.0.2,10.0.0.3/lock-1";
    let text = format!(" redis://a, redis://:p,w@b,,{sentinels},rediss://c\nredis+unix:///d,");
    let expected = ["redis://a", "redis://:p,w@b", sentinels, "rediss://c", "redis+unix:///d"];
    assert_eq!(addresses(&text), expected);
    assert_eq!(
        addresses("valkey://a,unix:///b,REDIS://c"),
        ["valkey://a", "unix:///b", "REDIS://c"]
    );
    assert_eq!(
        addresses("env:A,env:B_1,redis://a,env:C"),
        ["env:A", "env:B_1", "redis://a", "env:C"]
    );
    assert_eq!(addresses("redis://:a,env:b@c"), ["redis://:a,env:b@c"], "of a password");
    assert_eq!(addresses(",,").len(), 0);
}

#[test]
fn addresses_of_another_variable_are_taken_where_it_is_named_and_nowhere_else() {
    let urls = ("REDIS_URL", "redis://:secret@10.0.0.1 , redis://10.0.0.2");
    let cluster = Cluster::new(["redis://:secret@10.0.0.1", "redis://10.0.0.2"]);
    let all = ["redis://:secret@10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"];
    for (variables, set) in [
        (
            vec![(VOTERS, "env:REDIS_URL,env:THIRD"), ("THIRD", all[2])],
            Builder::default().voters(all),
        ),
        (
            vec![(VOTERS, "env:QUORATE_THIRD"), ("QUORATE_THIRD", all[2])],
            Builder::default().voter(all[2]),
        ),
        (vec![(CLUSTER, "env:REDIS_URL")], Builder::default().cluster(cluster)),
        (
            vec![ONE, (REPLACED[0], "env:REDIS_URL")],
            Builder::default().voter(ONE.1).replacing([all[0], all[1]]),
        ),
    ] {
        let read = read(&[&[urls], &variables[..]].concat()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{set:?}"));
    }
    let error = read(&[urls]).unwrap_err().to_string();
    assert!(error.starts_with("QUORATE_VOTERS is not set"), "{error}");
    for empty in [vec![], vec![("OTHER", " ")]] {
        let variables = [&[urls, (VOTERS, "env:REDIS_URL env:OTHER")], &empty[..]].concat();
        refused(&variables, "QUORATE_VOTERS names the variable OTHER, which is not set");
    }
    for no_name in ["env:", "env:redis://:secret@10.0.0.1", "env:$REDIS_URL"] {
        let told = "QUORATE_CLUSTER has `env:` without the name of a variable";
        refused(&[urls, (CLUSTER, no_name)], told);
    }
    // What is named has addresses, and names no third variable.
    let builder = read(&[urls, (VOTERS, "env:A"), ("A", "env:REDIS_URL")]).unwrap();
    let shown = format!("{builder:?}");
    assert!(shown.contains("names a variable") && !shown.contains("10.0.0.1"), "{shown}");
}

#[test]
fn without_voters_it_is_said_how_to_set_them() {
    let told = "QUORATE_VOTERS is not set: it names the servers, for example \
                QUORATE_VOTERS=\"redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3\"; the \
                servers of a Redis Cluster go into QUORATE_CLUSTER";
    refused(&[(VOTERS, " ")], told);
}

#[test]
fn a_value_that_cannot_be_read_is_named_with_its_variable() {
    for value in ["", "s", "1.5s", "-1s", "30 s", "30sec", "99999999999999999999s", "9e9h"] {
        assert!(time(value).is_err(), "{value}");
    }
    for value in ["10000ppm", "10000 2ms", "1%", "10000ppm 2w", "-1ppm 2ms"] {
        assert!(drift(value).is_err(), "{value}");
    }
    let a_time = "a time is a whole number of seconds, or one with `ms`, `s`, `m`, `h` or `d`, as \
                  in `500ms`";
    let parts = "parts per million of the lease and a time are expected, as in `10000ppm 2ms`";
    for (name, value, expected) in [
        ("QUORATE_LEASE", "30 s", a_time),
        ("QUORATE_DRIFT", "1%", parts),
        ("QUORATE_REPLICA_ACKS", "all", "a number of replicas is expected"),
        ("QUORATE_BATCH_SIZE", "-1", "a number of requests is expected"),
        ("QUORATE_ALLOW_EVICTION", "yes", "`true` or `false` is expected"),
        ("QUORATE_RESTART_GUARD", "on", "`relative`, `strict` or `off` is expected"),
    ] {
        refused(&[ONE, (name, value)], &format!("{name} is {value:?}: {expected}"));
    }
    refused(
        &[(CLUSTER, "redis://10.0.0.1"), (CLUSTER_VOTERS, "all")],
        "QUORATE_CLUSTER_VOTERS is \"all\": a number of voters is expected",
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
    let without = "QUORATE_USER is set without QUORATE_PASSWORD or QUORATE_PASSWORD_FILE";
    refused(&[ONE, (USER, "ann")], without);
    let both = "QUORATE_PASSWORD and QUORATE_PASSWORD_FILE are both set";
    refused(&[ONE, (PASSWORD, "secret"), (PASSWORD_FILE, "a")], both);
    let without = "QUORATE_CLUSTER_VOTERS is set without QUORATE_CLUSTER";
    refused(&[ONE, (CLUSTER_VOTERS, "3")], without);
    #[cfg(feature = "tls")]
    {
        let told = "QUORATE_TLS_CERTIFICATE_FILE and QUORATE_TLS_KEY_FILE need each other";
        refused(&[ONE, (KEY_FILE, "a")], told);
        refused(&[ONE, (CA_FILE, "a"), (CERTIFICATE_FILE, "a")], told);
        let has_tls = |variables: &[_]| read(variables).unwrap().security.tls.is_some();
        let client = [ONE, (KEY_FILE, "a"), (CERTIFICATE_FILE, "a")];
        assert!(has_tls(&[ONE, (CA_FILE, "a")]) && has_tls(&client) && !has_tls(&[ONE]));
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
    let other = ("OTHER".into(), OsString::from_vec(vec![0xff]));
    let variables = Variables::of([(VOTERS.into(), "env:OTHER".into()), other]).unwrap();
    let told = variables.builder().unwrap_err().to_string();
    assert_eq!(told, "QUORATE_VOTERS names the variable OTHER, which is not UTF-8");
}

proptest::proptest! {
    #[test]
    fn whatever_a_variable_says_is_a_setting_or_refused(
        name in 0..SETTINGS.len(), value in "[0-9]{0,22}(ms|s|m|h|ppm)?( [0-9]{0,20}ms)?|\\PC{0,20}",
    ) {
        let refused = read(&[ONE, (SETTINGS[name].0, &value)]).map(drop).err();
        proptest::prop_assert!(refused.is_none_or(|error| error.is_invalid()));
    }
}
