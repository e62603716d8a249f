//! Constraint canaries: rules and values planted in real sessions as a user would say them, which
//! must survive, and values that were updated later, which must not. They came in batches, each
//! judged before `extract` was tuned with it; a new batch is worth more than another look at an old.

use plimsoll_context::{Message, Tokens};

use super::measure::{Share, normal};
use super::sessions::Session;

/// Budgets, in percent of the span.
pub(super) const PERCENT: [u64; 3] = [10, 20, 30];
/// An update comes this much of the session later than what it updates, in percent.
const LATER: usize = 30;

/// Which batch a sentence came with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Set {
    /// `extract` was tuned with these in view.
    Earlier,
    /// Judged once; nothing was changed for them.
    Last,
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

const RULES: [Rule; 43] = [
    Rule(Set::Earlier, "Never touch src/legacy/ledger.rs."),
    Rule(
        Set::Earlier,
        "Don't push to the branch release/2024.06 without asking me.",
    ),
    Rule(
        Set::Earlier,
        "All API responses must carry the header X-Trace-Id.",
    ),
    Rule(
        Set::Earlier,
        "Always run scripts/check_all.sh before you commit.",
    ),
    Rule(
        Set::Earlier,
        "Only use pnpm to install packages in this repo.",
    ),
    Rule(
        Set::Earlier,
        "under no circumstances edit the vendored folder third_party/zlib",
    ),
    Rule(
        Set::Earlier,
        "please keep the public signature of parse_header unchanged",
    ),
    Rule(Set::Earlier, "I prefer tabs over spaces in this codebase"),
    Rule(Set::Earlier, "it has to stay compatible with Python 3.7"),
    Rule(Set::Earlier, "do not add new dependencies to the lock file"),
    Rule(
        Set::Earlier,
        "Make sure nothing logs the customer_email field.",
    ),
    Rule(Set::Earlier, "不要修改 config/prod.yaml 文件"),
    Rule(Set::Earlier, "avoid calling fetch_remote in tests"),
    Rule(Set::Earlier, "leave the migrations directory alone"),
    Rule(
        Set::Earlier,
        "Whatever you do, keep your hands off the payments module.",
    ),
    Rule(
        Set::Earlier,
        "Tests have to pass before every push to origin/main",
    ),
    Rule(
        Set::Earlier,
        "nothing may be written outside of /srv/app-data",
    ),
    Rule(
        Set::Earlier,
        "the CEO signs off on every schema change first",
    ),
    Rule(
        Set::Earlier,
        "Bitte niemals die Datei konfig/geheim.yml anfassen.",
    ),
    Rule(Set::Earlier, "N'utilise jamais la branche develop."),
    Rule(Set::Earlier, "stay out of infra/terraform unless I say so"),
    Rule(Set::Earlier, "Our customers must never see stack traces"),
    Rule(Set::Earlier, "I don't want any new npm packages"),
    Rule(
        Set::Earlier,
        "every public function gets a doc comment, no exceptions",
    ),
    Rule(
        Set::Earlier,
        "it is vital that the api stays backwards compatible",
    ),
    Rule(Set::Earlier, "リリース前に必ず make verify を実行すること"),
    Rule(Set::Earlier, "please leave docs/adr as they are"),
    Rule(Set::Earlier, "no force pushes, ever"),
    Rule(Set::Earlier, "ask me before you delete anything"),
    Rule(Set::Earlier, "hands off the billing code please"),
    Rule(Set::Earlier, "You may only talk to the sandbox endpoint"),
    Rule(Set::Earlier, "commit messages must be in English"),
    Rule(
        Set::Last,
        "I'd rather you did not reformat files you don't otherwise change",
    ),
    Rule(Set::Earlier, "no telemetry, not even in debug builds"),
    Rule(Set::Earlier, "Es dürfen keine Kundendaten ins Log"),
    Rule(Set::Earlier, "절대 main 브랜치에 푸시하지 마세요"),
    Rule(
        Set::Last,
        "whatever happens, the file data/golden.bin must not change",
    ),
    Rule(Set::Last, "use spaces, two of them, in yaml"),
    Rule(Set::Last, "nobody but ops may restart the broker"),
    Rule(Set::Last, "I want the old endpoint kept alive"),
    Rule(Set::Last, "please stick with the existing error codes"),
    Rule(Set::Last, "tests may not open network connections"),
    Rule(Set::Last, "不许改动 src/core 目录"),
];

