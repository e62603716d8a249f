//! Constraint canaries: rules and values planted in real sessions as a user would say them, which
//! must survive, and values that were updated later, which must not. Sentences marked `Unseen`
//! were never looked at while `extract` was tuned.

use plimsoll_context::{Message, Tokens};

use super::measure::{Share, normal};
use super::sessions::Session;

/// Budgets, in percent of the span.
pub(super) const PERCENT: [u64; 3] = [10, 20, 30];
/// An update comes this much of the session later than what it updates, in percent.
const LATER: usize = 30;

/// Whether `extract` may have been tuned with a sentence in view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Set {
    Tuned,
    Unseen,
}

/// A rule that must survive as it stands.
struct Rule(Set, &'static str);

/// A value that is stated, and later another.
struct Value {
    set: Set,
    stated: &'static str,
    updated: &'static str,
    /// What must be there, and must not, beside the update itself.
    new: &'static str,
    stale: &'static str,
}

const RULES: [Rule; 14] = [
    Rule(Set::Tuned, "Never touch src/legacy/ledger.rs."),
    Rule(
        Set::Tuned,
        "Don't push to the branch release/2024.06 without asking me.",
    ),
    Rule(
        Set::Tuned,
        "All API responses must carry the header X-Trace-Id.",
    ),
    Rule(
        Set::Tuned,
        "Always run scripts/check_all.sh before you commit.",
    ),
    Rule(Set::Tuned, "Only use pnpm as package manager in this repo."),
    Rule(
        Set::Unseen,
        "under no circumstances edit the vendored folder third_party/zlib",
    ),
    Rule(
        Set::Unseen,
        "please keep the public signature of parse_header unchanged",
    ),
    Rule(Set::Unseen, "I prefer tabs over spaces in this codebase"),
    Rule(Set::Unseen, "it has to stay compatible with Python 3.7"),
    Rule(Set::Unseen, "do not add new dependencies to the lock file"),
    Rule(
        Set::Unseen,
        "Make sure nothing logs the customer_email field.",
    ),
    Rule(Set::Unseen, "不要修改 config/prod.yaml 文件"),
    Rule(Set::Unseen, "avoid calling fetch_remote in tests"),
    Rule(Set::Unseen, "leave the migrations directory alone"),
];

const VALUES: [Value; 10] = [
    Value {
        set: Set::Tuned,
        stated: "the port is 8431",
        updated: "the port is now 9177",
        new: "9177",
        stale: "8431",
    },
    Value {
        set: Set::Tuned,
        stated: "The staging host is stage-a.internal.",
        updated: "Actually the staging host is stage-b.internal.",
        new: "stage-b.internal",
        stale: "stage-a.internal",
    },
    Value {
        set: Set::Tuned,
        stated: "use a retry_limit of 53",
        updated: "set the retry_limit to 71",
        new: "retry_limit to 71",
        stale: "retry_limit of 53",
    },
    Value {
        set: Set::Tuned,
        stated: "We use Postgres 14 for the queue.",
        updated: "use Postgres 16 instead of Postgres 14 for the queue",
        new: "postgres 16",
        stale: "we use postgres 14 for",
    },
    Value {
        set: Set::Unseen,
        stated: "request timeout = 45 seconds",
        updated: "make the request timeout 90 seconds",
        new: "request timeout 90 seconds",
        stale: "request timeout = 45",
    },
    Value {
        set: Set::Unseen,
        stated: "our API key variable is called ACME_KEY",
        updated: "we renamed it: the API key variable is called ACME_TOKEN",
        new: "acme_token",
        stale: "acme_key",
    },
    Value {
        set: Set::Unseen,
        stated: "deploy to the region eu-west-1",
        updated: "scratch that, deploy to the region us-east-2",
        new: "us-east-2",
        stale: "eu-west-1",
    },
    Value {
        set: Set::Unseen,
        stated: "The batch size should be 6421.",
        updated: "Let's change the batch size to 7256.",
        new: "7256",
        stale: "6421",
    },
    Value {
        set: Set::Unseen,
        stated: "端口是 8431",
        updated: "端口现在是 9177",
        new: "9177",
        stale: "端口是 8431",
    },
    Value {
        set: Set::Unseen,
        stated: "the owner of this module is Dana",
        updated: "the owner of this module is Robin now",
        new: "robin",
        stale: "is dana",
    },
];

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
    for (i, (at, text)) in planted.into_iter().enumerate() {
        let at = at.min(messages.len());
        let host = (i + n).is_multiple_of(2).then(|| {
            let before = messages.get_mut(..at)?;
            // Not so far back that an update would land before what it updates.
            let near = before.iter_mut().rev().take(total * LATER / 200);
            let mut users = near.filter(|message| message.is_user());
            users.next()
        });
        match host.flatten() {
            Some(message) => *message = Message::user(inside(&message.text(), text)),
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
