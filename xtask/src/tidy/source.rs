//! Splits a Rust file into tokens with their line, and whether they are part of a test. The
//! compiler's own lexer is used; apart from that, only matching brackets are parsed.

use std::collections::BTreeSet;

use ra_ap_rustc_lexer::{FrontmatterAllowed, LiteralKind, TokenKind, tokenize};

use super::tree::File;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceTokenKind {
    /// An identifier or keyword.
    Word,
    /// A string literal of any sort.
    Text,
    /// A comment that is not documentation.
    Comment,
    /// A doc comment: `///`, `//!` and their block forms.
    Doc,
    /// Everything else except whitespace.
    Mark,
}

/// The part of a program that a token belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodePart {
    Product,
    Test,
}

/// A token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) kind: SourceTokenKind,
    pub(crate) part: CodePart,
    pub(crate) text: &'a str,
    /// The line of its first character, from 1.
    pub(crate) line: usize,
}

/// The tokens of a file, without whitespace.
#[derive(Debug)]
pub(crate) struct SourceTokens<'a> {
    tokens: Vec<Token<'a>>,
}

impl Token<'_> {
    /// Returns `true` for code, `false` for a comment.
    pub(crate) fn is_code(&self) -> bool {
        !matches!(self.kind, SourceTokenKind::Comment | SourceTokenKind::Doc)
    }

    /// Returns the lines of the token's text with their numbers.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (self.line..).zip(self.text.lines())
    }
}

impl<'a> SourceTokens<'a> {
    /// Splits a file into tokens. The path decides whether all of it is a test.
    pub(crate) fn of(file: &File, text: &'a str) -> Self {
        let mut source = Self { tokens: cut(text) };
        if file.is_test() {
            source
                .tokens
                .iter_mut()
                .for_each(|token| token.part = CodePart::Test);
        } else {
            source.mark_tests();
        }
        source
    }

    /// Returns all tokens in order.
    pub(crate) fn tokens(&self) -> &[Token<'a>] {
        &self.tokens
    }

    /// Returns the tokens of code, including tests, without comments.
    pub(crate) fn code(&self) -> Vec<Token<'a>> {
        let code = self.tokens.iter().filter(|token| token.is_code());
        code.copied().collect()
    }

    /// Counts the lines with code outside tests.
    pub(crate) fn lines_of_code(&self) -> usize {
        let product = |token: &&Token| token.is_code() && token.part == CodePart::Product;
        let tokens = self.tokens.iter().filter(product);
        let lines =
            tokens.flat_map(|token| token.lines().map(|(line, _)| line).collect::<Vec<_>>());
        lines.collect::<BTreeSet<_>>().len()
    }

    /// Marks each item under `#[cfg(test)]` or `#[test]`, and everything under `#![cfg(test)]`.
    fn mark_tests(&mut self) {
        let code = self.code();
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        let mut at = 0;
        while let Some(attribute) = attribute(&code, at) {
            let first = code.get(attribute.start).map_or(0, |token| token.line);
            at = attribute.end;
            if !attribute.is_test {
                continue;
            }
            let end = if attribute.inner {
                code.len()
            } else {
                item_end(&code, attribute.end)
            };
            let last = end.checked_sub(1).and_then(|last| code.get(last));
            ranges.push((first, last.map_or(first, |token| token.line)));
            at = end;
        }
        for token in &mut self.tokens {
            if ranges.iter().any(|(a, b)| (*a..=*b).contains(&token.line)) {
                token.part = CodePart::Test;
            }
        }
    }
}

fn cut(text: &str) -> Vec<Token<'_>> {
    let (mut tokens, mut rest, mut line) = (Vec::new(), text, 1);
    for token in tokenize(text, FrontmatterAllowed::No) {
        let length = usize::try_from(token.len).unwrap_or(usize::MAX);
        let Some((text, after)) = rest.split_at_checked(length) else {
            break;
        };
        let kind = match token.kind {
            TokenKind::Whitespace => None,
            TokenKind::LineComment { doc_style } | TokenKind::BlockComment { doc_style, .. } => {
                Some(doc_style.map_or(SourceTokenKind::Comment, |_| SourceTokenKind::Doc))
            }
            TokenKind::Ident | TokenKind::RawIdent => Some(SourceTokenKind::Word),
            TokenKind::Literal { kind, .. } if is_text(kind) => Some(SourceTokenKind::Text),
            _ => Some(SourceTokenKind::Mark),
        };
        if let Some(kind) = kind {
            let part = CodePart::Product;
            tokens.push(Token {
                kind,
                part,
                text,
                line,
            });
        }
        line += text.matches('\n').count();
        rest = after;
    }
    tokens
}

fn is_text(kind: LiteralKind) -> bool {
    matches!(
        kind,
        LiteralKind::Str { .. }
            | LiteralKind::ByteStr { .. }
            | LiteralKind::CStr { .. }
            | LiteralKind::RawStr { .. }
            | LiteralKind::RawByteStr { .. }
            | LiteralKind::RawCStr { .. }
    )
}

