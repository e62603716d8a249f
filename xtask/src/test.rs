//! `cargo xtask test`: runs every test of the workspace, then every example in the docs. Uses
//! nextest if available, otherwise `cargo test`, which runs the same tests.

use std::cell::Cell;
use std::fmt;
use std::io::IsTerminal;
use std::num::NonZero;
use std::path::Path;

use crate::command::{Job, Stream};
use crate::error::Error;
use crate::steps::{self, Step};
use crate::tools;

/// The numbers of tests, from the runners' closing lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            passed,
            failed,
            skipped,
        } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

impl std::ops::Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}

impl Counts {
    /// Adds the numbers of a closing line of nextest or of libtest. Other lines are ignored.
    pub(crate) fn read(&mut self, line: &str) {
        let plain = without_colours(line);
        let line = plain.trim_start();
        if !line.starts_with("Summary [") && !line.starts_with("test result: ") {
            return;
        }
        // Nextest prints its total, "3 tests run:", before the parts.
        let parts = line.rsplit_once("run: ").map_or(line, |(_, parts)| parts);
        let words: Vec<&str> = parts
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        for (number, word) in words.iter().zip(words.iter().skip(1)) {
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            match *word {
                "passed" => self.passed += number,
                "failed" | "timed" | "exec" => self.failed += number,
                "skipped" | "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }
}

/// Runs every test and every example, and prints the numbers.
pub(crate) fn run(root: &Path) -> Result<(), Error> {
    let counts = Cell::new(Counts::default());
    let result = steps::run(&steps(root, &counts), None);
    println!("{}", counts.get());
    result
}

/// Returns the tests and the examples in the docs as two steps that add to `counts`. The examples
/// run even if a test has failed.
pub(crate) fn steps<'a>(root: &'a Path, counts: &'a Cell<Counts>) -> [Step<'a>; 2] {
    let step = |name, check: fn(&Path, &mut Counts) -> Result<(), Error>| Step {
        name,
        act: Box::new(move || {
            let mut own = Counts::default();
            let result = check(root, &mut own);
            counts.set(counts.get() + own);
            result.map(|()| own.to_string())
        }),
    };
    [step("tests", tests), step("examples", examples)]
}

fn tests(root: &Path, counts: &mut Counts) -> Result<(), Error> {
    match tools::NEXTEST.find(root) {
        Ok(nextest) => {
            let job = Job::new(nextest, root)
                .args(["nextest", "run", "--workspace"])
                .args(["--test-threads", &at_once().to_string()]);
            if std::io::stderr().is_terminal() {
                // Nextest draws its progress only on a terminal of its own.
                job.run()
            } else {
                job.watch(Stream::Err, |line| counts.read(line))
            }
        }
        Err(error) => {
            println!("{error}");
            println!("going on with `cargo test`, which runs the same tests, only slower");
            Job::cargo(root)
                .args(["test", "--workspace", "--no-fail-fast"])
                .args(["--lib", "--bins", "--tests", "--examples"])
                .watch(Stream::Out, |line| counts.read(line))
        }
    }
}

/// Returns the number of tests that run at once: half as many again as there are cores, because a
/// quarter of the tests' time is spent waiting for other processes and for pauses that they test.
fn at_once() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    cores + cores.div_ceil(2)
}

fn examples(root: &Path, counts: &mut Counts) -> Result<(), Error> {
    Job::cargo(root)
        .args(["test", "--workspace", "--doc", "--no-fail-fast"])
        .watch(Stream::Out, |line| counts.read(line))
}

/// Removes the escape sequences of colours from a line.
fn without_colours(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            // A colour is ESC [ digits m.
            chars.by_ref().find(|c| *c == 'm');
        } else {
            plain.push(c);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_are_counted_and_others_are_not() {
        let counts = |passed, failed, skipped| Counts {
            passed,
            failed,
            skipped,
        };
        let table = [
            (
                "     Summary [   0.005s] 3 tests run: 3 passed, 0 skipped",
                counts(3, 0, 0),
            ),
            (
                "     Summary [   1.2s] 9/12 tests run: 6 passed (1 slow), 2 failed, 1 timed out, 4 skipped",
                counts(6, 3, 4),
            ),
            (
                "\u{1b}[32;1m     Summary\u{1b}[0m [ 0.1s] 1 test run: 1 passed, 0 skipped",
                counts(1, 0, 0),
            ),
            (
                "test result: ok. 5 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s",
                counts(5, 1, 2),
            ),
            (
                "        PASS [   0.004s] xtask test::tests::two_passed_one_failed",
                counts(0, 0, 0),
            ),
            ("test says::that_3_passed ... ok", counts(0, 0, 0)),
        ];
        for (line, expected) in table {
            let mut got = Counts::default();
            got.read(line);
            assert_eq!(got, expected, "{line}");
        }
    }

    #[test]
    fn the_closing_line_is_plain() {
        let mut counts = Counts::default();
        counts.read("Summary [ 1s] 2 tests run: 2 passed, 1 skipped");
        counts.read("test result: ok. 4 passed; 0 failed; 0 ignored");
        assert_eq!(counts.to_string(), "6 passed, 0 failed, 1 skipped");
    }
}
