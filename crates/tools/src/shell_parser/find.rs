//! [`Finder`]: finds every simple command that a script may run, at any place.

use plimsoll_agent::ShellText;
use rable::{Node, NodeKind};

use super::word::ShellWord;
use super::{MAX_TEXT, parse};

/// Maximum nesting of scripts within scripts.
const MAX_DEPTH: usize = 8;
/// Maximum number of places within a word at which a script may begin. A word with more is unclear.
const MAX_VALUES: usize = 64;
/// Builtins of the shell that run their arguments, or read them as a script.
const RUN_ARGUMENTS: [&str; 7] = [".", "builtin", "command", "eval", "exec", "source", "trap"];

/// Collects the commands of a script.
#[derive(Debug, Default)]
pub(super) struct Finder {
    /// The simple commands that the shell itself would run.
    pub(super) commands: Vec<Vec<ShellText>>,
    /// Texts that a command may run: its arguments, and scripts in its words.
    pub(super) hidden: Vec<Vec<ShellText>>,
    /// Whether a part of the script cannot be followed.
    pub(super) is_unclear: bool,
    /// The total length of the commands.
    size: usize,
    depth: usize,
}

impl Finder {
    /// Finds all commands of a script.
    pub(super) fn of(nodes: &[Node]) -> Self {
        let mut finder = Self::default();
        finder.all(nodes);
        finder
    }

    /// Returns the result for a script that cannot be parsed.
    pub(super) fn unclear() -> Self {
        Self {
            is_unclear: true,
            ..Self::default()
        }
    }

