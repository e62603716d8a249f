//! Durable runs as a user starts them: workers, a Restate server, PostgreSQL and a strict model.
//! Workers are killed, questions are answered from elsewhere, and a log that does not match the
//! journal is refused. Skipped with a note if a server is not installed.
#![cfg(unix)]

mod restate;
mod watched;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use plimsoll::SessionStore;
use plimsoll::store::{PostgresOptions, PostgresStore};
use plimsoll_mock::{Mock, Script, Server, Turn};
use plimsoll_testkit::ChildGuard;
use plimsoll_testkit::postgres::PostgresServer;
use serde_json::json;
use tempfile::TempDir;

use restate::Restate;

/// How long anything may take.
const LONG: Duration = Duration::from_secs(90);
/// After this a killed worker's session is taken over.
const PATIENCE: &str = "2";

/// Everything that a run needs.
struct Stage {
    restate: Restate,
    postgres: PostgresServer,
    model: Server,
    folder: TempDir,
    port: u16,
}

impl Stage {
    async fn set(turns: impl IntoIterator<Item = Turn>) -> Option<Self> {
        Self::set_on(Restate::start()?, turns).await
    }

    async fn set_on(restate: Restate, turns: impl IntoIterator<Item = Turn>) -> Option<Self> {
        let postgres = PostgresServer::start()?;
        let mock = Mock::chat("compatible").unwrap();
        let mock = mock.page("/v1/models", 404, json!({}));
        let model = Server::start(mock.script(Script::new(turns)))
            .await
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        let [port] = restate::ports();
        Some(Self {
            restate,
            postgres,
            model,
            folder,
            port,
        })
    }

    fn work(&self, file: &str) -> PathBuf {
        self.folder.path().join("work").join(file)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command
            .env_clear()
            .env("PLIMSOLL_HOME", self.folder.path().join("data"))
            .env("PLIMSOLL_STORE", self.postgres.url())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .current_dir(self.folder.path().join("work"))
            .stdin(Stdio::null())
            .args(args);
        command
    }

    /// Starts a worker, and waits until Restate knows it.
    fn worker(&self, args: &[&str]) -> ChildGuard {
        self.serving(&mut self.worker_command(args))
    }

    fn serving(&self, command: &mut Command) -> ChildGuard {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let out = child.stdout.take().unwrap();
        let worker = ChildGuard::new(child);
        let first = BufReader::new(out).lines().next().unwrap().unwrap();
        assert_eq!(first, format!("http://127.0.0.1:{}", self.port));
        worker
    }

    /// As [`Self::worker`]; what it says on standard error goes to a file.
    fn worker_saying(&self, args: &[&str], file: &Path) -> ChildGuard {
        let said = std::fs::File::create(file).unwrap();
        let mut command = self.worker_command(args);
        self.serving(command.stderr(said))
    }

    fn worker_command(&self, args: &[&str]) -> Command {
        let listen = format!("127.0.0.1:{}", self.port);
        let admin = format!("http://127.0.0.1:{}", self.restate.admin);
        let model = format!("{}/v1", self.model.address());
        let mut command = self.command(&["worker", "--listen", &listen, "--register", &admin]);
        command
            .args(["--tools", "bash"])
            .args(["--model", "openai-compatible/m", "--base-url", &model])
            .args(args);
        command
    }

    fn on(&self) -> String {
        format!("restate://127.0.0.1:{}", self.restate.ingress)
    }

    /// Starts a run in the session `s`.
    fn run(&self, task: &str) -> ChildGuard {
        self.run_saying(task, Stdio::piped())
    }

    fn run_saying(&self, task: &str, stderr: impl Into<Stdio>) -> ChildGuard {
        let on = self.on();
        let args = ["run", "--on", &on, "--session", "s", task];
        let mut command = self.command(&args);
        command.stdout(Stdio::piped()).stderr(stderr);
        ChildGuard::new(command.spawn().unwrap())
    }

    fn send(&self, args: &[&str]) -> Output {
        let on = self.on();
        let mut command = self.command(&["send", "--on", &on, "s"]);
        command.args(args).output().unwrap()
    }

