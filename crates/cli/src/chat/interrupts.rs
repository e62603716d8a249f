//! [`Interrupts`]: decides the meaning of a Ctrl-C. The first one ends the run, and a second one soon
//! after it leaves the chat.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::chat::prompt::Gauge;
use crate::lock;

/// Two presses within this time leave the chat in any case.
const TWICE: Duration = Duration::from_secs(2);

/// The activity of the chat, and the time of the last press.
pub(crate) struct Interrupts {
    pub(crate) gauge: Arc<Gauge>,
    pub(crate) last: Mutex<Option<Instant>>,
}

/// The meaning of a Ctrl-C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Press {
    /// End the run.
    Stop,
    /// Leave the chat.
    Leave,
    /// Say that a second press leaves.
    Warn,
}

impl Interrupts {
    /// Handles a Ctrl-C. `idle` is its meaning if no run is under way.
    pub(crate) fn press(&self, now: Instant, idle: Press) -> Press {
        let last = lock(&self.last).replace(now);
        let is_twice = last.is_some_and(|last| now.saturating_duration_since(last) < TWICE);
        match (is_twice, self.gauge.is_idle()) {
            (true, _) => Press::Leave,
            (false, true) => idle,
            (false, false) => Press::Stop,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::prompt::ChatActivity;

    #[test]
    fn the_first_ends_the_run_and_the_second_leaves() {
        let start = Instant::now();
        for (is_working, presses) in [
            (true, [(0, Press::Stop), (1_999, Press::Leave)]),
            (true, [(0, Press::Stop), (2_001, Press::Stop)]),
            (false, [(0, Press::Warn), (1_999, Press::Leave)]),
            (false, [(0, Press::Warn), (2_001, Press::Warn)]),
        ] {
            let keys = Interrupts {
                gauge: Arc::new(Gauge::default()),
                last: Mutex::default(),
            };
            if is_working {
                keys.gauge.doing(ChatActivity::Working);
            }
            for (ms, meaning) in presses {
                let at = start + Duration::from_millis(ms);
                assert_eq!(keys.press(at, Press::Warn), meaning, "{presses:?}");
            }
        }
    }
}
