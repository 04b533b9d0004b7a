//! Random calls of both languages beside a plain model of a read/write lock.

use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, RngSeed, TestRunner},
};
use quorate_tests::prelude::*;

use super::{LEASE, client, java::Java, servers};

const THREADS: usize = 3;

/// What somebody does, by number.
#[derive(Clone, Copy, Debug)]
enum Act {
    ReadInJava(usize),
    EndReadInJava(usize),
    WriteInJava(usize),
    EndWriteInJava(usize),
    Read,
    EndRead(usize),
    Write,
    ReadUnderWrite,
    EndWrite,
    Downgrade,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        2 => (0..THREADS).prop_map(Act::ReadInJava),
        3 => (0..THREADS).prop_map(Act::EndReadInJava),
        2 => (0..THREADS).prop_map(Act::WriteInJava),
        3 => (0..THREADS).prop_map(Act::EndWriteInJava),
        2 => Just(Act::Read),
        4 => (0..4_usize).prop_map(Act::EndRead),
        3 => Just(Act::Write),
        2 => Just(Act::ReadUnderWrite),
        2 => Just(Act::EndWrite),
        2 => Just(Act::Downgrade),
    ]
}

/// Who has it by the rules of Redisson.
#[derive(Debug, Default)]
struct Model {
    /// How often each thread in Java has entered to read; and to write.
    reads: [usize; THREADS],
    writes: [usize; THREADS],
    ours: Vec<ReadGuard>,
    our_write: Option<WriteGuard>,
}

impl Model {
    fn is_written(&self) -> bool {
        self.our_write.is_some() || self.writes.iter().any(|count| *count > 0)
    }

    fn is_free(&self) -> bool {
        !self.is_written() && self.ours.is_empty() && self.reads.iter().all(|count| *count == 0)
    }

    /// Does it on the server, and says what came of it and what should have.
    async fn run(&mut self, act: Act, java: &[Java<'_>], ours: &Quorate, name: &str) -> [bool; 2] {
        let lock = ours.redisson().rw_lock(name);
        match act {
            Act::ReadInJava(at) => {
                let may = !self.is_written() || self.writes[at] > 0;
                self.reads[at] += usize::from(may);
                [java[at].try_read(name, LEASE), may]
            }
            Act::EndReadInJava(at) => {
                let may = self.reads[at] > 0;
                self.reads[at] -= usize::from(may);
                [java[at].end_read(name).is_some(), may]
            }
            Act::WriteInJava(at) => {
                let may = self.is_free() || self.writes[at] > 0;
                self.writes[at] += usize::from(may);
                [java[at].try_write(name, LEASE), may]
            }
            Act::EndWriteInJava(at) => {
                let may = self.writes[at] > 0;
                self.writes[at] -= usize::from(may);
                [java[at].end_write(name).is_some(), may]
            }
            Act::Read => {
                let (entered, may) = (lock.try_read().await.unwrap(), !self.is_written());
                let did = entered.is_some();
                self.ours.extend(entered);
                [did, may]
            }
            Act::EndRead(at) => {
                if at < self.ours.len() {
                    self.ours.remove(at).release().await.unwrap();
                }
                [true; 2]
            }
            Act::Write => {
                let (entered, may) = (lock.try_write().await.unwrap(), self.is_free());
                let did = entered.is_some();
                self.our_write = self.our_write.take().or(entered);
                [did, may]
            }
            Act::ReadUnderWrite => {
                if let Some(write) = &self.our_write {
                    self.ours.push(write.read().await.unwrap());
                }
                [true; 2]
            }
            Act::EndWrite => {
                if let Some(write) = self.our_write.take() {
                    write.release().await.unwrap();
                }
                [true; 2]
            }
            Act::Downgrade => {
                if let Some(write) = self.our_write.take() {
                    self.ours.push(write.downgrade().await.unwrap());
                }
                [true; 2]
            }
        }
    }
}

#[test]
fn both_languages_enter_and_leave_as_one_read_write_lock_would_let_them() {
    let servers = servers::<1>();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let ours = runtime.block_on(client(&servers));
    let java: Vec<_> = (0..THREADS).map(|at| Java::new(&servers[0], at)).collect();
    let config = Config {
        cases: 30,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    };
    let case = std::cell::Cell::new(0);
    let checked = TestRunner::new(config).run(&vec(act(), 1..60), |acts| {
        case.set(case.get() + 1);
        // What a case before has left harms none.
        let name = format!("orders:{}", case.get());
        runtime.block_on(async {
            let mut model = Model::default();
            for act in acts {
                let [did, should] = model.run(act, &java, &ours, &name).await;
                prop_assert_eq!(did, should, "{:?} with {:?}", act, model);
            }
            Ok(())
        })
    });
    checked.unwrap();
}
