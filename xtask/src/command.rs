//! A child process of a chore: its command line is printed, and a failing status is an error. No
//! shell is involved: arguments are passed unchanged.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::Error;

/// The stream of a child that is read while it is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Out,
    Err,
}

/// A child process that is not started yet.
#[derive(Debug)]
pub(crate) struct Job {
    line: String,
    command: Command,
}

impl Job {
    /// Creates a job without arguments for `program`, to be run in `folder`.
    pub(crate) fn new(program: impl AsRef<OsStr>, folder: &Path) -> Self {
        let program = program.as_ref();
        let mut command = Command::new(program);
        command.current_dir(folder);
        // `cargo run` describes this package in these variables. A child must not see them: build
        // scripts that watch one would run again in the next plain build.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(&name);
            }
        }
        let line = Path::new(program)
            .file_name()
            .unwrap_or(program)
            .to_string_lossy()
            .into_owned();
        Self { line, command }
    }

    /// Creates a job for the cargo that runs xtask.
    pub(crate) fn cargo(folder: &Path) -> Self {
        Self::new(std::env::var_os("CARGO").unwrap_or("cargo".into()), folder)
    }

    /// Adds arguments.
    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        for arg in args {
            self.line.push(' ');
            self.line.push_str(&arg.as_ref().to_string_lossy());
            self.command.arg(arg);
        }
        self
    }

    /// Sets a variable of the child's environment.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        let shown = value.as_ref().to_string_lossy().into_owned();
        self.line = format!("{name}='{shown}' {}", self.line);
        self.command.env(name, value);
        self
    }

    /// Removes a variable from the child's environment.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Runs the job with the streams of xtask.
    pub(crate) fn run(mut self) -> Result<(), Error> {
        println!("$ {}", self.line);
        let status = self.command.status();
        self.finish(status)
    }

    /// Runs the job and passes each line of one stream to `each` while printing it.
    pub(crate) fn watch(mut self, stream: Stream, mut each: impl FnMut(&str)) -> Result<(), Error> {
        println!("$ {}", self.line);
        match stream {
            Stream::Out => self.command.stdout(Stdio::piped()),
            Stream::Err => self.command.stderr(Stdio::piped()),
        };
        let mut child = match self.command.spawn() {
            Ok(child) => child,
            Err(source) => return self.finish(Err(source)),
        };
        let copied = match stream {
            Stream::Out => child
                .stdout
                .take()
                .map(|from| pass_on(from, std::io::stdout(), &mut each)),
            Stream::Err => child
                .stderr
                .take()
                .map(|from| pass_on(from, std::io::stderr(), &mut each)),
        };
        // The child is waited for even if its output could not be passed on.
        let status = child.wait();
        match copied {
            Some(Err(source)) => self.finish(Err(source)),
            Some(Ok(())) | None => self.finish(status),
        }
    }

    /// Runs the job without printing and returns its standard output. Standard error is that of
    /// xtask.
    pub(crate) fn read(mut self) -> Result<String, Error> {
        match self.command.stderr(Stdio::inherit()).output() {
            Ok(output) => {
                self.finish(Ok(output.status))?;
                Ok(String::from_utf8_lossy(&output.stdout).into_owned())
            }
            Err(source) => self.finish(Err(source)).map(|()| String::new()),
        }
    }

    /// Runs the job without any output and returns whether it succeeded.
    pub(crate) fn succeeds(mut self) -> bool {
        self.command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }

    fn finish(self, status: std::io::Result<std::process::ExitStatus>) -> Result<(), Error> {
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(Error::Failed {
                command: self.line,
                status: status.to_string(),
            }),
            Err(source) => Err(Error::Start {
                program: self.command.get_program().to_string_lossy().into_owned(),
                source,
            }),
        }
    }
}

/// Copies line by line, so that output appears while the child works.
fn pass_on(
    from: impl std::io::Read,
    mut to: impl Write,
    each: &mut impl FnMut(&str),
) -> std::io::Result<()> {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        to.write_all(&line)?;
        to.flush()?;
        each(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> std::path::PathBuf {
        std::env::current_dir().unwrap()
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = Job::new("no-such-program-here", &here()).run().unwrap_err();
        assert!(error.to_string().contains("no-such-program-here"));
    }

    #[test]
    fn a_failing_program_is_an_error_and_a_good_one_is_not() {
        let version = Job::cargo(&here()).args(["--version"]).read().unwrap();
        assert!(version.starts_with("cargo "), "{version}");
        let failed = Job::cargo(&here()).args(["no-such-command"]);
        assert!(!failed.succeeds());
        assert!(Job::cargo(&here()).args(["--version"]).succeeds());
    }

    #[test]
    fn lines_are_passed_on_and_seen() {
        let (mut to, mut seen) = (Vec::new(), Vec::new());
        pass_on(&b"one\ntwo"[..], &mut to, &mut |line: &str| {
            seen.push(line.to_owned());
        })
        .unwrap();
        assert_eq!(to, b"one\ntwo");
        assert_eq!(seen, ["one\n", "two"]);
    }
}
