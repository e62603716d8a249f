//! [`RequestProgress`]: the progress of a request according to the log.

use plimsoll_agent::{Entry, Outcome};

/// The progress of a request.
pub(super) enum RequestProgress {
    /// Its message is not in the log yet.
    New,
    /// It is running, or was running before a crash.
    Begun,
    /// Its run has ended.
    Ended(Box<Outcome>),
}

impl RequestProgress {
    /// Reads the progress from a log. If a crash occurred between the key and the message, the
    /// message is sent again.
    pub(super) fn of(log: &[Entry], request: &str) -> Self {
        let is_its = |entry: &Entry| matches!(entry, Entry::Accepted { key } if key == request);
        let Some(at) = log.iter().rposition(is_its) else {
            return Self::New;
        };
        let mut standing = Self::New;
        for entry in log.iter().skip(at) {
            match entry {
                Entry::RunEnded { outcome } => return Self::Ended(Box::new(outcome.clone())),
                Entry::Message {
                    message,
                    queued: None,
                } if message.is_user() => standing = Self::Begun,
                _ => {}
            }
        }
        standing
    }
}

/// Returns the keys of all accepted requests in a log.
pub(super) fn keys(log: &[Entry]) -> Vec<String> {
    let keys = log.iter().filter_map(|entry| match entry {
        Entry::Accepted { key } => Some(key.clone()),
        _ => None,
    });
    keys.collect()
}
