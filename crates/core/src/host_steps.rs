//! [`Steps`]: shortened tool results of a run, kept for the host. They are independent of the
//! messages that the model sees and of the log, which contains the complete results.

use std::collections::VecDeque;

use plimsoll_agent::{Entry, RunStep};
use plimsoll_context::{Bytes, Message, Transcript, clip, shorten_bytes};

/// Default maximum size of one step's result, in bytes.
pub const MAX_STEP_RESULT: Bytes = Bytes(8_192);
/// Maximum number of steps that a run keeps. The oldest are dropped.
pub const MAX_STEPS: usize = 1_000;
/// Maximum total size of the steps of a run, in bytes. The oldest are dropped, but one step is
/// always kept.
pub const MAX_STEPS_SIZE: Bytes = Bytes(1 << 20);
/// The end of a text that was cut.
const TRUNCATED: &str = "[truncated]";

/// The steps of the current run.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    max: Bytes,
    kept: VecDeque<RunStep>,
    held: usize,
    dropped: u64,
}

impl Steps {
    pub(crate) fn new(max: Bytes) -> Self {
        Self {
            max,
            ..Self::default()
        }
    }

    /// Processes a new log entry. Returns the step if the entry is the result of a call in the
    /// transcript.
    pub(crate) fn see(&mut self, entry: &Entry, transcript: &Transcript) -> Option<&RunStep> {
        let Entry::ToolResult { message, .. } = entry else {
            return None;
        };
        let Message::ToolResult(result) = message.as_ref() else {
            return None;
        };
        let messages = transcript.items().iter().rev().map(|item| &item.message);
        let mut calls = messages.flat_map(|message| message.calls());
        let call = calls.find(|call| call.id == result.call);
        let step = RunStep {
            call: result.call.clone(),
            name: call.map(|call| call.name.clone()).unwrap_or_default(),
            arguments: call.map_or_else(String::new, |call| cut(&call.arguments, self.max)),
            result: cut(&message.text(), self.max),
            is_error: result.is_error,
        };
        let more = weight(&step);
        while (self.kept.len() == MAX_STEPS || (self.held + more) as u64 > MAX_STEPS_SIZE.0)
            && let Some(oldest) = self.kept.pop_front()
        {
            self.held -= weight(&oldest);
            self.dropped += 1;
        }
        self.held += more;
        self.kept.push_back(step);
        self.kept.back()
    }

    /// Returns the size of all steps in bytes.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Takes the steps and the number of dropped ones. The next run begins with none.
    pub(crate) fn take(&mut self) -> (Vec<RunStep>, u64) {
        let max = self.max;
        let Self { kept, dropped, .. } = std::mem::replace(self, Self::new(max));
        (kept.into(), dropped)
    }
}

fn weight(step: &RunStep) -> usize {
    size_of::<RunStep>()
        + step.call.0.len()
        + step.name.len()
        + step.arguments.len()
        + step.result.len()
}

