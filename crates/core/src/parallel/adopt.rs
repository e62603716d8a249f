//! Takes over the chosen answer in the session: the log entries of a branch, or an answer written from
//! several. The log is changed in a single write.

use std::sync::Arc;

use plimsoll_agent::{Entry, Outcome, Spend};
use plimsoll_context::{Message, Money, Part, StopReason, Tokens};

use super::branch::Trunk;
use super::outcome::ParallelLoopResult;
use crate::driver;
use crate::error::Error;
use crate::session::Session;
use crate::store::SessionId;

/// The chosen answer.
pub(super) enum ChosenAnswer<'a> {
    Branch(&'a ParallelLoopResult),
    Merged { text: &'a str, model: &'a str },
    Nothing,
}

/// Records the evaluation and takes over the chosen answer.
pub(super) async fn adopt(
    session: &mut Session,
    trunk: &Trunk,
    taken: ChosenAnswer<'_>,
    strategy: &str,
    results: &[ParallelLoopResult],
    judged: Spend,
) -> Result<(), Error> {
    let branched = Entry::Branched {
        strategy: strategy.to_owned(),
        branches: results.iter().map(ParallelLoopResult::record).collect(),
        winner: match &taken {
            ChosenAnswer::Branch(result) => Some(result.branch),
            ChosenAnswer::Merged { .. } | ChosenAnswer::Nothing => None,
        },
        judged,
    };
    let entries = match taken {
        ChosenAnswer::Branch(result) => own_entries(session, &result.session_id).await?,
        ChosenAnswer::Merged { text, model } => merged(trunk, text, model),
        ChosenAnswer::Nothing => Vec::new(),
    };
    session.run.adopt(branched, entries)?;
    let written = driver::settle(session).await;
    // Tool results of the branch are not steps of a run of this session.
    let _ = session.steps.take();
    written
}

/// Returns the entries of a fork after the fork point.
async fn own_entries(session: &Session, fork: &SessionId) -> Result<Vec<Entry>, Error> {
    let mut log = session.parts.store.load(fork).await?;
    let begins = log
        .iter()
        .rposition(|entry| matches!(entry, Entry::Forked { .. }));
    Ok(log.split_off(begins.map_or(0, |at| at + 1)))
}

/// Returns the entries for the prompt and a merged answer. Their usage is part of the record of the
/// branches and of the choice.
fn merged(trunk: &Trunk, text: &str, model: &str) -> Vec<Entry> {
    let answer = Message::Assistant {
        parts: vec![Part::text(text)],
    };
    vec![
        Entry::RunStarted {
            run: trunk.run,
            model: model.to_owned(),
            system: "".into(),
            tools: Vec::new(),
            later: Vec::new(),
            config: None,
        },
        Entry::Message {
            message: Arc::new(Message::User {
                parts: trunk.prompt.clone(),
            }),
            queued: None,
        },
        Entry::Reply {
            message: Arc::new(answer),
            stop: StopReason::Stop,
            usage: None,
            counted: Tokens::ZERO,
            cost: Some(Money(0)),
        },
        Entry::RunEnded {
            outcome: Outcome::answered(text),
        },
    ]
}
