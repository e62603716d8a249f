//! [`Timeouts`] and their defaults: how long silence is waited through. Not how long a call may
//! take; that is a limit of the run.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Making a connection: a host that is there answers within a second or two, on a bad line ten.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Not a single byte: a large model that reads a long prompt, or thinks behind a proxy that
/// hides it, is silent for minutes. A comment in the stream is a byte.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// A question about models or windows; an answer comes at once or is not worth the wait.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// Loading a model so that its window can be asked for; the run needs it loaded anyway.
pub const LOAD_TIMEOUT: Duration = Duration::from_secs(120);
/// After the reply's end: usage comes a moment later or never.
pub const USAGE_GRACE: Duration = Duration::from_secs(10);
/// After the end mark: the connection can be used again if its last bytes are read.
pub const DRAIN_TIMEOUT: Duration = Duration::from_millis(100);

/// How long silence is waited through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// Default [`CONNECT_TIMEOUT`].
    pub connect: Duration,
    /// Default [`IDLE_TIMEOUT`].
    pub idle: Duration,
    /// Default [`PROBE_TIMEOUT`].
    pub probe: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: CONNECT_TIMEOUT,
            idle: IDLE_TIMEOUT,
            probe: PROBE_TIMEOUT,
        }
    }
}
