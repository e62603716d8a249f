//! One turn by hand: `Run` decides what is to be done, and the host does it. It calls nobody, so it
//! fits into any runtime, workflow engine or test.
//!
//! `cargo run -p plimsoll-examples --bin one_turn`

use std::sync::Arc;

use plimsoll::machine::{Input, Now, Run, Setup, Step};
use plimsoll::model::{Reply, StopReason};
use plimsoll::tokens::{Bpe, Memo};
use plimsoll::{ContextStrategy, Part};

fn main() -> Result<(), plimsoll::machine::FoldError> {
    let policy = ContextStrategy::default().policy(Default::default(), Default::default());
    let setup = Setup::new("test/test", Arc::new(Memo::new(Bpe::o200k())), policy);
    let mut run = Run::resume(&[], setup)?;
    run.handle(
        Now::default(),
        Input::User(vec![Part::text("What is 6 × 7?")].into()),
    );
    loop {
        match run.poll() {
            Step::Call(request) => {
                println!("a request of {} messages", request.messages.len());
                // Here your code sends it, and reads the reply.
                let reply = Reply {
                    parts: vec![Part::text("42")],
                    stop: StopReason::Stop,
                    usage: None,
                    model: None,
                };
                run.handle(Now::default(), Input::Reply(Box::new(Ok(reply))));
            }
            Step::Finish(outcome) => {
                println!("{}", outcome.text);
                return Ok(());
            }
            // Entries to store, events to show, tools to run.
            _ => {}
        }
    }
}
