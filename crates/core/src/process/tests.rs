//! Child processes that end, hang, flood, fork and refuse to die. A FIFO that a child holds open
//! shows whether it is gone: reading ends when the last holder has ended.

use std::path::Path;
use std::time::Instant;

use super::*;

/// Longer than any test may take.
const FOR_EVER: &str = "sleep 1000";
const LIMITS: ProcessLimits = ProcessLimits {
    timeout: Duration::from_secs(60),
    max_output: Bytes(10_000),
};
/// Long enough to start on a busy machine, but no longer.
const SOON: Duration = Duration::from_secs(3);
/// Set in the process that [`secrets_are_kept_back`] starts.
const SHOW: &str = "PLIMSOLL_TEST_SHOWS_ITS_VARIABLES";
/// Set in the process that [`a_server_dies_with_its_parent`] kills.
const HOLDER: &str = "PLIMSOLL_TEST_HOLDS_A_SERVER_ON";

fn sh(script: &str) -> Command {
    Command::new("sh").args(["-c", script])
}

async fn run(command: Command) -> ProcessOutput {
    command.run(LIMITS, CancellationToken::new()).await.unwrap()
}

async fn run_for(command: Command, timeout: Duration) -> ProcessOutput {
    let limits = ProcessLimits { timeout, ..LIMITS };
    command.run(limits, CancellationToken::new()).await.unwrap()
}

/// A FIFO, and a script line that makes a child and its descendants hold it open.
struct Fifo {
    folder: tempfile::TempDir,
}

/// The processes that hold a FIFO.
struct Holders(tokio::net::unix::pipe::Receiver);

impl Fifo {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let fifo = Self { folder };
        let made = std::process::Command::new("mkfifo")
            .arg(fifo.path())
            .status();
        assert!(made.unwrap().success());
        fifo
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("fifo")
    }

    fn hold(&self) -> String {
        format!("exec 9>'{}'; echo ready >&9;", self.path().display())
    }

    fn holders(&self) -> Holders {
        let options = tokio::net::unix::pipe::OpenOptions::new();
        Holders(options.open_receiver(self.path()).unwrap())
    }
}

impl Holders {
    /// Waits until there is one.
    async fn are_there(&mut self) {
        let there = async {
            self.0.readable().await.unwrap();
            let mut ready = [0; 6];
            self.0.read_exact(&mut ready).await.unwrap();
            assert_eq!(&ready, b"ready\n");
        };
        let there = tokio::time::timeout(Duration::from_secs(20), there);
        there.await.expect("the child did not begin");
    }

    /// Waits until there was one and none is left.
    async fn are_gone(mut self) {
        let gone = async {
            self.0.readable().await.unwrap();
            self.0.read_to_end(&mut Vec::new()).await.unwrap();
        };
        let gone = tokio::time::timeout(Duration::from_secs(20), gone);
        gone.await.expect("a process was left behind");
    }
}

#[tokio::test]
async fn what_it_prints_and_how_it_ends_are_told() {
    for (script, ended, text) in [
        ("printf hello", ProcessEnd::Exited(0), "hello"),
        (
            "echo out; echo err >&2; echo out",
            ProcessEnd::Exited(0),
            "out\nerr\nout\n",
        ),
        ("exit 3", ProcessEnd::Exited(3), ""),
        ("kill -KILL $$", ProcessEnd::Signalled(9), ""),
        ("cat; echo end", ProcessEnd::Exited(0), "end\n"),
        ("printf 'a\\377b'", ProcessEnd::Exited(0), "a\u{fffd}b"),
        ("exec >&- 2>&-; exit 4", ProcessEnd::Exited(4), ""),
    ] {
        let got = run(sh(script)).await;
        assert_eq!(got.ended, ended, "{script}");
        assert_eq!(got.output.head, text, "{script}");
        assert!(!got.killed_background, "{script}");
    }
}

