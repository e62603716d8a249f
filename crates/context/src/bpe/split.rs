//! [`Splitter`]: splits a text into the pieces that an encoding merges into tokens. Each piece is
//! merged on its own. These are the published patterns of both encodings, from left to right:
//!
//! | | cl100k | o200k |
//! |---|---|---|
//! | words | letters, with one sign or blank before them | the same with marks, but a new word begins at a capital letter after a small one |
//! | `'s`, `'t`, `'re`, `'ve`, `'m`, `'ll`, `'d` | pieces | part of the word before them |
//! | numbers | up to three digits | the same |
//! | signs | a run, with a blank before it and the line ends after it | the same, with `/` among the line ends |
//! | blanks | up to the last line end; else all but the last one, if anything follows | the same |

/// Character classes, as the numbers that `tests/context/data_files.rs` assigns.
static CLASSES: &[u8] = include_bytes!("../../data/characters.classes");
/// The number of block numbers at the beginning of [`CLASSES`], and the number of characters in a
/// block.
const NUMBERS: usize = 0x11_0000 / BLOCK;
const BLOCK: usize = 256;

/// The endings of contractions, after `'`.
const CONTRACTIONS: [&str; 7] = ["s", "t", "re", "ve", "m", "ll", "d"];

/// The classes of characters that the patterns distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Sign,
    Capital,
    Small,
    /// A letter without case.
    Letter,
    Mark,
    Number,
    Blank,
}

/// The encoding whose pattern splits a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pattern {
    O200k,
    Cl100k,
}

/// An iterator over the pieces of a text.
pub(super) struct Splitter<'t> {
    pattern: Pattern,
    text: &'t str,
    at: usize,
}

impl<'t> Splitter<'t> {
    pub(super) fn new(pattern: Pattern, text: &'t str) -> Self {
        Self {
            pattern,
            text,
            at: 0,
        }
    }

    /// Returns the end of the piece that begins at `self.at`, or `None` at the end of the text.
    fn end(&self) -> Option<usize> {
        if let Some(end) = self.ascii_word() {
            return Some(end);
        }
        let (first, class, next) = self.char(self.at)?;
        let word = match self.pattern {
            Pattern::Cl100k => self.contraction(self.at).or_else(|| self.plain_word(next)),
            Pattern::O200k => self.cased_word(next),
        };
        if word.is_some() {
            return word;
        }
        match class {
            Class::Number => {
                let second = self.skip_one(next, Class::Number);
                Some(self.skip_one(second, Class::Number))
            }
            Class::Blank => {
                let signs = (first == ' ').then(|| self.signs(next)).flatten();
                Some(signs.unwrap_or_else(|| self.blanks()))
            }
            _ => self.signs(self.at).or(Some(next)),
        }
    }

