//! Addresses in parts.

use quorate::{Address, Credentials, Tls};
use quorate_support::{Certificates, ClientCertificates::NotAsked};
use quorate_tests::prelude::*;

// All that means something in a text, and what is no ASCII.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_of_any_characters_is_used_as_it_is() {
    const PASSWORD: &str = "p@ss:/w?rd#%41,é &=+[x]";
    let certificates = Certificates::new();
    let settings = Settings::new().flags(&["--requirepass", PASSWORD]);
    let (open, secured) = (RedisServer::start_as(&settings), Settings::new());
    let secured = secured.tls(&certificates, NotAsked).flags(&["--requirepass", PASSWORD]);
    let secured = RedisServer::start_as(&secured);
    let by_text = Address::from(&open.url()).database(4);
    for (server, address, database) in [
        (&open, Address::new("127.0.0.1").port(open.port()).database(3), 3),
        (&open, Address::socket(open.socket().to_str().expect("it is UTF-8")).database(5), 5),
        (&open, by_text, 4),
        (&secured, Address::new(format!("localhost:{}", secured.port())).tls(), 0),
    ] {
        let address = address.credentials(Credentials::password(PASSWORD));
        for address in [address.clone(), address.to_url().expect("it can be used").into()] {
            let builder = patient(Quorate::builder().voter(address.clone()));
            let has_tls = address == address.clone().tls();
            let tls = Tls::new().ca_pem(&certificates.authority);
            let client = connect(if has_tls { builder.tls(tls) } else { builder }).await;
            let guard = client.mutex("a").lock().await.expect("it is up");
            let said = server.commands(&[&["AUTH", PASSWORD], &["INFO", "keyspace"]]);
            let keys = said.expect("it answers").pop().expect("to both").expect("it is let in");
            let keys = keys.text();
            assert!(keys.contains(&format!("db{database}:")), "{address:?}: {keys}");
            guard.release().await.expect("it confirms");
        }
    }
}
