//! [`TokenCounter`]: counts the tokens of a text, an image, a message or a tool's schema.
//!
//! The counts are not calibrated by a provider's reports; see `calibration.rs`.

use std::fmt::Debug;

use crate::message::{File, Image, Message, Part, Source};
use crate::tokens::Tokens;
use crate::tool_spec::ToolSpec;

/// Role, delimiters and separators that every chat format adds to a message.
pub const MESSAGE_OVERHEAD: Tokens = Tokens(4);
/// Id, type and delimiters that every chat format adds to a tool call.
pub const CALL_OVERHEAD: Tokens = Tokens(8);
/// The wrapping of one tool's definition.
pub const TOOL_OVERHEAD: Tokens = Tokens(8);
/// The sentences with which `wire` frames a summary, so that the model takes it as a reference.
pub const SUMMARY_FRAME: Tokens = Tokens(34);
/// The tokens of an image of unknown size: 1024 × 1024 in OpenAI's tiles (85 + 4 · 170).
pub const IMAGE_DEFAULT: Tokens = Tokens(765);

/// Counts tokens. Each agent has its own counter; counters share no state.
pub trait TokenCounter: Debug + Send + Sync {
    /// Returns the name of the counter, as printed by `plimsoll count`.
    fn name(&self) -> &str;

    /// Counts the tokens of a text.
    fn text(&self, text: &str) -> Tokens;

    /// Returns an upper bound for the tokens of a text, if that is faster than counting them.
    fn text_at_most(&self, text: &str) -> Tokens {
        self.text(text)
    }

    /// Counts the tokens of an image.
    ///
    /// The default is OpenAI's tile rule: 85, and 170 for each tile of 512 pixels after fitting
    /// into 2048 × 2048 and a shorter side of 768; 85 for `low` detail.
    fn image(&self, image: &Image) -> Tokens {
        image_tiles(image)
    }

    /// Counts the tokens of a file: its base64 as a PDF-like document, 1 token for 8 bytes of
    /// base64, at least [`IMAGE_DEFAULT`].
    fn file(&self, file: &File) -> Tokens {
        match &file.source {
            Source::Url { .. } => IMAGE_DEFAULT,
            Source::Data { base64, .. } => Tokens(base64.len() as u64 / 8).max(IMAGE_DEFAULT),
        }
    }

    /// Counts the tokens of one part.
    fn part(&self, part: &Part) -> Tokens {
        match part {
            Part::Text { text } => self.text(text),
            Part::Image(image) => self.image(image),
            Part::File(file) => self.file(file),
            Part::Thinking(thinking) => {
                let opaque = thinking.opaque.as_ref().map_or(Tokens::ZERO, |opaque| {
                    // A signature is opaque to the model; only hidden reasoning in it counts.
                    if thinking.text.is_empty() {
                        Tokens(opaque.data.len() as u64 / 6)
                    } else {
                        Tokens::ZERO
                    }
                });
                self.text(&thinking.text) + opaque
            }
            Part::ToolCall(call) => {
                CALL_OVERHEAD + self.text(&call.name) + self.text(&call.arguments)
            }
            Part::Opaque(opaque) => self.text(&opaque.data),
        }
    }

    /// Counts the tokens of a message: [`MESSAGE_OVERHEAD`], its parts, and [`SUMMARY_FRAME`] for a
    /// summary.
    fn message(&self, message: &Message) -> Tokens {
        let inner = match message {
            Message::Notice { text } => self.text(text),
            Message::Summary { text } => SUMMARY_FRAME + self.text(text),
            _ => message.parts().iter().map(|part| self.part(part)).sum(),
        };
        MESSAGE_OVERHEAD + inner
    }

    /// Counts the tokens of a tool's definition.
    fn tool(&self, tool: &ToolSpec) -> Tokens {
        TOOL_OVERHEAD
            + self.text(&tool.name)
            + self.text(&tool.description)
            + self.text(&tool.schema.to_string())
    }
}

/// A counter that reports [`TokenCounter::text_at_most`] of another counter, an upper bound for its
/// counts.
#[derive(Debug, Clone, Copy)]
pub struct AtMost<'c>(
    /// The other counter.
    pub &'c dyn TokenCounter,
);

impl TokenCounter for AtMost<'_> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn text(&self, text: &str) -> Tokens {
        self.0.text_at_most(text)
    }

    fn image(&self, image: &Image) -> Tokens {
        self.0.image(image)
    }

    fn file(&self, file: &File) -> Tokens {
        self.0.file(file)
    }
}

/// A counter with the rule of thumb `ceil(chars / 4)`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Chars4;

impl TokenCounter for Chars4 {
    fn name(&self) -> &str {
        "chars4"
    }

    fn text(&self, text: &str) -> Tokens {
        Tokens((text.chars().count() as u64).div_ceil(4))
    }
}

fn image_tiles(image: &Image) -> Tokens {
    if image.detail.as_deref() == Some("low") {
        return Tokens(85);
    }
    let Some((width, height)) = image.size else {
        return IMAGE_DEFAULT;
    };
    let (mut w, mut h) = (f64::from(width.max(1)), f64::from(height.max(1)));
    let fit = (2048.0 / w.max(h)).min(1.0);
    (w, h) = (w * fit, h * fit);
    let shrink = (768.0 / w.min(h)).min(1.0);
    let tiles = (w * shrink / 512.0).ceil() * (h * shrink / 512.0).ceil();
    Tokens(85 + 170 * tiles as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chars4_is_the_formula() {
        for (text, tokens) in [
            ("", 0),
            ("a", 1),
            ("abcd", 1),
            ("abcde", 2),
            ("日本語日本", 2),
        ] {
            assert_eq!(Chars4.text(text), Tokens(tokens), "{text}");
        }
    }

    #[test]
    fn images_weigh_by_their_size() {
        let image = |size, detail: Option<&str>| Image {
            source: Source::Url { url: "x".into() },
            size,
            detail: detail.map(Into::into),
        };
        for (size, detail, tokens) in [
            (Some((1024, 1024)), None, 765),
            (Some((2048, 4096)), None, 1105),
            (Some((4096, 8192)), Some("low"), 85),
            (Some((1, 1)), None, 255),
            (None, None, 765),
        ] {
            assert_eq!(
                Chars4.image(&image(size, detail)),
                Tokens(tokens),
                "{size:?}"
            );
        }
    }
}
