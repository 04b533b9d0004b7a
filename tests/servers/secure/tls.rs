//! Whom the client trusts, and what it shows of itself.

use std::{env, fs, process::Command};

use metrics_util::debugging::DebugValue;
use quorate::Tls;
use quorate_support::{
    Certificates,
    ClientCertificates::{self, Demanded, NotAsked},
};
use quorate_tests::prelude::*;

fn server(clients: ClientCertificates) -> (RedisServer, Certificates) {
    let certificates = Certificates::new();
    (RedisServer::start_as(&Settings::new().tls(&certificates, clients)), certificates)
}

async fn locks(address: &str, tls: Tls) {
    let client = connect(patient(Quorate::builder().voter(address).tls(tls))).await;
    let guard = client.mutex("a").lock().await.expect("it is up");
    guard.release().await.expect("it confirms");
}

async fn fails(address: &str, tls: Tls) -> Error {
    let builder = Quorate::builder().voter(address).tls(tls).connect_timeout(MS(10_000));
    builder.connect().await.expect_err("it is not let in")
}

/// Not let in, and this is in the voter's cause.
async fn is_refused(address: &str, tls: Tls, why: &str) {
    let error = fails(address, tls).await;
    assert!(error.is_not_connected() && error.to_string().contains(why), "{why}: {error}");
}

