use super::{Address, Security};
use crate::voter::single::{address::Secured, carrier::Config};

fn parse(text: &str) -> Result<Address, crate::proto::Error> {
    Address::parse(text, &Security::default())
}

fn label(text: &str) -> String {
    parse(text).unwrap().label().to_string()
}

/// User and password.
fn login(config: &Config) -> (Option<&str>, Option<&str>) {
    (config.username.as_deref(), config.password.as_deref())
}

#[test]
fn a_label_has_host_port_and_database_and_no_credentials() {
    assert_eq!(label("redis://a.example:7000/"), "a.example:7000");
    assert_eq!(label("redis://user:secret@a.example/0"), "a.example:6379");
    assert_eq!(label("redis://:secret@a.example:7000/15"), "a.example:7000/15");
    assert_eq!(label("redis://[::1]:7000"), "[::1]:7000");
    assert_eq!(label("redis+unix:///run/redis.sock"), "/run/redis.sock");
    assert_eq!(label("redis+unix://:secret@local/run/a%20b.sock?db=3"), "/run/a b.sock?db=3");
}

#[test]
fn a_label_under_sentinels_has_the_service_and_all_of_them() {
    assert_eq!(label("redis-sentinel://a.example/lock-1"), "lock-1@a.example:26379");
    let text = "redis-sentinel://user:a,b%40@a.example,b.example:7000,[::1]/lock-1/3\
                ?sentinel_user=u%26&sentinel_password=%3Dp";
    assert_eq!(label(text), "lock-1@a.example:26379,b.example:7000,[::1]:26379/3");
    let address = parse(text).unwrap();
    let config = &address.secured.config;
    assert_eq!((login(config), config.database), ((Some("user"), Some("a,b@")), Some(3)));
    for (_, Secured { config, .. }) in &address.sentinels.as_ref().unwrap().all {
        assert_eq!((login(config), config.database), ((Some("u&"), Some("=p")), None));
    }
    let encoded = parse("redis://us%3Aer:p%40ss%2Fw%25rd%C3%A9@a.example").unwrap();
    assert_eq!(login(&encoded.secured.config), (Some("us:er"), Some("p@ss/w%rdé")));
}

#[test]
fn what_is_wrong_is_named() {
    for (text, expected) in [
        ("", "the address is empty"),
        ("localhost:6379", "`localhost:6379` is no address: write `redis://localhost:6379`"),
        (
            "user:secret@a.example",
            "the address has no scheme; known are redis://, rediss://, redis+unix:// or redis-s",
        ),
        (
            "redis://a.example:1,redis://b.example:2",
            "the redis:// address has others behind it: give each voter by itself",
        ),
        ("http://a.example", "unknown scheme"),
        ("redis://a.example:99999", "address has a host that cannot be read: invalid port number"),
        ("redis://a.example:0", "the redis:// address has port 0"),
        ("redis://", "has no host"),
        ("redis://a.example/256", "`redis://a.example` has a database that is no number from 0"),
        ("redis://a.example/1/2", "has a database that is no number"),
        ("redis://a.example?db=1", "takes no parameters"),
        ("redis://a.example/#1", "has a `#`"),
        ("redis://user@a.example", "has a user without a password"),
        ("redis://:%zz@a.example", "not percent-encoded UTF-8"),
        ("redis://:%ff@a.example", "not percent-encoded UTF-8"),
        ("redis+unix://", "has no path of a socket"),
        ("redis+unix://run/redis.sock", "has a host, but a socket has none"),
        ("redis+unix:///run/a@b.sock", "has an `@` too many"),
        ("redis+unix:///run/redis.sock?password=a", "has a parameter other than `db`"),
        ("redis-cluster://a.example", "names a cluster, which is not one server"),
        ("redis-sentinel://", "the redis-sentinel:// address has no host"),
        ("redis-sentinel://a.example", "`redis-sentinel://a.example` has no service"),
        ("redis-sentinel://a.example,/lock-1", "has no host"),
        ("redis-sentinel://a.example:0/lock-1", "has port 0"),
        ("redis-sentinel://a.example:x/lock-1", "has a host that cannot be read"),
        ("redis-sentinel://a,b:26379,a:26379/lock-1", "names a sentinel twice"),
        ("redis-sentinel://a.example/lock 1", "has a service with characters other than letters"),
        ("redis-sentinel://a.example/lock-1/1/2", "has a database that is no number"),
        ("redis-sentinel://a.example/lock-1#1", "has a `#`"),
        ("redis-sentinel://user@a.example/lock-1", "has a user without a password"),
        ("redis-sentinel://a.example/lock-1?db=1", "has a parameter other than `sentinel_user`"),
        ("redis-sentinel://a.example/lock-1?sentinel_password=", "has a parameter that is empty"),
        ("redis-sentinel://a/b?sentinel_user=a", "a `sentinel_user` without a `sentinel_password`"),
    ] {
        let Err(error) = parse(text) else { panic!("nothing is wrong with {text}") };
        assert!(error.is_invalid() && error.to_string().contains(expected), "{text}: {error}");
    }
}

#[test]
fn no_message_and_no_label_shows_a_password() {
    const PASSWORDS: [&str; 7] =
        ["hunter2", "hun%74er2", "hun/ter2", "hun#ter2", "hun?ter2", "hun@ter2", "h:er2"];
    for password in PASSWORDS {
        for credentials in [format!(":{password}"), format!("user:{password}"), password.into()] {
            for form in [
                "redis://{}@a.example:7000/3",
                "redis://{}@a.example:7000/x",
                "redis://{}@a.example:x",
                "redis://{}@a.example?x",
                "redis://{}@",
                "redis://{}",
                "redis+unix://{}@local",
                "redis+unix://{}@local/run?x=1",
                "redis-cluster://{}@a.example",
                "redis-sentinel://{}@a.example,b.example/lock-1",
                "redis-sentinel://{}@a.example,b.example:x/lock-1",
                "redis-sentinel://{}@a.example/",
                "redis-sentinel://{}@a.example/lock-1?x",
                "redis-sentinel://a.example/lock-1?sentinel_user=a&sentinel_password={}@",
                "redis-sentinel://a.example/lock-1/x?sentinel_password={}",
                "redis-sentinel://{}@",
                "http://{}@a.example",
                "{}@a.example",
                "redis:{}@a.example",
            ] {
                if form == "redis://{}" && (credentials == password || password.contains('@')) {
                    continue; // Nothing tells that from a host.
                }
                let text = form.replace("{}", &credentials);
                let shown = match parse(&text) {
                    Ok(address) => address.label().to_string(),
                    Err(error) => format!("{error} {error:?}"),
                };
                for part in ["hun", "ter2", "er2"] {
                    assert!(!shown.contains(part), "{text}: {shown}");
                }
            }
        }
    }
}

proptest::proptest! {
    #[test]
    fn whatever_stands_there_is_an_address_or_refused(
        text in "((redis|rediss|redis\\+unix|rediss?-sentinel)://)?[a-z0-9.:/@?#%,=\\[\\]-]{0,40}\\PC{0,4}",
    ) {
        let refused = parse(&text).map(drop).err();
        proptest::prop_assert!(refused.is_none_or(|error| error.is_invalid()));
    }
}
