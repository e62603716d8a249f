//! [`ModelFacts::enforced`]: adjusts a request to the user's own facts, in protocols without a
//! setting for them. Built-in facts change nothing here.

use std::borrow::Cow;
use std::sync::Arc;

use plimsoll_agent::{Request, ThinkingLevel};
use plimsoll_context::{Message, Part};
use plimsoll_wire::Effort;
use plimsoll_wire::prompt_texts;

use super::facts::{Fact, ModelFacts};

/// The thinking levels that are efforts, lowest first.
pub(crate) const LEVELS: [(ThinkingLevel, Effort); 4] = [
    (ThinkingLevel::Minimal, Effort::Minimal),
    (ThinkingLevel::Low, Effort::Low),
    (ThinkingLevel::Medium, Effort::Medium),
    (ThinkingLevel::High, Effort::High),
];

/// The efforts of a protocol without an effort below `low`.
pub(crate) const FROM_LOW: &[Effort] = &[Effort::Low, Effort::Medium, Effort::High];

impl ModelFacts {
    /// Returns the request with a note in place of each image if the model takes none, and with the
    /// nearest allowed thinking level. `words` are the efforts that the protocol can express.
    pub(crate) fn enforced<'r>(&self, request: &'r Request, words: &[Effort]) -> Cow<'r, Request> {
        let level = self.level(request.sampling.thinking, words);
        let blind = self.blinds(request);
        if level == request.sampling.thinking && !blind {
            return Cow::Borrowed(request);
        }
        let mut enforced = request.clone();
        enforced.sampling.thinking = level;
        if blind {
            let messages = request.messages.iter().map(|message| {
                if shows(message) {
                    Arc::new(noted(message))
                } else {
                    Arc::clone(message)
                }
            });
            enforced.messages = messages.collect();
        }
        Cow::Owned(enforced)
    }

    /// Checks whether images of a request are left out.
    pub(crate) fn blinds(&self, request: &Request) -> bool {
        let takes = self.images.as_ref().and_then(Fact::own);
        takes == Some(false) && request.messages.iter().any(|message| shows(message))
    }

    /// Returns the nearest allowed level, or the lower of two. `None` if no level is allowed.
    fn level(&self, wanted: Option<ThinkingLevel>, words: &[Effort]) -> Option<ThinkingLevel> {
        if self.thinking.as_ref().and_then(Fact::own) == Some(false) {
            return None;
        }
        let efforts = self.efforts.as_ref().filter(|fact| fact.is_own());
        let place = LEVELS.iter().position(|(level, _)| Some(*level) == wanted);
        let (Some(efforts), Some(place)) = (efforts, place) else {
            return wanted;
        };
        let allowed = LEVELS.iter().enumerate();
        let allowed = allowed
            .filter(|(_, (_, effort))| words.contains(effort) && efforts.value.contains(effort));
        let nearest = allowed.min_by_key(|(at, _)| at.abs_diff(place));
        nearest.map(|(_, (level, _))| *level)
    }
}

fn shows(message: &Message) -> bool {
    let parts = match message {
        Message::System { parts } | Message::User { parts } => parts,
        Message::ToolResult(result) => &result.parts,
        Message::Assistant { .. } | Message::Notice { .. } | Message::Summary { .. } => {
            return false;
        }
    };
    parts.iter().any(|part| matches!(part, Part::Image(_)))
}

/// Replaces each image of the message with a note.
fn noted(message: &Message) -> Message {
    let mut message = message.clone();
    let parts = match &mut message {
        Message::System { parts } | Message::User { parts } => parts,
        Message::ToolResult(result) => &mut result.parts,
        Message::Assistant { .. } | Message::Notice { .. } | Message::Summary { .. } => {
            return message;
        }
    };
    for part in parts {
        if matches!(part, Part::Image(_)) {
            *part = Part::text(prompt_texts::LEFT_OUT);
        }
    }
    message
}

#[cfg(test)]
mod tests {
    use plimsoll_agent::{Expects, Sampling, ToolChoice};
    use plimsoll_context::{CachePlan, CallId, Image, Source, Tokens, ToolCall, ToolResult};
    use serde_json::Value;

    use super::*;
    use crate::models::{ModelBook, Origin};
    use crate::{ModelClient, ModelRef, Secret};

    fn level(row: &str, wanted: ThinkingLevel, words: &[Effort]) -> Option<ThinkingLevel> {
        let book = ModelBook::parse(&format!("[openai.m]\n{row}"), Origin::Configuration).unwrap();
        let facts = book.facts(&ModelRef::parse("openai/m").unwrap());
        facts.level(Some(wanted), words)
    }

    const ALL: &[Effort] = &[Effort::Minimal, Effort::Low, Effort::Medium, Effort::High];