#[tokio::test]
async fn folder_arguments_and_variables_are_handed_on() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let command = sh("pwd; echo \"$1|$COLOUR|$A_TOKEN\"").args(["_", "a b"]);
    let command = command
        .cwd(&folder)
        .env("COLOUR", "red")
        .env("A_TOKEN", "given");
    let got = run(command).await.output.head;
    assert_eq!(got, format!("{}\na b|red|given\n", folder.display()));

    // PATH is not a secret, so a child can start programs.
    let names = run(Command::new("env")).await.output.head;
    assert!(names.lines().any(|line| line.starts_with("PATH=")));
}

#[test]
fn secrets_are_kept_back() {
    // This process's own variables cannot be set safely, so those of another process are.
    let test = std::env::current_exe().unwrap();
    let got = std::process::Command::new(test)
        .args(["--exact", "process::tests::shows_its_childs_variables"])
        .arg("--nocapture")
        .env(SHOW, "1")
        .env("SOME_API_KEY", "hidden")
        .env("SOME_COLOUR", "seen")
        .output()
        .unwrap();
    let got = String::from_utf8(got.stdout).unwrap();
    assert!(got.contains("SOME_COLOUR=seen"), "{got}");
    assert!(
        !got.contains("SOME_API_KEY") && !got.contains("hidden"),
        "{got}"
    );
}

/// No test by itself: the parent of [`secrets_are_kept_back`].
#[tokio::test]
async fn shows_its_childs_variables() {
    if std::env::var_os(SHOW).is_some() {
        println!("{}", run(Command::new("env")).await.output.head);
    }
}

