//! Finds settings in JSON and in fragments of JavaScript, Rust and C++.
//!
//! Three of the imported systems are configured by code. Nothing is executed: settings with a plain
//! value are found with their lines, and any other expression becomes [`WrittenValue::Code`].

use super::super::document::{Node, Table, TableEntry, WrittenValue};
use super::MAX_DEPTH;

/// The prefix of the name of a method that is called with one value: `.max_turns(3)`.
pub(super) const CALL: char = '.';

/// Values that mean "not set".
const NOTHING: [&str; 6] = ["null", "undefined", "None", "nullptr", "NULL", "nullopt"];
/// Functions that return their argument, for the purpose of a setting.
const SAME: [&str; 8] = [
    "Some",
    "Ok",
    "from",
    "new",
    "String",
    "Number",
    "from_secs",
    "from_secs_f64",
];
/// Functions that return an environment variable.
const VARIABLE: [&str; 4] = ["var", "getenv", "getEnvVar", "get"];

#[derive(Debug, Clone, PartialEq)]
enum Token {
    /// A name, qualified or not, such as `config.maxSteps` or `Scope::FixedCount`.
    Word(String),
    Text(String),
    Number(String),
    Sign(char),
}

struct LocatedToken {
    token: Token,
    line: usize,
}

/// Returns the settings of a text, or `None` if tables are nested too deeply.
pub(super) fn read(text: &str) -> Option<Table> {
    let mut reader = CodeReader {
        tokens: tokens(text),
        at: 0,
        depth: 0,
        is_too_deep: false,
        called: Vec::new(),
    };
    let table = Table(reader.entries(None));
    (!reader.is_too_deep).then_some(table)
}

struct CodeReader {
    tokens: Vec<LocatedToken>,
    at: usize,
    depth: usize,
    is_too_deep: bool,
    /// The method calls on values, which may be a builder's.
    called: Vec<TableEntry>,
}

