//! Determines which commands a shell command would run, for permission rules.
//!
//! A pattern can allow a command only if it is a single one whose words are all literal: no list, pipe,
//! redirection, assignment, expansion or substitution. To deny a command, each command between two
//! operators of the shell is compared. Whatever else in the text looks like a denied command, in a word, a
//! quotation or a here-document, makes it unclear whether that command runs, and unclear is for a person to
//! decide. No list says which programs run their arguments (`sudo`, `xargs`, `find -exec`): any program may.
//! Only the shell's own `echo`, alone, is known to print them.
//!
//! This splits a text at operators and quotes, and is neither a parser of the shell's grammar nor a sandbox.
//! It does not know how a program interprets its arguments, or which commands an executed script contains.

mod words;

use plimsoll_agent::{CommandTarget, ShellText, SimpleCommand};

use words::{Script, ShellCommand, ShellWord, joined};

/// Maximum length of a command that is examined. A longer one is unclear.
const MAX_COMMAND: usize = 256 * 1024;
/// Maximum length of a text that might be run, in characters. The rest of it may be anything.
const MAX_HIDDEN: usize = 64;
/// What begins an expansion or a redirection in such a text.
const UNKNOWN: [char; 9] = ['$', '*', '?', '[', '{', '~', '\\', '<', '>'];
/// Maximum number of texts that might be run. With more, a command is unclear.
const MAX_HIDDEN_TEXTS: usize = 20_000;

/// Programs whose options before the subcommand can run other programs, or act on another directory. A
/// pattern must contain these options literally.
const WITH_SUBCOMMANDS: [&str; 12] = [
    "cargo", "docker", "git", "helm", "hg", "jj", "kubectl", "npm", "pnpm", "podman", "svn", "yarn",
];
/// Builtins that run their arguments as a script.
const RUN_ARGUMENTS: [&str; 7] = [".", "builtin", "command", "eval", "exec", "source", "trap"];
/// Words of the shell that a command follows.
const BEFORE_COMMANDS: [&str; 10] = [
    "!", "coproc", "do", "elif", "else", "if", "then", "time", "until", "while",
];

/// Returns the target of a call with this command. `fields` are the arguments that may contain the
/// command.
pub(crate) fn target(fields: &'static [&'static str], command: &str) -> CommandTarget {
    let mut target = CommandTarget {
        fields,
        written: command.to_owned(),
        is_unclear: command.len() > MAX_COMMAND || command.contains("BASH_ALIASES"),
        ..CommandTarget::default()
    };
    if target.is_unclear {
        return target;
    }
    // The shell joins lines that end with a backslash.
    let text = command.replace("\\\n", "");
    let script = Script::read(&text);
    target.simple = simple(&script, command);
    target.is_unclear = script.is_open;
    for command in &script.commands {
        add_command(&mut target, command);
    }
    if !target.simple.as_ref().is_some_and(only_prints) {
        target
            .hidden
            .extend(hidden(&text).take(MAX_HIDDEN_TEXTS + 1));
        target.is_unclear |= target.hidden.len() > MAX_HIDDEN_TEXTS;
    }
    target
}

/// Adds a command of a script, by its name and without its directory.
fn add_command(target: &mut CommandTarget, command: &ShellCommand) {
    let is_before = |word: &&ShellWord| {
        word.redirect.is_some() || word.is_assignment() || BEFORE_COMMANDS.contains(&&*word.raw)
    };
    let before = command.words.iter().take_while(is_before).count();
    let words = command.words.get(before..).unwrap_or_default();
    let Some((first, arguments)) = words.split_first() else {
        return;
    };
    let mut commands = vec![joined(words.iter().map(|word| &word.text))];
    let name = match first.text.as_slice() {
        [ShellText::Literal(path), rest @ ..] => path.rsplit_once('/').map(|(_, name)| {
            let name = ShellText::Literal(name.to_owned());
            std::iter::once(name).chain(rest.iter().cloned()).collect()
        }),
        _ => None,
    };
    if let Some(name) = &name {
        let arguments = arguments.iter().map(|word| &word.text);
        commands.push(joined(std::iter::once(name).chain(arguments)));
    }
    if !command.may_be_data {
        target.commands.extend(commands);
    } else if first
        .raw
        .starts_with(|c: char| c == '$' || !"*?[{~`".contains(c))
    {
        target.hidden.extend(commands);
    }
    let program = first.literal().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default();
    // What is written to a file does not matter.
    let mut arguments = arguments.iter().filter(|word| word.redirect != Some('>'));
    // An alias replaces the first word of later commands.
    target.is_unclear |= program == "alias" && arguments.clone().next().is_some();
    let is_shell = program.ends_with("sh");
    if is_shell || RUN_ARGUMENTS.contains(&program) {
        let is_option = |word: &ShellWord| {
            let text = word.literal();
            text.is_some_and(|text| text.starts_with(['-', '+']))
        };
        let is_fixed = |word: &ShellWord| {
            let text = word.literal();
            text.is_some_and(|text| !text.contains(['$', '`', '\\']))
        };
        // Without a script as an argument, a shell reads one from its input.
        target.is_unclear |= is_shell && arguments.clone().all(is_option);
        target.is_unclear |= !arguments.all(is_fixed);
    }
}

