//! [`Options`]: what can be chosen when a store is opened, and why the defaults are what they are.

use std::time::Duration;

use plimsoll_context::Bytes;
use plimsoll_core::ArchiveBounds;

/// How long a write waits while another process writes. An append takes milliseconds, so five
/// seconds mean that something is wrong, and a person would rather be told.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a process may stand still before another may take over its sessions.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// What the file may grow to: over 2,000 runs of 1,000 turns with 100 KB results each. It keeps a
/// run that has lost its way from eating the disk of everything else.
pub const MAX_BYTES: Bytes = Bytes(256 << 30);

/// What the archive's file may grow to, in times of what the archive may hold: what is held, the
/// index of its words, and the room that expired items leave until it is used again.
pub const ARCHIVE_FILE: u64 = 4;

/// The archive's file may always grow to this, however little it may hold: what an empty one and
/// its index take, with room.
pub const ARCHIVE_FILE_MIN: Bytes = Bytes(64 << 20);

/// Up to this size, the whole archive is checked for damage when it is opened, in less than a tenth
/// of a second; of a larger one only what every use reads, and damage elsewhere is told when it is
/// met.
pub const ARCHIVE_CHECKED: Bytes = Bytes(16 << 20);

/// What can be chosen when a store is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What an append survives.
    pub durability: Durability,
    /// How long a write waits while another process writes. Default: [`BUSY_TIMEOUT`].
    pub busy_timeout: Duration,
    /// What the file may grow to; an append beyond it is refused as on a full disk.
    /// Default: [`MAX_BYTES`].
    pub max_bytes: Bytes,
    /// What the archive holds, and for how long; beyond it the oldest expire.
    pub archive: ArchiveBounds,
    /// How long a process that holds a session may stand still, stopped or suspended, before another may
    /// take the session over. Fifteen times in this time it shows that it is alive. All processes that use
    /// the file should have the same. Default: [`PATIENCE`].
    pub patience: Duration,
}

/// What an append survives once it has returned. In both, a log that was cut short still opens
/// and is a true beginning of what happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// `kill -9`, and also power loss and a crash of the system: each append waits for the disk.
    ///
    /// The default, because a log that forgets its end is not merely short: where the entry that
    /// a tool call began is lost and the tool had run, resuming runs it again. An append waits for
    /// about 4 ms on a common disk, a turn makes a handful of them, and the model it waits for
    /// anyway takes seconds.
    #[default]
    Full,
    /// `kill -9`, not power loss, which may take the newest entries: the disk is waited for only
    /// when the write-ahead log is folded in. For sessions that nobody would miss, and for many
    /// writers on a slow disk.
    Normal,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            busy_timeout: BUSY_TIMEOUT,
            max_bytes: MAX_BYTES,
            archive: ArchiveBounds::default(),
            patience: PATIENCE,
        }
    }
}
