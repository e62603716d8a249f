//! Determines which commands a shell command would run, for permission rules.
//!
//! A pattern can allow a command only if it is a single one whose words are all literal: no list, pipe,
//! redirection, assignment, expansion or substitution. To deny a command, matches are searched in every
//! command that the shell would run: in lists, pipes, functions and substitutions. Arguments that look
//! like a denied command, scripts in them, and whatever cannot be parsed make it unclear whether the
//! denied command runs, and unclear is for a person to decide. No list says which programs run their
//! arguments (`sudo`, `xargs`, `find -exec`): any program may. Only the shell's own `echo`, alone, is known
//! to print them.
//!
//! This is a parser and not a sandbox. It does not know how a program interprets its arguments, or
//! which commands an executed script contains.

mod find;
mod word;

use plimsoll_agent::{CommandTarget, SimpleCommand};
use rable::{Node, NodeKind};

use find::Finder;
use word::ShellWord;

/// Maximum length of a command that is parsed.
const MAX_COMMAND: usize = 256 * 1024;
/// Maximum length of all found commands together. A longer script is unclear.
const MAX_TEXT: usize = 512 * 1024;
/// Maximum number of substitutions in a command that is parsed. The parser reads the innermost
/// substitution again for each one around it; with this many it takes a tenth of a second.
const MAX_SUBSTITUTIONS: usize = 60;
/// Stack size for the parser, enough for the deepest nesting that it accepts.
const STACK: usize = 16 * 1024 * 1024;

/// Programs whose options before the subcommand can run other programs, or act on another directory. A
/// pattern must contain these options literally.
const WITH_SUBCOMMANDS: [&str; 12] = [
    "cargo", "docker", "git", "helm", "hg", "jj", "kubectl", "npm", "pnpm", "podman", "svn", "yarn",
];

/// Returns the target of a call with this command. `fields` are the arguments that may contain the
/// command.
pub(crate) fn target(fields: &'static [&'static str], command: &str) -> CommandTarget {
    let owned = command.to_owned();
    // The parser is recursive, and the caller may have little stack left.
    let reader = std::thread::Builder::new()
        .name("plimsoll-shell".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            let nodes = parse(&owned)?;
            let (simple, mut found) = (simple(&nodes, &owned), Finder::of(&nodes));
            if simple.as_ref().is_some_and(only_prints) {
                found.hidden.clear();
            }
            Some((simple, found))
        });
    let read = reader.ok().and_then(|reader| reader.join().ok()?);
    let (simple, found) = read.unwrap_or_else(|| (None, Finder::unclear()));
    CommandTarget {
        fields,
        written: command.to_owned(),
        simple,
        commands: found.commands,
        hidden: found.hidden,
        is_unclear: found.is_unclear,
    }
}

/// Parses a script. Returns `None` if it is invalid, too long or too deeply nested.
fn parse(script: &str) -> Option<Vec<Node>> {
    let substitutions = ["$(", "<(", ">(", "\\`"];
    let substitutions = substitutions
        .iter()
        .map(|opener| script.matches(opener).count());
    let is_small = script.len() <= MAX_COMMAND && substitutions.sum::<usize>() <= MAX_SUBSTITUTIONS;
    is_small.then(|| rable::parse(script, false).ok())?
}

/// Returns the only command of a script if all its words are literal and the script contains nothing
/// else.
fn simple(nodes: &[Node], script: &str) -> Option<SimpleCommand> {
    let [only] = nodes else { return None };
    let NodeKind::Command {
        assignments,
        words,
        redirects,
    } = &only.kind
    else {
        return None;
    };
    if !(assignments.is_empty() && redirects.is_empty()) {
        return None;
    }
    let is_blank = |c: &char| matches!(c, ' ' | '\t');
    // Every character of the script must be part of a word. Comments, for example, are not.
    let raw = words.iter().filter_map(|word| match &word.kind {
        NodeKind::Word { value, .. } => Some(value.as_str()),
        _ => None,
    });
    let in_words = raw.flat_map(str::chars).filter(|c| !is_blank(c));
    let script = script.trim_matches([' ', '\t', '\n']);
    let in_script = script.chars().filter(|c| !is_blank(c));
    if !in_words.eq(in_script) || script.contains(char::is_control) {
        return None;
    }
    let words = words
        .iter()
        .map(|word| ShellWord::of(word)?.literal().map(str::to_owned));
    let words: Vec<String> = words.collect::<Option<_>>()?;
    let (program, arguments) = words.split_first()?;
    // An option of the shell itself, or a job.
    if program.starts_with(['-', '+', '%']) {
        return None;
    }
    let options = arguments.iter().take_while(|word| word.starts_with('-'));
    let mut spelled = String::new();
    if WITH_SUBCOMMANDS.contains(&program.as_str()) && options.clone().next().is_some() {
        let options = std::iter::once(program)
            .chain(options)
            .map(|word| quoted(word));
        spelled = options.collect::<Vec<_>>().join(" ");
    }
    let text = words.iter().map(|word| quoted(word)).collect::<Vec<_>>();
    Some(SimpleCommand {
        text: text.join(" "),
        spelled,
    })
}

/// Checks whether a command is the shell's own `echo`, which no program in `PATH` replaces. It is the whole
/// call, so that nothing reads its output.
fn only_prints(command: &SimpleCommand) -> bool {
    command.text.split(' ').next() == Some("echo")
}

/// Quotes a word for a shell.
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
    use std::time::{Duration, Instant};

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
            "cat <<EOF\n$(rm x)\nEOF",
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
            // Invalid scripts.
            "true )",
            "if",
            "echo \"",
            // It may as well be harmless.
            "ls rm x",
            "git commit -m 'rm x'",
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
            "cat <<'EOF'\nrm x; $(rm x) `rm x`\nEOF",
            "cat <<EOF\nrm x\nEOF",
            "git commit -m \"it's (fine)\"",
            "git commit -m 'fix: confirm it, a=b'",
            "alias",
            "sh script.sh x",
            "bash -c 'cargo test'",
            "rmdir x",
            "# rm x",
            "",
        ] {
            assert_eq!(denial("rm *", command), None, "{command}");
        }
        assert_eq!(denial("git push*", "git log origin"), None);
        assert_eq!(denial("git push*", "sudo git log"), None);
    }

    #[test]
    fn what_is_too_long_or_too_deep_is_not_understood_and_takes_no_time() {
        let deep = |open: &str, close: &str, times: usize| {
            format!("{}x{}", open.repeat(times), close.repeat(times))
        };
        let begun = Instant::now();
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
            println!("{start}: {is_unclear}, {:?}", begun.elapsed());
        }
        assert!(begun.elapsed() < Duration::from_secs(20));
        // Writing a long file is allowed.
        let file = format!("cat > f <<'EOF'\n{}EOF\n", "a `b` (c) {d}\n".repeat(10_000));
        assert_eq!(denial("rm *", &file), None);
    }
}
