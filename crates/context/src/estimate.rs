//! [`Estimate`]: estimates token counts without a vocabulary, in one pass over the bytes.
//!
//! For exact counts see `bpe.rs`; for the calibration by a provider's reports see `calibration.rs`.
//!
//! Every current vocabulary first splits a text into words, numbers, runs of signs and blanks, and
//! merges only within these pieces. The estimate does the same: it finds the pieces and adds up the
//! average number of o200k tokens for a piece of this class and length. The averages were measured
//! on manuals, source code and JSON that no test uses.

mod weights;

use crate::counter::TokenCounter;
use crate::tokens::Tokens;

use weights::{MILLI, Script, Weight, script};

/// The minimum length of a run of letters and digits that may be base64, in characters.
const RANDOM_MIN: u32 = 24;
/// The size of a base64 character, in thousandths of a token: 1.47 bytes per token, for random
/// bytes and for encoded text alike.
const RANDOM: u64 = 680;

/// A script-aware estimate: Latin words by case and length, digits, signs, blanks, Chinese,
/// Japanese and Korean by character, other alphabets by word, emoji, and long random runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Estimate;

impl TokenCounter for Estimate {
    fn name(&self) -> &str {
        "estimate"
    }

    fn text(&self, text: &str) -> Tokens {
        let mut scan = TextScan::new(text);
        while scan.step().is_some() {}
        scan.finish()
    }
}

/// Classes of bytes. Bytes above 127 are classified by their character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Blank,
    Line,
    Sign,
    High,
}

/// The character before the first letter of a piece, either part of the piece or just before it. It
/// influences how likely the whole piece is one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lead {
    /// A blank, which belongs to the piece.
    Blank,
    /// One of `.`, `_` and `(`, which belongs to the piece.
    Joint,
    /// Another single sign, which belongs to the piece.
    Sign,
    /// Nothing: after a new line, or after signs that are a piece of their own.
    Nothing,
    /// Nothing, after a quotation mark.
    Quote,
    /// Nothing, after a letter or digit.
    Inside,
}

/// The capitalization of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    /// Small letters.
    Lower,
    /// Capitals, then small letters.
    Title,
    /// Capitals.
    Upper,
    /// Not applicable: digits, or letters beyond ASCII.
    None,
}

#[derive(Debug)]
struct TextScan<'a> {
    text: &'a str,
    bytes: &'a [u8],
    /// The position at which the next piece begins, after its lead.
    at: usize,
    lead: Lead,
    /// The estimate so far, in thousandths of tokens.
    sum: u64,
    run: Run,
}

/// A run of letters and digits without a blank. If its characters change class all the time, it is
/// random (base64, a key, a signature), and the averages for words do not apply.
#[derive(Debug, Default)]
struct Run {
    /// The sum before the run.
    before: u64,
    chars: u32,
    pieces: u32,
    /// Pieces with capitals.
    capitals: u32,
    /// Pieces with small letters.
    smalls: u32,
}