    /// What the model was sent, the newest last.
    fn requests(&self) -> Vec<String> {
        let requests = self.model.requests().into_iter();
        requests
            .filter(|request| request.path.ends_with("/chat/completions"))
            .map(|request| {
                assert_eq!(request.status, 200, "{request:?}");
                request.body.to_string()
            })
            .collect()
    }
}

/// Waits for the end of a process, and returns its code, its output and its words.
fn end(child: ChildGuard) -> (Option<i32>, String, String) {
    let output = child.release().wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A call that says when it runs, and runs until it may end.
fn holds() -> Turn {
    let command =
        "echo $PLIMSOLL_CALL_KEY >> ran; while [ ! -e go ]; do sleep 0.1; done; echo held";
    Turn::call("bash", json!({"command": command}))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_killed_in_a_call_is_replaced_and_the_call_is_not_made_again() {
    let quick = Turn::call("bash", json!({"command": "echo quick >> quick"}));
    let turns = [quick, holds(), Turn::say("It may have run.")];
    let Some(stage) = Stage::set(turns).await else {
        return;
    };
    let first = stage.worker(&["--yes", "--patience", PATIENCE]);
    let run = stage.run("Do it.");
    until("the call runs", || stage.work("ran").exists());
    let second = stage.worker(&["--yes", "--patience", PATIENCE]);
    first.kill();
    let (code, out, err) = end(run);
    std::fs::write(stage.work("go"), "").unwrap();
    assert_eq!(
        (code, out.as_str()),
        (Some(0), "It may have run.\n"),
        "{err}"
    );
    assert!(err.contains("another worker continues the run"), "{err}");
    let ran = |file| std::fs::read_to_string(stage.work(file)).unwrap();
    assert_eq!(
        (ran("ran").as_str(), ran("quick").as_str()),
        ("s.3-0\n", "quick\n")
    );
    let requests = stage.requests();
    assert_eq!(requests.len(), 3);
    assert!(
        requests[2].contains("it is not known whether this call ran to its end"),
        "{}",
        requests[2]
    );
    // The session goes on with what the other worker knows.
    drop(second);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_stopped_hands_its_run_over_at_once() {
    let Some(stage) = Stage::set([holds(), Turn::say("It may have run.")]).await else {
        return;
    };
    // A session that nobody hands over would be free after an hour.
    let patience = ["--yes", "--patience", "3600"];
    let first = stage.worker(&patience);
    let run = stage.run("Do it.");
    until("the call runs", || stage.work("ran").exists());
    let second = stage.worker(&patience);
    let pid = rustix::process::Pid::from_child(&first);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let (code, out, err) = end(run);
    std::fs::write(stage.work("go"), "").unwrap();
    assert_eq!(
        (code, out.as_str()),
        (Some(0), "It may have run.\n"),
        "{err}"
    );
    assert_eq!(end(first).0, Some(0));
    drop(second);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_away_for_a_while_costs_the_step_and_not_the_run() {
    let Some(stage) = Stage::set([holds(), Turn::say("It may have run.")]).await else {
        return;
    };
    // The programs of the server have it beside them.
    let sql = |sql: &str| {
        let url = stage.postgres.url().replace("/postgres?", "/template1?");
        let done = Command::new("psql").args([&url, "-c", sql]).output();
        done.is_ok_and(|done| done.status.success())
    };
    if !sql("SELECT 1") {
        eprintln!("not tested with a database that is away: psql was not found");
        return;
    }
    let said = stage.work("said");
    let worker = stage.worker_saying(&["--yes", "--patience", PATIENCE], &said);
    let run = stage.run("Do it.");
    until("the call runs", || stage.work("ran").exists());
    assert!(sql("ALTER DATABASE postgres ALLOW_CONNECTIONS false"));
    assert!(sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'postgres'"
    ));
    std::fs::write(stage.work("go"), "").unwrap();
    let status = stage.command(&["worker", "--yes"]).output().unwrap();
    let words = String::from_utf8_lossy(&status.stderr);
    assert!(
        words.contains("not currently accepting connections"),
        "{words}"
    );
    let has_said = |words: &str| std::fs::read_to_string(&said).unwrap().contains(words);
    until("the worker says so", || {
        has_said("the database fails, and runs wait until it works again")
    });
    assert!(sql("ALTER DATABASE postgres ALLOW_CONNECTIONS true"));
    let (code, out, err) = end(run);
    assert_eq!(
        (code, out.as_str()),
        (Some(0), "It may have run.\n"),
        "{err}"
    );
    let ran = std::fs::read_to_string(stage.work("ran")).unwrap();
    assert_eq!(ran, "s.1-0\n");
    drop(worker);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_approved_and_steered_and_ended_from_elsewhere() {
    let allowed = Turn::call("bash", json!({"command": "touch allowed"}));
    let denied = Turn::call("bash", json!({"command": "touch denied"}));
    let (slow, opener) = Turn::say("I listen.").gated(0);
    let turns = [allowed, denied, slow, Turn::say("Quickly, then."), holds()];
    let Some(stage) = Stage::set(turns).await else {
        return;
    };
    let worker = stage.worker(&["--patience", PATIENCE]);
    let nobody = stage.send(&["hello"]);
    assert_eq!(nobody.status.code(), Some(1), "{nobody:?}");
    let words = String::from_utf8_lossy(&nobody.stderr);
    assert!(words.contains("session s has no current run"), "{words}");

    let run = stage.run("Do it.");
    for (number, answer) in [(1, "--approve"), (2, "--deny")] {
        let mut key = String::new();
        until("a question", || {
            let status = stage.send(&[]);
            let text = String::from_utf8_lossy(&status.stdout).into_owned();
            let line = text.lines().find(|line| line.starts_with("waits"));
            let found = line.and_then(|line| line.split_whitespace().nth(6));
            key = found.unwrap_or_default().to_owned();
            !key.is_empty() && stage.requests().len() == number
        });
        let answered = stage.send(&[answer, &key]);
        assert!(answered.status.success(), "{answered:?}");
    }
    until("the third call", || stage.requests().len() == 3);
    let said = stage.send(&["Quickly!"]);
    assert!(said.status.success(), "{said:?}");
    opener.open();
    let (code, out, err) = end(run);
    assert_eq!((code, out.as_str()), (Some(0), "Quickly, then.\n"), "{err}");
    let last = stage.requests().pop().unwrap();
    assert_eq!(last.matches("Quickly!").count(), 1, "{last}");
    assert!(stage.work("allowed").exists() && !stage.work("denied").exists());

    // Another run of the session, which is ended while it waits for a yes or no.
    let said = stage.work("said");
    let run = stage.run_saying("And hold it.", std::fs::File::create(&said).unwrap());
    until("a question", || {
        let said = std::fs::read_to_string(&said).unwrap();
        said.contains("waits for a yes or no")
    });
    let ended = stage.send(&["--interrupt"]);
    assert!(ended.status.success(), "{ended:?}");
    let (code, out, err) = end(run);
    assert_eq!((code, out.as_str()), (Some(130), ""), "{err}");
    drop(worker);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_without_its_log_is_refused_and_nothing_is_run() {
    let turns = [holds(), Turn::say("no").repeated()];
    let Some(stage) = Stage::set(turns).await else {
        return;
    };
    let first = stage.worker(&["--yes", "--patience", PATIENCE]);
    let run = stage.run("Do it.");
    until("the call runs", || stage.work("ran").exists());
    first.kill();
    std::fs::write(stage.work("go"), "").unwrap();
    let options = PostgresOptions {
        patience: Duration::from_secs(2),
        ..PostgresOptions::default()
    };
    let url = stage.postgres.url();
    let store = PostgresStore::connect_with(&url, options).await.unwrap();
    let id = plimsoll::SessionId::new("s").unwrap();
    let lease = store.acquire(&id).await.unwrap();
    assert!(store.delete(&lease).await.unwrap());
    drop(lease);
    store.close().await;

    let second = stage.worker(&["--yes", "--patience", PATIENCE]);
    let (code, out, err) = end(run);
    assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
    assert!(
        err.contains("the journal of session s names entry") && err.contains("it is empty"),
        "{err}"
    );
    assert_eq!(stage.requests().len(), 1);
    drop(second);
}
