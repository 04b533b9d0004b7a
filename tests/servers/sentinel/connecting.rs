//! Which sentinels are asked, and what is told where they do not answer.

use quorate::{Error, Quorate};

use crate::sentinel::address;
use quorate_support::{Sentinels, Settings, eventually_async};
use quorate_tests::scene::{MS, connect, patient};

async fn refused(address: String) -> Error {
    let builder = Quorate::builder().voter(address).connect_timeout(MS(10_000));
    let error = builder.connect().await.expect_err("it names no server");
    assert!(error.is_not_connected());
    error
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_the_sentinels_do_not_know_is_told_with_what_each_says() {
    let sentinels = Sentinels::start();
    let error = refused(address(&sentinels).replace("/lock-1", "/other")).await.to_string();
    assert!(error.contains("0 of 3 sentinels say where `other` is"), "{error}");
    for sentinel in sentinels.sentinel_addresses() {
        let told = format!("{sentinel}: no such service");
        assert!(error.contains(&told), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_majority_of_the_sentinels_must_say_where_the_primary_is() {
    let mut sentinels = Sentinels::start();
    let url = address(&sentinels);
    sentinels.sentinels()[0].kill();
    let client = connect(patient(Quorate::builder().voter(&url))).await;
    let works = async || matches!(client.mutex("a").try_lock().await, Ok(Some(_)));
    assert!(works().await);
    let seen = client.mutex("a").inspect().await.expect("it is up");
    let label = format!("{}@{}", sentinels.service(), sentinels.sentinel_addresses().join(","));
    assert_eq!(seen.voters[0].voter, label);
    sentinels.sentinels()[1].kill();
    assert!(works().await, "for a moment without a majority of them");
    let mut why = String::new();
    eventually_async("the voter is left", async || {
        let tried = client.mutex("a").try_lock().await;
        why = tried.err().map(|error| error.to_string()).unwrap_or_default();
        why.contains("1 of 3 sentinels say where `lock-1` is")
    })
    .await;
    assert!(why.contains("Connection refused"), "{why}");
    sentinels.sentinels()[1].restart();
    eventually_async("it is back", works).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_and_servers_have_users_of_their_own() {
    let users = ["quorate on >of-the-servers ~* &* +@all"];
    let rights = "+sentinel|master +sentinel|get-master-addr-by-name";
    let watching = [&*format!("asker on >of-the-sentinels resetchannels -@all {rights}")];
    let settings = (Settings::new().users(&users), Settings::new().users(&watching));
    let sentinels = Sentinels::start_as(&settings.0, &settings.1);
    let plain = address(&sentinels);
    let with_user = plain.replace("://", "://quorate:of-the-servers@");
    let right = format!("{with_user}?sentinel_user=asker&sentinel_password=of-the-sentinels");
    let client = connect(patient(Quorate::builder().voter(right))).await;
    assert!(client.mutex("a").try_lock().await.expect("it is up").is_some());
    for (wrong, expected) in [
        (format!("{plain}?sentinel_user=asker&sentinel_password=of-the-sentinels"), "NOAUTH"),
        (with_user.clone(), "0 of 3 sentinels"),
        (format!("{with_user}?sentinel_user=asker&sentinel_password=hunter2"), "WRONGPASS"),
    ] {
        let error = refused(wrong).await.to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("of-the-se") && !error.contains("hunter2"), "{error}");
    }
}