    /// Matches the most common kind of piece in one pass: lowercase ASCII letters, perhaps after a
    /// blank, before a character that no pattern appends to them.
    #[inline]
    fn ascii_word(&self) -> Option<usize> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let letters = rest.strip_prefix(b" ").unwrap_or(rest);
        let count = letters
            .iter()
            .take_while(|byte| byte.is_ascii_lowercase())
            .count();
        let behind = letters.get(count).copied().unwrap_or(b' ');
        let ends = behind.is_ascii() && !behind.is_ascii_alphabetic() && behind != b'\'';
        (count > 0 && ends).then_some(self.text.len() - letters.len() + count)
    }

    /// Matches letters, perhaps after a sign or a blank that is no line end. `next` is the position
    /// after the first character.
    fn plain_word(&self, next: usize) -> Option<usize> {
        let (first, class, _) = self.char(self.at)?;
        let start = match class {
            class if class.is_letter() => self.at,
            Class::Number => return None,
            _ if is_line_end(first) => return None,
            _ => next,
        };
        let end = self.skip(start, |_, class| class.is_letter());
        (end > start).then_some(end)
    }

    /// Matches letters and marks, perhaps after a sign or a blank that is no line end: first
    /// capital letters, then small ones. Caseless letters and marks count as both.
    fn cased_word(&self, next: usize) -> Option<usize> {
        let (first, class, _) = self.char(self.at)?;
        let is_part = |class: Class| class.is_letter() || class == Class::Mark;
        let may_open = !class.is_letter() && class != Class::Number && !is_line_end(first);
        // Most signs in JSON and in code are followed by other signs. One look ahead distinguishes
        // these from words.
        let follows = || self.char(next).is_some_and(|(_, class, _)| is_part(class));
        let is_word = is_part(class) || (may_open && follows());
        if !is_word {
            return None;
        }
        let opened = |word: &dyn Fn(usize) -> Option<usize>| {
            let behind = may_open.then(|| word(next)).flatten();
            behind.or_else(|| word(self.at))
        };
        let end =
            opened(&|at| self.small_end(at)).or_else(|| opened(&|at| self.capital_end(at)))?;
        Some(self.contraction(end).unwrap_or(end))
    }

    /// Matches all capital letters that there are, followed by at least one small letter.
    fn small_end(&self, start: usize) -> Option<usize> {
        let capitals = self.skip(start, |_, class| class.is_capital());
        let end = self.skip(capitals, |_, class| class.is_small());
        if end > capitals {
            return Some(end);
        }
        // If a letter counts as both capital and small, the last such letter is the small one.
        let mut capitals = self.text.get(start..capitals)?.char_indices().rev();
        let both = capitals.find(|(_, c)| Class::of(*c).is_small());
        both.map(|(at, c)| start + at + c.len_utf8())
    }

    fn capital_end(&self, start: usize) -> Option<usize> {
        let end = self.skip(start, |_, class| class.is_capital());
        (end > start).then_some(end)
    }

    /// Matches `'s` and the other contractions, in small or capital letters.
    fn contraction(&self, at: usize) -> Option<usize> {
        let rest = self.text.get(at..)?.strip_prefix('\'')?;
        let found = CONTRACTIONS.iter().find_map(|ending| {
            let mut rest = rest.chars();
            let is_found = ending
                .chars()
                .all(|c| rest.next().is_some_and(|r| folded(r) == c));
            is_found.then_some(rest.as_str().len())
        });
        found.map(|rest| self.text.len() - rest)
    }

    /// Matches signs and the line ends after them.
    fn signs(&self, start: usize) -> Option<usize> {
        let end = self.skip(start, |_, class| matches!(class, Class::Sign | Class::Mark));
        let also = |c| is_line_end(c) || (c == '/' && self.pattern == Pattern::O200k);
        (end > start).then(|| self.skip(end, |c, _| also(c)))
    }

    fn blanks(&self) -> usize {
        let end = self.skip(self.at, |_, class| class == Class::Blank);
        let run = self.text.get(self.at..end).unwrap_or_default();
        if let Some(line_end) = run.rfind(is_line_end) {
            return self.at + line_end + 1;
        }
        let last = run.char_indices().next_back();
        match last {
            // The last blank belongs to the next piece.
            Some((last, _)) if last > 0 && end < self.text.len() => self.at + last,
            _ => end,
        }
    }

    fn skip(&self, start: usize, is: impl Fn(char, Class) -> bool) -> usize {
        let mut at = start;
        while let Some((c, class, next)) = self.char(at)
            && is(c, class)
        {
            at = next;
        }
        at
    }

    fn skip_one(&self, at: usize, class: Class) -> usize {
        let next = self.char(at).filter(|(_, found, _)| *found == class);
        next.map_or(at, |(_, _, next)| next)
    }

    /// Returns the character at a position, its class, and the position after it.
    #[inline]
    fn char(&self, at: usize) -> Option<(char, Class, usize)> {
        let byte = *self.text.as_bytes().get(at)?;
        if byte.is_ascii() {
            return Some((char::from(byte), Class::of_ascii(byte), at + 1));
        }
        let c = self.text.get(at..)?.chars().next()?;
        Some((c, Class::of(c), at + c.len_utf8()))
    }
}

impl<'t> Iterator for Splitter<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let end = self.end()?;
        let piece = self.text.get(self.at..end);
        self.at = end;
        piece
    }
}

impl Class {
    fn of(c: char) -> Self {
        let number = CLASSES.get(c as usize / BLOCK).copied().unwrap_or_default();
        let block = NUMBERS + usize::from(number) * BLOCK;
        match CLASSES.get(block + c as usize % BLOCK) {
            Some(1) => Self::Capital,
            Some(2) => Self::Small,
            Some(3) => Self::Letter,
            Some(4) => Self::Mark,
            Some(5) => Self::Number,
            Some(6) => Self::Blank,
            _ => Self::Sign,
        }
    }

    #[inline]
    const fn of_ascii(byte: u8) -> Self {
        match byte {
            b'a'..=b'z' => Self::Small,
            b'A'..=b'Z' => Self::Capital,
            b'0'..=b'9' => Self::Number,
            b'\t'..=b'\r' | b' ' => Self::Blank,
            _ => Self::Sign,
        }
    }

    fn is_letter(self) -> bool {
        matches!(self, Self::Capital | Self::Small | Self::Letter)
    }

    fn is_capital(self) -> bool {
        matches!(self, Self::Capital | Self::Letter | Self::Mark)
    }

    fn is_small(self) -> bool {
        matches!(self, Self::Small | Self::Letter | Self::Mark)
    }
}

fn is_line_end(c: char) -> bool {
    matches!(c, '\r' | '\n')
}

/// Returns the lowercase form of a letter of a contraction. `ſ` is another form of `s`.
fn folded(c: char) -> char {
    match c {
        'ſ' => 's',
        c => c.to_ascii_lowercase(),
    }
}
