//! [`Word`]: a word of a shell command as the program would get it, as far as that is known before the
//! command runs.

use plimsoll_agent::ShellText;
use rable::{Node, NodeKind};

/// What ends a word, unless it is quoted.
const METACHARACTERS: &str = " \t\n;&|<>()";

/// A word without its quotes.
#[derive(Debug, Clone, Default)]
pub(super) struct Word<'a> {
    /// Its text, as far as it is known.
    pub(super) text: Vec<ShellText>,
    /// Commands in substitutions that stand in it.
    pub(super) nodes: Vec<&'a Node>,
    /// Text in it that the shell expands in its turn, such as the default of a variable.
    pub(super) embedded: Vec<String>,
    /// Scripts in substitutions that the parser has left as they were.
    pub(super) scripts: Vec<&'a str>,
    /// The elements, if it sets an array.
    pub(super) elements: Option<&'a str>,
    /// It is no word as this reader knows them.
    pub(super) is_odd: bool,
    quote: Quote,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Quote {
    #[default]
    None,
    Single,
    Double,
}

impl<'a> Word<'a> {
    /// Reads a word. `None` if it is none.
    pub(super) fn of(node: &'a Node) -> Option<Self> {
        let NodeKind::Word { value, parts, .. } = &node.kind else {
            return None;
        };
        let mut word = Self::default();
        if let Some(elements) = array(value) {
            // The elements are words, and what they hold is found as if a command had them.
            word.elements = Some(elements);
            word.add_unknown();
            return Some(word);
        }
        for part in parts {
            word.part(&part.kind, value);
        }
        word.is_odd |= word.quote != Quote::None;
        // An empty word is one as well.
        if word.text.is_empty() {
            word.add("");
        }
        Some(word)
    }

    /// A word of which nothing is known.
    pub(super) fn unknown() -> Self {
        Self {
            text: vec![ShellText::Unknown],
            ..Self::default()
        }
    }

    /// A literal word.
    pub(super) fn of_text(text: &str) -> Self {
        Self {
            text: vec![ShellText::Literal(text.to_owned())],
            ..Self::default()
        }
    }

    /// The text of a word that is literal as a whole.
    pub(super) fn literal(&self) -> Option<&str> {
        match self.text.as_slice() {
            [ShellText::Literal(text)] => Some(text),
            _ => None,
        }
    }

    fn part(&mut self, part: &'a NodeKind, value: &str) {
        match part {
            NodeKind::WordLiteral { value } => match substituted(value) {
                Some(script) => {
                    self.scripts.push(script);
                    self.add_unknown();
                }
                None => self.read(value),
            },
            NodeKind::CommandSubstitution { command, .. }
            | NodeKind::ProcessSubstitution { command, .. } => {
                self.nodes.push(command);
                self.add_unknown();
            }
            NodeKind::ParamExpansion { param, op, arg }
            | NodeKind::ParamIndirect { param, op, arg } => {
                self.embedded.push(param.clone());
                self.embedded.extend(op.iter().chain(arg).cloned());
                self.add_unknown();
            }
            NodeKind::ArithmeticExpansion { .. } => {
                // Its own text is not there; without its sign the word shows what else is in it.
                self.embedded.push(value.replace("$((", "(("));
                self.add_unknown();
            }
            NodeKind::BraceExpansion { content } | NodeKind::LocaleString { content, .. } => {
                self.embedded.push(content.trim_matches('"').to_owned());
                self.add_unknown();
            }
            NodeKind::ParamLength { .. } | NodeKind::AnsiCQuote { .. } => self.add_unknown(),
            _ => self.odd(),
        }
    }

    /// Reads text in which quotes may stand.
    fn read(&mut self, raw: &str) {
        let mut chars = raw.chars().peekable();
        let mut is_first = true;
        let mut before = ' ';
        while let Some(c) = chars.next() {
            match (self.quote, c) {
                (Quote::None, '\'') => self.enter(Quote::Single),
                (Quote::None, '"') => self.enter(Quote::Double),
                (Quote::Single, '\'') | (Quote::Double, '"') => self.quote = Quote::None,
                (Quote::Single, c) => self.push(c),
                (Quote::Double, '\\') => match chars.peek() {
                    Some('\n') => drop(chars.next()),
                    Some('$' | '`' | '"' | '\\') => self.push(chars.next().unwrap_or(c)),
                    _ => self.push(c),
                },
                (Quote::None, '\\') => match chars.next() {
                    Some('\n') | None => {}
                    Some(c) => self.push(c),
                },
                (_, '`') => self.odd(),
                (_, '$') if chars.peek() == Some(&'(') => self.odd(),
                (_, '$') => self.add_unknown(),
                (Quote::Double, c) => self.push(c),
                (Quote::None, '~') if is_first || matches!(before, ':' | '=') => self.add_unknown(),
                (Quote::None, '{') if raw == "{}" => self.push(c),
                (Quote::None, '*' | '?' | '[' | '{') => self.add_unknown(),
                (Quote::None, c) if METACHARACTERS.contains(c) => self.odd(),
                (Quote::None, c) => self.push(c),
            }
            is_first = false;
            before = c;
        }
    }

    fn odd(&mut self) {
        self.is_odd = true;
        self.add_unknown();
    }

    /// What is quoted may be empty and is a word all the same.
    fn enter(&mut self, quote: Quote) {
        self.quote = quote;
        self.add("");
    }

    fn push(&mut self, c: char) {
        self.add(c.encode_utf8(&mut [0; 4]));
    }

    fn add(&mut self, text: &str) {
        match self.text.last_mut() {
            Some(ShellText::Literal(before)) => before.push_str(text),
            _ => self.text.push(ShellText::Literal(text.to_owned())),
        }
    }

    fn add_unknown(&mut self) {
        if self.text.last() != Some(&ShellText::Unknown) {
            self.text.push(ShellText::Unknown);
        }
    }
}

/// What stands between the parentheses of `name=(…)` and `name+=(…)`.
fn array(value: &str) -> Option<&str> {
    let (name, elements) = value.strip_suffix(')')?.split_once("=(")?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(is_name)).then_some(elements)
}

/// The script in `$(…)` where the parser has left that as it was.
fn substituted(raw: &str) -> Option<&str> {
    raw.strip_prefix("$(")?.strip_suffix(')')
}
