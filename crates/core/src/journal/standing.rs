//! [`Standing`]: how far a log says that a request has come.

use plimsoll_agent::{Entry, Outcome};

/// How far a request has come.
pub(super) enum Standing {
    /// Its message was not said yet.
    New,
    /// It runs, or did so until a crash.
    Begun,
    /// Its run has ended.
    Ended(Box<Outcome>),
}

impl Standing {
    /// Reads a log. A request that a crash has cut off between its key and its message is said again.
    pub(super) fn of(log: &[Entry], request: &str) -> Self {
        let is_its = |entry: &Entry| matches!(entry, Entry::Accepted { key } if key == request);
        let Some(at) = log.iter().rposition(is_its) else {
            return Self::New;
        };
        let mut standing = Self::New;
        for entry in log.iter().skip(at) {
            match entry {
                Entry::Ended { outcome } => return Self::Ended(Box::new(outcome.clone())),
                Entry::Said {
                    message,
                    queued: None,
                } if message.is_user() => standing = Self::Begun,
                _ => {}
            }
        }
        standing
    }
}

/// The keys of all requests that a log has taken.
pub(super) fn keys(log: &[Entry]) -> Vec<String> {
    let keys = log.iter().filter_map(|entry| match entry {
        Entry::Accepted { key } => Some(key.clone()),
        _ => None,
    });
    keys.collect()
}
