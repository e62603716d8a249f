//! `plimsoll sessions ledger`: lists the messages that plans removed from a session's view or
//! shortened, with the time, the reason and the tokens.

use std::sync::Arc;

use plimsoll::context::{Item, Seq};
use plimsoll::machine::{Entry, State};
use plimsoll::policy::{Edit, Plan};
use plimsoll::recall::{MessageKind, RecallId};
use plimsoll::store::SessionReader;
use plimsoll::tokens::{Bpe, Memo};
use plimsoll::{Message, SessionId, Tokens};
use serde::Serialize;

use crate::error::{CliError, DONE};
use crate::listing::{self, when};
use crate::sessions::entries::each_entry;
use crate::terminal::text::counted;
use crate::tool_line;

/// A message that a plan removed from the view or shortened.
#[derive(Debug, Serialize)]
struct LedgerRow {
    /// Seconds since 1970.
    at: u64,
    /// The plan's number in the session, from 1. `None` for a result that was shortened before the model
    /// first read it, which is no plan of a run either.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<u64>,
    id: RecallId,
    kind: MessageKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// The most informative argument of the call.
    #[serde(skip)]
    argument: String,
    how: &'static str,
    /// The tokens in the view before the plan, and after it.
    tokens: Tokens,
    after: Tokens,
    why: &'static str,
    stages: Vec<String>,
}

const HEADING: [&str; 9] = [
    "item", "how", ">tokens", "why", "when", "stages", ">plan", ">after", "message",
];
const DROPPED: &str = "dropped";
const SHORTENED: &str = "shortened";
const SUMMARIZED: &str = "summarized";

/// Runs the command.
pub(crate) async fn run(
    store: &impl SessionReader,
    id: &SessionId,
    json: bool,
) -> Result<u8, CliError> {
    let mut state = State::new(Arc::new(Memo::new(Bpe::o200k())));
    let (mut rows, mut plans) = (Vec::new(), 0);
    each_entry(store, id, 0, |line| {
        if let Entry::PlanApplied { plan } = &line.entry {
            // The number that the run gave it, for what it counts as a plan.
            let number = plan.is_compaction().then_some(plans + 1);
            plans = number.unwrap_or(plans);
            let touched = state.transcript().touched(plan).into_iter();
            let row = |(item, _)| LedgerRow::new(&state, item, plan, number, line.at);
            rows.extend(touched.map(row));
        }
        Ok::<_, CliError>(state.absorb(&line.entry)?)
    })
    .await?;
    if json {
        listing::json_lines(&rows)?;
        return Ok(DONE);
    }
    let Some(LedgerRow { id: first, .. }) = rows.first() else {
        out!("session {id}: nothing was evicted");
        return Ok(DONE);
    };
    let planned = rows.iter().filter(|row| row.plan.is_some()).count();
    let (plans, messages) = (counted(plans, "plan"), counted(planned, "message"));
    let results = counted(rows.len() - planned, "result");
    let mut told = Vec::new();
    told.extend((planned > 0).then(|| format!("{plans} removed or shortened {messages}")));
    told.extend((planned < rows.len()).then(|| format!("{results} shortened on arrival")));
    out!("session {id}: {}", told.join(", "));
    listing::print_columns(HEADING, rows.iter().map(LedgerRow::cells))?;
    out!("To get one back: plimsoll sessions recall {id} {first}");
    Ok(DONE)
}