    #[test]
    fn the_nearest_effort_that_is_allowed_is_asked_for() {
        use ThinkingLevel::{High, Low, Medium, Minimal, Off};
        for (row, wanted, words, asked) in [
            ("window = 9000", Minimal, FROM_LOW, Some(Minimal)),
            ("efforts = [\"low\", \"high\"]", Minimal, ALL, Some(Low)),
            ("efforts = [\"low\", \"high\"]", Medium, ALL, Some(Low)),
            ("efforts = [\"medium\"]", High, FROM_LOW, Some(Medium)),
            ("efforts = [\"medium\"]", Off, FROM_LOW, Some(Off)),
            ("efforts = [\"minimal\", \"high\"]", Low, ALL, Some(Minimal)),
            (
                "efforts = [\"minimal\", \"high\"]",
                Low,
                FROM_LOW,
                Some(High),
            ),
            ("efforts = [\"xhigh\"]", High, ALL, None),
            ("thinking = false", High, ALL, None),
            ("thinking = true", Low, ALL, Some(Low)),
        ] {
            assert_eq!(level(row, wanted, words), asked, "{row} {wanted:?}");
        }
    }

    fn request(parts: Vec<Part>) -> Request {
        let result = Message::ToolResult(ToolResult {
            call: CallId("c".into()),
            parts: parts.clone(),
            is_error: false,
        });
        let call = Part::ToolCall(ToolCall {
            id: CallId("c".into()),
            name: "look".into(),
            arguments: "{}".into(),
            opaque: None,
        });
        let messages = [
            Message::User { parts },
            Message::Assistant { parts: vec![call] },
            result,
        ];
        Request {
            system: "".into(),
            hosted_tools: Arc::default(),
            tools: [].into(),
            messages: messages.into_iter().map(Arc::new).collect(),
            dynamic_context: None,
            tool_choice: ToolChoice::Auto,
            max_output: None,
            sampling: Sampling {
                thinking: Some(ThinkingLevel::High),
                ..Sampling::default()
            },
            counted: Tokens(1),
            cache: CachePlan::default(),
            expects: Expects::default(),
        }
    }

    /// Returns the request to an Anthropic model with this row of the user.
    fn sent(model: &str, row: &str, request: &Request) -> Value {
        let book = ModelBook::parse(
            &format!("[anthropic.{model}]\n{row}"),
            Origin::Configuration,
        )
        .unwrap();
        let model = ModelRef::parse(&format!("anthropic/{model}")).unwrap();
        let facts = ModelBook::built_in().clone().overlay(book).facts(&model);
        let builder = ModelClient::builder(model).key(Secret::new("k"));
        let provider = builder.facts(facts).build_with(&|_| None).unwrap();
        provider.json(request)
    }

    #[test]
    fn a_note_stands_for_each_image_where_the_user_says_that_it_takes_none() {
        let image = Part::Image(Image {
            source: Source::Data {
                media_type: "image/png".into(),
                base64: "aGk=".into(),
            },
            size: None,
            detail: None,
        });
        let request = request(vec![Part::text("see"), image]);
        let images = |row: &str| {
            let body = sent("claude-opus-4-6", row, &request).to_string();
            (
                body.matches("aGk=").count(),
                body.matches(prompt_texts::LEFT_OUT).count(),
            )
        };
        assert_eq!(images("images = false"), (0, 2));
        assert_eq!(images("images = true"), (2, 0));
        assert_eq!(images("max_output = 9000"), (2, 0));
    }

    #[test]
    fn what_the_user_says_of_thinking_is_sent_to_a_claude() {
        let mut request = request(vec![Part::text("hi")]);
        request.messages.truncate(1);
        let sent = |model: &str, row: &str| {
            let body = sent(model, row, &request);
            let kind = body["thinking"]["type"].as_str().map(str::to_owned);
            let effort = body["output_config"]["effort"].as_str().map(str::to_owned);
            (kind, effort)
        };
        let word = |text: &str| Some(text.to_owned());
        for (model, row, kind, effort) in [
            (
                "claude-opus-4-6",
                "images = true",
                word("adaptive"),
                word("high"),
            ),
            ("claude-opus-4-6", "thinking = false", None, None),
            ("claude-sonnet-4-5", "thinking = false", None, None),
            (
                "claude-opus-4-6",
                "efforts = [\"low\"]",
                word("adaptive"),
                word("low"),
            ),
            (
                "claude-opus-4-6",
                "efforts = [\"minimal\", \"medium\"]",
                word("adaptive"),
                word("medium"),
            ),
            ("claude-3-5-haiku", "images = true", None, None),
            (
                "claude-3-5-haiku",
                "thinking = true\nmax_output = 64_000",
                word("enabled"),
                None,
            ),
        ] {
            assert_eq!(sent(model, row), (kind, effort), "{model} {row}");
        }
    }
}
