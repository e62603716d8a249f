//! The planted sentences. None is chosen to suit `extract`: nothing was changed because of them.

/// A value that is stated and later replaced by another.
pub(super) struct StatedValue {
    pub(super) stated: &'static str,
    pub(super) updated: &'static str,
    /// The text that must be present, and the one that must not, apart from the update itself.
    pub(super) new: &'static str,
    pub(super) stale: &'static str,
}

/// Rules that must survive word for word.
pub(super) const RULES: [&str; 8] = [
    "I'd rather you did not reformat files you don't otherwise change",
    "whatever happens, the file data/golden.bin must not change",
    "use spaces, two of them, in yaml",
    "nobody but ops may restart the broker",
    "I want the old endpoint kept alive",
    "please stick with the existing error codes",
    "tests may not open network connections",
    "不许改动 src/core 目录",
];

pub(super) const VALUES: [StatedValue; 8] = [
    StatedValue {
        stated: "the websocket port is 6431",
        updated: "sorry, typo: the websocket port is 7177",
        new: "7177",
        stale: "6431",
    },
    StatedValue {
        stated: "our staging bucket is s3://acme-stage-1",
        updated: "the staging bucket has been renamed to s3://acme-stage-2",
        new: "s3://acme-stage-2",
        stale: "is s3://acme-stage-1",
    },
    StatedValue {
        stated: "give each request 2571 ms",
        updated: "give each request 4380 ms, 2571 was too tight",
        new: "4380 ms",
        stale: "give each request 2571",
    },
    StatedValue {
        stated: "the minimum python version is 3.8",
        updated: "we can require more: the minimum python version is 3.11",
        new: "is 3.11",
        stale: "is 3.8",
    },
    StatedValue {
        stated: "assign the ticket to @lena",
        updated: "assign the ticket to @omar instead",
        new: "@omar",
        stale: "to @lena",
    },
    StatedValue {
        stated: "worker count: 251",
        updated: "worker count: 437",
        new: "worker count: 437",
        stale: "worker count: 251",
    },
    StatedValue {
        stated: "the demo is on 2024-03-08",
        updated: "the demo has moved to 2024-03-22",
        new: "2024-03-22",
        stale: "on 2024-03-08",
    },
    StatedValue {
        stated: "日志级别是 DEBUG",
        updated: "日志级别改为 ERROR",
        new: "改为 error",
        stale: "日志级别是 debug",
    },
];
