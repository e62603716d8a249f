//! Runs recorded sessions through `plimsoll compact`. Measures whether the budget is met and used,
//! whether another stage cut a summary, and how many of the user's words the view still contains.

use std::path::Path;

use plimsoll_context::Message;

use super::authors::typed;
use super::handover::chosen;
use super::made::plant;
use super::measure::{Share, normal, sentences};
use super::sessions::Session;
use super::{LARGE, through};
use crate::error::Error;

/// Budgets in percent of a session.
const PERCENT: [u64; 3] = [5, 10, 20];
/// The beginning of a summary in a view.
const SUMMARY: &str = "[Summary of earlier messages";
/// The marker of removed text.
const CUT: &str = "[pruned: ";
/// Maximum length of a short user message, in characters.
const SHORT: usize = 400;

/// The results of the sessions at one budget.
#[derive(Debug, Clone, Default)]
pub(super) struct Whole {
    pub(super) percent: u64,
    pub(super) sessions: usize,
    pub(super) refused: usize,
    pub(super) over: usize,
    /// Sessions that use at least 95 % of the budget, and the smallest use.
    pub(super) used: Share,
    pub(super) least: Option<f64>,
    /// Summaries that were cut by another stage.
    pub(super) cut: Share,
    /// The user's short messages, sentences, and words that came through tools.
    pub(super) messages: Share,
    pub(super) sentences: Share,
    pub(super) words: Share,
}

/// Compacts the large sessions, with made-up exchanges in them.
pub(super) fn wholes(root: &Path, sessions: &[Session]) -> Result<Vec<Whole>, Error> {
    let large = chosen(sessions).into_iter().enumerate();
    let planted: Vec<_> = large
        .filter(|(_, session)| session.span(session.messages.len()) >= LARGE)
        .map(|(n, session)| {
            let mut planted = plant(&session.as_sent, n, 3, 95);
            planted.messages.retain(|message| !is_empty(message));
            let tokens = through::tokens(&planted.messages);
            (session, planted, tokens)
        })
        .collect();
    let inputs = planted.iter().flat_map(|(_, planted, tokens)| {
        PERCENT.map(|percent| (planted.messages.as_slice(), tokens * percent / 100))
    });
    let mut outputs = through::compact(root, inputs)?.into_iter();
    let mut wholes: Vec<Whole> = PERCENT
        .iter()
        .map(|percent| Whole {
            percent: *percent,
            ..Whole::default()
        })
        .collect();
    for (session, planted, tokens) in &planted {
        let said = typed(session);
        let words: Vec<&str> = planted.words().collect();
        for whole in &mut wholes {
            let output = outputs.next().flatten();
            whole.count(&said, &words, tokens * whole.percent / 100, output);
        }
    }
    Ok(wholes)
}

impl Whole {
    fn count(
        &mut self,
        said: &[String],
        words: &[&str],
        budget: u64,
        output: Option<Vec<Message>>,
    ) {
        self.sessions += 1;
        let Some(messages) = output else {
            self.refused += 1;
            return;
        };
        let tokens = through::tokens(&messages);
        self.over += usize::from(tokens > budget);
        self.used.count(tokens * 100 >= budget * 95);
        let part = tokens as f64 / budget.max(1) as f64;
        self.least = Some(self.least.map_or(part, |least| least.min(part)));
        let texts: Vec<String> = messages.iter().map(Message::text).collect();
        for summary in texts.iter().filter(|text| text.contains(SUMMARY)) {
            self.cut.count(summary.contains(CUT));
        }
        let text = normal(&texts.join("\n"));
        for said in said {
            if said.chars().count() <= SHORT {
                self.messages.count(text.contains(&normal(said)));
            }
            for sentence in sentences(said) {
                self.sentences.count(text.contains(&sentence));
            }
        }
        for word in words {
            self.words.count(text.contains(&normal(word)));
        }
    }
}

/// Checks for a message that no provider accepts.
fn is_empty(message: &Message) -> bool {
    let calls = message.calls().count();
    let is_result = matches!(message, Message::ToolResult(_));
    !is_result && calls == 0 && message.text().trim().is_empty()
}