/// Not even tried, and this is in the message.
async fn is_invalid(tls: Tls, why: &str) {
    let error = fails("rediss://localhost:1", tls).await;
    assert!(error.is_invalid() && error.to_string().contains(why), "{why}: {error}");
    assert!(error.to_string().starts_with("`rediss://localhost:1` "), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_of_ones_own_is_trusted_and_no_other() {
    let (server, certificates) = server(NotAsked);
    locks(&server.url(), Tls::new().ca_pem(&certificates.authority)).await;
    locks(&server.url(), Tls::new().ca_file(server.dir().join("ca.pem"))).await;
    let both = format!("{}{}", certificates.stranger_authority, certificates.authority);
    locks(&server.url(), Tls::new().ca_pem(both)).await;
    let twice = Tls::new().ca_pem(&certificates.stranger_authority);
    locks(&server.url(), twice.clone().ca_pem(&certificates.authority)).await;
    is_refused(&server.url(), twice, "the server's certificate is of an unknown authority: ").await;
    is_refused(&server.url(), Tls::new(), "UnknownIssuer").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_for_the_host_that_the_address_names() {
    let certificates = Certificates::new();
    let settings = Settings::new().tls(&certificates, NotAsked);
    let server = RedisServer::start_as(&settings.flags(&["--bind", "127.0.0.1", "127.0.0.2"]));
    let tls = Tls::new().ca_pem(&certificates.authority);
    let address = |host: &str| format!("rediss://{host}:{}", server.port());
    locks(&address("127.0.0.1"), tls.clone()).await;
    is_refused(&address("127.0.0.2"), tls, "the server's certificate is for another name: ").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_certificate_is_shown_where_it_is_demanded() {
    let (server, certificates) = server(Demanded);
    let tls = || Tls::new().ca_pem(&certificates.authority);
    let (client, stranger) = (&certificates.client, &certificates.stranger);
    locks(&server.url(), tls().client_pem(&client.certificate, &client.key)).await;
    let file = |name: &str| server.dir().join(name);
    locks(&server.url(), tls().client_files(file("client.pem"), file("client.key"))).await;
    is_refused(&server.url(), tls(), "the server demands a certificate of the client: ").await;
    let strange = tls().client_pem(&stranger.certificate, &stranger.key);
    is_refused(&server.url(), strange, "does not know who signed the client's certificate: ").await;
}

// The server ends the connections, and keeps its data: nothing but the files decides whether there
// are new ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_read_again_for_each_connection() {
    let (server, certificates) = server(Demanded);
    let Certificates { authority, client, stranger_authority, stranger, .. } = &certificates;
    let dir = tempfile::tempdir().expect("a folder");
    let file = |name: &str| dir.path().join(name);
    let put = |name: &str, text: &str| fs::write(file(name), text).expect("it is written");
    let put_client = |certificate: &str, key: &str| {
        put("client.pem", certificate);
        put("client.key", key);
    };
    put("ca.pem", authority);
    put_client(&client.certificate, &client.key);
    let tls = Tls::new().ca_file(file("ca.pem"));
    let tls = tls.client_files(file("client.pem"), file("client.key"));
    let quorum = connect(patient(Quorate::builder().voter(server.url()).tls(tls))).await;
    let ends_with = async |trouble: &str| {
        for kind in ["normal", "pubsub"] {
            server.command(&["CLIENT", "KILL", "TYPE", kind]).expect("it answers");
        }
        let says = async || quorum.status().await.to_string().contains(trouble);
        eventually_async(trouble, says).await;
    };
    let locks = async || until_given(&quorum, "a").await;
    locks().await;

    put_client(&stranger.certificate, &stranger.key);
    ends_with("does not know who signed the client's certificate").await;
    put_client(&client.certificate, &client.key);
    locks().await;

    put("ca.pem", stranger_authority);
    ends_with("the server's certificate is of an unknown authority").await;
    put("ca.pem", authority);
    locks().await;

    // Half of a replacement: the certificate is new, and the key not yet.
    put("client.pem", &stranger.certificate);
    ends_with("cannot use the client's certificate and key").await;
    put_client(&client.certificate, &client.key);
    locks().await;
}

#[tokio::test]
async fn metrics_say_when_the_clients_own_certificate_begins_and_ends() {
    let (snapshotter, _recording) = record();
    let (server, Certificates { authority, client, .. }) = server(Demanded);
    let tls = Tls::new().ca_pem(&authority).client_pem(&client.certificate, &client.key);
    let _quorum = connect(patient(Quorate::builder().voter(server.url()).tls(tls))).await;
    // As rcgen makes them: from 1975 to 4096.
    let expected =
        [(metric::CERTIFICATE_END, 67_090_118_400.0), (metric::CERTIFICATE_START, 157_766_400.0)];
    until!("both are there", {
        let all = snapshotter.snapshot().into_vec().into_iter();
        let seen = all.filter_map(|(key, _, _, value)| match value {
            DebugValue::Gauge(value) => Some((key.key().name().to_owned(), value.into_inner())),
            _ => None,
        });
        let mut seen: Vec<_> = seen.filter(|(name, _)| name.contains("certificate")).collect();
        seen.sort_by(|one, other| one.0.cmp(&other.0));
        seen.iter().map(|(name, value)| (&**name, *value)).eq(expected)
    });
}

#[tokio::test]
async fn settings_that_cannot_be_used_are_told_by_connect() {
    let Certificates { authority, client, stranger, .. } = Certificates::new();
    let tls = || Tls::new().ca_pem(&authority);
    is_invalid(Tls::new().ca_file("/nowhere/ca.pem"), "in /nowhere/ca.pem: No such file").await;
    is_invalid(Tls::new().ca_pem("nothing"), "it has no PEM certificate").await;
    is_invalid(tls().client_pem("nothing", &client.key), "it has no PEM certificate").await;
    is_invalid(tls().client_pem(&client.certificate, "x"), "it has no PEM private key").await;
    let files = tls().client_files("/nowhere/a.pem", "/nowhere/a.key");
    is_invalid(files, "cannot read the client's certificate in /nowhere/a.pem").await;
    let mixed = tls().client_pem(&client.certificate, &stranger.key);
    is_invalid(mixed, "cannot use the client's certificate and key").await;

    let error = fails("redis://localhost:1", tls()).await;
    assert_eq!(error.to_string(), "TLS is set up, but no address asks for it: `rediss://`");
    assert!(error.is_invalid());
    let shown = format!("{:?}", tls().client_pem(&client.certificate, &client.key));
    assert_eq!(shown, "Tls { own_authorities: true, client_certificate: true }");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_and_their_servers_are_reached_by_tls() {
    let certificates = Certificates::new();
    let settings = Settings::new().tls(&certificates, Demanded);
    let sentinels = Sentinels::start_as(&settings, &settings);
    let hosts = sentinels.sentinel_addresses().join(",");
    let address = format!("rediss-sentinel://{hosts}/{}", sentinels.service());
    let trusting = Tls::new().ca_pem(&certificates.authority);
    let client = &certificates.client;
    locks(&address, trusting.clone().client_pem(&client.certificate, &client.key)).await;
    is_refused(&address, trusting, "CertificateRequired").await;
}

/// The certificates are chosen by the environment, which a process cannot safely set for itself: so
/// this test runs itself once more, as a process that connects.
#[tokio::test]
async fn the_platforms_root_certificates_are_trusted_and_nothing_else() {
    const NAME: &str = "secure::tls::the_platforms_root_certificates_are_trusted_and_nothing_else";
    if let Ok(url) = env::var("QUORATE_TEST_TLS") {
        let connecting = Quorate::builder().voter(url).connect_timeout(MS(10_000)).connect().await;
        let outcome = connecting.map_or_else(|error| error.to_string(), |_| "works".to_owned());
        println!("the outcome: {outcome}");
        return;
    }
    let (server, _) = server(NotAsked);
    for (trusted, expected) in [("ca.pem", "works"), ("stranger-ca.pem", "UnknownIssuer")] {
        let output = Command::new(env::current_exe().expect("it runs"))
            .args(["--exact", NAME, "--nocapture"])
            .env("SSL_CERT_FILE", server.dir().join(trusted))
            .env("QUORATE_TEST_TLS", server.url())
            .output()
            .expect("it can be run");
        let said = String::from_utf8_lossy(&output.stdout);
        let outcome = said.lines().find_map(|line| line.split_once("the outcome: "));
        assert!(outcome.is_some_and(|(_, it)| it.contains(expected)), "{trusted}: {output:?}");
    }
}