/// An attribute: the range of its tokens, and whether it marks a test.
struct Attribute {
    start: usize,
    end: usize,
    inner: bool,
    is_test: bool,
}

/// Returns the next attribute at or after a position.
fn attribute(code: &[Token<'_>], from: usize) -> Option<Attribute> {
    let text = |at: usize| code.get(at).map(|token| token.text);
    let mut start = from;
    loop {
        text(start)?;
        let inner = text(start) == Some("#") && text(start + 1) == Some("!");
        let open = start + 1 + usize::from(inner);
        if text(start) == Some("#") && text(open) == Some("[") {
            let end = bracket_end(code, open);
            let body = code.get(open..end).unwrap_or_default();
            let words: Vec<&str> = body
                .iter()
                .filter(|token| token.kind == SourceTokenKind::Word)
                .map(|token| token.text)
                .collect();
            let is_test = match words.as_slice() {
                ["cfg", rest @ ..] => rest.contains(&"test") && !rest.contains(&"not"),
                [only] => *only == "test",
                [_, second, ..] => *second == "test",
                [] => false,
            };
            return Some(Attribute {
                start,
                end,
                inner,
                is_test,
            });
        }
        start += 1;
    }
}

/// Returns the end of the item at a position, including its further attributes.
fn item_end(code: &[Token<'_>], from: usize) -> usize {
    let text = |at: usize| code.get(at).map(|token| token.text);
    let mut at = from;
    while text(at) == Some("#") && text(at + 1) == Some("[") {
        at = bracket_end(code, at + 1);
    }
    while let Some(mark) = text(at) {
        match mark {
            ";" => return at + 1,
            "(" | "[" => at = bracket_end(code, at),
            "{" => {
                let end = bracket_end(code, at);
                return end + usize::from(text(end) == Some(";"));
            }
            _ => at += 1,
        }
    }
    code.len()
}

/// Returns the position after the bracket that closes the one at `open`.
fn bracket_end(code: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in code.iter().enumerate().skip(open) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::Tree;

    fn source(path: &str, text: &str, check: impl Fn(&SourceTokens<'_>)) {
        let tree = Tree::of(&[(path, text)]);
        let (file, text) = tree.rust().next().unwrap();
        check(&SourceTokens::of(file, text));
    }

    #[test]
    fn kinds_and_lines() {
        let text = "//! Doc.\nlet a = \"x // no\ncomment\"; // yes\nb'c'";
        source("src/a.rs", text, |source| {
            let seen: Vec<_> = source
                .tokens()
                .iter()
                .map(|token| (token.kind, token.line, token.text))
                .collect();
            assert_eq!(
                seen,
                [
                    (SourceTokenKind::Doc, 1, "//! Doc."),
                    (SourceTokenKind::Word, 2, "let"),
                    (SourceTokenKind::Word, 2, "a"),
                    (SourceTokenKind::Mark, 2, "="),
                    (SourceTokenKind::Text, 2, "\"x // no\ncomment\""),
                    (SourceTokenKind::Mark, 3, ";"),
                    (SourceTokenKind::Comment, 3, "// yes"),
                    (SourceTokenKind::Mark, 4, "b'c'"),
                ]
            );
        });
    }

    #[test]
    fn tests_are_told_apart_wherever_they_stand() {
        let text = "\
//! Head.
#[cfg(test)]
use a::{b, c};
fn product() {}
#[derive(Debug)]
#[cfg(not(test))]
struct Also;
#[cfg(test)]
#[allow(x)]
mod tests {
    fn inner() { let brace = '}'; }
}
#[tokio::test]
async fn one() {}
fn last() {}
";
        source("src/a.rs", text, |source| {
            let mut product: Vec<_> = source
                .tokens()
                .iter()
                .filter(|token| {
                    token.part == CodePart::Product && token.kind == SourceTokenKind::Word
                })
                .map(|token| token.text)
                .collect();
            product.retain(|word| !["fn", "struct"].contains(word));
            assert_eq!(
                product,
                [
                    "product", "derive", "Debug", "cfg", "not", "test", "Also", "last"
                ]
            );
        });
        source("tests/a.rs", "fn all() {}", |source| {
            assert!(
                source
                    .tokens()
                    .iter()
                    .all(|token| token.part == CodePart::Test)
            );
        });
        source("src/a.rs", "#![cfg(test)]\nfn all() {}", |source| {
            assert!(
                source
                    .tokens()
                    .iter()
                    .all(|token| token.part == CodePart::Test)
            );
        });
    }

    #[test]
    fn code_lines_leave_out_comments_blanks_and_tests() {
        let text = "\
//! Head.

/* a
   b */
fn a() { // counted once
    \"two
     lines\";
}
#[cfg(test)]
mod tests {
    fn t() {}
}
";
        source("src/a.rs", text, |source| {
            assert_eq!(source.lines_of_code(), 4);
        });
    }
}