const VALUES: [Value; 44] = [
    Value {
        set: Set::Earlier,
        stated: "the port is 8431",
        updated: "the port is now 9177",
        new: "9177",
        stale: "8431",
    },
    Value {
        set: Set::Earlier,
        stated: "The staging host is stage-a.internal.",
        updated: "Actually the staging host is stage-b.internal.",
        new: "stage-b.internal",
        stale: "stage-a.internal",
    },
    Value {
        set: Set::Earlier,
        stated: "use a retry_limit of 53",
        updated: "set the retry_limit to 71",
        new: "retry_limit to 71",
        stale: "retry_limit of 53",
    },
    Value {
        set: Set::Earlier,
        stated: "We use Postgres 14 for the queue.",
        updated: "use Postgres 16 instead of Postgres 14 for the queue",
        new: "postgres 16",
        stale: "we use postgres 14 for",
    },
    Value {
        set: Set::Earlier,
        stated: "request timeout = 45 seconds",
        updated: "make the request timeout 90 seconds",
        new: "request timeout 90 seconds",
        stale: "request timeout = 45",
    },
    Value {
        set: Set::Earlier,
        stated: "our API key variable is called ACME_KEY",
        updated: "we renamed it: the API key variable is called ACME_TOKEN",
        new: "acme_token",
        stale: "acme_key",
    },
    Value {
        set: Set::Earlier,
        stated: "deploy to the region eu-west-1",
        updated: "scratch that, deploy to the region us-east-2",
        new: "us-east-2",
        stale: "eu-west-1",
    },
    Value {
        set: Set::Earlier,
        stated: "The batch size should be 6421.",
        updated: "Let's change the batch size to 7256.",
        new: "7256",
        stale: "6421",
    },
    Value {
        set: Set::Earlier,
        stated: "端口是 8431",
        updated: "端口现在是 9177",
        new: "9177",
        stale: "端口是 8431",
    },
    Value {
        set: Set::Earlier,
        stated: "the owner of this module is Dana",
        updated: "the owner of this module is Robin now",
        new: "robin",
        stale: "is dana",
    },
    Value {
        set: Set::Earlier,
        stated: "Our SLA is 251 ms",
        updated: "Our SLA went up to 437 ms",
        new: "437 ms",
        stale: "251 ms",
    },
    Value {
        set: Set::Earlier,
        stated: "the admin email is root@old.example",
        updated: "admin email changed, it is root@new.example",
        new: "root@new.example",
        stale: "root@old.example",
    },
    Value {
        set: Set::Earlier,
        stated: "We ship on Fridays at 15:31",
        updated: "From now on we ship at 11:47 on Fridays",
        new: "11:47",
        stale: "15:31",
    },
    Value {
        set: Set::Earlier,
        stated: "Der Cache-Port ist 6431",
        updated: "Der Cache-Port ist jetzt 7177",
        new: "7177",
        stale: "6431",
    },
    Value {
        set: Set::Earlier,
        stated: "log level should be DEBUG",
        updated: "put the log level back to WARN",
        new: "back to warn",
        stale: "should be debug",
    },
    Value {
        set: Set::Earlier,
        stated: "MAX_JOBS=1287",
        updated: "MAX_JOBS=6433",
        new: "max_jobs=6433",
        stale: "max_jobs=1287",
    },
    Value {
        set: Set::Earlier,
        stated: "the target branch is develop",
        updated: "the target branch is no longer develop but trunk",
        new: "but trunk",
        stale: "is develop",
    },
    Value {
        set: Set::Earlier,
        stated: "budget for the run: $2571",
        updated: "we cut the budget for the run: $1873",
        new: "$1873",
        stale: "$2571",
    },
    Value {
        set: Set::Earlier,
        stated: "The budget is capped at 2571 dollars.",
        updated: "Finance raised the cap: the budget is capped at 3842 dollars.",
        new: "3842",
        stale: "capped at 2571",
    },
    Value {
        set: Set::Earlier,
        stated: "page size defaults to 251",
        updated: "let's have the page size default to 437",
        new: "default to 437",
        stale: "defaults to 251",
    },
    Value {
        set: Set::Earlier,
        stated: "the reviewer for this is @mia",
        updated: "@noah is the reviewer for this now",
        new: "@noah",
        stale: "is @mia",
    },
    Value {
        set: Set::Earlier,
        stated: "the release date is 2024-05-17",
        updated: "the release date slipped to 2024-06-21",
        new: "slipped to 2024-06-21",
        stale: "is 2024-05-17",
    },
    Value {
        set: Set::Earlier,
        stated: "we're on Node 18",
        updated: "we're on Node 20 now, not Node 18",
        new: "node 20 now",
        stale: "we're on node 18",
    },
    Value {
        set: Set::Earlier,
        stated: "the container listens on 6431",
        updated: "the container listens on 7177 from today",
        new: "listens on 7177",
        stale: "listens on 6431",
    },
    Value {
        set: Set::Earlier,
        stated: "API base: https://a.example/v1",
        updated: "API base: https://b.example/v2",
        new: "https://b.example/v2",
        stale: "https://a.example/v1",
    },
    Value {
        set: Set::Earlier,
        stated: "keep the cache for 15 days",
        updated: "keep the cache for 45 days instead",
        new: "for 45 days",
        stale: "for 15 days",
    },
    Value {
        set: Set::Earlier,
        stated: "数据库名字是 orders_old",
        updated: "数据库名字改成 orders_new",
        new: "orders_new",
        stale: "orders_old",
    },
    Value {
        set: Set::Earlier,
        stated: "the feature flag is off",
        updated: "the feature flag is on now",
        new: "flag is on",
        stale: "flag is off",
    },
    Value {
        set: Set::Earlier,
        stated: "the max upload size is 251 MB",
        updated: "the max upload size is now 437 MB",
        new: "437 mb",
        stale: "251 mb",
    },
    Value {
        set: Set::Earlier,
        stated: "connect to db-east.internal",
        updated: "connect to db-west.internal instead of db-east.internal",
        new: "db-west.internal",
        stale: "connect to db-east.internal",
    },
    Value {
        set: Set::Earlier,
        stated: "my worktree is /srv/wt-alpha",
        updated: "my worktree moved to /srv/wt-beta",
        new: "moved to /srv/wt-beta",
        stale: "is /srv/wt-alpha",
    },
    Value {
        set: Set::Earlier,
        stated: "The queue has 6431 workers.",
        updated: "The queue has 7177 workers by now.",
        new: "7177 workers",
        stale: "6431 workers",
    },
    Value {
        set: Set::Earlier,
        stated: "we deploy with tag v2.51.0",
        updated: "we deploy with tag v2.63.0 from now on",
        new: "v2.63.0",
        stale: "v2.51.0",
    },
    Value {
        set: Set::Earlier,
        stated: "coverage must be at least 71 percent",
        updated: "I changed my mind, coverage must be at least 83 percent",
        new: "83 percent",
        stale: "71 percent",
    },
    Value {
        set: Set::Earlier,
        stated: "the ticket for this work is PAY-1287",
        updated: "this work now belongs to ticket PAY-6433",
        new: "pay-6433",
        stale: "is pay-1287",
    },
    Value {
        set: Set::Earlier,
        stated: "タイムアウトは 251 秒です",
        updated: "タイムアウトは 437 秒に変更してください",
        new: "437 秒",
        stale: "251 秒",
    },
    Value {
        set: Set::Last,
        stated: "the websocket port is 6431",
        updated: "sorry, typo: the websocket port is 7177",
        new: "7177",
        stale: "6431",
    },
    Value {
        set: Set::Last,
        stated: "our staging bucket is s3://acme-stage-1",
        updated: "the staging bucket has been renamed to s3://acme-stage-2",
        new: "s3://acme-stage-2",
        stale: "is s3://acme-stage-1",
    },
    Value {
        set: Set::Last,
        stated: "give each request 2571 ms",
        updated: "give each request 4380 ms, 2571 was too tight",
        new: "4380 ms",
        stale: "give each request 2571",
    },
    Value {
        set: Set::Last,
        stated: "the minimum python version is 3.8",
        updated: "we can require more: the minimum python version is 3.11",
        new: "is 3.11",
        stale: "is 3.8",
    },
    Value {
        set: Set::Last,
        stated: "assign the ticket to @lena",
        updated: "assign the ticket to @omar instead",
        new: "@omar",
        stale: "to @lena",
    },
    Value {
        set: Set::Last,
        stated: "worker count: 251",
        updated: "worker count: 437",
        new: "worker count: 437",
        stale: "worker count: 251",
    },
    Value {
        set: Set::Last,
        stated: "the demo is on 2024-03-08",
        updated: "the demo has moved to 2024-03-22",
        new: "2024-03-22",
        stale: "on 2024-03-08",
    },
    Value {
        set: Set::Last,
        stated: "日志级别是 DEBUG",
        updated: "日志级别改为 ERROR",
        new: "改为 error",
        stale: "日志级别是 debug",
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
