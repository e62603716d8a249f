//! [`Script`]: the words of a script, between the operators of the shell.

use plimsoll_agent::ShellText;

/// A script, split into commands.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) commands: Vec<ShellCommand>,
    /// Whether it has no operator, redirection or comment.
    pub(super) is_plain: bool,
    /// Whether a quotation does not end.
    pub(super) is_open: bool,
}

/// The words between two operators.
#[derive(Debug, Default)]
pub(super) struct ShellCommand {
    pub(super) words: Vec<ShellWord>,
    /// Whether it may be a line of a here-document.
    pub(super) may_be_data: bool,
}

/// A word of a command.
#[derive(Debug, Default)]
pub(super) struct ShellWord {
    /// The word without its quotes. Expansions are unknown.
    pub(super) text: Vec<ShellText>,
    /// The word as it was written.
    pub(super) raw: String,
    /// `<` or `>` if it belongs to a redirection. Its text is then unknown.
    pub(super) redirect: Option<char>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Quote {
    #[default]
    None,
    Single,
    Double,
    /// `$'…'`, in which a backslash escapes a quote.
    Escaped,
}

/// Reads a script character by character.
#[derive(Debug, Default)]
struct ScriptReader {
    script: Script,
    command: ShellCommand,
    word: ShellWord,
    quote: Quote,
    /// What the open parentheses and backticks are in.
    outside: Vec<(Quote, ShellCommand, ShellWord)>,
    in_backticks: bool,
    /// Whether the next word names the end of a here-document.
    begins_document: bool,
    /// The last line of the here-document in which the next commands may be.
    end_of_document: Option<String>,
}

impl Script {
    pub(super) fn read(script: &str) -> Self {
        let mut reader = ScriptReader::default();
        reader.script.is_plain = true;
        let mut chars = script.trim_matches([' ', '\t', '\n']).chars().peekable();
        while let Some(c) = chars.next() {
            let next = chars.peek().copied();
            match (reader.quote, c) {
                (Quote::Single | Quote::Escaped, '\'') | (Quote::Double, '"') => {
                    reader.quote = Quote::None;
                    reader.word.raw.push(c);
                }
                (Quote::Escaped, '\\') => drop(chars.next()),
                (Quote::Escaped, _) => {}
                (Quote::Single, c) => reader.push(c),
                (Quote::Double, '\\') => match next {
                    Some('$' | '`' | '"' | '\\') => reader.push(chars.next().unwrap_or(c)),
                    _ => reader.push(c),
                },
                (Quote::None, '\\') => {
                    reader.word.raw.push(c);
                    chars.next().into_iter().for_each(|c| reader.push(c));
                }
                (Quote::None | Quote::Double, '$') => {
                    reader.unknown(c);
                    if next == Some('(') {
                        chars.next();
                        reader.open(true);
                    } else if next == Some('\'') && reader.quote == Quote::None {
                        chars.next();
                        reader.quote = Quote::Escaped;
                    }
                }
                (Quote::None | Quote::Double, '`') => reader.backtick(),
                (Quote::Double, c) => reader.push(c),
                (Quote::None, '\'') => reader.enter(Quote::Single, c),
                (Quote::None, '"') => reader.enter(Quote::Double, c),
                (Quote::None, ' ' | '\t') => reader.end_word(),
                // `&>` redirects.
                (Quote::None, '&') if next == Some('>') => {}
                (Quote::None, '<' | '>') => {
                    let mut operator = String::from(c);
                    while let Some(more) = chars.next_if(|next| "<>&|".contains(*next)) {
                        operator.push(more);
                    }
                    reader.redirect(c);
                    reader.begins_document = operator == "<<";
                }
                (Quote::None, '(') => {
                    let word = &mut reader.word;
                    let in_word = word.redirect.is_some() && word.raw.is_empty();
                    word.raw.extend(in_word.then_some(c));
                    reader.open(in_word);
                }
                (Quote::None, ')') => reader.close(),
                (Quote::None, '\n' | ';' | '&' | '|') => reader.end_command(),
                (Quote::None, '#') if reader.word.raw.is_empty() => {
                    reader.script.is_plain = false;
                    while chars.next_if(|next| *next != '\n').is_some() {}
                }
                (Quote::None, '~') if !reader.is_before_home() => reader.push(c),
                (Quote::None, '*' | '?' | '[' | '{' | '~') => reader.unknown(c),
                (Quote::None, c) => reader.push(c),
            }
        }
        reader.end_word();
        let is_plain = reader.script.is_plain;
        reader.script.is_open = reader.quote != Quote::None;
        while !reader.outside.is_empty() {
            reader.close();
        }
        reader.end_command();
        reader.script.is_plain = is_plain && reader.script.commands.len() == 1;
        reader.script
    }
}

impl ScriptReader {
    fn push(&mut self, c: char) {
        self.word.raw.push(c);
        match self.word.text.last_mut() {
            Some(ShellText::Literal(before)) => before.push(c),
            _ => self.word.text.push(ShellText::Literal(c.to_string())),
        }
    }

