//! [`PiecePatcher`]: writes an edited message piece by piece. A piece is a block or an item. Untouched
//! pieces keep their bytes; each protocol changes its own pieces.

use plimsoll_context::{Message, Part, ToolResult};

use crate::error::WireError;
use crate::prompt_texts;

/// Changes the pieces of a protocol.
pub(crate) trait PiecePatcher {
    /// Returns the parts of a piece.
    fn parts(&self, raw: &str) -> Result<Vec<Part>, WireError>;

    /// Returns a piece with new content, or `None` if the piece cannot have it.
    fn changed(&self, raw: &str, old: &[Part], new: &[Part]) -> Result<Option<String>, WireError>;

    /// Returns a tool result with new content. Returns `None` if the piece is not a tool result.
    fn result(&self, raw: &str, new: &ToolResult) -> Result<Option<String>, WireError>;

    /// Returns the pieces of a message by itself.
    fn anew(&self, message: &Message) -> Vec<String>;

    /// Adapts the pieces that depend on a removed piece. `old` contains the original parts of each
    /// piece.
    fn without_gone(
        &self,
        _old: &[Vec<Part>],
        kept: Vec<Option<String>>,
    ) -> Result<Vec<String>, WireError> {
        Ok(kept.into_iter().flatten().collect())
    }

    /// Returns the pieces of an edited message.
    fn edited(&self, raws: &[&str], message: &Message) -> Result<Vec<String>, WireError> {
        let patched = match message {
            Message::ToolResult(result) => match raws {
                [raw] => self.result(raw, result)?.map(|piece| vec![piece]),
                _ => None,
            },
            message => self.in_place(raws, &prompt_texts::sent_parts(message))?,
        };
        Ok(patched.unwrap_or_else(|| self.anew(message)))
    }

    /// Returns the pieces with their new parts. Returns `None` if the new parts do not correspond to
    /// the old ones.
    fn in_place(&self, raws: &[&str], new: &[Part]) -> Result<Option<Vec<String>>, WireError> {
        let old = raws.iter().map(|raw| self.parts(raw));
        let old = old.collect::<Result<Vec<Vec<Part>>, WireError>>()?;
        let Some(pieces) = align(&old, new) else {
            return Ok(None);
        };
        let mut kept = Vec::with_capacity(raws.len());
        for ((raw, old), piece) in raws.iter().zip(&old).zip(pieces) {
            kept.push(match piece {
                PieceChange::Same => Some((*raw).to_owned()),
                PieceChange::Gone => None,
                PieceChange::Changed(new) => match self.changed(raw, old, new)? {
                    Some(piece) => Some(piece),
                    None => return Ok(None),
                },
            });
        }
        self.without_gone(&old, kept).map(Some)
    }
}

/// The change of one piece.
#[derive(Debug, PartialEq)]
enum PieceChange<'p> {
    /// No change.
    Same,
    /// The piece was removed.
    Gone,
    /// The new parts of the piece.
    Changed(&'p [Part]),
}

/// Compares old pieces with new parts. `old` has the parts of each piece.
///
/// Each part must have one replacement; only thinking may be removed. Returns `None` for any other
/// change.
fn align<'p>(old: &[Vec<Part>], new: &'p [Part]) -> Option<Vec<PieceChange<'p>>> {
    let mut rest = new;
    let mut pieces = Vec::with_capacity(old.len());
    for piece in old {
        if rest.starts_with(piece) {
            rest = rest.get(piece.len()..)?;
            pieces.push(PieceChange::Same);
        } else if piece.iter().all(is_thinking) {
            pieces.push(PieceChange::Gone);
        } else {
            let (parts, more) = rest.split_at_checked(piece.len())?;
            let fits = |(old, new): (&Part, &Part)| match (old, new) {
                (Part::ToolCall(old), Part::ToolCall(new)) => old.id == new.id,
                (Part::ToolCall(_) | Part::Thinking(_), _) => false,
                (old, new) => old == new || new.as_text().is_some(),
            };
            if !piece.iter().zip(parts).all(fits) {
                return None;
            }
            rest = more;
            pieces.push(PieceChange::Changed(parts));
        }
    }
    rest.is_empty().then_some(pieces)
}

pub(crate) fn is_thinking(part: &Part) -> bool {
    matches!(part, Part::Thinking(_))
}

#[cfg(test)]
mod tests {
    use plimsoll_context::{CallId, Thinking, ToolCall};

    use super::*;

    fn call(id: &str, arguments: &str) -> Part {
        Part::ToolCall(ToolCall {
            id: CallId(id.into()),
            name: "f".into(),
            arguments: arguments.into(),
            opaque: None,
        })
    }

    #[test]
    fn an_edit_is_found_piece_by_piece() {
        let thought = || {
            Part::Thinking(Thinking {
                text: "hm".into(),
                opaque: None,
            })
        };
        let old = [
            vec![thought()],
            vec![Part::text("a"), Part::text("cited")],
            vec![call("1", "{}")],
        ];
        let whole: Vec<Part> = old.concat();
        assert_eq!(
            align(&old, &whole).unwrap(),
            [const { PieceChange::Same }; 3]
        );
        let silent = whole.get(1..).unwrap();
        let pieces = align(&old, silent).unwrap();
        assert_eq!(
            pieces,
            [PieceChange::Gone, PieceChange::Same, PieceChange::Same]
        );
        let shorter = [
            thought(),
            Part::text("b"),
            Part::text("cited"),
            call("1", "[]"),
        ];
        let [_, texts @ .., last] = &shorter;
        let expected = [
            PieceChange::Same,
            PieceChange::Changed(texts),
            PieceChange::Changed(std::slice::from_ref(last)),
        ];
        assert_eq!(align(&old, &shorter).unwrap(), expected);
        // Another call, fewer parts, more parts, and another part in place of a call.
        for other in [
            vec![
                thought(),
                Part::text("a"),
                Part::text("cited"),
                call("2", "{}"),
            ],
            vec![thought(), Part::text("a")],
            [whole.clone(), vec![Part::text("more")]].concat(),
            vec![
                thought(),
                Part::text("a"),
                Part::text("cited"),
                Part::text("x"),
            ],
        ] {
            assert_eq!(align(&old, &other), None, "{other:?}");
        }
    }
}
