//! What others see of durable runs: evicted messages on another worker, sessions in the database as commands
//! show them, and requests that nobody has signed.

use plimsoll_mock::Turn;
use serde_json::json;

use super::*;

/// A key of Ed25519 that is used nowhere else, and its public half as Restate writes it.
const PRIVATE_KEY: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEILFi4iHlnOhcX82jiu6vtPGiCJ44A/eqbWVoqOwHzr8h
-----END PRIVATE KEY-----
";
const PUBLIC_KEY: &str = "publickeyv1_AzC4GNV7H2kQhyQZGmRQpReoyoemkAozH2tQSegPaxei";

#[tokio::test(flavor = "multi_thread")]
async fn what_one_worker_evicted_another_recalls() {
    let story = |name: &str| {
        let command = format!("seq -f 'line %g of the {name} story' 1 500");
        Turn::call("bash", json!({"command": command}))
    };
    let turns = [
        story("first"),
        story("second"),
        story("third"),
        story("fourth"),
        holds(),
        Turn::call("recall", json!({"id": "m2", "pattern": "line 77 "})),
        Turn::say("Found."),
    ];
    let Some(stage) = Stage::set(turns).await else {
        return;
    };
    let args = ["--yes", "--patience", PATIENCE, "--max-context", "12000"];
    let first = stage.worker(&args);
    let run = stage.run("Look for line 77.");
    until("the call runs", || stage.work("ran").exists());
    let line = "line 77 of the first story";
    let requests = stage.requests();
    assert!(requests[1].contains(line), "{}", requests[1]);
    let last = requests.last().unwrap();
    assert!(!last.contains(line), "{last}");
    let second = stage.worker(&args);
    first.kill();
    let (code, out, err) = end(run);
    std::fs::write(stage.work("go"), "").unwrap();
    assert_eq!((code, out.as_str()), (Some(0), "Found.\n"), "{err}");
    let requests = stage.requests();
    let last = requests.last().unwrap();
    assert!(last.contains(line), "{last}");
    drop(second);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_workers_are_listed_shown_forked_and_deleted() {
    let turns = [Turn::say("The answer is 42."), Turn::say("no").repeated()];
    let Some(stage) = Stage::set(turns).await else {
        return;
    };
    let worker = stage.worker(&["--yes"]);
    let (code, _, err) = end(stage.run("What is the answer?"));
    assert_eq!(code, Some(0), "{err}");
    let done = |args: &[&str]| {
        let output = stage.command(args).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{args:?}: {err}");
        out
    };
    let list = done(&["sessions", "list"]);
    assert!(
        list.contains("\ns  ") && list.contains("What is the answer?"),
        "{list}"
    );
    // The files of this machine have none.
    assert_eq!(done(&["sessions", "list", "--store", "local"]), "");
    let show = done(&["sessions", "show", "s"]);
    assert!(show.contains("The answer is 42."), "{show}");
    let found = done(&["sessions", "search", "answer", "42"]);
    assert!(found.contains("The answer is 42."), "{found}");
    let usage = done(&["usage", "--by", "session"]);
    assert!(usage.contains("  s  "), "{usage}");
    assert_eq!(done(&["sessions", "fork", "s", "--to", "f"]), "f\n");
    let export = done(&["sessions", "export", "--all"]);
    std::fs::write(stage.work("all.jsonl"), &export).unwrap();
    assert_eq!(done(&["sessions", "delete", "f", "s", "--yes"]), "f\ns\n");
    assert_eq!(done(&["sessions", "list"]), "");
    // What was exported is whole.
    let import = ["sessions", "--store", "local", "import", "all.jsonl"];
    assert!(done(&import).contains("s\n"));
    let show = done(&["sessions", "--store", "local", "show", "f"]);
    assert!(show.contains("The answer is 42."), "{show}");

    for (args, words) in [
        (
            &["sessions", "check"][..],
            "this command works with local files",
        ),
        (
            &["sessions", "list", "--here"],
            "this command works with local files",
        ),
        (
            &["usage", "--by", "folder"],
            "this command works with local files",
        ),
    ] {
        let output = stage.command(args).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(err.contains(words), "{err}");
    }
    drop(worker);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_nobody_has_signed_is_refused() {
    let turns = [Turn::say("Signed.")];
    let Some(stage) = Stage::set(turns).await else {
        return;
    };
    // A server that signs nothing cannot even ask what there is.
    let unsigned = stage
        .worker_command(&["--identity-key", PUBLIC_KEY])
        .output()
        .unwrap();
    let err = String::from_utf8(unsigned.stderr).unwrap();
    assert_eq!(unsigned.status.code(), Some(1), "{err}");
    assert!(err.contains("does not take the worker"), "{err}");
    let wrong = stage
        .worker_command(&["--identity-key", "publickeyv1_0"])
        .output()
        .unwrap();
    let err = String::from_utf8(wrong.stderr).unwrap();
    assert_eq!(wrong.status.code(), Some(2), "{err}");
    assert!(
        err.contains("`publickeyv1_0` is no public key of Restate"),
        "{err}"
    );

    let Some(signing) = Restate::start_signing(PRIVATE_KEY) else {
        return;
    };
    let stage = Stage {
        restate: signing,
        ..stage
    };
    let worker = stage.worker(&["--yes", "--identity-key", PUBLIC_KEY]);
    let (code, out, err) = end(stage.run("Do it."));
    assert_eq!((code, out.as_str()), (Some(0), "Signed.\n"), "{err}");
    drop(worker);
}
