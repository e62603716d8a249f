//! [`Finder`]: finds every simple command that a script may run, at any place.

use plimsoll_agent::ShellText;
use rable::{Node, NodeKind};

use super::word::ShellWord;
use super::{parse, quoted};

/// Maximum length of all found commands, in characters and words. A longer script counts as not
/// parseable. A command counts once for each spelling that a rule may use.
const MAX_TEXT: usize = 512 * 1024;
/// Maximum nesting of scripts within scripts.
const MAX_DEPTH: usize = 8;

/// Programs that run the command after their options.
const WRAPPERS: [&str; 40] = [
    "builtin",
    "busybox",
    "bwrap",
    "caffeinate",
    "chroot",
    "chrt",
    "command",
    "doas",
    "entr",
    "env",
    "exec",
    "fakeroot",
    "fd",
    "fdfind",
    "find",
    "firejail",
    "flock",
    "ionice",
    "ltrace",
    "nice",
    "nohup",
    "nsenter",
    "parallel",
    "proot",
    "runuser",
    "script",
    "setsid",
    "ssh",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "toybox",
    "unshare",
    "watch",
    "xargs",
];
/// Programs that run a command with additional arguments.
const ADDING: [&str; 2] = ["parallel", "xargs"];
/// Programs that run a script, given as an argument or read from a file.
const SHELLS: [&str; 9] = [
    "ash", "bash", "dash", "fish", "ksh", "mksh", "rbash", "sh", "zsh",
];

/// Collects the commands of a script.
#[derive(Debug, Default)]
pub(super) struct Finder {
    commands: Vec<Vec<ShellText>>,
    /// The total length of the commands.
    size: usize,
    depth: usize,
    /// A part of the script cannot be parsed.
    is_opaque: bool,
}

impl Finder {
    /// Returns all simple commands in a script. Returns `None` if it could not be parsed.
    pub(super) fn commands_in(nodes: &[Node]) -> Option<Vec<Vec<ShellText>>> {
        let mut finder = Self::default();
        finder.all(nodes);
        (!finder.is_opaque).then_some(finder.commands)
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
                let words = words
                    .iter()
                    .map(|word| ShellWord::of(word).unwrap_or_else(ShellWord::unknown));
                self.command(&words.collect::<Vec<_>>());
            }
            NodeKind::Word { .. } => {
                if let Some(word) = ShellWord::of(node) {
                    self.is_opaque |= word.is_odd;
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
            NodeKind::Function { body: inner, .. }
            | NodeKind::Coproc { command: inner, .. }
            | NodeKind::Redirect { target: inner, .. }
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
            _ => self.is_opaque = true,
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
            true => self.is_opaque = true,
            false => self.script(&format!(": \"{text}\"")),
        }
    }

    /// Handles an arithmetic expression. An expression with other elements counts as not parseable.
    fn arithmetic(&mut self, text: &str) {
        self.is_opaque |= text.contains(['`', '"', '\'', '\\', '{', '\n']);
        self.embedded(text);
    }

    /// Handles the elements of an array.
    fn elements(&mut self, elements: &str) {
        if elements.contains([';', '&', '|', '<', '>']) {
            self.is_opaque = true
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
            _ => self.is_opaque = true,
        }
    }

    /// Handles a command, and the commands that it runs.
    fn command(&mut self, words: &[ShellWord<'_>]) {
        self.one(words, false);
        let Some(program) = words.first().and_then(program) else {
            return;
        };
        if !WRAPPERS.contains(&program) {
            return;
        }
        let adds = ADDING.contains(&program);
        for at in 1..words.len() {
            if self.is_opaque {
                return;
            }
            self.one(words.get(at..).unwrap_or_default(), adds);
        }
        let scripts = words.iter().skip(1).filter_map(ShellWord::literal);
        for script in scripts.filter(|text| text.contains(char::is_whitespace)) {
            self.script(script);
        }
    }

    fn one(&mut self, words: &[ShellWord<'_>], adds: bool) {
        let Some((first, arguments)) = words.split_first() else {
            return;
        };
        self.add(words, adds);
        let Some(program) = program(first) else {
            return;
        };
        match program {
            "eval" => self.texts(arguments),
            "trap" => self.texts(arguments.get(..1).unwrap_or_default()),
            shell if SHELLS.contains(&shell) => self.shell(arguments),
            _ => {}
        }
    }

    /// Handles the arguments of a shell.
    fn shell(&mut self, arguments: &[ShellWord<'_>]) {
        let mut has_script = false;
        for (word, at) in arguments.iter().zip(0..) {
            match word.literal() {
                Some(option) if option.starts_with(['-', '+']) => {
                    let is_short = !option.starts_with("--");
                    has_script |= is_short && option.contains('c');
                    self.is_opaque |= is_short && option.contains('s');
                }
                Some(_) if has_script => {
                    return self.texts(arguments.get(at..=at).unwrap_or_default());
                }
                // A script file, which cannot be read here.
                Some(_) => return,
                None => return self.is_opaque = true,
            }
        }
        // The script comes from elsewhere.
        self.is_opaque = true;
    }

    /// Handles words that form a script together.
    fn texts(&mut self, words: &[ShellWord<'_>]) {
        let texts: Option<Vec<&str>> = words.iter().map(ShellWord::literal).collect();
        match texts {
            Some(texts) => self.script(&texts.join(" ")),
            None => self.is_opaque = true,
        }
    }

    /// Adds a command in each spelling that a rule may use: with and without quotes, with and without
    /// the directory of the program.
    fn add(&mut self, words: &[ShellWord<'_>], adds: bool) {
        let Some((first, arguments)) = words.split_first() else {
            return;
        };
        let name = match program(first) {
            Some(name) => ShellWord::of_text(name),
            None => ShellWord::unknown(),
        };
        let mut spellings = Vec::new();
        for first in [first, &name] {
            for with_quotes in [true, false] {
                let words = std::iter::once(first).chain(arguments);
                let command = joined(words, with_quotes, adds);
                if !spellings.contains(&command) {
                    spellings.push(command);
                }
            }
        }
        let length = |part: &ShellText| match part {
            ShellText::Literal(text) => text.len(),
            ShellText::Unknown => 1,
        };
        self.size += words.len() + spellings.iter().flatten().map(length).sum::<usize>();
        if self.size > MAX_TEXT {
            self.is_opaque = true
        } else {
            self.commands.append(&mut spellings)
        }
    }
}

/// Joins the words with spaces. An unknown word may be several words or none, so it also replaces the
/// spaces around it.
fn joined<'a>(
    words: impl Iterator<Item = &'a ShellWord<'a>>,
    with_quotes: bool,
    adds: bool,
) -> Vec<ShellText> {
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
        match word.literal() {
            Some(text) if with_quotes => push(ShellText::Literal(quoted(text))),
            _ => word.text.iter().cloned().for_each(&mut push),
        }
        is_open = word.text.last() == Some(&ShellText::Unknown);
    }
    if adds {
        push(ShellText::Unknown);
    }
    command
}

/// Returns the name of a program without its directory.
fn program<'a>(word: &'a ShellWord<'_>) -> Option<&'a str> {
    word.literal()?.rsplit('/').next()
}
