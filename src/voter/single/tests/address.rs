use std::{fs, net::IpAddr};

use proptest::prelude::*;

use crate::voter::{Access, Address, Credentials, Security, single::carrier::Config};

fn access(text: &str) -> Access {
    Access::new(&text.into(), &Security::default()).unwrap()
}

fn label(text: &str) -> String {
    access(text).label().to_string()
}

#[track_caller]
fn refusal(address: &Address) -> String {
    let error = address.to_url().unwrap_err();
    assert!(error.is_invalid());
    error.to_string()
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
    let reached = access(text);
    let config = &reached.config;
    assert_eq!((login(config), config.database), ((Some("user"), Some("a,b@")), Some(3)));
    for Access { config, .. } in &reached.sentinels.as_ref().unwrap().all {
        assert_eq!((login(config), config.database), ((Some("u&"), Some("=p")), None));
    }
    let encoded = access("redis://us%3Aer:p%40ss%2Fw%25rd%C3%A9@a.example");
    assert_eq!(login(&encoded.config), (Some("us:er"), Some("p@ss/w%rdé")));
}

/// Each row is a case: clients, a text that they take, and what it is here. Either the text that
/// names the same address, or the one that its refusal asks for.
#[test]
fn what_other_clients_take_is_taken_or_refused_as_the_page_says() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/addresses.md"));
    let page = page.expect("the page is there");
    let cells = |row: &'static str| row.split('|').map(str::trim).collect::<Vec<_>>();
    let rows: Vec<_> = page.leak().lines().map(cells).filter(|row| row.len() == 5).collect();
    // Behind a head of two lines.
    for row in &rows[2..] {
        let code = |cell: usize| row[cell].split('`').nth(1).expect("a text");
        let (text, meant) = (code(2), code(3));
        let same = Address::from(meant);
        assert_eq!(same.to_url().expect("it is taken"), meant, "{text}");
        if row[3].starts_with("write ") {
            let told = refusal(&Address::from(text));
            assert!(told.ends_with(&format!(": write `{meant}`")), "{text}: {told}");
            assert!(!told.contains("secret"), "{text}: {told}");
        } else {
            assert_eq!(Address::from(text), same, "{text}");
        }
    }
    assert!(rows.len() > 60, "{} rows", rows.len());
    for client in ["redis-rs", "fred", "go-redis", "redis-py", "ioredis", "Lettuce", "Redisson"] {
        assert!(rows[2..].iter().any(|row| row[1].contains(client)), "{client}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    for (text, expected) in [
        ("", "the address is empty"),
        ("localhost:6379", "the address has no scheme: write `redis://localhost:6379`"),
        (
            "user:secret@a.example",
            "the address has no scheme: write `redis://USER:PASSWORD@a.example:6379`",
        ),
        ("local host", "the address has no scheme; known are redis://, rediss://, redis+unix://"),
        ("env:REDIS_URL", "the address names a variable, which only variables do"),
        (
            "redis://a.example:1,redis://b.example:2",
            "the redis:// address names several servers, and each voter has an address of its own: \
             write `redis://a.example:1`",
        ),
        ("http://a.example", "unknown scheme"),
        ("rediss+unix:///run/redis.sock", "unknown scheme"),
        ("redis://a.example:99999", "address has a host that cannot be read: invalid port number"),
        ("redis://a%2Fb", "has a host that cannot be read: invalid character"),
        ("redis://a.example:0", "the redis:// address has port 0"),
        ("redis://", "has no host: write `redis://127.0.0.1:6379`"),
        ("redis://a.example/256", "has a database that is no number from 0 to 255"),
        ("redis://a.example/1/2", "has a database that is no number"),
        ("redis://a.example/1?db=2", "has two databases"),
        ("redis://a.example?db=1&db=1", "has a user, a password or a parameter twice"),
        ("redis://:a@a.example?password=a", "has a user, a password or a parameter twice"),
        ("redis://a.example?db=", "has a parameter that is empty"),
        ("redis://a.example/#1", "has a `#`"),
        ("redis://user:@a.example", "has a user without a password: write `redis://USER:PASSWORD@"),
        ("redis://:%zz@a.example", "not percent-encoded UTF-8"),
        ("redis://:%ff@a.example", "not percent-encoded UTF-8"),
        ("redis+unix://", "has no path of a socket"),
        ("redis+unix://run/redis.sock", "has a host, but a socket has none"),
        ("redis+unix:///run/a@b.sock", "has an `@` too many"),
        ("redis+unix:///run/a.sock?sentinel_user=a", "has a parameter that addresses do not have"),
        ("redis-sentinel://", "the redis-sentinel:// address has no host"),
        ("redis-sentinel://a.example", "has no service"),
        ("redis-sentinel://a.example,/lock-1", "has no host"),
        ("redis-sentinel://a.example:0/lock-1", "has port 0"),
        ("redis-sentinel://a.example:x/lock-1", "has a host that cannot be read"),
        ("redis-sentinel://a.example/lock-1?node=b%40c", "has a host that cannot be read"),
        ("redis-sentinel://a,b:26379,a:26379/lock-1", "names a sentinel twice"),
        ("redis-sentinel://a.example/lock 1", "has a service with characters other than letters"),
        ("redis-sentinel://a.example/lock-1/1/2", "has a database that is no number"),
        ("redis-sentinel://a.example?sentinel_password=a#b", "has a `#`"),
        ("redis-sentinel://a.example?password=a#b", "has a `#`"),
        ("redis-sentinel://a.example/lock-1?sentinel_password=", "has a parameter that is empty"),
        ("redis-sentinel://a/b?sentinel_user=a", "a `sentinel_user` without a `sentinel_password`"),
    ] {
        let told = refusal(&Address::from(text));
        assert!(told.contains(expected), "{text}: {told}");
    }
}

