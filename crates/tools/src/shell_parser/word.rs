//! [`ShellWord`]: a word of a shell command as the program would receive it, as far as it is known
//! before the command runs.

use plimsoll_agent::ShellText;
use rable::{Node, NodeKind};

/// The characters that end an unquoted word.
const METACHARACTERS: &str = " \t\n;&|<>()";

/// A word without its quotes.
#[derive(Debug, Clone, Default)]
pub(super) struct ShellWord<'a> {
    /// The text; parts may be unknown.
    pub(super) text: Vec<ShellText>,
    /// Commands in substitutions within the word.
    pub(super) nodes: Vec<&'a Node>,
    /// Text within the word that the shell expands as well, such as the default value of a variable.
    pub(super) embedded: Vec<String>,
    /// Scripts in substitutions that the parser has not parsed.
    pub(super) scripts: Vec<&'a str>,
    /// The elements, if the word assigns an array.
    pub(super) elements: Option<&'a str>,
    /// The word has an unsupported form.
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

impl<'a> ShellWord<'a> {
    /// Parses a word. Returns `None` if the node is not a word.
    pub(super) fn of(node: &'a Node) -> Option<Self> {
        let NodeKind::Word { value, parts, .. } = &node.kind else {
            return None;
        };
        let mut word = Self::default();
        if let Some(elements) = array(value) {
            // The elements are parsed later like the words of a command.
            word.elements = Some(elements);
            word.add_unknown();
            return Some(word);
        }
        for part in parts {
            word.part(&part.kind, value);
        }
        word.is_odd |= word.quote != Quote::None;
        // An empty word is valid as well.
        if word.text.is_empty() {
            word.add("");
        }
        Some(word)
    }

    /// Returns a completely unknown word.
    pub(super) fn unknown() -> Self {
        Self {
            text: vec![ShellText::Unknown],
            ..Self::default()
        }
    }

    /// Returns a literal word.
    pub(super) fn of_text(text: &str) -> Self {
        Self {
            text: vec![ShellText::Literal(text.to_owned())],
            ..Self::default()
        }
    }

    /// Returns the text if the whole word is literal.
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
                // The node has no text of its own. Without the `$`, the whole word is searched for
                // other expansions.
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

    /// Reads text that may contain quotes.
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
                (Quote::None, '[') if raw == "[" => self.push(c),
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

    /// An empty quoted text still makes a word.
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

/// Returns the text between the parentheses of `name=(…)` and `name+=(…)`.
fn array(value: &str) -> Option<&str> {
    let (name, elements) = value.strip_suffix(')')?.split_once("=(")?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(is_name)).then_some(elements)
}

/// Returns the script of a `$(…)` that the parser has not parsed.
fn substituted(raw: &str) -> Option<&str> {
    raw.strip_prefix("$(")?.strip_suffix(')')
}