impl LedgerRow {
    /// Returns the row of a message that a plan removes or replaces. The view still contains it, and its
    /// call if it is a result.
    fn new(state: &State, was: &Item, plan: &Plan, number: Option<u64>, at: u64) -> Self {
        let (how, after) = how(plan, was.seq);
        let call = match &*was.message {
            Message::ToolResult(result) => Some(&result.call),
            _ => None,
        };
        let items = state.transcript().items().iter();
        let mut calls = items.flat_map(|item| item.message.calls());
        let made = calls.find(|made| Some(&made.id) == call);
        let argument = made.map(|made| tool_line::argument(&made.name, &made.arguments));
        Self {
            at,
            plan: number,
            id: RecallId(was.seq),
            kind: MessageKind::of(&was.message),
            tool: made.map(|made| made.name.clone()),
            argument: argument.unwrap_or_default(),
            how,
            tokens: was.tokens,
            after,
            why: plan.why.word(),
            stages: plan.stages.clone(),
        }
    }

    fn cells(&self) -> [String; 9] {
        let what = match &self.tool {
            Some(tool) => format!("result of {tool} {}", self.argument),
            None => self.kind.to_string(),
        };
        [
            self.id.to_string(),
            self.how.to_owned(),
            self.tokens.to_string(),
            self.why.to_owned(),
            when(self.at),
            self.stages.join(", "),
            self.plan
                .map_or("-".to_owned(), |number| number.to_string()),
            self.after.to_string(),
            what,
        ]
    }
}

/// Returns what a plan did to a message that it removed or replaced, and the tokens of its replacement.
fn how(plan: &Plan, seq: Seq) -> (&'static str, Tokens) {
    let how = plan.edits.iter().find_map(|edit| match edit {
        Edit::Shrink { seq: of, to } => (*of == seq).then_some((SHORTENED, to.tokens)),
        Edit::Summarize { covers, .. } => {
            let mut covers = covers.iter().map(|range| range.first..=range.last);
            let is_covered = covers.any(|range| range.contains(&seq));
            is_covered.then_some((SUMMARIZED, Tokens::ZERO))
        }
        Edit::Drop { .. } => None,
    });
    how.unwrap_or((DROPPED, Tokens::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    use plimsoll::policy::Trigger;
    use plimsoll::tokens::TokenCounter;
    use serde_json::json;

    #[test]
    fn what_is_dropped_beside_a_summary_is_not_called_summarized() {
        let mut state = State::new(Arc::new(Memo::new(Bpe::o200k())));
        for _ in 0..6 {
            let text = "all is well on the whole ship ".repeat(20);
            let message = Arc::new(Message::user(text));
            let queued = None;
            assert!(state.absorb(&Entry::Message { message, queued }).is_ok());
        }
        let view = state.transcript();
        let weight = |seq: u64| view.get(Seq(seq)).map_or(Tokens::ZERO, |item| item.tokens);
        let message = Message::Summary {
            text: "all is well".to_owned(),
        };
        let tokens = Bpe::o200k().message(&message);
        let marker = Message::Notice {
            text: "[2 messages were removed here]".to_owned(),
        };
        let of_marker = Bpe::o200k().message(&marker);
        let gone: Tokens = [0, 1, 2, 4].map(weight).into_iter().sum();
        let range = |first, last| json!({ "first": first, "last": last });
        let plan = json!({
            "why": Trigger::Request,
            "stages": ["evict", "summarize"],
            "edits": [
                {
                    "edit": "drop",
                    "first": 0,
                    "last": 1,
                    "marker": { "message": marker, "tokens": of_marker },
                },
                {
                    "edit": "summarize",
                    "covers": [range(2, 2), range(4, 4)],
                    "to": { "message": message, "tokens": tokens },
                },
            ],
            "before": view.tokens(),
            "frees": gone.minus(tokens).minus(of_marker),
            "rewrites_from": null,
        });
        let plan: Plan = serde_json::from_value(plan).unwrap();
        let touched = view.touched(&plan).into_iter();
        let rows = touched.map(|(item, _)| (item.seq.0, how(&plan, item.seq).0));
        let rows: Vec<(u64, &str)> = rows.collect();
        let wanted = [(0, DROPPED), (1, DROPPED), (2, SUMMARIZED), (4, SUMMARIZED)];
        assert_eq!(rows, wanted);
    }
}