impl CodeReader {
    fn peek(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead).map(|lexed| &lexed.token)
    }

    fn is(&self, ahead: usize, sign: char) -> bool {
        self.peek(ahead) == Some(&Token::Sign(sign))
    }

    fn line(&self) -> usize {
        let here = self.tokens.get(self.at).or(self.tokens.last());
        here.map_or(1, |lexed| lexed.line)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.peek(0).cloned();
        self.at += 1;
        token
    }

    /// Enters a table or a list. If they are nested too deeply, ends the reading and returns
    /// `false`.
    fn enter(&mut self) -> bool {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.is_too_deep = true;
            self.at = self.tokens.len();
        }
        !self.is_too_deep
    }

    /// Returns the settings up to the closing sign, in this block and in its nameless inner blocks.
    fn entries(&mut self, end: Option<char>) -> Vec<TableEntry> {
        let mut entries = Vec::new();
        if !self.enter() {
            return entries;
        }
        while let Some(token) = self.peek(0).cloned() {
            let line = self.line();
            match token {
                Token::Sign(sign) if Some(sign) == end => {
                    self.at += 1;
                    break;
                }
                Token::Sign(sign) => {
                    self.at += 1;
                    if let Some(close) = closing(sign) {
                        entries.extend(self.entries(Some(close)));
                    }
                }
                Token::Text(key) if self.is(1, ':') => {
                    self.at += 2;
                    self.set(key, line, &mut entries);
                }
                Token::Word(word) => self.word(&word, line, &mut entries),
                _ => self.at += 1,
            }
        }
        self.depth -= 1;
        entries
    }

    fn word(&mut self, word: &str, line: usize, entries: &mut Vec<TableEntry>) {
        let name = last(word).to_owned();
        let after_dot = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        let is_method =
            word.contains('.') || after_dot.is_some_and(|it| it.token == Token::Sign('.'));
        let assigns = self.is(1, '=') && !self.is(2, '=') && !self.is(2, '>');
        if self.is(1, ':') || assigns {
            self.at += 2;
            self.set(name, line, entries);
        } else if self.is(1, '(') && is_method {
            self.at += 2;
            let node = self.value();
            // A builder's method takes exactly one value.
            if self.is(0, ')') {
                self.at += 1;
                entries.extend(node.map(|node| TableEntry {
                    key: format!("{CALL}{name}"),
                    line,
                    node,
                }));
            } else {
                entries.extend(self.entries(Some(')')));
            }
        } else if self.is(1, '{') {
            self.at += 2;
            let value = WrittenValue::Table(Table(self.entries(Some('}'))));
            let node = Node { line, value };
            let key = name;
            entries.push(TableEntry { key, line, node });
        } else {
            self.at += 1;
        }
    }

    fn set(&mut self, key: String, line: usize, entries: &mut Vec<TableEntry>) {
        let node = self.expression();
        entries.extend(node.map(|node| TableEntry { key, line, node }));
        entries.append(&mut self.called);
    }

    /// Reads a value up to the end of its expression. Returns `None` if nothing is set.
    fn expression(&mut self) -> Option<Node> {
        let mut node = self.value();
        let is_variable = matches!(&node, Some(Node { value: WrittenValue::Text(text), .. }) if text.starts_with("${"));
        let ends = self.tokens.get(self.at.saturating_sub(1));
        let ends = ends.map_or(0, |lexed| lexed.line);
        while let Some(token) = self.peek(0) {
            let is_end = matches!(token, Token::Sign(',' | ';' | '}' | ')' | ']'));
            if is_end || self.line() > ends {
                break;
            }
            // `process.env.KEY || "…"` still counts as the variable.
            if !is_variable {
                let (line, value) = (self.line(), WrittenValue::Code);
                node = Some(Node { line, value });
            }
            let opens = match token {
                Token::Sign(sign) => closing(*sign),
                _ => None,
            };
            self.at += 1;
            if opens.is_some() {
                self.entries(opens);
            }
        }
        node
    }

    fn value(&mut self) -> Option<Node> {
        let line = self.line();
        let value = match self.next()? {
            Token::Text(text) => WrittenValue::Text(text),
            Token::Number(digits) => number(&digits),
            Token::Sign('{') => WrittenValue::Table(Table(self.entries(Some('}')))),
            Token::Sign('[') => WrittenValue::List(self.values(']')),
            Token::Sign('&') => return self.value(),
            Token::Word(word) => return self.named(&word, line),
            Token::Sign(_) => {
                self.at -= 1;
                WrittenValue::Code
            }
        };
        self.methods();
        Some(Node { line, value })
    }

    /// Reads a value that begins with a name.
    fn named(&mut self, word: &str, line: usize) -> Option<Node> {
        let name = last(word);
        let text = |text: &str| WrittenValue::Text(text.to_owned());
        let value = if NOTHING.contains(&name) {
            return None;
        } else if let Some(variable) = word.strip_prefix("process.env.") {
            WrittenValue::Text(format!("${{{variable}}}"))
        } else if self.is(0, '(') {
            self.at += 1;
            let values = self.values(')');
            called(word, values)?
        } else if self.is(0, '{') {
            self.at += 1;
            let table = WrittenValue::Table(Table(self.entries(Some('}'))));
            if word.contains("::") {
                one(name, Node { line, value: table })
            } else {
                table
            }
        } else if self.is(0, '=') {
            // The name before it was a type.
            self.at += 1;
            return self.value();
        } else {
            match name {
                "true" => WrittenValue::Flag(true),
                "false" => WrittenValue::Flag(false),
                _ if word.contains("::") => text(name),
                _ => WrittenValue::Code,
            }
        };
        self.methods();
        Some(Node { line, value })
    }

    fn values(&mut self, close: char) -> Vec<Node> {
        let mut values = Vec::new();
        if !self.enter() {
            return values;
        }
        while self.peek(0).is_some() && !self.is(0, close) {
            let before = self.at;
            values.extend(self.expression());
            if self.is(0, ',') || self.at == before {
                self.at += 1;
            }
        }
        self.at += 1;
        self.depth -= 1;
        values
    }

    /// Reads the method calls on a value: `.to_string()`, `.await?`, `!`.
    fn methods(&mut self) {
        loop {
            if self.is(0, '?') || self.is(0, '!') {
                self.at += 1;
            } else if let (true, Some(Token::Word(word))) = (self.is(0, '.'), self.peek(1)) {
                let key = format!("{CALL}{word}");
                let line = self.line();
                self.at += 2;
                if self.is(0, '(') {
                    self.at += 1;
                    let mut values = self.values(')');
                    if let (Some(node), true) = (values.pop(), values.is_empty()) {
                        self.called.push(TableEntry { key, line, node });
                    }
                }
            } else {
                return;
            }
        }
    }
}

/// Returns the result of a call of a function, if it is known.
fn called(word: &str, mut values: Vec<Node>) -> Option<WrittenValue> {
    let name = last(word);
    let first = match values.len() {
        0 => None,
        _ => Some(values.swap_remove(0).value),
    };
    Some(match (name, first) {
        // `Engine::OpenAI(Settings { .. })` counts as these settings.
        (_, Some(table @ WrittenValue::Table(_))) => table,
        (name, Some(value)) if SAME.contains(&name) => value,
        (name, None) if SAME.contains(&name) => return None,
        ("from_millis", Some(WrittenValue::Whole(Some(millis)))) => {
            WrittenValue::Text(format!("{millis}ms"))
        }
        (name, Some(WrittenValue::Text(variable))) if VARIABLE.contains(&name) => {
            WrittenValue::Text(format!("${{{variable}}}"))
        }
        (name, Some(WrittenValue::Whole(Some(count)))) if word.contains("::") => {
            WrittenValue::Text(format!("{name}({count})"))
        }
        _ => WrittenValue::Code,
    })
}

