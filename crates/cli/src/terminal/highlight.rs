//! [`Highlighter`]: colours comments, strings, numbers and keywords in common languages, line by
//! line.
//!
//! It knows words, not grammars: a full highlighter would be a tenth of the binary. All languages
//! share their keywords.

use console::Style;

use crate::terminal::style::{CYAN, Colours, DIM, GREEN, MAGENTA, PLAIN};

/// Maximum length of a coloured line, in bytes.
const MAX_LINE: usize = 2_000;

/// A family of languages.
struct Language {
    /// Names behind a fence, and file name extensions.
    names: &'static str,
    /// Its comments and strings. The first one that begins at a place counts.
    spans: &'static [Span],
}

/// The mark that begins a comment or a string, the one that ends it, and its style. Without an end, it
/// ends with its line; so does a string between simple quotes.
type Span = (&'static str, &'static str, Style);

const BLOCK: Span = ("/*", "*/", DIM);
const DOUBLE: Span = ("\"", "\"", GREEN);
const SINGLE: Span = ("'", "'", GREEN);

const LANGUAGES: [Language; 4] = [
    Language {
        names: "c h cpp c++ cc hpp cs csharp java kotlin kt swift scala php dart zig css javascript js jsx \
            typescript ts tsx mjs go golang json jsonc json5 jsonl",
        spans: &[("//", "", DIM), BLOCK, ("`", "`", GREEN), DOUBLE, SINGLE],
    },
    Language {
        names: "rust rs",
        // A single quote may be a lifetime.
        spans: &[("//", "", DIM), BLOCK, DOUBLE],
    },
    Language {
        names: "python py python3 ruby rb sh bash shell zsh console dockerfile makefile make toml yaml yml \
            ini conf",
        spans: &[
            ("#", "", DIM),
            ("\"\"\"", "\"\"\"", GREEN),
            ("'''", "'''", GREEN),
            DOUBLE,
            SINGLE,
        ],
    },
    Language {
        names: "sql sqlite postgresql mysql lua haskell hs",
        spans: &[("--", "", DIM), BLOCK, DOUBLE, SINGLE],
    },
];

/// The keywords of all languages, in lower case.
const KEYWORDS: &str = "abstract add all alter and any as asc assert async auto await begin between bool boolean \
    break by byte case catch chan char class commit const constexpr continue crate create data debugger \
    def default defer del delete deriving desc distinct do done double drop dyn elif else elseif end ensure \
    enum esac except exists exit export extends extern fallthrough false fi final finally float fn for \
    foreign from fun func function get global go goto group having if impl implements import in include \
    index inline inner insert instance instanceof int interface internal into is join key lambda left let \
    like limit local long loop map match mod module move mut namespace new nil none nonlocal not null \
    nullptr number of off on operator or order outer override package pass priv primary private protected \
    pub public raise range readonly ref references repeat require rescue return rollback select self set \
    short signed sizeof source static string struct super switch table template then this throw throws \
    trait true try type typedef typename typeof undefined union unique unless unsafe unset unsigned until \
    update use using val values var virtual void volatile when where while with yes yield";

/// Colours code of one language, line by line.
#[derive(Clone)]
pub(crate) struct Highlighter {
    /// `None` if the language is unknown.
    language: Option<&'static Language>,
    is_diff: bool,
    colours: Colours,
    /// The comment or string that began on an earlier line.
    open: Option<&'static Span>,
}

impl Highlighter {
    /// Creates a highlighter for the language with this name or file name extension.
    pub(crate) fn new(language: &str, colours: Colours) -> Self {
        let name = language.split([' ', ',', '{', ':']).next();
        let name = name.unwrap_or_default().to_lowercase();
        let is_named = |of: &&Language| of.names.split(' ').any(|other| other == name);
        Self {
            language: LANGUAGES.iter().find(is_named),
            is_diff: matches!(name.as_str(), "diff" | "patch"),
            colours,
            open: None,
        }
    }

