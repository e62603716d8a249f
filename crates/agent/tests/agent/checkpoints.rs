//! What a checkpoint is refused for, and what it contains. That it leads to the same session as the log
//! is a property in `properties.rs`.

use std::sync::Arc;

use plimsoll_agent::{CHECKPOINT_FORMAT, Checkpoint, Entry, MAX_CHECKPOINT, Setup, State};
use plimsoll_context::{Chars4, Estimate};

use crate::stage::{Stage, read_log, setup};

const LOGS: [&str; 4] = [
    include_str!("../golden/plans.jsonl"),
    include_str!("../golden/limits.jsonl"),
    include_str!("../golden/measured.jsonl"),
    include_str!("../golden/keys.jsonl"),
];
const CHECKPOINTS: &str = include_str!("../golden/checkpoints.jsonl");

fn fold(log: &[Entry]) -> State {
    State::fold(Arc::new(Chars4), log).unwrap()
}

fn checkpoint(log: &[Entry]) -> Checkpoint {
    fold(log).checkpoint(log.len() as u64).unwrap()
}

/// A fixed log always has the same checkpoint, or the format must be another.
#[test]
fn the_same_log_has_the_same_checkpoint_in_every_version() {
    let now = LOGS
        .map(|log| checkpoint(&read_log(log)).state + "\n")
        .concat();
    if std::env::var_os("PLIMSOLL_BLESS").is_some() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/golden/checkpoints.jsonl"
        );
        std::fs::write(file, &now).unwrap();
        return;
    }
    assert!(
        now == CHECKPOINTS,
        "logs fold to other states, or these are written otherwise: raise CHECKPOINT_FORMAT, then \
         PLIMSOLL_BLESS=1 cargo nextest run -p plimsoll-agent the_same_log_has_the_same_checkpoint"
    );
}

#[test]
fn a_checkpoint_agrees_with_its_log_only() {
    let logs = LOGS.map(read_log);
    for (number, log) in logs.iter().enumerate() {
        let checkpoint = checkpoint(log);
        for (other, log) in logs.iter().enumerate() {
            let agrees = checkpoint.agrees_with(&fold(log));
            assert_eq!(agrees, other == number, "{number} {other}");
        }
        let before = fold(&log[..log.len() - 1]);
        assert!(!checkpoint.agrees_with(&before), "{number}");
        let by_another_counter = State::fold(Arc::new(Estimate), log).unwrap();
        assert!(checkpoint.agrees_with(&by_another_counter));
    }
}

#[test]
fn a_checkpoint_of_another_version_counter_or_log_format_is_not_used() {
    let log = read_log(LOGS[3]);
    let here = checkpoint(&log);
    let setup = setup();
    assert!(State::restore(&here, &setup).is_some());
    let other_counter = Setup {
        counter: Arc::new(Estimate),
        ..setup.clone()
    };
    assert!(State::restore(&here, &other_counter).is_none());
    let version = format!("{{\"version\":{CHECKPOINT_FORMAT},");
    assert!(here.state.starts_with(&version));
    for state in [
        here.state.replacen(&version, "{\"version\":0,", 1),
        here.state.replacen("\"format\":1", "\"format\":2", 1),
        here.state.replacen("\"seq\":1", "\"seq\":0", 1),
        here.state.replacen("\"message\":1", "\"message\":99", 1),
        here.state
            .replacen("\"turns\":", "\"unknown\":1,\"turns\":", 1),
        here.state[..here.state.len() / 2].to_owned(),
        String::new(),
        "[]".to_owned(),
    ] {
        assert_ne!(state, here.state);
        let entries = here.entries;
        let checkpoint = Checkpoint { entries, state };
        assert!(
            State::restore(&checkpoint, &setup).is_none(),
            "{checkpoint:?}"
        );
    }
}

#[test]
fn there_is_no_checkpoint_during_a_run_and_none_that_is_too_large() {
    let mut stage = Stage::new(setup());
    stage.say("the task");
    assert_eq!(
        stage.run.state().checkpoint(2),
        None,
        "a run is in progress"
    );
    stage.text("done");
    assert!(stage.run.state().checkpoint(4).is_some());
    let mut stage = Stage::new(setup());
    let size = usize::try_from(MAX_CHECKPOINT.0).unwrap();
    stage.say(&"x".repeat(size));
    assert_eq!(stage.run.state().checkpoint(4), None);
}
