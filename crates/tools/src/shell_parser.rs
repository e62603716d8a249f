//! Determines which commands a shell command would run, for permission rules.
//!
//! A pattern can allow a command only if it is a single one whose words are all literal: no list, pipe,
//! redirection, assignment, expansion or substitution. To deny a command, matches are searched
//! everywhere: in lists, pipes, functions and substitutions, after `sudo` and similar programs, and in
//! the arguments of `sh -c` and `eval`. A command that cannot be parsed may match anything.
//!
//! This is a parser and not a sandbox. It does not know how a program interprets its arguments, or
//! which commands an executed script contains.

mod find;
mod word;

use plimsoll_agent::{CommandTarget, ShellText, SimpleCommand};
use rable::{Node, NodeKind};

use find::Finder;
use word::ShellWord;

/// Maximum length of a command that is parsed.
const MAX_COMMAND: usize = 256 * 1024;
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
    let (simple, commands) = read(command);
    CommandTarget {
        fields,
        written: command.to_owned(),
        simple,
        commands,
    }
}

type Read = (Option<SimpleCommand>, Option<Vec<Vec<ShellText>>>);

/// Returns the command if it is a simple one, and all simple commands in it if it could be parsed.
fn read(command: &str) -> Read {
    let owned = command.to_owned();
    // The parser is recursive, and the caller may have little stack left.
    let reader = std::thread::Builder::new()
        .name("plimsoll-shell".to_owned())
        .stack_size(STACK)
        .spawn(move || match parse(&owned) {
            Some(nodes) => (simple(&nodes, &owned), Finder::commands_in(&nodes)),
            None => (None, None),
        });
    let read = reader.ok().and_then(|reader| reader.join().ok());
    read.unwrap_or_default()
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

    use plimsoll_agent::{CallTarget, Permission};
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

    fn denies(pattern: &str, command: &str) -> bool {
        decide(&format!("deny bash command={pattern}"), command).is_some()
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
    fn a_pattern_denies_what_may_run_anywhere() {
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
            "echo `rm x`",
            "echo \"`rm x`\"",
            "echo $(a $(b $(c $(rm x))))",
            "X=$(rm x)",
            "X=(a $(rm x))",
            "cat <(rm x)",
            "cat > >(rm x)",
            "cat > $(rm x)",
            "cat <<EOF\n$(rm x)\nEOF",
            "cat <<EOF\n`rm x`\nEOF",
            "cat <<< $(rm x)",
            "echo ${a:-$(rm x)}",
            "echo \"${a:-$(rm x)}\"",
            "echo ${a[$(rm x)]}",
            "echo $((1 + $(rm x)))",
            "((a = $(rm x)))",
            "[[ $(rm x) == a ]]",
            "[[ -n a && -n $(rm x) ]]",
            "echo {a,$(rm x)}",
            "sudo rm x",
            "sudo -u bob env A=1 nice -n 3 rm x",
            "timeout 5 rm x",
            "command rm x",
            "echo x | xargs rm",
            "find . -exec rm {} \\;",
            "sh -c 'rm x'",
            "bash -lc 'true; rm x'",
            "sudo sh -c \"rm x\"",
            "eval rm x",
            "eval 'rm x'",
            "trap 'rm x' EXIT",
            "ssh host 'cd /; rm x'",
            "sh -c 'sh -c \"rm x\"'",
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
            "rm x )",
            "true )",
            "if",
            "echo \"",
        ] {
            assert!(denies("rm *", command), "{command}");
        }
        for command in [
            "ls rm x",
            "git rm x",
            "echo rm x",
            "git commit -m 'rm x'",
            "git commit -m 'use `rm x`; $(rm x)'",
            "cat <<'EOF'\nrm x; $(rm x) `rm x`\nEOF",
            "cat <<EOF\nrm x\nEOF",
            "echo $x $((1 + 2)) ${y:-z} {a,b} *.rs",
            "cargo test && git status | head -n 3 > out 2>&1",
            "for f in *.rs; do echo \"$f\"; done",
            "[[ -f x ]] && echo yes",
            "sh script.sh rm x",
            "rmdir x",
            "# rm x",
            "",
        ] {
            assert!(!denies("rm *", command), "{command}");
        }
        // A pattern may still match the whole text.
        assert!(denies("*rm -rf*", "git commit -m 'rm -rf x'"));
        assert!(denies("git push --force*", "git push --force origin main"));
        assert!(denies(
            "git push*--force*",
            "cd x && git push origin $branch --force"
        ));
        assert!(!denies("git push*", "git log origin"));
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
            let (_, commands) = read(&command);
            let is_known = commands.is_some();
            println!("{start}: {is_known}, {:?}", begun.elapsed());
        }
        assert!(begun.elapsed() < Duration::from_secs(20));
        // Writing a long file is allowed.
        let file = format!("cat > f <<'EOF'\n{}EOF\n", "a `b` (c) {d}\n".repeat(10_000));
        assert!(!denies("rm *", &file));
    }
}
