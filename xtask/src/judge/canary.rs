//! Constraint canaries: rules and values planted in real sessions as a user would say them, which
//! must survive, and values that were updated later, which must not. They came in batches, each
//! judged before `extract` was tuned with it; a new batch is worth more than another look at an old.

mod sentences;

use std::collections::HashSet;

use plimsoll_context::{Message, Tokens};

use super::authors::{most_typed, typed_part};
use super::measure::{Share, normal};
use super::sessions::Session;

pub(super) use sentences::Set;
use sentences::{RULES, VALUES};

/// Budgets, in percent of the span.
pub(super) const PERCENT: [u64; 3] = [10, 20, 30];
/// An update comes this much of the session later than what it updates, in percent.
const LATER: usize = 30;

/// What survived of the canaries of one set at one budget.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Survived {
    /// Rules that stand as they were said.
    pub(super) rules: Share,
    /// Values of which the new one stands.
    pub(super) new: Share,
    /// Values of which the stale one stands.
    pub(super) stale: Share,
}

impl Survived {
    pub(super) fn add(&mut self, other: Self) {
        self.rules.add(other.rules);
        self.new.add(other.new);
        self.stale.add(other.stale);
    }
}

/// Plants every canary of `set` in one copy of `session`, asks `rule` for a text of `percent` of
/// its weight, and looks which are in it. The `n`th session has them at other places than the next.
pub(super) fn survived(
    session: &Session,
    n: usize,
    set: Set,
    percent: u64,
    rule: super::Rule<'_>,
) -> Survived {
    let messages = plant(session, n, set);
    let views: Vec<&Message> = messages.iter().collect();
    let budget = Tokens(session.span(session.messages.len()) * percent / 100);
    let text = normal(&rule(&views, budget));
    let mut survived = Survived::default();
    let count = |share: &mut Share, holds: bool| {
        share.add(Share {
            kept: usize::from(holds),
            of: 1,
        });
    };
    for rule in RULES.iter().filter(|rule| rule.0 == set) {
        count(&mut survived.rules, text.contains(&normal(rule.1)));
    }
    for value in VALUES.iter().filter(|value| value.set == set) {
        // What the update itself says of the old value is no survival of it.
        let rest = text.replace(&normal(value.updated), "");
        count(&mut survived.new, text.contains(value.new));
        count(&mut survived.stale, rest.contains(value.stale));
    }
    survived
}

/// Every rule, as it is said.
pub(super) fn rules() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|rule| rule.1)
}

/// The session with the canaries in it: every other one as a message of its own, the rest as
/// sentences inside the user message before their place.
fn plant(session: &Session, n: usize, set: Set) -> Vec<Message> {
    let rules = RULES.iter().filter(|rule| rule.0 == set).map(|rule| rule.1);
    let values = VALUES.iter().filter(|value| value.set == set);
    let total = session.messages.len();
    let place = |i: usize, later: usize| {
        let percent = (7 + 13 * (i + n)) % (95 - LATER) + later;
        (total * percent / 100).max(1)
    };
    let mut planted: Vec<(usize, &str)> = Vec::new();
    for (i, rule) in rules.enumerate() {
        planted.push((place(i, 0), rule));
    }
    for (i, value) in values.enumerate() {
        planted.push((place(i + 5, 0), value.stated));
        planted.push((place(i + 5, LATER), value.updated));
    }
    // From the end, so that an earlier place stays what it is.
    planted.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    let mut messages = session.messages.clone();
    let typed: Vec<String> = messages
        .iter()
        .filter(|message| message.is_user())
        .take(most_typed(session))
        .map(Message::text)
        .filter(|text| typed_part(text).is_some())
        .collect();
    let mut hosts: HashSet<String> = typed.into_iter().collect();
    for (i, (at, text)) in planted.into_iter().enumerate() {
        let at = at.min(messages.len());
        let host = (i + n).is_multiple_of(2).then(|| {
            let before = messages.get_mut(..at)?;
            // Not so far back that an update would land before what it updates.
            let near = before.iter_mut().rev().take(total * LATER / 200);
            // A rule inside what a program wrote would not be the user's.
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

/// `text` as a sentence of `message`, behind the line or sentence that ends nearest its middle.
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
    // Where the host has no end of its own, as one writes on: on a line below.
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
