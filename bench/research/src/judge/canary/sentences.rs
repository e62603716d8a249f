//! The planted sentences. None is chosen to suit `extract`.

/// The batch of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::judge) enum SentenceSet {
    /// `extract` was tuned with these in view.
    Earlier,
    /// Judged once. Nothing was changed because of them.
    Last,
}

/// A rule that must survive word for word.
pub(super) struct Rule(pub(super) SentenceSet, pub(super) &'static str);

/// A value that is stated and later replaced by another.
pub(super) struct StatedValue {
    pub(super) set: SentenceSet,
    pub(super) stated: &'static str,
    pub(super) updated: &'static str,
    /// The text that must be present, and the one that must not, apart from the update itself.
    pub(super) new: &'static str,
    pub(super) stale: &'static str,
}

pub(super) const RULES: [Rule; 43] = [
    Rule(SentenceSet::Earlier, "Never touch src/legacy/ledger.rs."),
    Rule(
        SentenceSet::Earlier,
        "Don't push to the branch release/2024.06 without asking me.",
    ),
    Rule(
        SentenceSet::Earlier,
        "All API responses must carry the header X-Trace-Id.",
    ),
    Rule(
        SentenceSet::Earlier,
        "Always run scripts/check_all.sh before you commit.",
    ),
    Rule(
        SentenceSet::Earlier,
        "Only use pnpm to install packages in this repo.",
    ),
    Rule(
        SentenceSet::Earlier,
        "under no circumstances edit the vendored folder third_party/zlib",
    ),
    Rule(
        SentenceSet::Earlier,
        "please keep the public signature of parse_header unchanged",
    ),
    Rule(
        SentenceSet::Earlier,
        "I prefer tabs over spaces in this codebase",
    ),
    Rule(
        SentenceSet::Earlier,
        "it has to stay compatible with Python 3.7",
    ),
    Rule(
        SentenceSet::Earlier,
        "do not add new dependencies to the lock file",
    ),
    Rule(
        SentenceSet::Earlier,
        "Make sure nothing logs the customer_email field.",
    ),
    Rule(SentenceSet::Earlier, "不要修改 config/prod.yaml 文件"),
    Rule(SentenceSet::Earlier, "avoid calling fetch_remote in tests"),
    Rule(SentenceSet::Earlier, "leave the migrations directory alone"),
    Rule(
        SentenceSet::Earlier,
        "Whatever you do, keep your hands off the payments module.",
    ),
    Rule(
        SentenceSet::Earlier,
        "Tests have to pass before every push to origin/main",
    ),
    Rule(
        SentenceSet::Earlier,
        "nothing may be written outside of /srv/app-data",
    ),
    Rule(
        SentenceSet::Earlier,
        "the CEO signs off on every schema change first",
    ),
    Rule(
        SentenceSet::Earlier,
        "Bitte niemals die Datei konfig/geheim.yml anfassen.",
    ),
    Rule(SentenceSet::Earlier, "N'utilise jamais la branche develop."),
    Rule(
        SentenceSet::Earlier,
        "stay out of infra/terraform unless I say so",
    ),
    Rule(
        SentenceSet::Earlier,
        "Our customers must never see stack traces",
    ),
    Rule(SentenceSet::Earlier, "I don't want any new npm packages"),
    Rule(
        SentenceSet::Earlier,
        "every public function gets a doc comment, no exceptions",
    ),
    Rule(
        SentenceSet::Earlier,
        "it is vital that the api stays backwards compatible",
    ),
    Rule(
        SentenceSet::Earlier,
        "リリース前に必ず make verify を実行すること",
    ),
    Rule(SentenceSet::Earlier, "please leave docs/adr as they are"),
    Rule(SentenceSet::Earlier, "no force pushes, ever"),
    Rule(SentenceSet::Earlier, "ask me before you delete anything"),
    Rule(SentenceSet::Earlier, "hands off the billing code please"),
    Rule(
        SentenceSet::Earlier,
        "You may only talk to the sandbox endpoint",
    ),
    Rule(SentenceSet::Earlier, "commit messages must be in English"),
    Rule(
        SentenceSet::Last,
        "I'd rather you did not reformat files you don't otherwise change",
    ),
    Rule(
        SentenceSet::Earlier,
        "no telemetry, not even in debug builds",
    ),
    Rule(SentenceSet::Earlier, "Es dürfen keine Kundendaten ins Log"),
    Rule(SentenceSet::Earlier, "절대 main 브랜치에 푸시하지 마세요"),
    Rule(
        SentenceSet::Last,
        "whatever happens, the file data/golden.bin must not change",
    ),
    Rule(SentenceSet::Last, "use spaces, two of them, in yaml"),
    Rule(SentenceSet::Last, "nobody but ops may restart the broker"),
    Rule(SentenceSet::Last, "I want the old endpoint kept alive"),
    Rule(
        SentenceSet::Last,
        "please stick with the existing error codes",
    ),
    Rule(SentenceSet::Last, "tests may not open network connections"),
    Rule(SentenceSet::Last, "不许改动 src/core 目录"),
];

pub(super) const VALUES: [StatedValue; 44] = [
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "the port is 8431",
        updated: "the port is now 9177",
        new: "9177",
        stale: "8431",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "The staging host is stage-a.internal.",
        updated: "Actually the staging host is stage-b.internal.",
        new: "stage-b.internal",
        stale: "stage-a.internal",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "use a retry_limit of 53",
        updated: "set the retry_limit to 71",
        new: "retry_limit to 71",
        stale: "retry_limit of 53",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "We use Postgres 14 for the queue.",
        updated: "use Postgres 16 instead of Postgres 14 for the queue",
        new: "postgres 16",
        stale: "we use postgres 14 for",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "request timeout = 45 seconds",
        updated: "make the request timeout 90 seconds",
        new: "request timeout 90 seconds",
        stale: "request timeout = 45",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "our API key variable is called ACME_KEY",
        updated: "we renamed it: the API key variable is called ACME_TOKEN",
        new: "acme_token",
        stale: "acme_key",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "deploy to the region eu-west-1",
        updated: "scratch that, deploy to the region us-east-2",
        new: "us-east-2",
        stale: "eu-west-1",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "The batch size should be 6421.",
        updated: "Let's change the batch size to 7256.",
        new: "7256",
        stale: "6421",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "端口是 8431",
        updated: "端口现在是 9177",
        new: "9177",
        stale: "端口是 8431",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "the owner of this module is Dana",
        updated: "the owner of this module is Robin now",
        new: "robin",
        stale: "is dana",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "Our SLA is 251 ms",
        updated: "Our SLA went up to 437 ms",
        new: "437 ms",
        stale: "251 ms",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "the admin email is root@old.example",
        updated: "admin email changed, it is root@new.example",
        new: "root@new.example",
        stale: "root@old.example",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "We ship on Fridays at 15:31",
        updated: "From now on we ship at 11:47 on Fridays",
        new: "11:47",
        stale: "15:31",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "Der Cache-Port ist 6431",
        updated: "Der Cache-Port ist jetzt 7177",
        new: "7177",
        stale: "6431",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "log level should be DEBUG",
        updated: "put the log level back to WARN",
        new: "back to warn",
        stale: "should be debug",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "MAX_JOBS=1287",
        updated: "MAX_JOBS=6433",
        new: "max_jobs=6433",
        stale: "max_jobs=1287",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "the target branch is develop",
        updated: "the target branch is no longer develop but trunk",
        new: "but trunk",
        stale: "is develop",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "budget for the run: $2571",
        updated: "we cut the budget for the run: $1873",
        new: "$1873",
        stale: "$2571",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "The budget is capped at 2571 dollars.",
        updated: "Finance raised the cap: the budget is capped at 3842 dollars.",
        new: "3842",
        stale: "capped at 2571",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "page size defaults to 251",
        updated: "let's have the page size default to 437",
        new: "default to 437",
        stale: "defaults to 251",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "the reviewer for this is @mia",
        updated: "@noah is the reviewer for this now",
        new: "@noah",
        stale: "is @mia",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "the release date is 2024-05-17",
        updated: "the release date slipped to 2024-06-21",
        new: "slipped to 2024-06-21",
        stale: "is 2024-05-17",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "we're on Node 18",
        updated: "we're on Node 20 now, not Node 18",
        new: "node 20 now",
        stale: "we're on node 18",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "the container listens on 6431",
        updated: "the container listens on 7177 from today",
        new: "listens on 7177",
        stale: "listens on 6431",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "API base: https://a.example/v1",
        updated: "API base: https://b.example/v2",
        new: "https://b.example/v2",
        stale: "https://a.example/v1",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "keep the cache for 15 days",
        updated: "keep the cache for 45 days instead",
        new: "for 45 days",
        stale: "for 15 days",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "数据库名字是 orders_old",
        updated: "数据库名字改成 orders_new",
        new: "orders_new",
        stale: "orders_old",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "the feature flag is off",
        updated: "the feature flag is on now",
        new: "flag is on",
        stale: "flag is off",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "the max upload size is 251 MB",
        updated: "the max upload size is now 437 MB",
        new: "437 mb",
        stale: "251 mb",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "connect to db-east.internal",
        updated: "connect to db-west.internal instead of db-east.internal",
        new: "db-west.internal",
        stale: "connect to db-east.internal",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "my worktree is /srv/wt-alpha",
        updated: "my worktree moved to /srv/wt-beta",
        new: "moved to /srv/wt-beta",
        stale: "is /srv/wt-alpha",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "The queue has 6431 workers.",
        updated: "The queue has 7177 workers by now.",
        new: "7177 workers",
        stale: "6431 workers",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "we deploy with tag v2.51.0",
        updated: "we deploy with tag v2.63.0 from now on",
        new: "v2.63.0",
        stale: "v2.51.0",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "coverage must be at least 71 percent",
        updated: "I changed my mind, coverage must be at least 83 percent",
        new: "83 percent",
        stale: "71 percent",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "the ticket for this work is PAY-1287",
        updated: "this work now belongs to ticket PAY-6433",
        new: "pay-6433",
        stale: "is pay-1287",
    },
    StatedValue {
        set: SentenceSet::Earlier,
        stated: "タイムアウトは 251 秒です",
        updated: "タイムアウトは 437 秒に変更してください",
        new: "437 秒",
        stale: "251 秒",
    },
    StatedValue {
        set: SentenceSet::Last,
        stated: "the websocket port is 6431",
        updated: "sorry, typo: the websocket port is 7177",
        new: "7177",
        stale: "6431",
    },
    StatedValue {
        set: SentenceSet::Last,
        stated: "our staging bucket is s3://acme-stage-1",
        updated: "the staging bucket has been renamed to s3://acme-stage-2",
        new: "s3://acme-stage-2",
        stale: "is s3://acme-stage-1",
    },
    StatedValue {
        set: SentenceSet::Last,
        stated: "give each request 2571 ms",
        updated: "give each request 4380 ms, 2571 was too tight",
        new: "4380 ms",
        stale: "give each request 2571",
    },
    StatedValue {
        set: SentenceSet::Last,
        stated: "the minimum python version is 3.8",
        updated: "we can require more: the minimum python version is 3.11",
        new: "is 3.11",
        stale: "is 3.8",
    },
    StatedValue {
        set: SentenceSet::Last,
        stated: "assign the ticket to @lena",
        updated: "assign the ticket to @omar instead",
        new: "@omar",
        stale: "to @lena",
    },
    StatedValue {
        set: SentenceSet::Last,
        stated: "worker count: 251",
        updated: "worker count: 437",
        new: "worker count: 437",
        stale: "worker count: 251",
    },
    StatedValue {
        set: SentenceSet::Last,
        stated: "the demo is on 2024-03-08",
        updated: "the demo has moved to 2024-03-22",
        new: "2024-03-22",
        stale: "on 2024-03-08",
    },
    StatedValue {
        set: SentenceSet::Last,
        stated: "日志级别是 DEBUG",
        updated: "日志级别改为 ERROR",
        new: "改为 error",
        stale: "日志级别是 debug",
    },
];
