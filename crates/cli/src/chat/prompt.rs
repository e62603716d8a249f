//! [`Gauge`]: the prompt, which shows the fill level of the window and the effect of Enter, and decides
//! that of Ctrl-C: the first one ends the run, and a second one soon after it leaves the chat.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use plimsoll::Tokens;

use crate::lock;
use crate::terminal::style::{DIM, YELLOW, paint};

/// Width of the prompt in columns. It is constant because the editor measures it only once per
/// line.
const WIDTH: usize = 8;
/// Two presses of Ctrl-C within this time leave the chat in any case.
const TWICE: Duration = Duration::from_secs(2);

/// The prompt.
#[derive(Default)]
pub(crate) struct Gauge {
    shows: Mutex<PromptState>,
}

/// The effect of a line that is entered now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ChatActivity {
    /// It begins a run.
    #[default]
    Idle,
    /// It steers the current run.
    Working,
    /// It answers a question.
    Asking,
}

#[derive(Debug, Clone, Copy, Default)]
struct PromptState {
    doing: ChatActivity,
    used: Tokens,
    window: Option<Tokens>,
    trigger: Option<Tokens>,
    /// The time of the last Ctrl-C.
    pressed: Option<Instant>,
}

/// The meaning of a Ctrl-C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Press {
    /// End the run.
    Stop,
    /// Leave the chat.
    Leave,
    /// Say that a second press leaves, or leave if the input is a pipe.
    Warn,
}

impl Gauge {
    /// Handles a Ctrl-C.
    pub(crate) fn press(&self, now: Instant) -> Press {
        let mut shows = lock(&self.shows);
        let last = shows.pressed.replace(now);
        let is_twice = last.is_some_and(|last| now.saturating_duration_since(last) < TWICE);
        match (is_twice, shows.doing) {
            (true, _) => Press::Leave,
            (false, ChatActivity::Idle) => Press::Warn,
            (false, _) => Press::Stop,
        }
    }

    /// Sets the tokens of the next request, the trigger of a compaction, and the window.
    pub(crate) fn set(&self, used: Tokens, trigger: Option<Tokens>, window: Option<Tokens>) {
        let mut shows = lock(&self.shows);
        (shows.used, shows.trigger, shows.window) = (used, trigger, window);
    }

    pub(crate) fn doing(&self, doing: ChatActivity) {
        lock(&self.shows).doing = doing;
    }

    /// Returns `true` if nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        lock(&self.shows).doing == ChatActivity::Idle
    }

    /// Returns blanks of the prompt's width.
    pub(crate) fn blank(&self) -> String {
        " ".repeat(WIDTH)
    }

    /// Returns the current prompt.
    pub(crate) fn prompt(&self) -> String {
        let shows = *lock(&self.shows);
        let mark = match shows.doing {
            ChatActivity::Idle => '>',
            ChatActivity::Working => '+',
            ChatActivity::Asking => '?',
        };
        let text = format!("{:>5} {mark} ", level(shows.used, shows.window));
        let is_full = shows.trigger.is_some_and(|trigger| shows.used >= trigger);
        paint(if is_full { YELLOW } else { DIM }, &text)
    }
}

/// Formats the fill level of a window in at most five columns. If the window is unknown, it is empty.
fn level(used: Tokens, window: Option<Tokens>) -> String {
    let window = window.filter(|window| *window > Tokens::ZERO);
    let percent = window.map(|window| used.0.saturating_mul(100) / window.0);
    percent.map_or_else(String::new, |percent| format!("{} %", percent.min(999)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_is_always_as_wide() {
        let gauge = Gauge::default();
        for (used, window, prompt) in [
            (0, Some(8_192), "  0 % > "),
            (4_100, Some(8_192), " 50 % > "),
            (9_000, Some(8_192), "109 % > "),
            (u64::MAX, Some(1), "999 % > "),
            (812, None, "      > "),
        ] {
            gauge.set(Tokens(used), None, window.map(Tokens));
            assert_eq!(gauge.prompt(), prompt);
            assert_eq!(gauge.prompt().chars().count(), gauge.blank().len());
        }
        gauge.doing(ChatActivity::Working);
        assert!(gauge.prompt().ends_with("+ "));
    }

    #[test]
    fn the_first_ends_the_run_and_the_second_leaves() {
        let start = Instant::now();
        for (is_working, presses) in [
            (true, [(0, Press::Stop), (1_999, Press::Leave)]),
            (true, [(0, Press::Stop), (2_001, Press::Stop)]),
            (false, [(0, Press::Warn), (1_999, Press::Leave)]),
            (false, [(0, Press::Warn), (2_001, Press::Warn)]),
        ] {
            let keys = Gauge::default();
            if is_working {
                keys.doing(ChatActivity::Working);
            }
            for (ms, meaning) in presses {
                let at = start + Duration::from_millis(ms);
                assert_eq!(keys.press(at), meaning, "{presses:?}");
            }
        }
    }
}
