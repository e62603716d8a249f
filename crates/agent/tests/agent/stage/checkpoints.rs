//! Whether a session that is opened from a checkpoint is the session that its log makes.

use std::sync::Arc;

use plimsoll_agent::{Entry, Input, Now, Run, Setup, State, Step};
use plimsoll_context::Part;

use super::Stage;

/// Resumes the log from a checkpoint at each entry that allows one. Returns how many there were.
pub(crate) fn resumed_anywhere(stage: &Stage) -> usize {
    let mut state = State::for_setup(&stage.setup);
    let whole = resumed(State::for_setup(&stage.setup), &stage.log, &stage.setup);
    // The machine that wrote the log is in the state that the log leads to.
    let live = stage.run.state().checkpoint(0);
    let folded = State::fold(Arc::clone(&stage.setup.counter), &stage.log).unwrap();
    assert_eq!(live, folded.checkpoint(0));
    let mut checkpoints = 0;
    for end in 0..=stage.log.len() {
        if let Some(entry) = end.checked_sub(1).map(|at| &stage.log[at]) {
            state.absorb(entry).unwrap();
        }
        let Some(checkpoint) = state.checkpoint(end as u64) else {
            continue;
        };
        checkpoints += 1;
        let restored = State::restore(&checkpoint, &stage.setup).expect("it is of this version");
        assert_eq!(restored.checkpoint(end as u64), Some(checkpoint.clone()));
        let from_there = resumed(restored, &stage.log[end..], &stage.setup);
        assert!(
            whole == from_there,
            "entry {end}: {whole:#?}\n{from_there:#?}"
        );
    }
    checkpoints
}

/// Everything that a host sees of a session: its view, its sums, and what it does next.
fn resumed(mut state: State, rest: &[Entry], setup: &Setup) -> Vec<String> {
    rest.iter().for_each(|entry| state.absorb(entry).unwrap());
    let run = || Run::of_state(state.clone(), setup.clone());
    let mut seen = vec![
        format!("{:?}", run().state().checkpoint(0)),
        format!("{:?}", run().state().transcript()),
        format!("{:?}", run().tracker()),
        format!("{:?}", (run().state().usage(), run().state().cost())),
        format!("{:?}", (run().tokens(), run().room(), run().line())),
        format!("{:?}", run().state().peak_memory()),
    ];
    let asked = Input::User(vec![Part::text("and now?")].into());
    seen.extend(steps(run(), Some(asked)));
    seen.extend(steps(run(), Some(Input::Continue)));
    let mut undone = run();
    while undone.undo().is_ok() {}
    seen.push(format!("{:?}", undone.state().transcript()));
    seen.extend(steps(undone, None));
    seen
}

fn steps(mut run: Run, input: Option<Input>) -> Vec<String> {
    input
        .into_iter()
        .for_each(|input| run.handle(Now::default(), input));
    let mut steps = Vec::new();
    loop {
        match run.poll() {
            Step::Wait => return steps,
            step => steps.push(format!("{step:?}")),
        }
    }
}
