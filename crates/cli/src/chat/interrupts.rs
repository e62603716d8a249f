//! [`Interrupts`]: what a Ctrl-C means. The first ends the run, a second one leaves; at an empty
//! prompt one is enough. It acts on nothing itself.

use std::time::{Duration, Instant};

/// Two within this time leave, whatever is under way.
pub(crate) const TWICE: Duration = Duration::from_secs(2);
/// One that comes so soon after a run's end was meant for the run.
const JUST_ENDED: Duration = Duration::from_millis(500);

/// What is known of the last ones.
#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    working: bool,
    last: Option<Instant>,
    ended: Option<Instant>,
}

/// What one of them means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Press {
    /// The run ends.
    Stop,
    /// The chat ends.
    Leave,
    /// Nothing yet: a second one leaves.
    Warn,
}

/// Whether something is typed and not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prompt {
    Empty,
    Typed,
}

impl Interrupts {
    /// A run begins.
    pub(crate) fn begin(&mut self) {
        self.working = true;
    }

    /// It has ended.
    pub(crate) fn end(&mut self, now: Instant) {
        self.working = false;
        self.ended = Some(now);
    }

    /// Whether a run is under way.
    pub(crate) fn is_working(&self) -> bool {
        self.working
    }

    /// Ctrl-C.
    pub(crate) fn press(&mut self, now: Instant, prompt: Prompt) -> Press {
        let since = |then: Option<Instant>| then.map(|then| now.saturating_duration_since(then));
        let twice = since(self.last).is_some_and(|since| since < TWICE);
        let just_ended = since(self.ended).is_some_and(|since| since < JUST_ENDED);
        self.last = Some(now);
        match (twice, self.working) {
            (true, _) => Press::Leave,
            (false, true) => Press::Stop,
            (false, false) if prompt == Prompt::Empty && !just_ended => Press::Leave,
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
        assert_eq!(keys.press(at(0), Prompt::Typed), Press::Warn);
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
