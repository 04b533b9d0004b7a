use super::*;

/// An observer's notes, one line for each script.
type Notes = Arc<Mutex<Vec<String>>>;

fn observed(
    voter: &EmbeddedVoter,
    note: impl Fn(&Ran<'_>) -> String + Send + Sync + 'static,
) -> Notes {
    let notes = Notes::default();
    let written = Arc::clone(&notes);
    voter.observe(move |ran| written.lock().unwrap().push(note(ran)));
    notes
}

fn taken(notes: &Notes) -> Vec<String> {
    std::mem::take(&mut notes.lock().unwrap())
}

fn record(key: &str, fields: &[(&str, &str)], left_ms: Option<i64>) -> Record {
    let fields = fields.iter().map(|(field, value)| ((*field).into(), (*value).into())).collect();
    Record { key: key.into(), fields, left_ms }
}

#[tokio::test(start_paused = true)]
async fn an_observer_is_told_who_asked_for_what_and_what_came_of_it() {
    let voter = voter();
    let ((first, _), (second, _)) = (connect(&voter), connect(&voter));
    let notes = observed(&voter, |ran| {
        let (keys, args): (Vec<_>, Vec<_>) = (ran.keys().collect(), ran.args().collect());
        let (answer, more) = (ran.answer(), ran.more());
        format!("{} {} {keys:?} {args:?} {answer:?} {more:?}", ran.client(), ran.script())
    });
    first.run(acquire("a:1")).await.unwrap();
    second.run(release("b:1")).await.unwrap();
    let expected = [
        concat!(
            r#"1 mutex/acquire ["lock", "queue", "alive", "fence"] "#,
            r#"[("calls", "calls:"), ("lease_ms", "30000"), ("keep_ms", ""), "#,
            r#"("wait_ms", "30000"), ("hold", "a:1"), ("floor", ""), ("ticket", "")] "#,
            r#"Ok((1, 1700000000000, "")) [Text(""), Int(1)]"#,
        ),
        concat!(
            r#"2 mutex/release ["lock", "queue", "alive"] [("calls", "calls:"), ("aloud", ""), "#,
            r#"("hold", "b:1"), ("count", "0"), ("place", ""), ("channel", "freed")] "#,
            r#"Ok((0, 30000, "a:1")) []"#,
        ),
    ];
    assert_eq!(taken(&notes), expected);
}

#[tokio::test(start_paused = true)]
async fn an_observer_sees_the_records_before_anybody_hears_of_the_script() {
    let (voter, node, hears) = connected();
    node.subscribe("freed".into()).await.unwrap();
    let heard = Arc::clone(&hears);
    let notes = observed(&voter, move |ran| format!("{:?} {:?}", ran.records(), heard.heard()));
    node.run(acquire("a:1")).await.unwrap();
    node.run(release("a:1")).await.unwrap();
    let held = [record("lock", &[("a:1", "1")], Some(30_000))];
    assert_eq!(taken(&notes), [format!("{held:?} []"), "[] []".into()]);
    assert_eq!(hears.heard(), ["freed"]);
}

#[tokio::test(start_paused = true)]
async fn an_observer_is_told_of_nothing_but_scripts_of_clients_and_only_the_last_one_is() {
    let (voter, node, _) = connected();
    let replaced = observed(&voter, |ran| ran.script().into());
    let notes = observed(&voter, |ran| ran.script().into());
    voter.command(&["SET", "a", "1"]).unwrap();
    voter.command(&["EVAL", "return 1", "0"]).unwrap();
    node.identify().await.unwrap();
    node.subscribe("freed".into()).await.unwrap();
    assert!(taken(&notes).is_empty());
    node.run(acquire("a:1")).await.unwrap();
    assert_eq!((taken(&replaced), taken(&notes)), (vec![], vec!["mutex/acquire".into()]));
}

#[tokio::test(start_paused = true)]
async fn a_script_that_failed_or_answers_otherwise_has_no_answer() {
    static BROKEN: Script = test_script!("test/broken", "key", "none", "error('no', 0)");
    static OTHER: Script = test_script!("test/other", "key", "none", "return 7");
    let (voter, node, _) = connected();
    let notes = observed(&voter, |ran| format!("{:?}", ran.answer()));
    let failed = node.run(Call::of(&BROKEN, &["a"], &[])).await;
    assert_eq!(failed, Err(Cause::Rejected("ERR no".into())), "as a whole");
    assert!(node.run(Call::of(&OTHER, &["a"], &[])).await.is_err());
    let shape = r#"Err("the reply does not begin with code, ms, id")"#;
    assert_eq!(taken(&notes), [r#"Err("ERR no")"#, shape]);
}

#[tokio::test(start_paused = true)]
async fn records_are_the_live_keys_in_order_with_what_is_left_of_their_time() {
    let voter = voter();
    for words in [
        &["SET", "text", "x"][..],
        &["HSET", "hash", "b", "2", "a", "1"],
        &["PEXPIRE", "hash", "1000"],
        &["ZADD", "queue", "1763712000000", "late", "-1", "b", "3", "a"],
    ] {
        voter.command(words).unwrap();
    }
    let text = record("text", &[("", "x")], None);
    let queue = record("queue", &[("b", "-1"), ("a", "3"), ("late", "1763712000000")], None);
    let hash = |left_ms| record("hash", &[("a", "1"), ("b", "2")], Some(left_ms));
    for left_ms in [1_000, 500, 0] {
        assert_eq!(voter.records(), [hash(left_ms), queue.clone(), text.clone()]);
        tokio::time::advance(ms(500)).await;
    }
    assert_eq!(voter.records(), [queue, text]);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_runs_twice_is_told_twice_and_answered_by_its_first_run() {
    let (voter, node, hears) = connected();
    node.subscribe("freed".into()).await.unwrap();
    node.run(acquire("a:1")).await.unwrap();
    let notes =
        observed(&voter, |ran| format!("{} {:?} {}", ran.script(), ran.answer(), ran.again()));
    voter.fault_next(1, Fault::RunTwice);
    assert_eq!(code(node.run(release("a:1")).await), 1);
    assert_eq!(code(node.run(acquire("b:1")).await), 1);
    let expected = [
        r#"mutex/release Ok((1, 0, "")) false"#,
        r#"mutex/release Ok((0, -2, "")) true"#,
        r#"mutex/acquire Ok((1, 1700000000000, "")) false"#,
    ];
    assert_eq!(taken(&notes), expected);
    assert_eq!((voter.runs("mutex/release"), hears.heard()), (2, vec!["freed".into()]));

    voter.fault_next(1, Fault::RunTwice);
    let _outcome = sent(&voter, &node, acquire("b:1"), 20, 0);
    voter.cut(InFlight::Arrives);
    tokio::time::sleep(ms(21)).await;
    assert_eq!(taken(&notes).len(), 2, "of a former connection too");
}
