//! [`Timeouts`] and their defaults: how long to wait while a server is silent. The duration of a
//! whole call is a limit of the run.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The time to establish a connection. A reachable host answers within two seconds, or ten on a
/// slow network.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// The time without a single received byte. A large model is silent for minutes while it reads a
/// long prompt or thinks behind a proxy that hides the thinking. A comment in the stream counts as
/// a byte.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// The time for a request about models or windows. A slower answer is not worth the wait.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// The time to load a model before its window is requested. The run needs the loaded model anyway.
pub const LOAD_TIMEOUT: Duration = Duration::from_secs(120);
/// The time after the end of a reply to wait for the usage.
pub const USAGE_GRACE: Duration = Duration::from_secs(10);
/// The time after the end mark to read the remaining bytes, so that the connection can be reused.
pub const DRAIN_TIMEOUT: Duration = Duration::from_millis(100);

/// How long to wait while a server is silent.
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
