//! Thought signatures of Gemini, kept in a transcript and put back into the very part that they
//! came with (GM3): that of a call in the call, that of a text behind the text with the bytes of
//! it that came in one part with the signature. Nothing here reads or checks a signature.

use genai::chat::ContentPart;
use plimsoll_context::{Opaque, Part, Thinking};
use serde::{Deserialize, Serialize};

use super::names::ORIGIN_GEMINI;

/// A signature and the bytes of the text before it that it came with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    #[serde(rename = "thoughtSignature")]
    pub(super) signature: String,
    /// Where what it came with begins.
    pub(super) from: usize,
    /// Where that ends; a part without text has none.
    pub(super) to: usize,
}

/// A call's signature.
#[derive(Debug, Serialize, Deserialize)]
struct CallMark {
    #[serde(rename = "thoughtSignature")]
    signature: String,
}

impl Mark {
    /// As a part of a transcript.
    pub(super) fn part(&self) -> Thinking {
        Thinking {
            text: String::new(),
            opaque: Some(opaque(self)),
        }
    }

    /// What such a part holds; `None` for any other.
    pub(super) fn of(part: &Part) -> Option<Self> {
        match part {
            Part::Thinking(Thinking {
                opaque: Some(opaque),
                ..
            }) => read(opaque),
            _ => None,
        }
    }
}

/// A call's signature, as a call keeps it.
pub(super) fn call_mark(signature: &str) -> Opaque {
    opaque(&CallMark {
        signature: signature.to_owned(),
    })
}

/// The signature that a call keeps.
pub(super) fn call_signature(opaque: Option<&Opaque>) -> Option<String> {
    read::<CallMark>(opaque?).map(|mark| mark.signature)
}

/// A text in the parts that it came in, each with its signature. Where the text was changed since,
/// the first signature stands for all of it.
pub(super) fn text_parts(text: &str, marks: &[Mark]) -> Vec<ContentPart> {
    parted(text, marks).unwrap_or_else(|| {
        let first = marks.first().map(|mark| mark.signature.clone());
        let mut parts: Vec<ContentPart> = first
            .into_iter()
            .map(ContentPart::ThoughtSignature)
            .collect();
        parts.push(ContentPart::Text(text.to_owned()));
        parts
    })
}

fn parted(text: &str, marks: &[Mark]) -> Option<Vec<ContentPart>> {
    let mut parts = Vec::new();
    let mut at = 0;
    for mark in marks {
        let before = text.get(at..mark.from)?;
        let signed = text.get(mark.from..mark.to)?;
        if !before.is_empty() {
            parts.push(ContentPart::Text(before.to_owned()));
        }
        parts.push(ContentPart::ThoughtSignature(mark.signature.clone()));
        parts.push(ContentPart::Text(signed.to_owned()));
        at = mark.to;
    }
    let rest = text.get(at..)?;
    if !rest.is_empty() {
        parts.push(ContentPart::Text(rest.to_owned()));
    }
    Some(parts)
}

fn opaque(mark: &impl Serialize) -> Opaque {
    Opaque {
        origin: ORIGIN_GEMINI.into(),
        // Texts and numbers are always JSON.
        data: serde_json::to_string(mark).unwrap_or_default(),
    }
}

fn read<'a, T: Deserialize<'a>>(opaque: &'a Opaque) -> Option<T> {
    let ours = opaque.origin == ORIGIN_GEMINI;
    ours.then(|| serde_json::from_str(&opaque.data).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(signature: &str, from: usize, to: usize) -> Mark {
        Mark {
            signature: signature.into(),
            from,
            to,
        }
    }

    fn told(parts: &[ContentPart]) -> String {
        let told = parts.iter().map(|part| match part {
            ContentPart::ThoughtSignature(signature) => format!("<{signature}>"),
            ContentPart::Text(text) => format!("[{text}]"),
            _ => "?".into(),
        });
        told.collect()
    }

    #[test]
    fn a_signature_comes_back_in_its_part() {
        for (text, marks, parts) in [
            ("hallo", vec![], "[hallo]"),
            ("hallo", vec![mark("s", 0, 5)], "<s>[hallo]"),
            ("hallo", vec![mark("s", 5, 5)], "[hallo]<s>[]"),
            ("", vec![mark("s", 0, 0)], "<s>[]"),
            (
                "hallo",
                vec![mark("s", 1, 3), mark("t", 3, 5)],
                "[h]<s>[al]<t>[lo]",
            ),
            // The text is not what it was.
            ("h…", vec![mark("s", 0, 2)], "<s>[h…]"),
            ("h", vec![mark("s", 3, 5), mark("t", 5, 5)], "<s>[h]"),
            ("hallo", vec![mark("s", 3, 1)], "<s>[hallo]"),
        ] {
            assert_eq!(told(&text_parts(text, &marks)), parts, "{text}");
        }
    }

    #[test]
    fn it_survives_a_transcript() {
        let kept = Part::Thinking(mark("a/b+c==", 2, 7).part());
        assert_eq!(Mark::of(&kept), Some(mark("a/b+c==", 2, 7)));
        assert_eq!(Mark::of(&Part::text("no")), None);
        let foreign = Opaque {
            origin: "anthropic".into(),
            data: kept_data(&kept),
        };
        assert_eq!(call_signature(Some(&foreign)), None);
        assert_eq!(call_signature(Some(&call_mark("x"))).as_deref(), Some("x"));
    }

    fn kept_data(part: &Part) -> String {
        match part {
            Part::Thinking(Thinking {
                opaque: Some(opaque),
                ..
            }) => opaque.data.clone(),
            _ => String::new(),
        }
    }
}
