//! Takes over the chosen answer in the session: the log entries and the archive of a branch, or an
//! answer written from several. The log is changed in a single write.

use std::sync::Arc;

use plimsoll_agent::{Entry, Event, Outcome, Spend};
use plimsoll_context::{Message, Money, Part, StopReason, Tokens};

use super::branch::Trunk;
use super::outcome::ParallelLoopResult;
use crate::archive::{ArchivedItem, RecallKey};
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
        ChosenAnswer::Branch(result) => {
            archive(session, &result.session_id).await;
            own_entries(session, &result.session_id).await?
        }
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

/// Copies the archive of a branch, so that its markers can be recalled here too. If that fails, the
/// log of the branch still contains the messages.
async fn archive(session: &Session, fork: &SessionId) {
    if !session.archives {
        return;
    }
    if let Err(why) = copy(session, fork).await {
        session.parts.tell(Event::Warning {
            text: format!(
                "evicted messages of the branch cannot be recalled here: {why}; the log \
                           of {fork} contains them"
            ),
        });
    }
}

async fn copy(session: &Session, fork: &SessionId) -> Result<(), String> {
    let store = &session.parts.store;
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let here = store.archived(session.id()).await.map_err(|e| text(&e))?;
    let there = store.archived(fork).await.map_err(|e| text(&e))?;
    let mut items = Vec::new();
    for row in there {
        let held = here.iter().any(|own| own.id == row.id && !own.expired);
        if held || row.expired {
            continue;
        }
        let recalled = store.recall(fork, &RecallKey::Id(row.id)).await;
        let recalled = recalled.map_err(|error| text(&error))?;
        items.push(ArchivedItem {
            seq: row.id.0,
            message: recalled.message,
            tool: recalled.tool,
            why: recalled.why,
        });
    }
    if items.is_empty() {
        return Ok(());
    }
    let kept = store.archive(&session.lease, &items).await;
    kept.map_err(|error| text(&error))
}
