//! Runs recorded sessions through `plimsoll compact`: once at a share of their size, and ten times
//! in a row with new turns between. Measures the user's words that the last view still contains.

use std::path::Path;

use plimsoll_context::Message;

use super::authors::{most_typed, typed_messages};
use super::measure::{Share, normal, sentences};
use super::sessions::Session;
use super::{LARGE, percent, through};
use crate::error::Error;

/// Budgets of a single compaction, in percent of a session.
const PERCENT: [u64; 3] = [5, 10, 20];
/// The number of compactions in a row, and the budget of each in tokens.
const ROUNDS: usize = 10;
const BUDGET: u64 = 4_000;
/// The minimum size of a session for rounds, in tokens: each part should fill the view again.
const ROUNDS_MIN: u64 = 60_000;
/// Maximum length of a short user message, in characters.
const SHORT: usize = 400;

/// What views contain of the user's words.
#[derive(Default)]
struct KeptWords {
    chats: usize,
    refused: usize,
    over: usize,
    messages: Share,
    sentences: Share,
    /// The used tokens, and the budgets together.
    tokens: (u64, u64),
}

impl KeptWords {
    fn count(&mut self, session: &Session, budget: u64, view: Option<&[Message]>) {
        self.chats += 1;
        let Some(view) = view else {
            self.refused += 1;
            return;
        };
        let used = through::tokens(view);
        self.over += usize::from(used > budget);
        self.tokens.0 += used;
        self.tokens.1 += budget;
        let texts: Vec<String> = view.iter().map(Message::text).collect();
        let text = normal(&texts.join("\n"));
        for said in typed_messages(session.messages.iter(), most_typed(session)) {
            if said.chars().count() <= SHORT {
                self.messages.count(text.contains(&normal(&said)));
            }
            for sentence in sentences(&said) {
                self.sentences.count(text.contains(&sentence));
            }
        }
    }

    fn print(&self, budget: &str) {
        let cell = |share: Share| format!("{} of {}", percent(share.part()), share.of);
        let (used, all) = self.tokens;
        println!(
            "| {budget} | {} | {} | {} | {} | {} | {} |",
            self.chats,
            self.refused,
            self.over,
            percent((all > 0).then(|| used as f64 / all as f64)),
            cell(self.messages),
            cell(self.sentences),
        );
    }
}

/// Prints what is left of the user's words.
pub(super) fn print(root: &Path, sessions: &[Session]) -> Result<(), Error> {
    println!("\n### Recorded sessions, compacted: the summary and the kept messages together\n");
    println!(
        "| budget | sessions | refused | over | budget used | short user messages | user sentences |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|");
    let large: Vec<(&Session, Vec<Message>)> = sessions
        .iter()
        .filter(|session| session.span(session.messages.len()) >= LARGE)
        .map(|session| {
            let messages = session.as_sent.iter().filter(|message| !is_empty(message));
            (session, messages.cloned().collect())
        })
        .collect();
    for percent in PERCENT {
        let budget = |messages: &[Message]| through::tokens(messages) * percent / 100;
        let chats = large
            .iter()
            .map(|(_, chat)| (chat.as_slice(), budget(chat)));
        let mut kept = KeptWords::default();
        for ((session, chat), view) in large.iter().zip(through::compact(root, chats)?) {
            kept.count(session, budget(chat), view.as_deref());
        }
        kept.print(&format!("{percent} %"));
    }
    let long = large.iter();
    let long = long.filter(|(session, _)| session.span(session.messages.len()) >= ROUNDS_MIN);
    let long: Vec<&(&Session, Vec<Message>)> = long.collect();
    for rounds in [1, ROUNDS] {
        let mut views: Vec<Vec<Message>> = vec![Vec::new(); long.len()];
        for round in 0..rounds {
            for ((_, chat), view) in long.iter().zip(&mut views) {
                let size = chat.len().div_ceil(rounds).max(1);
                view.extend(chat.iter().skip(round * size).take(size).cloned());
            }
            let chats = views.iter().map(|view| (view.as_slice(), BUDGET));
            let compacted = through::compact(root, chats)?;
            for (view, compacted) in views.iter_mut().zip(compacted) {
                // A chat that is refused goes on as it is.
                if let Some(compacted) = compacted {
                    *view = compacted;
                }
            }
        }
        let mut kept = KeptWords::default();
        for ((session, _), view) in long.iter().zip(&views) {
            let is_compacted = through::tokens(view) <= BUDGET;
            kept.count(session, BUDGET, is_compacted.then_some(view));
        }
        kept.print(&format!("{BUDGET}, {rounds} times"));
    }
    Ok(())
}

/// Checks for a message that no provider accepts.
fn is_empty(message: &Message) -> bool {
    let calls = message.calls().count();
    let is_result = matches!(message, Message::ToolResult(_));
    !is_result && calls == 0 && message.text().trim().is_empty()
}
