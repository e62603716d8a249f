//! Exceptions to the rules of tidy: `tidy:allow(word)` in a comment on the same line or the line
//! before, or `tidy:allow-file(word)` anywhere for a whole file.
//!
//! They are only for words of a foreign API or of a provider's own text.

const LINE: &str = "tidy:allow(";
const FILE: &str = "tidy:allow-file(";

/// The exceptions of one file.
#[derive(Debug)]
pub(crate) struct FileExceptions<'a> {
    whole: Vec<&'a str>,
    lines: Vec<(usize, &'a str)>,
}

impl<'a> FileExceptions<'a> {
    /// Reads the markers of a file.
    pub(crate) fn of(text: &'a str) -> Self {
        let marked = |marker: &'static str| {
            (1..).zip(text.lines()).flat_map(move |(line, text)| {
                let rests = text.split(marker).skip(1);
                let words = rests.filter_map(|rest| rest.split(')').next());
                words.map(move |word| (line, word))
            })
        };
        Self {
            whole: marked(FILE).map(|(_, word)| word).collect(),
            lines: marked(LINE).collect(),
        }
    }

    /// Checks whether a word is allowed on a line.
    pub(crate) fn covers(&self, line: usize, word: &str) -> bool {
        let here =
            |(at, allowed): &(usize, &str)| *allowed == word && (*at == line || *at + 1 == line);
        self.whole.contains(&word) || self.lines.iter().any(here)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_reaches_its_line_the_next_or_the_file() {
        let text = "// tidy:allow(one)\nx\ny\nz // tidy:allow(two) tidy:allow(a b)\n";
        let allowed = FileExceptions::of(text);
        let covered = |word| -> Vec<usize> {
            let covers = |line: &usize| allowed.covers(*line, word);
            (1..=6).filter(covers).collect()
        };
        assert_eq!(covered("one"), [1, 2]);
        assert_eq!(covered("two"), [4, 5]);
        assert_eq!(covered("a b"), [4, 5]);
        assert_eq!(covered("three"), [0_usize; 0]);
        assert!(FileExceptions::of("<!-- tidy:allow-file(one) -->").covers(99, "one"));
    }
}
