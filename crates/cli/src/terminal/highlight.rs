//! [`Highlighter`]: colours comments, strings, numbers and keywords in common languages, line by
//! line.
//!
//! It knows words, not grammars: a full highlighter would be a tenth of the binary.

use crate::terminal::style::{CYAN, Colours, GREEN, MAGENTA, RED, Style};

/// Maximum length of a coloured line, in bytes.
const MAX_LINE: usize = 2_000;

/// The words and marks of a language.
struct Language {
    /// Names behind a fence, and file name extensions.
    names: &'static [&'static str],
    /// Marks that begin a comment up to the end of the line.
    comments: &'static [&'static str],
    /// Marks that enclose a comment of several lines.
    block: Option<(&'static str, &'static str)>,
    /// Quotes of strings that end on their line.
    quotes: &'static str,
    /// Quotes of strings of several lines.
    long_quotes: &'static [&'static str],
    keywords: &'static str,
}

const LANGUAGES: [Language; 10] = [
    Language {
        names: &["rust", "rs"],
        keywords: "as async await break const continue crate dyn else enum extern false fn for if impl in let \
            loop match mod move mut pub ref return self Self static struct super trait true type unsafe use \
            where while",
        // A single quote may be a lifetime.
        quotes: "\"",
        ..C_LIKE
    },
    Language {
        names: &["python", "py", "python3"],
        comments: &["#"],
        block: None,
        long_quotes: &["\"\"\"", "'''"],
        keywords: "False None True and as assert async await break class continue def del elif else except \
            finally for from global if import in is lambda match nonlocal not or pass raise return self try \
            while with yield",
        ..C_LIKE
    },
    Language {
        names: &["javascript", "js", "jsx", "typescript", "ts", "tsx", "mjs"],
        long_quotes: &["`"],
        keywords: "abstract any as async await boolean break case catch class const continue debugger \
            default delete do else enum export extends false finally for from function get if implements \
            import in instanceof interface let new null number of private protected public readonly return \
            set static string super switch this throw true try type typeof undefined var void while yield",
        ..C_LIKE
    },
    Language {
        names: &["go", "golang"],
        long_quotes: &["`"],
        keywords: "bool break byte case chan const continue default defer else error fallthrough false float64 \
            for func go goto if import int interface map nil package range return rune select string struct \
            switch true type var",
        ..C_LIKE
    },
    Language {
        names: &[
            "sh",
            "bash",
            "shell",
            "zsh",
            "console",
            "dockerfile",
            "makefile",
            "make",
        ],
        comments: &["#"],
        block: None,
        keywords: "case do done elif else esac exit export fi for function if in local return set source then \
            unset until while FROM RUN COPY WORKDIR ENV CMD ENTRYPOINT",
        ..C_LIKE
    },
    Language {
        names: &["json", "jsonc", "json5", "jsonl"],
        keywords: "true false null",
        ..C_LIKE
    },
    Language {
        names: &["toml", "yaml", "yml", "ini", "conf"],
        comments: &["#"],
        block: None,
        long_quotes: &["\"\"\"", "'''"],
        keywords: "true false null yes no on off",
        ..C_LIKE
    },
    Language {
        names: &["sql", "sqlite", "postgresql", "mysql"],
        comments: &["--"],
        keywords: "ADD ALTER AND AS ASC BEGIN BY CASE COMMIT CREATE DELETE DESC DISTINCT DROP ELSE END EXISTS \
            FROM GROUP HAVING IN INDEX INNER INSERT INTO IS JOIN KEY LEFT LIKE LIMIT NOT NULL ON OR ORDER \
            OUTER PRIMARY REFERENCES SELECT SET TABLE THEN UNION UNIQUE UPDATE VALUES WHEN WHERE WITH",
        ..C_LIKE
    },
    Language {
        names: &["lua", "haskell", "hs"],
        comments: &["--"],
        block: None,
        keywords: "and break case class data deriving do else elseif end false for function if import in \
            instance let local module nil not of or repeat return then true type until where while",
        ..C_LIKE
    },
    C_LIKE,
];

const C_LIKE: Language = Language {
    names: &[
        "c", "h", "cpp", "c++", "cc", "hpp", "cs", "csharp", "java", "kotlin", "kt", "swift",
        "scala", "php", "dart", "zig", "css",
    ],
    comments: &["//"],
    block: Some(("/*", "*/")),
    quotes: "\"'",
    long_quotes: &[],
    keywords: "abstract auto bool boolean break byte case catch char class const constexpr continue default \
        delete do double else enum extends extern false final finally float for fun func goto if implements \
        import in include inline int interface internal let long namespace new null nullptr operator override \
        package private protected public return short signed sizeof static string struct super switch template \
        this throw throws true try typedef typename union unsigned using val var virtual void volatile when while",
};