#[test]
fn parts_that_cannot_be_put_together_are_refused() {
    let server = || Address::new("a.example");
    let sentinels = || Address::from("redis-sentinel://a.example/lock-1");
    let secret = || Credentials::password("secret");
    for (address, expected) in [
        (Address::new("a/b"), "the address has a host that cannot be read"),
        (Address::new("user:secret@a.example"), "the address has a host that cannot be read"),
        (Address::new(""), "the address has no host"),
        (Address::socket("run/redis.sock"), "the address has no path of a socket"),
        (server().port(0), "`redis://a.example:6379` has port 0"),
        (Address::socket("/a").port(1), "`redis+unix:///a` is no server that has one port"),
        (sentinels().port(1), "is no server that has one port"),
        (Address::socket("/a").tls(), "`redis+unix:///a` is a socket, which has no TLS"),
        (server().credentials(Credentials::new("a", "")), "has credentials without a password"),
        (server().sentinel_credentials(secret()), "names no sentinels"),
        // The first reason stays.
        (
            server().credentials(secret()).port(0).port(1),
            "`redis://:PASSWORD@a.example:6379` has p",
        ),
    ] {
        let told = refusal(&address);
        assert!(told.contains(expected) && !told.contains("secret"), "{told}");
    }
    let address = sentinels().sentinel_credentials(secret()).credentials(secret()).database(3);
    let text = "redis-sentinel://:secret@a.example:26379/lock-1/3?sentinel_password=secret";
    assert_eq!(address.to_url().unwrap(), text);
    let shown = "Address(redis-sentinel://:PASSWORD@a.example:26379/lock-1/3\
                 ?sentinel_password=PASSWORD)";
    assert_eq!(format!("{address:?}"), shown);
    assert_eq!(Address::new("::1").tls().to_url().unwrap(), "rediss://[::1]:6379");
    assert_eq!(Address::new("[::1]:7000"), Address::new("::1").port(7000));
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
                "redis://{}@a.example?x=1&db=3",
                "redis://{}@a.example,b.example",
                "redis://{}@",
                "redis://{}@::1",
                "redis://{}",
                "rediss://{}@a.example#insecure",
                "redis+unix://{}@local",
                "redis+unix://{}@local/run?x=1",
                "redis+unix:///run?user=a&pass={}&db=x",
                "redis+unix:///run?user=a&pass={}&x=1",
                "redis-cluster://{}@a.example",
                "redis-sentinel://{}@a.example,b.example/lock-1",
                "redis-sentinel://{}@a.example,b.example:x/lock-1",
                "redis-sentinel://{}@a.example/",
                "redis-sentinel://{}@a.example/lock-1?x",
                "redis-sentinel://{}@a.example#lock-1",
                "redis-sentinel://a.example/lock-1?sentinel_user=a&sentinel_password={}@",
                "redis-sentinel://a.example/lock-1/x?sentinel_password={}",
                "redis-sentinel://a.example?sentinel_password={}",
                "redis-sentinel://a.example?password={}",
                "redis://a.example?master_name=lock-1&username=a&password={}",
                "redis-sentinel://{}@",
                "http://{}@a.example",
                "{}@a.example",
                "{}@a.example:7000/3",
                "//{}@a.example",
                "redis:{}@a.example",
                "env:{}@a.example",
            ] {
                let bare = credentials == password || password.contains('@');
                if bare && form == "redis://{}" {
                    continue; // Nothing tells that from a host.
                }
                let text = form.replace("{}", &credentials);
                let address = Address::from(&text);
                let shown = match Access::new(&address, &Security::default()) {
                    Ok(access) => format!("{address:?} {}", access.label()),
                    Err(error) => format!("{address:?} {error} {error:?}"),
                };
                for part in ["hun", "ter2", "er2"] {
                    assert!(!shown.contains(part), "{text}: {shown}");
                }
            }
        }
    }
}

