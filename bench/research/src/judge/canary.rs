//! Constraint canaries: rules and values planted in real sessions in a user's words. They must
//! survive, unless they were updated later.

mod sentences;

use std::collections::HashSet;

use plimsoll_context::{Message, Tokens};

use super::authors::{most_typed, typed_part};
use super::measure::{Share, normal};
use super::sessions::Session;

use sentences::{RULES, VALUES};

/// Budgets, in percent of the span.
pub(super) const PERCENT: [u64; 3] = [10, 20, 30];
/// The distance between a value and its update, in percent of the session.
const LATER: usize = 30;

/// The surviving canaries of one budget.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SurvivalRates {
    /// Rules that are present word for word.
    pub(super) rules: Share,
    /// Updated values whose new value is present.
    pub(super) new: Share,
    /// Updated values whose stale value is present.
    pub(super) stale: Share,
}

impl SurvivalRates {
    pub(super) fn add(&mut self, other: Self) {
        self.rules.add(other.rules);
        self.new.add(other.new);
        self.stale.add(other.stale);
    }
}

/// Plants every canary in a copy of `session`, asks `rule` for a text of `percent` of its
/// tokens, and checks which canaries it contains. The places depend on `n`, the number of the
/// session.
pub(super) fn survived(
    session: &Session,
    n: usize,
    percent: u64,
    rule: super::Rule<'_>,
) -> SurvivalRates {
    let messages = plant(session, n);
    let views: Vec<&Message> = messages.iter().collect();
    let budget = Tokens(session.span(session.messages.len()) * percent / 100);
    let text = normal(&rule(&views, budget));
    let mut survived = SurvivalRates::default();
    let count = |share: &mut Share, holds: bool| {
        share.add(Share {
            kept: usize::from(holds),
            of: 1,
        });
    };
    for rule in RULES {
        count(&mut survived.rules, text.contains(&normal(rule)));
    }
    for value in &VALUES {
        // A mention of the old value in the update itself does not count.
        let rest = text.replace(&normal(value.updated), "");
        count(&mut survived.new, text.contains(value.new));
        count(&mut survived.stale, rest.contains(value.stale));
    }
    survived
}

/// Returns every rule, word for word.
pub(super) fn rules() -> impl Iterator<Item = &'static str> + Clone {
    RULES.into_iter()
}

/// Returns the session with the canaries: every other one as a message of its own, the rest as
/// sentences inside the preceding user message.
fn plant(session: &Session, n: usize) -> Vec<Message> {
    let total = session.messages.len();
    let place = |i: usize, later: usize| {
        let percent = (7 + 13 * (i + n)) % (95 - LATER) + later;
        (total * percent / 100).max(1)
    };
    let mut planted: Vec<(usize, &str)> = Vec::new();
    for (i, rule) in RULES.into_iter().enumerate() {
        planted.push((place(i, 0), rule));
    }
    for (i, value) in VALUES.iter().enumerate() {
        planted.push((place(i + 5, 0), value.stated));
        planted.push((place(i + 5, LATER), value.updated));
    }
    // From the end, so that earlier places stay valid.
    planted.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    let mut messages = session.messages.clone();
    let typed: Vec<String> = messages
        .iter()
        .filter(|message| message.is_user())
        .take(most_typed(session))
        .map(Message::text)
        .filter(|text| typed_part(text).is_some_and(|typed| typed == text.trim()))
        .collect();
    let mut hosts: HashSet<String> = typed.into_iter().collect();
    for (i, (at, text)) in planted.into_iter().enumerate() {
        let at = at.min(messages.len());
        let host = (i + n).is_multiple_of(2).then(|| {
            let before = messages.get_mut(..at)?;
            // Not so far back that an update would precede its value.
            let near = before.iter_mut().rev().take(total * LATER / 200);
            // A rule inside a program's text would not be the user's.
            let mut users = near.filter(|message| hosts.contains(&message.text()));
            users.next()
        });
        match host.flatten() {
            Some(message) => {
                let with_canary = inside(&message.text(), text);
                hosts.insert(with_canary.clone());
                *message = Message::user(with_canary);
            }
            None => messages.insert(at, Message::user(text)),
        }
    }
    messages
}

/// Inserts `text` as a sentence of `message`, after the line or sentence that ends nearest its
/// middle.
fn inside(message: &str, text: &str) -> String {
    let middle = message.floor_char_boundary(message.len() / 2);
    let ends = message.match_indices(['\n', '.']).filter_map(|(at, end)| {
        let after = message.get(at + end.len()..)?;
        (end == "\n" || after.starts_with(char::is_whitespace)).then_some(at + end.len())
    });
    let at = ends
        .min_by_key(|at| at.abs_diff(middle))
        .unwrap_or(message.len());
    let (head, tail) = message.split_at_checked(at).unwrap_or((message, ""));
    let stop = if text.ends_with(['.', '!']) { "" } else { "." };
    // If the message has no sentence end, the text is added on a new line.
    let gap = if tail.is_empty() { '\n' } else { ' ' };
    format!("{}{gap}{text}{stop} {}", head.trim_end_matches(' '), tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canary_is_a_sentence_of_its_host() {
        assert_eq!(
            inside("First. Second part here.", "never X"),
            "First. never X.  Second part here."
        );
        assert_eq!(inside("no end", "never X."), "no end\nnever X. ");
    }
}