    fn unknown(&mut self, c: char) {
        self.word.raw.push(c);
        if self.word.text.last() != Some(&ShellText::Unknown) {
            self.word.text.push(ShellText::Unknown);
        }
    }

    /// Begins a quotation. An empty one is a word, too.
    fn enter(&mut self, quote: Quote, c: char) {
        self.quote = quote;
        self.word.raw.push(c);
        if self.word.text.is_empty() {
            self.word.text.push(ShellText::Literal(String::new()));
        }
    }

    /// Begins a group of commands, or a substitution in a word, which goes on afterwards.
    fn open(&mut self, in_word: bool) {
        if !in_word {
            self.end_command();
        }
        self.script.is_plain = false;
        let inside = ShellCommand {
            words: Vec::new(),
            may_be_data: self.end_of_document.is_some(),
        };
        let outside = std::mem::replace(&mut self.command, inside);
        let (quote, word) = (
            std::mem::take(&mut self.quote),
            std::mem::take(&mut self.word),
        );
        self.outside.push((quote, outside, word));
    }

    fn close(&mut self) {
        self.end_command();
        if let Some(outside) = self.outside.pop() {
            (self.quote, self.command, self.word) = outside;
        }
    }

    /// Begins or ends a substitution.
    fn backtick(&mut self) {
        self.in_backticks = !self.in_backticks;
        if self.in_backticks {
            self.unknown('`');
            self.open(true);
        } else {
            self.close();
        }
    }

    /// Checks whether `~` stands for a home directory here.
    fn is_before_home(&self) -> bool {
        self.word.raw.is_empty() || self.word.raw.ends_with([':', '='])
    }

    /// Begins a redirection. A number before it belongs to it.
    fn redirect(&mut self, operator: char) {
        self.script.is_plain = false;
        if self.word.raw.chars().all(|c| c.is_ascii_digit()) {
            self.word = ShellWord::default();
        }
        self.end_word();
        self.word.redirect = Some(operator);
    }

    fn end_word(&mut self) {
        if self.word.raw.is_empty() {
            return;
        }
        let mut word = std::mem::take(&mut self.word);
        if word.redirect.is_some() {
            if std::mem::take(&mut self.begins_document) {
                let end = word.literal().unwrap_or(&word.raw);
                self.end_of_document = Some(end.trim_start_matches('-').to_owned());
            }
            word.text = vec![ShellText::Unknown];
        } else if matches!(word.raw.as_str(), "{" | "}") {
            return self.end_command();
        } else if matches!(word.raw.as_str(), "[" | "[[" | "{}") {
            word.text = vec![ShellText::Literal(word.raw.clone())];
        }
        self.command.words.push(word);
    }

    fn end_command(&mut self) {
        self.end_word();
        self.script.is_plain = false;
        let mut word = std::mem::take(&mut self.word);
        if word.redirect.is_some() {
            word.text.push(ShellText::Unknown);
            self.command.words.push(word);
        }
        let command = std::mem::take(&mut self.command);
        let is_end = match command.words.as_slice() {
            [word] => command.may_be_data && word.literal() == self.end_of_document.as_deref(),
            _ => false,
        };
        if is_end {
            self.end_of_document = None;
        } else if !command.words.is_empty() {
            self.script.commands.push(command);
        }
        self.command.may_be_data = self.end_of_document.is_some();
    }
}

impl ShellWord {
    /// Returns the text of the word if it contains no expansion.
    pub(super) fn literal(&self) -> Option<&str> {
        match self.text.as_slice() {
            [ShellText::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Checks whether the word assigns a variable.
    pub(super) fn is_assignment(&self) -> bool {
        let Some((name, _)) = self.raw.split_once('=') else {
            return false;
        };
        let name = name.strip_suffix('+').unwrap_or(name);
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        !name.is_empty() && name.chars().all(is_name)
    }
}

/// Joins words by blanks, but for those that may be empty.
pub(super) fn joined<'a>(words: impl Iterator<Item = &'a Vec<ShellText>>) -> Vec<ShellText> {
    let mut command: Vec<ShellText> = Vec::new();
    let mut push = |part: ShellText| match (command.last_mut(), part) {
        (Some(ShellText::Unknown), ShellText::Unknown) => {}
        (Some(ShellText::Literal(before)), ShellText::Literal(text)) => before.push_str(&text),
        (_, part) => command.push(part),
    };
    let mut is_open = true;
    for word in words {
        let begins_unknown = word.first() == Some(&ShellText::Unknown);
        if !is_open && !begins_unknown {
            push(ShellText::Literal(" ".to_owned()));
        }
        word.iter().cloned().for_each(&mut push);
        is_open = word.last() == Some(&ShellText::Unknown);
    }
    command
}