impl<'a> TextScan<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            lead: Lead::Nothing,
            sum: 0,
            run: Run::default(),
        }
    }

    /// Consumes one piece, or the lead of one.
    #[inline]
    fn step(&mut self) -> Option<()> {
        match self.class(self.at)? {
            Class::Lower | Class::Upper => self.word(),
            Class::Digit => self.number(),
            Class::Blank | Class::Line => self.blanks(),
            Class::Sign => self.signs(),
            Class::High => self.high()?,
        }
        Some(())
    }

    fn finish(mut self) -> Tokens {
        self.lone_lead();
        self.end_run();
        Tokens(self.sum.div_ceil(MILLI))
    }

    fn word(&mut self) {
        let upper = self.end_of(Class::Upper, self.at);
        let lower = self.end_of_lower(upper);
        if self.class(lower) == Some(Class::High) && self.script_at(lower) == Some(Script::Latin) {
            self.accented();
            return;
        }
        let len = lower - self.at;
        let case = if upper == self.at {
            Case::Lower
        } else if lower > upper {
            Case::Title
        } else {
            Case::Upper
        };
        self.letters(len, case, Weight::word(case, self.lead).of(len));
        self.at = lower + self.contraction(lower);
    }

    fn accented(&mut self) {
        let mut len = 0;
        let mut end = self.at;
        for c in self.rest(self.at).chars() {
            if !c.is_ascii_alphabetic() && (c.is_ascii() || script(c) != Script::Latin) {
                break;
            }
            len += 1;
            end += c.len_utf8();
        }
        self.letters(len, Case::None, Weight::ACCENTED.of(len));
        self.at = end;
    }

    fn number(&mut self) {
        let end = self.end_of(Class::Digit, self.at);
        let len = end - self.at;
        if self.lead != Lead::Inside {
            self.lone_lead();
            self.end_run();
        }
        self.lead = Lead::Inside;
        // Each group of three digits is one token.
        self.letters(len, Case::None, (len as u64).div_ceil(3) * MILLI);
        self.at = end;
    }

    /// Consumes blanks. Blanks up to the last line end are one piece; the last blank after it is
    /// the lead of the next piece.
    fn blanks(&mut self) {
        self.lone_lead();
        self.end_run();
        let (mut end, mut lines) = (self.at, self.at);
        loop {
            match self.class(end) {
                Some(Class::Line) => (end, lines) = (end + 1, end + 1),
                Some(Class::Blank) => end += 1,
                _ => break,
            }
        }
        if lines > self.at {
            self.sum += Weight::LINES.of(lines - self.at);
        }
        self.lead = if end == lines {
            Lead::Nothing
        } else {
            Lead::Blank
        };
        if end - lines > 1 {
            self.sum += Weight::BLANKS.of(end - lines - 1);
        }
        self.at = end;
    }

    fn signs(&mut self) {
        let end = self.end_of(Class::Sign, self.at);
        let (len, first) = (end - self.at, self.bytes.get(self.at).copied());
        let follows = self.class(end);
        let leads = matches!(self.lead, Lead::Inside | Lead::Nothing | Lead::Quote)
            && matches!(follows, Some(Class::Lower | Class::Upper));
        if len == 1 && leads {
            self.lead = match first {
                Some(b'.' | b'_' | b'(') => Lead::Joint,
                _ => Lead::Sign,
            };
            // Signs that occur in base64 do not end a run.
            if !matches!(first, Some(b'+' | b'/' | b'-' | b'_')) {
                self.end_run();
            }
            self.at = end;
            return;
        }
        self.end_run();
        let signs = self.bytes.get(self.at..end).unwrap_or_default();
        let lines = self.end_of(Class::Line, end);
        let weight = if signs.iter().all(|sign| Some(*sign) == first) {
            Weight::SIGNS_SAME
        } else if lines > end {
            Weight::SIGNS_LINE
        } else if signs.contains(&b'"') {
            Weight::SIGNS_QUOTE
        } else {
            Weight::SIGNS
        };
        self.sum += weight.of(len);
        self.lead = match signs.last() {
            Some(b'"') if lines == end => Lead::Quote,
            _ => Lead::Nothing,
        };
        self.at = lines;
    }

    /// Consumes a run of one script above ASCII.
    fn high(&mut self) -> Option<()> {
        let first = self.script_at(self.at)?;
        match first {
            Script::Latin => self.accented(),
            Script::Han | Script::Hiragana | Script::Katakana | Script::Hangul => self.cjk(),
            _ => {
                let (mut len, mut end, mut same) = (0, self.at, true);
                let mut chars = self.rest(self.at).chars();
                let head = chars.clone().next();
                while let Some(c) = chars
                    .next()
                    .filter(|c| !c.is_ascii() && script(*c) == first)
                {
                    same &= Some(c) == head;
                    len += 1;
                    end += c.len_utf8();
                }
                self.apart(Weight::run(first, same).of(len));
                self.lead = if first.is_letters() {
                    Lead::Inside
                } else {
                    Lead::Nothing
                };
                self.at = end;
            }
        }
        Some(())
    }

    /// Consumes a clause of Chinese, Japanese or Korean by character, since its words are not
    /// separated.
    fn cjk(&mut self) {
        let (mut end, mut han, mut traditional, mut kana, mut rest) = (self.at, 0, 0, 0, 0);
        for c in self.rest(self.at).chars() {
            match script(c) {
                Script::Han if weights::is_traditional(c) => traditional += 1,
                Script::Han => han += 1,
                Script::Hiragana => kana += weights::HIRAGANA,
                Script::Katakana => kana += weights::KATAKANA,
                Script::Hangul => rest += weights::HANGUL,
                _ => break,
            }
            end += c.len_utf8();
        }
        let ideographs = match kana {
            0 => han * weights::HAN + traditional * weights::TRADITIONAL,
            // Japanese has its own forms, and fewer of its words are in the vocabulary.
            _ => (han + traditional) * weights::KANJI,
        };
        self.apart((weights::CLAUSE + ideographs + kana + rest).max(MILLI));
        self.lead = Lead::Inside;
        self.at = end;
    }

    /// Adds letters or digits, and updates the statistics of the run they belong to.
    #[inline]
    fn letters(&mut self, len: usize, case: Case, weight: u64) {
        if matches!(self.lead, Lead::Blank | Lead::Nothing | Lead::Quote) {
            self.end_run();
        }
        self.run.chars += len as u32;
        self.run.pieces += 1;
        self.run.capitals += u32::from(matches!(case, Case::Title | Case::Upper));
        self.run.smalls += u32::from(matches!(case, Case::Title | Case::Lower));
        self.sum += weight;
        self.lead = Lead::Inside;
    }

    /// Adds a piece that is no part of a run of letters and digits.
    #[inline]
    fn apart(&mut self, weight: u64) {
        self.end_run();
        self.sum += weight;
        self.run.before = self.sum;
    }

    #[inline]
    fn end_run(&mut self) {
        let run = &self.run;
        // A piece every three characters, with capitals and small letters mixed, is not a name.
        if run.chars >= RANDOM_MIN
            && run.pieces * 10 >= run.chars * 3
            && run.capitals.min(run.smalls) * 5 >= run.pieces
        {
            self.sum = run.before + u64::from(run.chars) * RANDOM;
        }
        self.run = Run {
            before: self.sum,
            ..Run::default()
        };
    }

    /// Counts a lead without a word after it as a token of its own.
    #[inline]
    fn lone_lead(&mut self) {
        if matches!(self.lead, Lead::Blank | Lead::Joint | Lead::Sign) {
            self.sum += MILLI;
            self.lead = Lead::Nothing;
        }
    }

    /// Returns the length of an English contraction at `at`; it usually belongs to the token before
    /// it.
    fn contraction(&self, at: usize) -> usize {
        if self.bytes.get(at) != Some(&b'\'') {
            return 0;
        }
        let letter = |at| self.bytes.get(at).map(u8::to_ascii_lowercase);
        match (letter(at + 1), letter(at + 2)) {
            (Some(b's' | b't' | b'm' | b'd'), _) => 2,
            (Some(b'r' | b'v'), Some(b'e')) | (Some(b'l'), Some(b'l')) => 3,
            _ => 0,
        }
    }

    fn rest(&self, at: usize) -> &'a str {
        self.text.get(at..).unwrap_or_default()
    }

    fn script_at(&self, at: usize) -> Option<Script> {
        self.rest(at).chars().next().map(script)
    }

    #[inline]
    fn class(&self, at: usize) -> Option<Class> {
        self.bytes.get(at).map(|byte| class(*byte))
    }

    /// Like [`Self::end_of`] for small letters, eight bytes at once. Most of a text is small
    /// letters, and a loop over bytes mispredicts its end at every word.
    #[inline]
    fn end_of_lower(&self, from: usize) -> usize {
        const ONES: u64 = 0x0101_0101_0101_0101;
        const HIGH: u64 = ONES << 7;
        let mut at = from;
        while let Some(chunk) = self.bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
            let bytes = u64::from_le_bytes(*chunk);
            let low = bytes & !HIGH;
            // The high bit of each byte: at least `a`; beyond `z`; not a small letter.
            let least = low + ONES * (0x80 - b'a' as u64);
            let beyond = low + ONES * (0x7F - b'z' as u64);
            let other = !(least & !beyond & !bytes) & HIGH;
            let letters = other.trailing_zeros() as usize / 8;
            at += letters;
            if letters < 8 {
                return at;
            }
        }
        self.end_of(Class::Lower, at)
    }

    #[inline]
    fn end_of(&self, of: Class, from: usize) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|byte| class(**byte) == of).count()
    }
}

#[inline]
const fn class(byte: u8) -> Class {
    match byte {
        b'a'..=b'z' => Class::Lower,
        b'A'..=b'Z' => Class::Upper,
        b'0'..=b'9' => Class::Digit,
        b'\n' | b'\r' => Class::Line,
        b' ' | b'\t' | 0x0B | 0x0C => Class::Blank,
        0x80.. => Class::High,
        _ => Class::Sign,
    }
}

#[cfg(test)]
#[path = "estimate/tests.rs"]
mod tests;