    fn all<'a>(&mut self, nodes: impl IntoIterator<Item = &'a Node>) {
        for node in nodes {
            self.node(node);
        }
    }

    fn node(&mut self, node: &Node) {
        match &node.kind {
            NodeKind::Command {
                assignments,
                words,
                redirects,
            } => {
                self.all(assignments.iter().chain(redirects));
                self.all(words);
                let assigned = assignments.iter().filter_map(ShellWord::of);
                assigned.for_each(|word| self.word(&word));
                let words = words
                    .iter()
                    .map(|word| ShellWord::of(word).unwrap_or_else(ShellWord::unknown));
                self.command(&words.collect::<Vec<_>>());
            }
            NodeKind::Word { .. } => {
                if let Some(word) = ShellWord::of(node) {
                    self.is_unclear |= word.is_odd;
                    if let Some(elements) = word.elements {
                        self.elements(elements);
                    }
                    self.all(word.nodes.iter().copied());
                    word.embedded.iter().for_each(|text| self.embedded(text));
                    word.scripts.iter().for_each(|text| self.script(text));
                }
            }
            NodeKind::Pipeline { commands, .. } => self.all(commands),
            NodeKind::List { items } => self.all(items.iter().map(|item| &item.command)),
            NodeKind::If {
                condition,
                then_body,
                else_body,
                redirects,
            } => {
                let bodies = [condition, then_body].into_iter().chain(else_body);
                self.all(bodies.map(Box::as_ref).chain(redirects));
            }
            NodeKind::While {
                condition,
                body,
                redirects,
            }
            | NodeKind::Until {
                condition,
                body,
                redirects,
            } => self.all(
                [condition, body]
                    .map(Box::as_ref)
                    .into_iter()
                    .chain(redirects),
            ),
            NodeKind::For {
                words,
                body,
                redirects,
                ..
            }
            | NodeKind::Select {
                words,
                body,
                redirects,
                ..
            } => {
                self.all(words.iter().flatten());
                self.all(std::iter::once(body.as_ref()).chain(redirects));
            }
            NodeKind::ForArith {
                init,
                cond,
                incr,
                body,
                redirects,
            } => {
                for text in [init, cond, incr] {
                    self.arithmetic(text);
                }
                self.all(std::iter::once(body.as_ref()).chain(redirects));
            }
            NodeKind::Case {
                word,
                patterns,
                redirects,
            } => {
                self.all(std::iter::once(word.as_ref()).chain(redirects));
                for case in patterns {
                    self.all(case.patterns.iter().chain(&case.body));
                }
            }
            NodeKind::Subshell { body, redirects }
            | NodeKind::BraceGroup { body, redirects }
            | NodeKind::ConditionalExpr { body, redirects } => {
                self.all(std::iter::once(body.as_ref()).chain(redirects));
            }
            NodeKind::Redirect { target: inner, .. } => {
                self.node(inner);
                // The text of `<<<` may be a script.
                if let Some(word) = ShellWord::of(inner) {
                    self.word(&word);
                }
            }
            NodeKind::Function { body: inner, .. }
            | NodeKind::Coproc { command: inner, .. }
            | NodeKind::Negation { pipeline: inner }
            | NodeKind::Time {
                pipeline: inner, ..
            }
            | NodeKind::CondNot { operand: inner }
            | NodeKind::CondParen { inner }
            | NodeKind::UnaryTest { operand: inner, .. } => self.node(inner),
            NodeKind::CondAnd { left, right }
            | NodeKind::CondOr { left, right }
            | NodeKind::BinaryTest { left, right, .. } => {
                self.all([left, right].map(Box::as_ref));
            }
            NodeKind::Array { elements } => self.all(elements),
            NodeKind::HereDoc {
                content, quoted, ..
            } => {
                if !quoted {
                    self.embedded(content);
                }
            }
            NodeKind::ArithmeticCommand {
                raw_content,
                redirects,
                ..
            } => {
                self.arithmetic(raw_content);
                self.all(redirects);
            }
            NodeKind::CondTerm { value, .. } | NodeKind::WordLiteral { value } => {
                self.embedded(value);
            }
            NodeKind::Empty | NodeKind::Comment { .. } => {}
            _ => self.is_unclear = true,
        }
    }

    /// Handles text that the shell expands like a text in double quotes.
    fn embedded(&mut self, text: &str) {
        if !["`", "$(", "<(", ">("]
            .iter()
            .any(|opener| text.contains(opener))
        {
            return;
        }
        match text.contains('"') {
            // The matching pairs of quotes are no longer known.
            true => self.is_unclear = true,
            false => self.script(&format!(": \"{text}\"")),
        }
    }

    /// Handles an arithmetic expression. An expression with other elements is unclear.
    fn arithmetic(&mut self, text: &str) {
        self.is_unclear |= text.contains(['`', '"', '\'', '\\', '{', '\n']);
        self.embedded(text);
    }

    /// Handles the elements of an array.
    fn elements(&mut self, elements: &str) {
        if elements.contains([';', '&', '|', '<', '>']) {
            self.is_unclear = true
        } else {
            self.script(&format!(": {elements}"))
        }
    }

    /// Handles a script within the script.
    fn script(&mut self, script: &str) {
        match parse(script) {
            Some(nodes) if self.depth < MAX_DEPTH => {
                self.depth += 1;
                self.all(&nodes);
                self.depth -= 1;
            }
            _ => self.is_unclear = true,
        }
    }

    /// Handles a command. Any program may run its arguments, as `sudo` and `xargs` do.
    fn command(&mut self, words: &[ShellWord<'_>]) {
        let Some((first, arguments)) = words.split_first() else {
            return;
        };
        let mut command = vec![joined(words.iter())];
        let name = match first.literal() {
            Some(program) => program
                .rsplit_once('/')
                .map(|(_, name)| ShellWord::of_text(name)),
            None => Some(ShellWord::unknown()),
        };
        if let Some(name) = name {
            command.push(joined(std::iter::once(&name).chain(arguments)));
        }
        self.add(command, Place::Command);
        let program = first.literal().unwrap_or_default();
        let program = program.rsplit('/').next().unwrap_or_default();
        let is_shell = program.ends_with("sh");
        if is_shell || RUN_ARGUMENTS.contains(&program) {
            // Without a script as an argument, a shell reads one from its input.
            let is_option = |word: &ShellWord<'_>| {
                word.literal()
                    .is_some_and(|word| word.starts_with(['-', '+']))
            };
            self.is_unclear |= is_shell && arguments.iter().all(is_option);
            let is_fixed = |word: &ShellWord<'_>| {
                word.literal()
                    .is_some_and(|word| !word.contains(['$', '`', '\\']))
            };
            self.is_unclear |= !arguments.iter().all(is_fixed);
        }
        // An alias replaces the first word of later commands.
        self.is_unclear |= program == "alias" && !arguments.is_empty();
        for (word, at) in arguments.iter().zip(1..) {
            if self.is_unclear {
                return;
            }
            self.word(word);
            // An unknown argument of any program would make nearly every script unclear.
            if let Some(name) = word.literal() {
                let name = name.rsplit('/').next().unwrap_or_default();
                let name = ShellWord::of_text(name);
                let behind = words.iter().skip(at + 1);
                let command = joined(std::iter::once(&name).chain(behind));
                self.add(vec![command], Place::Hidden);
            }
        }
    }

    /// Handles a word that may contain a script, such as `rm x`, `alias.x=!rm x` or `-Orm x`.
    fn word(&mut self, word: &ShellWord<'_>) {
        for part in &word.text {
            let ShellText::Literal(text) = part else {
                continue;
            };
            self.is_unclear |= text.contains("BASH_ALIASES");
            self.possible_script(text);
            if !text.contains(char::is_whitespace) {
                continue;
            }
            let separators = text.match_indices(['=', ':', ',']);
            let mut values: Vec<&str> = separators
                .filter_map(|(at, _)| text.get(at + 1..))
                .collect();
            // The value of an option of one letter may follow it without a separator.
            if let Some(letters) = text.strip_prefix('-') {
                let name = letters.split(|c: char| !c.is_alphanumeric()).next();
                let name = name.unwrap_or_default().char_indices().skip(1);
                values.extend(name.filter_map(|(at, _)| letters.get(at..)));
            }
            if values.len() > MAX_VALUES {
                self.is_unclear = true;
                return;
            }
            for value in values {
                self.possible_script(value);
            }
        }
    }

    fn possible_script(&mut self, text: &str) {
        let script = text.trim_start_matches(|c: char| "!+-@% \t\n".contains(c));
        if !script.contains(|c: char| c.is_whitespace() || "$`;&|<>(".contains(c)) {
            return;
        }
        match parse(script).filter(|_| self.depth < MAX_DEPTH) {
            Some(nodes) => {
                let mut inner = Self {
                    depth: self.depth + 1,
                    ..Self::default()
                };
                inner.all(&nodes);
                // An ordinary text that is no script is not unclear.
                self.add(inner.commands, Place::Hidden);
                self.add(inner.hidden, Place::Hidden);
            }
            None => {
                let words = script.split(|c: char| c.is_whitespace() || "\"'`$;&|()".contains(c));
                let words = words.map(|word| vec![ShellText::Literal(word.to_owned())]);
                self.add(words.collect(), Place::Hidden);
            }
        }
    }

    fn add(&mut self, commands: Vec<Vec<ShellText>>, place: Place) {
        let length = |part: &ShellText| match part {
            ShellText::Literal(text) => text.len(),
            ShellText::Unknown => 1,
        };
        self.size += commands.iter().flatten().map(length).sum::<usize>() + commands.len();
        if self.size > MAX_TEXT {
            self.is_unclear = true;
            return;
        }
        match place {
            Place::Command => self.commands.extend(commands),
            Place::Hidden => self.hidden.extend(commands),
        }
    }
}

/// The place of a command.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// The shell runs it.
    Command,
    /// Another command may run it.
    Hidden,
}

/// Joins the words with spaces. An unknown word may be several words or none, so it also replaces the
/// spaces around it.
fn joined<'a>(words: impl Iterator<Item = &'a ShellWord<'a>>) -> Vec<ShellText> {
    let mut command: Vec<ShellText> = Vec::new();
    let mut push = |part: ShellText| match (command.last_mut(), part) {
        (Some(ShellText::Unknown), ShellText::Unknown) => {}
        (Some(ShellText::Literal(before)), ShellText::Literal(text)) => before.push_str(&text),
        (_, part) => command.push(part),
    };
    let mut is_open = true;
    for word in words {
        let begins_unknown = word.text.first() == Some(&ShellText::Unknown);
        if !is_open && !begins_unknown {
            push(ShellText::Literal(" ".to_owned()));
        }
        word.text.iter().cloned().for_each(&mut push);
        is_open = word.text.last() == Some(&ShellText::Unknown);
    }
    command
}