    /// Returns the next line in colours.
    pub(crate) fn line(&mut self, line: &str) -> String {
        if self.colours == Colours::None || line.len() > MAX_LINE {
            return line.to_owned();
        }
        if self.is_diff {
            return self.colours.diff_line(line);
        }
        let Some(language) = self.language else {
            return line.to_owned();
        };
        let mut coloured = String::new();
        let mut rest = line;
        while !rest.is_empty() {
            let (length, style) = match self.open.take() {
                Some(span) => self.until(rest, 0, span),
                None => self.token(language, rest),
            };
            let (token, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
            coloured.push_str(&self.colours.paint(style, token));
            rest = after;
        }
        coloured
    }

    /// Returns the length and the style of the first token.
    fn token(&mut self, language: &'static Language, text: &str) -> (usize, Style) {
        let mut spans = language.spans.iter();
        if let Some(span) = spans.find(|(begin, ..)| text.starts_with(begin)) {
            return self.until(text, span.0.len(), span);
        }
        let first = text.chars().next().unwrap_or(' ');
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        if !is_part(first) {
            return (first.len_utf8(), PLAIN);
        }
        let end = text.find(|c: char| !is_part(c)).unwrap_or(text.len());
        let word = text.get(..end).unwrap_or(text);
        let lower = word.to_lowercase();
        let style = match first {
            '0'..='9' => CYAN,
            _ if KEYWORDS.split(' ').any(|keyword| keyword == lower) => MAGENTA,
            _ => PLAIN,
        };
        (end, style)
    }

    /// Returns the length and the style of a span whose content begins at `from`. If it does not end on
    /// this line, it may continue on the next one.
    fn until(&mut self, text: &str, from: usize, span: &'static Span) -> (usize, Style) {
        let (_, end, style) = span;
        let mut is_escaped = false;
        for (at, c) in text.char_indices().skip_while(|(at, _)| *at < from) {
            let rest = text.get(at..).unwrap_or_default();
            if !is_escaped && !end.is_empty() && rest.starts_with(end) {
                return (at + end.len(), style.clone());
            }
            is_escaped = !is_escaped && c == '\\';
        }
        self.open = (!matches!(*end, "" | "\"" | "'")).then_some(span);
        (text.len(), style.clone())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn marked(language: &str, code: &str) -> String {
        let mut highlighter = Highlighter::new(language, Colours::Ansi);
        let lines: Vec<String> = code.lines().map(|line| highlighter.line(line)).collect();
        let text = lines.join("\n");
        [
            ("\u{1b}[35m", "K<"),
            ("\u{1b}[32m", "T<"),
            ("\u{1b}[2m", "C<"),
            ("\u{1b}[36m", "N<"),
            ("\u{1b}[31m", "R<"),
            ("\u{1b}[0m", ">"),
        ]
        .into_iter()
        .fold(text, |text, (code, mark)| text.replace(code, mark))
    }

    #[test]
    fn words_texts_numbers_and_comments_have_colours() {
        for (language, code, expected) in [
            (
                "rust",
                "fn fnx<'a>(x: u8) { \"a\\\"b\"; 42 } // no",
                "K<fn> fnx<'a>(x: u8) { T<\"a\\\"b\">; N<42> } C<// no>",
            ),
            ("rs", "/* a\nb */ let", "C</* a>\nC<b */> K<let>"),
            (
                "python",
                "x = '''a\nb''' # no",
                "x = T<'''a>\nT<b'''> C<# no>",
            ),
            ("sql", "select 1 -- x", "K<select> N<1> C<-- x>"),
            ("diff", "+a\n-b\n c", "T<+a>\nR<-b>\n c"),
            ("unheard-of", "fn x", "fn x"),
            ("js", "\"open", "T<\"open>"),
        ] {
            assert_eq!(marked(language, code), expected, "{language}");
        }
    }

    proptest! {
        #[test]
        fn no_code_is_lost(code in "[a1 \"'/*#`\\\\語\n-]{0,60}", at in 0_usize..LANGUAGES.len()) {
            let mut highlighter = Highlighter::new(LANGUAGES[at].names.split(' ').next().unwrap_or_default(), Colours::Ansi);
            for line in code.lines() {
                let coloured = highlighter.line(line);
                prop_assert_eq!(console::strip_ansi_codes(&coloured), line);
            }
        }
    }
}
