//! [`Interrupts`]: decides the meaning of a Ctrl-C. The first one ends the run, a second one leaves
//! the chat. At an empty prompt, one is enough to leave; at a typed text, it removes the text.

use std::time::{Duration, Instant};

/// Two presses within this time leave the chat in any case.
pub(crate) const TWICE: Duration = Duration::from_secs(2);
/// A press so soon after the end of a run was meant for that run.
const JUST_ENDED: Duration = Duration::from_millis(500);

/// The state of the run and the time of the last press.
#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    working: bool,
    last: Option<Instant>,
    ended: Option<Instant>,
}

/// The meaning of a Ctrl-C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Press {
    /// End the run.
    Stop,
    /// Leave the chat.
    Leave,
    /// Do nothing yet, but warn that a second press leaves.
    Warn,
    /// Remove the text of the prompt, as a shell does.
    Clear,
}

/// Whether the prompt contains text that is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prompt {
    Empty,
    Typed,
}

impl Interrupts {
    /// Notes that a run begins.
    pub(crate) fn begin(&mut self) {
        self.working = true;
    }

    /// Notes that the run has ended.
    pub(crate) fn end(&mut self, now: Instant) {
        self.working = false;
        self.ended = Some(now);
    }

    /// Returns `true` if a run is under way.
    pub(crate) fn is_working(&self) -> bool {
        self.working
    }

    /// Handles a Ctrl-C.
    pub(crate) fn press(&mut self, now: Instant, prompt: Prompt) -> Press {
        let since = |then: Option<Instant>| then.map(|then| now.saturating_duration_since(then));
        let twice = since(self.last).is_some_and(|since| since < TWICE);
        let just_ended = since(self.ended).is_some_and(|since| since < JUST_ENDED);
        self.last = Some(now);
        match (twice, self.working) {
            (true, _) => Press::Leave,
            (false, true) => Press::Stop,
            (false, false) if prompt == Prompt::Empty && !just_ended => Press::Leave,
            (false, false) if prompt == Prompt::Typed && !just_ended => Press::Clear,
            (false, false) => Press::Warn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ends_the_run_and_the_second_leaves() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut keys = Interrupts::default();
        keys.begin();
        assert_eq!(keys.press(at(0), Prompt::Typed), Press::Stop);
        keys.end(at(10));
        assert_eq!(keys.press(at(1_999), Prompt::Typed), Press::Leave);

        let mut keys = Interrupts::default();
        keys.begin();
        assert_eq!(keys.press(at(0), Prompt::Empty), Press::Stop);
        assert_eq!(
            keys.press(at(2_500), Prompt::Empty),
            Press::Stop,
            "not twice in time"
        );
    }

    #[test]
    fn an_empty_prompt_is_left_at_once_unless_a_run_has_just_ended() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut keys = Interrupts::default();
        assert_eq!(keys.press(at(0), Prompt::Empty), Press::Leave);
        let mut keys = Interrupts::default();
        assert_eq!(keys.press(at(0), Prompt::Typed), Press::Clear);
        assert_eq!(keys.press(at(100), Prompt::Typed), Press::Leave);
        let mut keys = Interrupts::default();
        keys.begin();
        keys.end(at(0));
        assert_eq!(
            keys.press(at(499), Prompt::Empty),
            Press::Warn,
            "it was meant for the run"
        );
        let mut keys = Interrupts::default();
        keys.begin();
        keys.end(at(0));
        assert_eq!(keys.press(at(501), Prompt::Empty), Press::Leave);
    }
}
