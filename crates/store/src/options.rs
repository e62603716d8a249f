//! [`Options`] for opening a store, and the reasons for their defaults.

use std::time::Duration;

use plimsoll_context::Bytes;

/// How long a write waits while another process writes. An append takes milliseconds, so a wait of
/// five seconds means that something is wrong, and the user gets an error.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum size of the log file: enough for 2,000 runs of 1,000 turns with results of 100 KB. Keeps
/// a runaway agent from filling the disk.
pub const MAX_BYTES: Bytes = Bytes(256 << 30);

/// The options for opening a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The failures that an append survives.
    pub durability: Durability,
    /// How long a write waits while another process writes. Default: [`BUSY_TIMEOUT`].
    pub busy_timeout: Duration,
    /// Maximum size of the file. An append beyond it fails like on a full disk. Default:
    /// [`MAX_BYTES`].
    pub max_bytes: Bytes,
}

/// The failures that a completed append survives. With both variants, a log that lost its end still
/// opens and contains a correct beginning of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// Survives `kill -9`, power loss and a crash of the system: each append waits for the disk.
    /// The default.
    ///
    /// A lost log end does more harm than missing text: if a tool had run and the entry for its
    /// start is lost, resuming runs the tool again. An append takes about 4 ms on a common disk,
    /// and a turn makes a handful of them, compared with seconds for a model call.
    #[default]
    Full,
    /// Survives `kill -9`, but a power loss may take the newest entries: the disk is waited for
    /// only at checkpoints of the write-ahead log. For dispensable sessions, and for many writers
    /// on a slow disk.
    Normal,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            busy_timeout: BUSY_TIMEOUT,
            max_bytes: MAX_BYTES,
        }
    }
}