fn any_login() -> impl Strategy<Value = Option<Credentials>> {
    let user = prop_oneof![Just(None), "(?s).{1,8}".prop_map(Some)];
    let login = (user, "(?s).{0,8}hunter2(?s).{0,8}").prop_map(|(user, password)| match user {
        Some(user) => Credentials::new(user, password),
        None => Credentials::password(password),
    });
    prop_oneof![Just(None), login.prop_map(Some)]
}

fn any_address() -> impl Strategy<Value = Address> {
    let host = prop_oneof!["[a-zA-Z0-9_.-]{1,16}", any::<IpAddr>().prop_map(|ip| ip.to_string())];
    let server = (host, 1_u16.., any::<bool>()).prop_map(|(host, port, tls)| {
        let server = Address::new(host).port(port);
        if tls { server.tls() } else { server }
    });
    let socket = "/(?s).{1,20}".prop_map(Address::socket);
    let service = ("[a-z0-9.-]{1,8}", any_login()).prop_map(|(name, login)| {
        let text = format!("rediss-sentinel://10.0.0.1,[::1]:7000/{name}");
        let address = Address::from(text);
        login.into_iter().fold(address, Address::sentinel_credentials)
    });
    (prop_oneof![server, socket, service], any_login(), any::<u8>()).prop_map(
        |(address, login, database)| {
            login.into_iter().fold(address, Address::credentials).database(database)
        },
    )
}

proptest! {
    #[test]
    fn an_address_is_the_same_through_its_text_and_shows_no_password(address in any_address()) {
        let text = address.to_url().expect("it can be used");
        let is_plain = |byte: u8| byte.is_ascii_graphic();
        prop_assert!(text.bytes().all(is_plain), "{}", text);
        prop_assert_eq!(&Address::from(text), &address);
        let access = Access::new(&address, &Security::default());
        let label = access.map(|access| access.label().to_string()).unwrap_or_default();
        let shown = format!("{address:?} {label} {:?}", address.clone().port(0));
        prop_assert!(!shown.contains("hunter2"), "{}", shown);
    }

    #[test]
    fn whatever_stands_there_is_an_address_or_refused(
        text in "((redis|rediss|valkey|unix|redis\\+unix|rediss?-sentinel|redis-cluster)://)?\
                 [a-z0-9.:/@?#%,=&\\[\\]-]{0,40}\\PC{0,4}",
    ) {
        let address = Address::from(&text);
        match address.to_url() {
            Ok(text) => prop_assert_eq!(Address::from(text), address),
            Err(error) => prop_assert!(error.is_invalid()),
        }
    }
}