#[tokio::test]
async fn what_cannot_be_started_is_said() {
    for (command, text) in [
        (
            Command::new("no-such-program"),
            "cannot start `no-such-program`",
        ),
        (
            sh("true").cwd("/no/such/folder"),
            "in /no/such/folder: no such folder",
        ),
        (Command::new("/"), "cannot start `/`"),
        (sh("a\0b"), "nul byte"),
        (sh(&"x".repeat(64 << 20)), "cannot start `sh`"),
    ] {
        let error = command.run(LIMITS, CancellationToken::new()).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}

#[tokio::test]
async fn one_that_hangs_is_stopped_with_all_that_it_started() {
    let fifo = Fifo::new();
    let holders = fifo.holders();
    // A grandchild, and one that cannot be asked to end.
    let script = format!(
        "{} ({FOR_EVER} & wait) & (trap '' TERM; {FOR_EVER}) & echo begun; {FOR_EVER}",
        fifo.hold()
    );
    let got = run_for(sh(&script), SOON).await;
    assert_eq!(got.ended, ProcessEnd::TimedOut);
    assert_eq!(got.output.head, "begun\n");
    holders.are_gone().await;
}

#[tokio::test]
async fn one_that_may_end_by_itself_says_its_last_words() {
    let script = format!("trap 'echo bye; exit 0' TERM; {FOR_EVER} & wait");
    let got = run_for(sh(&script), SOON).await;
    assert_eq!(got.ended, ProcessEnd::TimedOut);
    assert_eq!(got.output.head, "bye\n");
}

#[tokio::test]
async fn one_that_does_not_listen_is_killed() {
    let begun = Instant::now();
    let script = format!("trap '' TERM; while :; do {FOR_EVER}; done");
    let got = run_for(sh(&script), Duration::ZERO).await;
    assert_eq!(got.ended, ProcessEnd::TimedOut);
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[tokio::test]
async fn what_is_left_in_the_background_ends_and_holds_nobody_up() {
    for (script, left) in [
        // Holds the pipe.
        (format!("{FOR_EVER} & echo done"), true),
        // Floods the pipe.
        ("echo done; yes &".to_owned(), true),
        // Is silent.
        (format!("{FOR_EVER} >/dev/null 2>&1 & echo done"), false),
        // Ends in time, and its output is kept.
        ("(sleep 0.1; echo late) & echo done".to_owned(), false),
    ] {
        let fifo = Fifo::new();
        let holders = fifo.holders();
        let got = run(sh(&format!("{} {script}", fifo.hold()))).await;
        assert_eq!(
            (got.ended, got.killed_background),
            (ProcessEnd::Exited(0), left),
            "{script}"
        );
        let text = got.output;
        assert!(text.head.contains("done"), "{script}");
        assert_eq!(text.head.contains("late"), script.contains("late"));
        holders.are_gone().await;
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn one_that_leaves_the_session_ends_with_the_child() {
    for (script, left) in [
        // Holds the pipe.
        ("setsid yes & echo done", true),
        // Is silent, and nobody's child.
        ("(setsid sleep 1000 >/dev/null 2>&1 &); echo done", false),
        (
            "set -m; env -i sleep 1000 >/dev/null 2>&1 & echo done",
            false,
        ),
    ] {
        let fifo = Fifo::new();
        let holders = fifo.holders();
        let got = run(sh(&format!("{} {script}", fifo.hold()))).await;
        assert_eq!(got.killed_background, left, "{script}");
        holders.are_gone().await;
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_child_has_no_terminal_although_this_process_has_one() {
    let test = std::env::current_exe().unwrap();
    let helper = "--exact process::tests::opens_the_terminal --nocapture";
    let got = std::process::Command::new("script")
        .args(["--quiet", "--return", "/dev/null", "--command"])
        .arg(format!("'{}' {helper}", test.display()))
        .env(SHOW, "1")
        .output()
        .expect("`script` of util-linux");
    let got = String::from_utf8_lossy(&got.stdout).into_owned();
    assert!(got.contains("this process: opened"), "{got}");
    assert!(got.contains("its child: refused"), "{got}");
}

/// No test by itself: the process with a terminal in
/// [`a_child_has_no_terminal_although_this_process_has_one`].
#[cfg(target_os = "linux")]
#[tokio::test]
async fn opens_the_terminal() {
    if std::env::var_os(SHOW).is_none() {
        return;
    }
    if std::fs::File::open("/dev/tty").is_ok() {
        println!("this process: opened");
    }
    let script = "if (: < /dev/tty) 2>/dev/null; then echo opened; else echo refused; fi";
    println!("its child: {}", run(sh(script)).await.output.head);
}

#[tokio::test]
async fn cancelled_nothing_is_left() {
    let fifo = Fifo::new();
    let mut holders = fifo.holders();
    let command = sh(&format!(
        "echo begun; {} {FOR_EVER} & {FOR_EVER}",
        fifo.hold()
    ));
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let running = tokio::spawn(async move { command.run(LIMITS, token).await });
    holders.are_there().await;
    cancel.cancel();
    let got = running.await.unwrap().unwrap();
    assert_eq!(got.ended, ProcessEnd::Cancelled);
    assert_eq!(got.output.head, "begun\n");
    holders.are_gone().await;
}

#[tokio::test]
async fn dropped_nothing_is_left() {
    let fifo = Fifo::new();
    let mut holders = fifo.holders();
    let command = sh(&format!(
        "{} trap '' TERM; {FOR_EVER} & {FOR_EVER}",
        fifo.hold()
    ));
    tokio::select! {
        got = command.run(LIMITS, CancellationToken::new()) => panic!("{got:?}"),
        () = holders.are_there() => {}
    }
    holders.are_gone().await;
}

#[tokio::test]
async fn a_flood_is_counted_and_only_its_ends_are_kept() {
    let script = "echo first; head -c 50000000 /dev/zero | tr '\\0' 'x'; echo last";
    let got = run(sh(script)).await;
    assert_eq!(got.ended, ProcessEnd::Exited(0));
    let text = got.output;
    assert!(text.head.starts_with("first\nxxx") && text.tail.ends_with("xxxlast\n"));
    assert_eq!(text.missing, Bytes(50_000_011 - 10_000));
}

#[tokio::test]
async fn not_even_a_zombie_is_left() {
    use rustix::process::{Pid, test_kill_process, test_kill_process_group};
    let script = "echo $$";
    let runs = (0..40).map(|_| run(sh(script)));
    for got in futures_util::future::join_all(runs).await {
        assert_eq!(got.ended, ProcessEnd::Exited(0));
        for id in got.output.head.lines() {
            let id = Pid::from_raw(id.parse().unwrap()).unwrap();
            let gone = Err(rustix::io::Errno::SRCH);
            assert_eq!(test_kill_process(id), gone);
            assert_eq!(test_kill_process_group(id), gone);
        }
    }
}

#[tokio::test]
async fn a_server_runs_until_it_is_stopped() {
    let fifo = Fifo::new();
    let mut holders = fifo.holders();
    let server = sh(&format!("{} {FOR_EVER} & wait", fifo.hold()));
    let server = server.serve(Bytes(100)).unwrap();
    holders.are_there().await;
    assert!(server.is_running() && server.id() > 0);
    assert_eq!(server.stop().await, Some(ProcessEnd::Signalled(15)));
    holders.are_gone().await;
}

#[tokio::test]
async fn a_server_is_spoken_with_and_its_errors_are_kept_apart() {
    use tokio::io::AsyncWriteExt;
    let fifo = Fifo::new();
    let holders = fifo.holders();
    let script = "echo warning >&2; while read -r line; do echo \"got $line\"; done; echo end >&2";
    let script = format!("{} {script}", fifo.hold());
    let (mut server, mut talk) = sh(&script).talk(Bytes(100)).unwrap();
    talk.input.write_all(b"one\ntwo\n").await.unwrap();
    let mut got = [0; 16];
    talk.output.read_exact(&mut got).await.unwrap();
    assert_eq!(&got, b"got one\ngot two\n");
    // It reads the end of its input and exits.
    drop(talk.input);
    server.exited().await;
    assert_eq!(server.log().head, "warning\nend\n");
    holders.are_gone().await;
}

#[tokio::test]
async fn a_server_that_ends_leaves_its_last_words() {
    let script = "i=0; while [ $i -lt 200 ]; do echo line $i; i=$((i+1)); done; echo no memory";
    let mut server = sh(script).serve(Bytes(19)).unwrap();
    for _ in 0..2 {
        server.exited().await;
        assert!(!server.is_running());
        assert_eq!(server.log().tail, "line 199\nno memory\n");
    }
    assert_eq!(server.stop().await, Some(ProcessEnd::Exited(0)));
}

#[tokio::test]
async fn a_dropped_server_is_killed() {
    let fifo = Fifo::new();
    let mut holders = fifo.holders();
    let script = format!("trap '' TERM; {} {FOR_EVER} & wait", fifo.hold());
    let server = sh(&script).serve(Bytes(100)).unwrap();
    holders.are_there().await;
    drop(server);
    holders.are_gone().await;
}

#[tokio::test]
async fn a_server_dies_with_its_parent() {
    let fifo = Fifo::new();
    let mut holders = fifo.holders();
    let test = std::env::current_exe().unwrap();
    let mut holder = std::process::Command::new(test)
        .args(["--exact", "process::tests::holds_a_server"])
        .env(HOLDER, fifo.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    holders.are_there().await;
    // SIGKILL: it has no time to clean up.
    holder.kill().unwrap();
    holder.wait().unwrap();
    holders.are_gone().await;
}

/// No test by itself: the parent of [`a_server_dies_with_its_parent`].
#[tokio::test]
async fn holds_a_server() {
    let Some(path) = std::env::var_os(HOLDER) else {
        return;
    };
    let path = Path::new(&path).display();
    let leaves = if cfg!(target_os = "linux") {
        "(setsid sleep 1000 &);"
    } else {
        ""
    };
    let script =
        format!("trap '' TERM; exec 9>'{path}'; {leaves} echo ready >&9; {FOR_EVER} & wait");
    let mut server = sh(&script).serve(Bytes(100)).unwrap();
    server.exited().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn nobody_looks_into_this_process_or_a_watchdog() {
    use rustix::process::{DumpableBehavior, dumpable_behavior};
    deny_inspection().unwrap();
    assert_eq!(dumpable_behavior(), Ok(DumpableBehavior::NotDumpable));
    let watchdog = "for child in $(cat /proc/$PPID/task/*/children); do \
        if grep -q plimsoll-watch[d]og /proc/$child/cmdline; then tr '\\0' '\\n' < /proc/$child/environ; fi; done | sort -u";
    let output = run(sh(watchdog)).await;
    assert_eq!(output.output.head, "PATH=/usr/bin:/bin\n");
}
