//! Thought signatures. Each one is sent back in its original part (GM3).
//!
//! The signature of a call is stored in the call. The signature of a text is stored behind the text,
//! with its range of bytes.

use plimsoll_context::{Opaque, Part, Thinking};
use serde::{Deserialize, Serialize};

use super::ORIGIN;
use crate::object::Object;
use crate::raw;
use crate::turns::{Block, Content};

/// The key of a signature in a part.
const KEY: &str = "thoughtSignature";
/// A signature that the API accepts for calls of other providers, which have none.
pub(super) const UNSIGNED: &str = r#""thoughtSignature":"skip_thought_signature_validator""#;

/// A signature, and the range of the preceding text that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TextSignature {
    #[serde(rename = "thoughtSignature")]
    pub(super) signature: String,
    pub(super) from: usize,
    pub(super) to: usize,
}

/// The signature of a call.
#[derive(Debug, Serialize, Deserialize)]
struct CallSignature {
    #[serde(rename = "thoughtSignature")]
    signature: String,
}

impl TextSignature {
    pub(super) fn into_part(self) -> Part {
        Part::Thinking(Thinking {
            text: String::new(),
            opaque: Some(opaque(&self)),
        })
    }

    /// Returns the signature in thinking, or `None` if it has no signature of Gemini's.
    pub(super) fn of(thinking: &Thinking) -> Option<Self> {
        raw::own(thinking.opaque.as_ref()?, ORIGIN)
    }

    /// Returns an empty part with this signature.
    pub(super) fn alone(&self) -> Block {
        signed("", &self.signature)
    }
}

/// Returns a call's signature in the form that is stored in the call.
pub(super) fn kept_by_call(signature: &str) -> Opaque {
    opaque(&CallSignature {
        signature: signature.to_owned(),
    })
}

/// Returns the members of a part with the signature stored in a call. Empty if there is none.
pub(super) fn members_of_call(kept: Option<&Opaque>) -> String {
    let kept: Option<CallSignature> = kept.and_then(|kept| raw::own(kept, ORIGIN));
    let text = kept.map(|kept| Object::new().text(KEY, &kept.signature).end());
    let members = text.as_deref().and_then(|text| text.get(1..text.len() - 1));
    members.unwrap_or_default().to_owned()
}

/// Returns a text in its original parts, each with its signature. If the text has changed, the whole
/// text gets the first signature.
pub(super) fn text_parts(text: &str, signatures: &[TextSignature]) -> Vec<Block> {
    parted(text, signatures).unwrap_or_else(|| {
        let first = signatures.first();
        let part = first.map(|first| signed(text, &first.signature));
        vec![part.unwrap_or_else(|| Block::text(text))]
    })
}

fn parted(text: &str, signatures: &[TextSignature]) -> Option<Vec<Block>> {
    let mut parts = Vec::new();
    let mut at = 0;
    for one in signatures {
        let before = text.get(at..one.from)?;
        if !before.is_empty() {
            parts.push(Block::text(before));
        }
        parts.push(signed(text.get(one.from..one.to)?, &one.signature));
        at = one.to;
    }
    let rest = text.get(at..)?;
    if !rest.is_empty() {
        parts.push(Block::text(rest));
    }
    Some(parts)
}

fn signed(text: &str, signature: &str) -> Block {
    Content::Json(Object::new().text("text", text).text(KEY, signature).end()).into()
}

fn opaque(signature: &impl Serialize) -> Opaque {
    // Texts and numbers are always JSON.
    raw::opaque(ORIGIN, serde_json::to_string(signature).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(signature: &str, from: usize, to: usize) -> TextSignature {
        TextSignature {
            signature: signature.into(),
            from,
            to,
        }
    }

    fn described(parts: &[Block]) -> String {
        let descriptions = parts.iter().map(|part| match &part.content {
            Content::Json(json) => {
                let part: serde_json::Value = serde_json::from_str(json).unwrap();
                let text = |key: &str| part[key].as_str().unwrap().to_owned();
                format!("<{}>[{}]", text(KEY), text("text"))
            }
            Content::Text(text) => format!("[{text}]"),
            _ => "?".into(),
        });
        descriptions.collect()
    }

    #[test]
    fn a_signature_comes_back_in_its_part() {
        for (text, signatures, parts) in [
            ("hallo", vec![], "[hallo]"),
            ("hallo", vec![signature("s", 0, 5)], "<s>[hallo]"),
            ("hallo", vec![signature("s", 5, 5)], "[hallo]<s>[]"),
            ("", vec![signature("s", 0, 0)], "<s>[]"),
            (
                "hallo",
                vec![signature("s", 1, 3), signature("t", 3, 5)],
                "[h]<s>[al]<t>[lo]",
            ),
            // The text has changed.
            ("h…", vec![signature("s", 0, 2)], "<s>[h…]"),
            (
                "h",
                vec![signature("s", 3, 5), signature("t", 5, 5)],
                "<s>[h]",
            ),
            ("hallo", vec![signature("s", 3, 1)], "<s>[hallo]"),
        ] {
            assert_eq!(described(&text_parts(text, &signatures)), parts, "{text}");
        }
    }

    #[test]
    fn it_survives_a_transcript() {
        let kept = signature("a/b+c==", 2, 7).into_part();
        let Part::Thinking(thinking) = &kept else {
            panic!("{kept:?}");
        };
        assert_eq!(
            TextSignature::of(thinking),
            Some(signature("a/b+c==", 2, 7))
        );
        let foreign = Opaque {
            origin: "anthropic".into(),
            data: thinking.opaque.clone().unwrap().data,
        };
        assert_eq!(members_of_call(Some(&foreign)), "");
        assert_eq!(
            members_of_call(Some(&kept_by_call("x"))),
            r#""thoughtSignature":"x""#
        );
    }
}
