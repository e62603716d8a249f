//! [`Script`]: the answers of the model, request by request. A script has one JSON object per line,
//! so it can be written by hand.

use std::collections::VecDeque;

use crate::error::MockError;
use crate::turn::Turn;

/// The answers of the model, one turn for each request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Script(VecDeque<Turn>);

impl Script {
    /// Creates a script from turns.
    #[must_use]
    pub fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self(turns.into_iter().collect())
    }

    /// Parses one turn per line. Empty lines and lines that begin with `#` are ignored.
    ///
    /// # Errors
    /// If a line is not a valid turn.
    pub fn parse(text: &str) -> Result<Self, MockError> {
        let mut turns: VecDeque<Turn> = VecDeque::new();
        let mut repeats = None;
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bad = |line: usize, why: String| MockError::Script { line, why };
            let turn: Turn =
                serde_json::from_str(line).map_err(|error| bad(at + 1, error.to_string()))?;
            if let Some(line) = repeats {
                let why = "`repeat` is for the last turn, and more follow".to_owned();
                return Err(bad(line, why));
            }
            repeats = turn.repeat.then_some(at + 1);
            // An answer with its own body may have any status.
            let fail = turn.fail.filter(|_| turn.body.is_none());
            let mut statuses = fail.into_iter().chain(turn.fail_in_stream);
            if let Some(status) = statuses.find(|status| !(400..600).contains(status)) {
                let why = format!("{status} is no failure; give a status from 400 to 599");
                return Err(bad(at + 1, why));
            }
            turns.push_back(turn);
        }
        Ok(Self(turns))
    }

    /// Returns the number of remaining turns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if no turns remain.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the next turn; a repeating last turn stays.
    pub(crate) fn next(&mut self) -> Option<Turn> {
        if self.0.len() == 1 && self.0.front().is_some_and(|turn| turn.repeat) {
            return self.0.front().cloned();
        }
        self.0.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_line_is_named() {
        let fault = |text: &str| Script::parse(text).unwrap_err().to_string();
        assert!(
            fault("{\"say\": \"a\"}\n\n{\"sya\": \"b\"}")
                .starts_with("line 3 of the script cannot be read: unknown field `sya`")
        );
        assert_eq!(
            fault("{\"fail\": 200}"),
            "line 1 of the script cannot be read: 200 is no failure; give a status from 400 to 599"
        );
        assert!(fault("{\"say\": \"a\", \"fail_in_stream\": 600}").contains("600 is no failure"));
        assert!(Script::parse("{\"fail\": 200, \"body\": \"hm\"}").is_ok());
        assert!(
            fault("{\"say\": \"a\", \"repeat\": true}\n\n{\"say\": \"b\"}")
                .starts_with("line 1 of the script cannot be read: `repeat`")
        );
        assert!(fault("say hello").starts_with("line 1 of the script"));
    }

    #[test]
    fn the_last_turn_may_repeat() {
        let mut script =
            Script::parse("{\"say\":\"a\"}\n# so on\n{\"say\":\"b\",\"repeat\":true}").unwrap();
        let texts: Vec<String> = (0..4)
            .map(|_| script.next().unwrap().say.unwrap())
            .collect();
        assert_eq!(texts, ["a", "b", "b", "b"]);
        assert_eq!(Script::default().next(), None);
    }
}