fn one(name: &str, node: Node) -> WrittenValue {
    let line = node.line;
    let key = name.to_owned();
    WrittenValue::Table(Table(vec![TableEntry { key, line, node }]))
}

fn closing(sign: char) -> Option<char> {
    match sign {
        '{' => Some('}'),
        '(' => Some(')'),
        '[' => Some(']'),
        _ => None,
    }
}

/// Returns the last part of a qualified name.
fn last(word: &str) -> &str {
    word.rsplit([':', '.']).next().unwrap_or(word)
}

fn number(digits: &str) -> WrittenValue {
    let plain: String = digits
        .chars()
        .filter(|c| !matches!(c, '_' | '\''))
        .collect();
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | 'e' | 'E' | '+');
    let end = plain.find(|c| !is_part(c)).unwrap_or(plain.len());
    let plain = plain.get(..end).unwrap_or_default();
    let is_whole = plain.chars().all(|c| c.is_ascii_digit() || c == '-');
    match (is_whole, plain.parse()) {
        (true, _) => WrittenValue::Whole(plain.parse().ok()),
        (false, Ok(number)) => WrittenValue::Number(number),
        (false, Err(_)) => WrittenValue::Code,
    }
}

fn tokens(text: &str) -> Vec<LocatedToken> {
    let mut tokens: Vec<LocatedToken> = Vec::new();
    let mut chars = text.chars().peekable();
    let mut line = 1;
    while let Some(c) = chars.next() {
        let begin = line;
        let next = chars.peek().copied();
        let token = match c {
            '\n' => {
                line += 1;
                continue;
            }
            '/' if next == Some('/') => {
                while chars.next_if(|c| *c != '\n').is_some() {}
                continue;
            }
            '/' if next == Some('*') => {
                let mut before = ' ';
                for c in chars.by_ref() {
                    line += usize::from(c == '\n');
                    if before == '*' && c == '/' {
                        break;
                    }
                    before = c;
                }
                continue;
            }
            c if c.is_whitespace() => continue,
            // A Rust lifetime.
            '\'' if !chars.clone().take_while(|c| *c != '\n').any(|c| c == '\'') => continue,
            '"' | '`' | '\'' => Token::Text(quoted(c, &mut chars, &mut line)),
            c if c.is_ascii_digit() || (c == '-' && next.is_some_and(|c| c.is_ascii_digit())) => {
                let mut digits = c.to_string();
                let is_part = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '\'');
                while let Some(c) = chars.next_if(is_part) {
                    digits.push(c);
                }
                Token::Number(digits)
            }
            c if is_of_word(c) => {
                let mut word = c.to_string();
                while let Some(c) = more_of_word(&word, &mut chars) {
                    word.push(c);
                }
                // A trailing dot or colon belongs to the next token.
                let name = word.trim_end_matches(['.', ':']);
                let rest: Vec<char> = word.chars().skip(name.chars().count()).collect();
                let token = Token::Word(name.to_owned());
                tokens.push(LocatedToken { token, line });
                tokens.extend(rest.into_iter().map(|c| {
                    let token = Token::Sign(c);
                    LocatedToken { token, line }
                }));
                continue;
            }
            c => Token::Sign(c),
        };
        tokens.push(LocatedToken { token, line: begin });
    }
    tokens
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Returns the next character of a name. Its parts are separated by `.` and `::`.
fn more_of_word(word: &str, chars: &mut Chars<'_>) -> Option<char> {
    let ends_in = |sign: char| word.ends_with(sign);
    chars.next_if(|c| match c {
        '.' => !ends_in('.') && !ends_in(':'),
        // A single colon ends the name of a setting.
        ':' => !ends_in('.') && !word.ends_with("::"),
        c => is_of_word(*c) && (!ends_in(':') || word.ends_with("::")),
    })
}

/// Reads a text up to its closing quote. Escapes of JSON are decoded.
fn quoted(quote: char, chars: &mut Chars<'_>, line: &mut usize) -> String {
    let mut raw = String::new();
    while let Some(c) = chars.next().filter(|c| *c != quote) {
        *line += usize::from(c == '\n');
        match c {
            '\\' => raw.extend(['\\'].into_iter().chain(chars.next())),
            '"' => raw.push_str("\\\""),
            '\n' => raw.push_str("\\n"),
            c => raw.push(c),
        }
    }
    let plain = raw.replace("\\'", "'").replace("\\`", "`");
    serde_json::from_str(&format!("\"{plain}\"")).unwrap_or(raw)
}