/// Cuts a text to at most `max` bytes.
fn cut(text: &str, max: Bytes) -> String {
    if text.len() as u64 <= max.0 {
        return text.to_owned();
    }
    let is_json = |text: &String| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if let Some(mut json) = shorten_bytes(text, max).filter(is_json) {
        json.shrink_to_fit();
        return json;
    }
    match max.0.checked_sub(TRUNCATED.len() as u64) {
        // Concatenated at once, because appending may double the capacity.
        Some(room) => [clip(text, Bytes(room)), TRUNCATED].concat(),
        None => clip(text, max).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plimsoll_context::{CallId, Chars4};

    use super::*;

    fn transcript() -> Transcript {
        Transcript::new(Arc::new(Chars4))
    }

    #[test]
    fn a_result_is_cut_at_its_limit_and_not_before() {
        let at = "x".repeat(8_192);
        assert_eq!(cut(&at, MAX_STEP_RESULT), at);
        let over = cut(&"x".repeat(8_193), MAX_STEP_RESULT);
        assert!(over.ends_with("x[truncated]") && over.len() == 8_192);
    }

    #[test]
    fn every_cut_is_utf8_and_within_its_limit() {
        for text in ["汉字", "🦀", "e\u{301}x"] {
            let text = text.repeat(40);
            for max in 0..text.len() as u64 {
                let cut = cut(&text, Bytes(max));
                assert!(cut.len() as u64 <= max, "{max}");
                assert_eq!(cut.ends_with(TRUNCATED), max >= 11, "{max}");
            }
        }
    }

    #[test]
    fn json_stays_json_and_counts_what_left() {
        let list: Vec<String> = (0..500).map(|n| format!("item number {n}")).collect();
        let text = serde_json::to_string(&list).unwrap();
        let short = cut(&text, Bytes(1_000));
        assert!(short.len() <= 1_000);
        let items: Vec<String> = serde_json::from_str(&short).unwrap();
        let marker = items.iter().find(|item| item.contains("items")).unwrap();
        let left = items.len() - 1;
        assert!(
            marker.contains(&format!("{} items", 500 - left)),
            "{marker}"
        );
    }

    #[test]
    fn steps_stand_in_the_order_of_their_results() {
        let (mut steps, mut transcript) = (Steps::new(MAX_STEP_RESULT), transcript());
        for turn in ["x", "y"] {
            let call = |id: &str| {
                plimsoll_context::Part::ToolCall(plimsoll_context::ToolCall {
                    id: CallId(format!("{turn}{id}")),
                    name: "read".into(),
                    arguments: "{}".into(),
                    opaque: None,
                })
            };
            let parts = ["a", "b", "c"].map(call).to_vec();
            transcript.push(Message::Assistant { parts });
            for id in ["c", "a", "b"] {
                let result = Entry::ToolResult {
                    message: Message::result(CallId(format!("{turn}{id}")), "ok").into(),
                    spent: Default::default(),
                };
                steps.see(&result, &transcript);
            }
        }
        let (kept, _) = steps.take();
        let ids: Vec<&str> = kept.iter().map(|step| step.call.0.as_str()).collect();
        assert_eq!(ids, ["xc", "xa", "xb", "yc", "ya", "yb"]);
        assert!(kept.iter().all(|step| step.name == "read"));
    }

    #[test]
    fn steps_are_bounded_and_their_weight_is_right() {
        let mut steps = Steps::new(Bytes(100));
        for n in 0..MAX_STEPS + 5 {
            let call = CallId(format!("c{n}"));
            let message = Message::result(call, "y".repeat(200));
            let result = Entry::ToolResult {
                message: message.into(),
                spent: Default::default(),
            };
            steps.see(&result, &transcript());
        }
        assert_eq!(steps.held(), steps.kept.iter().map(weight).sum::<usize>());
        let (kept, dropped) = steps.take();
        assert_eq!((kept.len(), dropped), (MAX_STEPS, 5));
        assert_eq!(kept[0].call.0, "c5");
        assert_eq!(steps.held(), 0);
    }

    #[test]
    fn steps_are_bounded_in_bytes_and_one_always_stays() {
        let see = |steps: &mut Steps, n: usize, size: usize| {
            let result = Entry::ToolResult {
                message: Message::result(CallId(format!("c{n}")), "y".repeat(size)).into(),
                spent: Default::default(),
            };
            steps.see(&result, &transcript());
        };
        let mut steps = Steps::new(Bytes(4 << 20));
        for n in 0..300 {
            see(&mut steps, n, 8_192);
            assert!(steps.held() as u64 <= MAX_STEPS_SIZE.0, "{n}");
        }
        assert!(steps.held() as u64 > MAX_STEPS_SIZE.0 - 9_000);
        see(&mut steps, 300, 2 << 20);
        let (kept, dropped) = steps.take();
        assert_eq!((kept.len(), dropped), (1, 300));
        assert_eq!(kept[0].call.0, "c300");
    }
}
