//! [`align`]: which pieces of a message's text an edit of it has touched, where the edit kept its
//! parts in their order. Writes nothing; each wire writes its own pieces.

use plimsoll_context::Part;

/// What became of one piece.
#[derive(Debug, PartialEq)]
pub(crate) enum Piece<'p> {
    /// Nothing.
    Same,
    /// It is not there any more.
    Gone,
    /// These parts stand in its place.
    Changed(&'p [Part]),
}

/// What became of each piece, of which one holds the parts of one block or item: each part has
/// another in its place or none, and only thinking has left. `None` where more was done.
pub(crate) fn align<'p>(old: &[Vec<Part>], new: &'p [Part]) -> Option<Vec<Piece<'p>>> {
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