/// Colours code of one language, line by line.
#[derive(Clone)]
pub(crate) struct Highlighter {
    coding: Coding,
    colours: Colours,
    /// The end mark and the style of the comment or string that began on an earlier line.
    open: Option<(&'static str, Style)>,
}

#[derive(Clone, Copy)]
enum Coding {
    Unknown,
    Diff,
    Known(&'static Language),
}

impl Highlighter {
    /// Creates a highlighter for the language with this name or file name extension.
    pub(crate) fn new(language: &str, colours: Colours) -> Self {
        let name = language.split([' ', ',', '{', ':']).next();
        let name = name.unwrap_or_default().to_lowercase();
        let known = LANGUAGES
            .iter()
            .find(|of| of.names.contains(&name.as_str()));
        let coding = match (name.as_str(), known) {
            ("diff" | "patch", _) => Coding::Diff,
            (_, Some(known)) => Coding::Known(known),
            (_, None) => Coding::Unknown,
        };
        Self {
            coding,
            colours,
            open: None,
        }
    }

    /// Returns the next line in colours.
    pub(crate) fn line(&mut self, line: &str) -> String {
        if self.colours == Colours::None || line.len() > MAX_LINE {
            return line.to_owned();
        }
        match self.coding {
            Coding::Unknown => line.to_owned(),
            Coding::Diff => self.diff(line),
            Coding::Known(language) => self.code(language, line),
        }
    }

    fn diff(&self, line: &str) -> String {
        let style = match line.chars().next() {
            Some('+') => Style::of(GREEN),
            Some('-') => Style::of(RED),
            Some('@') => Style::of(CYAN),
            _ => Style::PLAIN,
        };
        self.colours.paint(style, line)
    }

    fn code(&mut self, language: &'static Language, line: &str) -> String {
        let mut coloured = String::new();
        let mut left = line;
        while !left.is_empty() {
            let (length, style) = match self.open.take() {
                Some((end, style)) => self.until(left, 0, end, style),
                None => self.token(language, left),
            };
            let (token, rest) = left.split_at_checked(length).unwrap_or((left, ""));
            coloured.push_str(&self.colours.paint(style, token));
            left = rest;
        }
        coloured
    }

    /// Returns the length and the style of the first token.
    fn token(&mut self, language: &'static Language, text: &str) -> (usize, Style) {
        const COMMENT: Style = Style::DIM;
        const TEXT: Style = Style::of(GREEN);
        if language.comments.iter().any(|mark| text.starts_with(mark)) {
            return (text.len(), COMMENT);
        }
        if let Some((begin, end)) = language.block
            && text.starts_with(begin)
        {
            return self.until(text, begin.len(), end, COMMENT);
        }
        let mut long = language.long_quotes.iter();
        if let Some(quote) = long.find(|quote| text.starts_with(**quote)) {
            return self.until(text, quote.len(), quote, TEXT);
        }
        let first = text.chars().next().unwrap_or(' ');
        if language.quotes.contains(first) {
            return (quoted(text, first), TEXT);
        }
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        if !is_part(first) {
            return (first.len_utf8(), Style::PLAIN);
        }
        let end = text.find(|c: char| !is_part(c)).unwrap_or(text.len());
        let word = text.get(..end).unwrap_or(text);
        let style = match word {
            _ if first.is_ascii_digit() => Style::of(CYAN),
            word if is_keyword(language, word) => Style::of(MAGENTA),
            _ => Style::PLAIN,
        };
        (end, style)
    }

    /// Returns the length and the style of a comment or string that ends with `end`. If it does not
    /// end on this line, it continues on the next one.
    fn until(
        &mut self,
        text: &str,
        from: usize,
        end: &'static str,
        style: Style,
    ) -> (usize, Style) {
        let rest = text.get(from..).unwrap_or_default();
        match rest.find(end) {
            Some(at) => (from + at + end.len(), style),
            None => {
                self.open = Some((end, style));
                (text.len(), style)
            }
        }
    }
}

fn is_keyword(language: &Language, word: &str) -> bool {
    let is_sql = language.names.contains(&"sql");
    let mut keywords = language.keywords.split_ascii_whitespace();
    keywords.any(|keyword| keyword == word || (is_sql && keyword.eq_ignore_ascii_case(word)))
}

/// Returns the length of a quoted string, or of the rest of the line if the quote is not closed.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
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
            ("\u{1b}[0;35m", "K<"),
            ("\u{1b}[0;32m", "T<"),
            ("\u{1b}[0;2m", "C<"),
            ("\u{1b}[0;36m", "N<"),
            ("\u{1b}[0;31m", "R<"),
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
            let mut highlighter = Highlighter::new(LANGUAGES[at].names[0], Colours::Ansi);
            for line in code.lines() {
                let coloured = highlighter.line(line);
                prop_assert_eq!(console::strip_ansi_codes(&coloured), line);
            }
        }
    }
}
