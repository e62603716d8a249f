//! [`PiecePatcher`]: an edited message written back piece by piece, each a block or an item. A piece that
//! the edit did not touch keeps its bytes; each protocol changes its own pieces.

use plimsoll_context::{Message, Part, ToolResult};

use crate::error::WireError;
use crate::frames;

/// Changes the pieces of a protocol.
pub(crate) trait PiecePatcher {
    /// Returns the parts of a piece.
    fn parts(&self, raw: &str) -> Result<Vec<Part>, WireError>;

    /// Returns a piece that says something else. Returns `None` if it cannot.
    fn changed(&self, raw: &str, old: &[Part], new: &[Part]) -> Result<Option<String>, WireError>;

    /// Returns a tool result that says something else. Returns `None` for a piece that is none.
    fn result(&self, raw: &str, new: &ToolResult) -> Result<Option<String>, WireError>;

    /// Returns the pieces of a message by itself.
    fn anew(&self, message: &Message) -> Vec<String>;

    /// Changes what depends on a piece that is gone. `old` has the parts of each piece.
    fn without_gone(
        &self,
        _old: &[Vec<Part>],
        kept: Vec<Option<String>>,
    ) -> Result<Vec<String>, WireError> {
        Ok(kept.into_iter().flatten().collect())
    }

    /// Returns the pieces of a message with what it says now.
    fn edited(&self, raws: &[&str], message: &Message) -> Result<Vec<String>, WireError> {
        let patched = match message {
            Message::ToolResult(result) => match raws {
                [raw] => self.result(raw, result)?.map(|piece| vec![piece]),
                _ => None,
            },
            message => self.in_place(raws, &frames::spoken(message))?,
        };
        Ok(patched.unwrap_or_else(|| self.anew(message)))
    }

    /// Returns the pieces with other parts in their places. Returns `None` if the parts do not stand one
    /// for one.
    fn in_place(&self, raws: &[&str], new: &[Part]) -> Result<Option<Vec<String>>, WireError> {
        let old = raws.iter().map(|raw| self.parts(raw));
        let old = old.collect::<Result<Vec<Vec<Part>>, WireError>>()?;
        let Some(pieces) = align(&old, new) else {
            return Ok(None);
        };
        let mut kept = Vec::with_capacity(raws.len());
        for ((raw, old), piece) in raws.iter().zip(&old).zip(pieces) {
            kept.push(match piece {
                Piece::Same => Some((*raw).to_owned()),
                Piece::Gone => None,
                Piece::Changed(new) => match self.changed(raw, old, new)? {
                    Some(piece) => Some(piece),
                    None => return Ok(None),
                },
            });
        }
        self.without_gone(&old, kept).map(Some)
    }
}

/// What became of one piece.
#[derive(Debug, PartialEq)]
enum Piece<'p> {
    /// Nothing.
    Same,
    /// It is not there any more.
    Gone,
    /// These parts stand in its place.
    Changed(&'p [Part]),
}

/// What became of each piece, of which one holds the parts of one block or item: each part has
/// another in its place or none, and only thinking has left. `None` where more was done.
fn align<'p>(old: &[Vec<Part>], new: &'p [Part]) -> Option<Vec<Piece<'p>>> {
    let mut rest = new;
    let mut pieces = Vec::with_capacity(old.len());
    for piece in old {
        if rest.starts_with(piece) {
            rest = rest.get(piece.len()..)?;
            pieces.push(Piece::Same);
        } else if piece.iter().all(is_thinking) {
            pieces.push(Piece::Gone);
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
            pieces.push(Piece::Changed(parts));
        }
    }
    rest.is_empty().then_some(pieces)
}

pub(crate) fn is_thinking(part: &Part) -> bool {
    matches!(part, Part::Thinking(_))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
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
        assert_eq!(align(&old, &whole).unwrap(), [const { Piece::Same }; 3]);
        let silent = whole.get(1..).unwrap();
        let pieces = align(&old, silent).unwrap();
        assert_eq!(pieces, [Piece::Gone, Piece::Same, Piece::Same]);
        let shorter = [
            thought(),
            Part::text("b"),
            Part::text("cited"),
            call("1", "[]"),
        ];
        let [_, texts @ .., last] = &shorter;
        let expected = [
            Piece::Same,
            Piece::Changed(texts),
            Piece::Changed(std::slice::from_ref(last)),
        ];
        assert_eq!(align(&old, &shorter).unwrap(), expected);
        // Another call, fewer parts, more, and something else in a call's place.
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