/// Returns every text of a script that might be a command for whatever reads it, up to the next operator.
/// Quotes and backslashes are once taken for the end of a text and once left out.
fn hidden(script: &str) -> impl Iterator<Item = Vec<ShellText>> {
    let apart = script.replace(['"', '\''], "\n");
    let mut texts = vec![script.replace(['"', '\'', '\\'], "")];
    if !texts.contains(&apart) {
        texts.push(apart);
    }
    texts.into_iter().flat_map(|text| {
        let segments = text.split(['\n', ';', '&', '|', '(', ')', '`']);
        segments.flat_map(hidden_commands).collect::<Vec<_>>()
    })
}

/// Returns the commands that begin somewhere in a text.
fn hidden_commands(text: &str) -> Vec<Vec<ShellText>> {
    let mut is_inside = false;
    let begins = text.char_indices().filter_map(|(at, c)| {
        let begins = !is_inside && !c.is_whitespace();
        is_inside = c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        text.get(at..).filter(|_| begins)
    });
    begins.filter_map(hidden_command).collect()
}

/// Returns the command that a text may begin with. `None` if its program is unknown: with those, nearly
/// every script would be unclear.
fn hidden_command(text: &str) -> Option<Vec<ShellText>> {
    let end = text.char_indices().nth(MAX_HIDDEN).map(|(at, _)| at);
    let kept = end.and_then(|end| text.get(..end)).unwrap_or(text);
    let mut words = Vec::new();
    for word in kept.split_whitespace() {
        let (literal, unknown) = match word.find(UNKNOWN) {
            Some(at) => (word.get(..at).unwrap_or_default(), true),
            None => (word, false),
        };
        let literal = (!literal.is_empty()).then(|| ShellText::Literal(literal.to_owned()));
        let unknown = unknown.then_some(ShellText::Unknown);
        words.push(literal.into_iter().chain(unknown).collect());
        if word.contains(['<', '>']) {
            break;
        }
    }
    if end.is_some() {
        words.push(vec![ShellText::Unknown]);
    }
    let command = joined(words.iter());
    (!matches!(command.first(), None | Some(ShellText::Unknown))).then_some(command)
}

/// Returns the only command of a script, if it consists only of literal words.
fn simple(script: &Script, written: &str) -> Option<SimpleCommand> {
    let [command] = script.commands.as_slice() else {
        return None;
    };
    if !script.is_plain
        || script.is_open
        || written
            .trim_matches([' ', '\t', '\n'])
            .contains(char::is_control)
    {
        return None;
    }
    let words = command.words.iter().map(ShellWord::literal);
    let words: Vec<&str> = words.collect::<Option<_>>()?;
    let (first, program) = (command.words.first()?, *words.first()?);
    // An option of the shell itself, or a job.
    if program.starts_with(['-', '+', '%'])
        || first.is_assignment()
        || first.raw == "[["
        || BEFORE_COMMANDS.contains(&&*first.raw)
    {
        return None;
    }
    let arguments = words.iter().skip(1);
    let options = arguments.take_while(|word| word.starts_with('-')).count();
    let quoted: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let spelled = match options {
        1.. if WITH_SUBCOMMANDS.contains(&program) => {
            quoted.iter().take(options + 1).cloned().collect()
        }
        _ => Vec::new(),
    };
    Some(SimpleCommand {
        text: quoted.join(" "),
        spelled: spelled.join(" "),
    })
}

/// Checks whether a command only prints its arguments. No rules for it are needed then.
fn only_prints(command: &SimpleCommand) -> bool {
    command.text.split(' ').next() == Some("echo")
}

/// Returns a word as the shell would need it written, with quotes only if necessary.
fn quoted(word: &str) -> String {
    let safe = |c: char| c.is_alphanumeric() || "_./:=@%+,^-".contains(c);
    let is_safe = |(at, c): (usize, char)| safe(c) || (c == '~' && at > 0);
    if !word.is_empty() && word.char_indices().all(is_safe) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {

    use plimsoll_agent::{CallTarget, Permission, PermissionMode};
    use serde_json::Value;

    use super::*;
    use crate::testing::rules_of;

    fn decide(rule: &str, command: &str) -> Option<Permission> {
        let target = CallTarget::Command(target(&["command"], command));
        rules_of(&[rule]).decide("bash", &Value::Null, &target)
    }

    fn allows(pattern: &str, command: &str) -> bool {
        decide(&format!("allow bash command={pattern}"), command).is_some()
    }

    fn denial(pattern: &str, command: &str) -> Option<Permission> {
        decide(&format!("deny bash command={pattern}"), command)
    }

    #[test]
    fn a_pattern_allows_one_simple_command() {
        for command in [
            "git status",
            " git   log  --oneline -n 3\n",
            "git commit -m 'a; b'",
            "git commit -m \"it's (fine) && $ok\" "
                .replace("$ok", "ok")
                .as_str(),
            "git log HEAD~1 HEAD^ a@b x=y",
            "git log 日本",
            "git 'log'",
            r"git lo\g",
            "git ''",
        ] {
            assert!(allows("git *", command), "{command}");
            assert!(allows("*", command), "{command}");
        }
        // The words in any quoting, and the command as written.
        for pattern in [
            "git commit -m 'a b'",
            "git commit -m \"a b\"",
            "git commit *",
        ] {
            assert!(allows(pattern, "git commit -m \"a b\""), "{pattern}");
        }
        assert!(!allows("git commit -m a b", "git commit -m 'a b'"));
        for command in [
            "git status; echo PWNED1",
            "git status\necho PWNED2",
            "git -c alias.x='!echo PWNED3' x",
            "git $(echo PWNED4 >&2; echo status)",
            "git log | sh -c 'echo PWNED6'",
            "git `echo status`",
            "git status && rm x",
            "git status || rm x",
            "git status & rm x",
            "git status &",
            "git status;",
            "git log > ~/.bashrc",
            "git log >> x",
            "git log < x",
            "git log <<< x",
            "git log <<EOF\nx\nEOF",
            "git log <(rm x)",
            "git log >(rm x)",
            "git log 2>&1",
            "git log &> x",
            "GIT_PAGER=x git log",
            "git log $HOME",
            "git log \"$HOME\"",
            "git log ${x}",
            "git log $((1))",
            "git log $'x'",
            "git log $\"x\"",
            "git log *.rs",
            "git log ?",
            "git log [a-z]",
            "git log {a,b}",
            "git log ~",
            "git log ~/x",
            "git log # rm",
            "git log \\\n rm",
            "git log\trm",
            "git log\r\nrm",
            "(git status)",
            "{ git status; }",
            "! git status",
            "time git status",
            "coproc git status",
            "if git status; then rm x; fi",
            "git() { rm x; }; git status",
            "git status \"",
            "git status )",
            "-x",
            "+x git",
            "%1",
            "",
            " ",
            "#",
        ] {
            assert!(!allows("git *", command), "{command}");
            assert!(!allows("*", command), "{command}");
        }
    }

    #[test]
    fn options_before_a_subcommand_must_be_spelled() {
        for command in [
            "git -c a=b log",
            "git --exec-path=x log",
            "git --no-pager -p log",
        ] {
            assert!(!allows("git *", command), "{command}");
        }
        assert!(allows("git --no-pager *", "git --no-pager log -p"));
        assert!(!allows("git --no-pager *", "git --no-pager -c a=b log"));
        assert!(allows("git -c *", "git -c a=b log"));
        assert!(allows("ls *", "ls -la"));
    }

    #[test]
    fn a_pattern_denies_what_the_shell_runs_anywhere() {
        for command in [
            "rm x",
            "/bin/rm x",
            r"\rm x",
            "r'm' x",
            "\"rm\" x",
            "true; rm x",
            "true\nrm x",
            "true && rm x",
            "true || rm x",
            "true & rm x",
            "true | rm x",
            "(rm x)",
            "{ rm x; }",
            "! rm x",
            "time rm x",
            "coproc rm x",
            "X=1 rm x",
            ">out rm x",
            "if true; then rm x; fi",
            "if rm x; then true; fi",
            "if a; then b; elif c; then d; else rm x; fi",
            "while true; do rm x; done",
            "until rm x; do true; done",
            "for a in $(rm x); do true; done",
            "for a in b; do rm x; done",
            "for ((a=0; a<1; a++)); do rm x; done",
            "select a in b; do rm x; done",
            "case a in b) rm x;; esac",
            "case $(rm x) in b) true;; esac",
            "f() { rm x; }",
            "function f { rm x; }",
            "echo $(rm x)",
            "echo \"$(rm x)\"",
            "echo $(a $(b $(c $(rm x))))",
            "X=$(rm x)",
            "X=(a $(rm x))",
            "cat <(rm x)",
            "cat > >(rm x)",
            "cat > $(rm x)",
            "cat <<< $(rm x)",
            "[[ $(rm x) == a ]]",
            "rm $x",
        ] {
            let says = denial("rm *", command);
            // A value that is not known yet may make the difference.
            let is_known = !command.ends_with("$x");
            assert!(says.is_some(), "{command}");
            assert!(!is_known || says == Some(Permission::Deny), "{command}");
        }
        // A pattern also matches the whole text.
        for (pattern, command) in [
            ("*rm -rf*", "git commit -m 'rm -rf x'"),
            ("git push --force*", "git push --force origin main"),
        ] {
            assert_eq!(denial(pattern, command), Some(Permission::Deny));
        }
    }

    #[test]
    fn what_may_run_a_denied_command_is_unclear() {
        for command in [
            // Programs and builtins that run their arguments, known or not.
            "sudo rm x",
            "sudo -u bob env A=1 nice -n 3 rm x",
            "timeout 5 /bin/rm x",
            "command rm x",
            "time -- rm x",
            "setarch -R rm x",
            "hash -p /bin/rm z; z x",
            "echo x | xargs rm",
            "xargs -n2 env rm <<< x",
            "find . -exec rm {} \\;",
            "sh -c 'rm x'",
            "bash -lc 'true; rm x'",
            "bash -o errexit -c 'rm x'",
            "bash --rcfile f -c 'rm x'",
            "sudo sh -c \"rm x\"",
            "sh -c 'sh -c \"rm x\"'",
            "ssh host 'cd /; rm x'",
            "eval rm x",
            "eval -- 'rm x'",
            "trap 'rm x' EXIT",
            "trap -- 'rm x' 0",
            "alias z='rm x'",
            "BASH_ALIASES[z]='rm x'",
            ". <(echo rm x)",
            "source /dev/stdin <<< 'rm x'",
            "git -c alias.z='!rm x' z",
            "GIT_SSH_COMMAND='rm x' git fetch",
            "npm exec -c 'rm x'",
            "tar cf a --checkpoint=1 --checkpoint-action=exec='rm x' .",
            "ssh -oProxyCommand='rm x' host",
            "git grep -O'rm x' y",
            "git grep -nO'rm x' y",
            "shopt -s expand_aliases\nalias q=rm\nq x",
            "shopt -s expand_aliases\nBASH_ALIASES[q]=rm\nq x",
            "shopt -s expand_aliases\ndeclare -A 'BASH_ALIASES=([q]=rm)'\nq x",
            // The shell's own evaluation.
            "let 'a[$(rm x)]'",
            "x='a[$(rm x)]'; ((x))",
            "test -v 'a[$(rm x)]'",
            "printf -v 'a[$(rm x)]' y",
            "declare -i 'y=a[$(rm x)]'",
            "compgen -C 'rm x'",
            "PS4='$(rm x)'; set -x; true",
            // The command is only known at run time.
            "$CMD x",
            "$CMD",
            "r$a x",
            "/bin/r? x",
            "/bin/{rm,ls} x",
            "~/rm x",
            "$'rm' x",
            "eval $x",
            "sh -c \"$x\"",
            "echo x | sh",
            "sh <<EOF\nrm x\nEOF",
            "bash -s < x",
            // A quotation that does not end.
            "echo \"",
            // It may as well be harmless.
            "ls rm x",
            "git commit -m 'rm x'",
            // A line of a here-document may be data.
            "cat <<EOF\n$(rm x)\nEOF",
            "cat <<EOF\nrm x\nEOF",
            "cat <<'EOF'\n`rm x`\nEOF",
            "sudo rm>x y",
            "sudo \"r\"'m' x",
            "sh -c \"r''m x\"",
            "sh -c 'echo \"$(rm x)\"'",
            // What follows a here-document is none.
            "cat <<EOF\nx\nEOF\n`which rm` x",
            "cat <<-'EOF'\nx\n\tEOF\n*/rm x",
            // Another program may read it.
            "echo rm x | parallel",
            "echo rm x > x.sh",
            "/bin/echo rm x",
            "echo() { \"$@\"; }; echo rm x",
        ] {
            let says = denial("rm *", command);
            assert_eq!(says, Some(Permission::Ask), "{command}");
        }
        // Nobody is asked in this mode.
        let target = CallTarget::Command(target(&["command"], "sudo rm x"));
        let rules = rules_of(&["deny bash command=rm *"]).with_mode(PermissionMode::Yes);
        let says = rules.decide("bash", &Value::Null, &target);
        assert_eq!(says, Some(Permission::Deny));
        let sure = ["deny bash command=rm *", "deny bash command=git push*"];
        let command = "git push && sudo rm x";
        let target = CallTarget::Command(super::target(&["command"], command));
        let says = rules_of(&sure).decide("bash", &Value::Null, &target);
        assert_eq!(says, Some(Permission::Deny), "the other rule is sure");
    }

    #[test]
    fn ordinary_commands_are_clear() {
        for command in [
            "echo rm x",
            "echo 'rm x; rm y'",
            "echo $x $((1 + 2)) ${y:-z} {a,b} *.rs",
            "[ -n \"$X\" ] && echo yes",
            "cargo test && git status | head -n 3 > out 2>&1",
            "for f in *.rs; do echo \"$f\"; done",
            "[[ -f x ]] && echo yes",
            "cat <<'EOF'\nfarm x; ls `ls`\n* {d}\nEOF",
            "echo \"$(git log \"$x; y\")\" > out",
            "git commit -m \"it's (fine)\"",
            "git commit -m 'fix: confirm it, a=b'",
            "alias",
            "sh script.sh x",
            "bash -c 'cargo test'",
            "rmdir x",
            "# $x",
            "true )",
            "",
        ] {
            assert_eq!(denial("rm *", command), None, "{command}");
        }
        assert_eq!(denial("git push*", "git log origin"), None);
        assert_eq!(denial("git push*", "sudo git log"), None);
    }

    #[test]
    fn a_command_that_is_too_long_or_too_deep_is_read_to_an_end() {
        let deep = |open: &str, close: &str, times: usize| {
            format!("{}x{}", open.repeat(times), close.repeat(times))
        };
        for command in [
            deep("a $(", ")", 1_000),
            deep("a <(", ")", 60),
            deep("(", ")", 100_000),
            deep("{ ", "; }", 20_000),
            deep("if a; then ", "; fi", 20_000),
            deep("case a in b) ", ";; esac", 10_000),
            deep("sudo ", "", 40_000),
            deep("sudo sh -c '", "'", 200),
            format!("xargs {}", "word ".repeat(50_000)),
            format!("xargs {}", "$x ".repeat(50_000)),
            "x".repeat(300_000),
        ] {
            let start = command.chars().take(20).collect::<String>();
            // Both results are safe; parsing only has to terminate.
            let is_unclear = target(&[], &command).is_unclear;
            println!("{start}: {is_unclear}");
        }
        // Writing a long file is allowed.
        let file = format!("cat > f <<'EOF'\n{}EOF\n", "a `b` (c) {d}\n".repeat(1_000));
        assert_eq!(denial("rm *", &file), None);
    }
}
