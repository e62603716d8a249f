//! Failing models and unusable stores: one sentence with the remedy, an exit code, and a session
//! that can still be opened.

use std::fs::File;
use std::io::Write;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use super::command::{CommandOutput, Home, feed, with};
use super::fake::{Fake, FakeAnswer};
use super::runs::messages;
use super::terminal::Terminal;

/// The session of a failed run opens, and goes on where a sound model answers.
fn goes_on(home: &Home, failed: &CommandOutput) {
    let id = failed.session();
    home.run(["sessions", "show", &id]).done();
    let sound = Fake::new([FakeAnswer::say("at last")]);
    let said = home.agent(&sound, &["--quiet", "--session", &id]).done();
    assert_eq!(said.out, "at last\n");
    assert_eq!(messages(&sound.asked()[0])[1].1, "Do it.");
}

#[test]
fn a_refused_key_is_not_tried_again() {
    let home = Home::new();
    let fake = Fake::new([FakeAnswer::error(401, "Incorrect API key provided")]);
    let said = home.agent(&fake, &["Do it."]);
    said.refused(5, &["Incorrect API key provided", "key"]);
    assert_eq!(fake.asked().len(), 1);
    assert_eq!(said.out, "");
    goes_on(&home, &said);
}

#[test]
fn scripts_are_told_the_failure_too() {
    let home = Home::new();
    let fake = Fake::new([FakeAnswer::error(404, "no such model")]);
    let said = home.agent(&fake, &["--json", "Do it."]);
    said.refused(5, &["no such model"]);
    let last: serde_json::Value = serde_json::from_str(said.out.lines().last().unwrap()).unwrap();
    assert_eq!(last["event"], "agent_end");
    let said = home.agent(&fake, &["--quiet", "Do it."]);
    said.refused(5, &["no such model"]);
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
}

#[test]
fn a_refused_connection_says_what_listens_nowhere() {
    let home = Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let said = home.run([
        "run",
        "--model",
        "openai-compatible/m",
        "--base-url",
        &url,
        "Do it.",
    ]);
    said.refused(5, &["no server listens at", "--base-url"]);
    goes_on(&home, &said);
}

#[test]
fn a_proxy_that_is_not_spoken_to_is_told_at_once() {
    let home = Home::new();
    let args = ["run", "--model", "openai/m", "Do it."];
    let mut command = home.command(args);
    command.env("OPENAI_API_KEY", "sk-0123456789-hush");
    for name in ["HTTPS_PROXY", "https_proxy"] {
        command.env(name, "socks5://127.0.0.1:1");
    }
    for name in ["NO_PROXY", "no_proxy"] {
        command.env_remove(name);
    }
    let said = feed(command, b"");
    said.refused(5, &["one of socks5", "HTTPS_PROXY"]);
    assert!(!said.err.contains("try 2"), "{}", said.err);
}

#[test]
fn a_rate_limit_is_waited_for_as_long_as_is_asked() {
    let home = Home::new();
    let limited = || FakeAnswer::error(429, "Rate limit reached");
    let fake = Fake::new([
        limited().header("retry-after", "0"),
        FakeAnswer::say("there"),
    ]);
    let said = home.agent(&fake, &["Do it."]).done();
    assert_eq!(said.out, "there\n");
    assert!(
        said.err.contains("try 2 in 1.") && said.err.contains("Rate limit"),
        "{}",
        said.err
    );
    assert_eq!(fake.asked().len(), 2);

    let fake = Fake::new([limited().header("retry-after", "0")]);
    let said = home.agent(&fake, &["Do it.", "--set", "retry.max_attempts=3"]);
    said.refused(5, &["rate limit", "Rate limit reached"]);
    assert_eq!(fake.asked().len(), 3, "and no more");
    goes_on(&home, &said);

    // An hour is not waited for.
    let fake = Fake::new([limited().header("retry-after", "3600")]);
    let said = home.agent(&fake, &["Do it."]);
    said.refused(5, &["rate limit", "asks to wait 3600 s", "retry_after_cap"]);
    assert_eq!(fake.asked().len(), 1);

    // Without a word on how long, it is tried again after a moment.
    let fake = Fake::new([limited(), FakeAnswer::say("there")]);
    assert_eq!(home.agent(&fake, &["Do it."]).done().out, "there\n");
}

#[test]
fn a_cut_stream_is_asked_for_again() {
    let home = Home::new();
    let fake = Fake::new([
        FakeAnswer::say("the whole of it").cut(),
        FakeAnswer::say("the whole of it"),
    ]);
    let said = home.agent(&fake, &["Do it."]).done();
    assert_eq!(said.out, "the whole of it\n", "nothing is printed twice");
    assert!(
        said.err.contains("try 2") && said.err.contains("cut in the middle"),
        "{}",
        said.err
    );
    let asked = fake.asked();
    assert_eq!(asked[0], asked[1]);
}

#[test]
fn a_stream_that_is_always_cut_ends() {
    let home = Home::new();
    let fake = Fake::new([FakeAnswer::say("the whole of it").cut()]);
    let said = home.agent(&fake, &["Do it."]);
    said.refused(5, &["cut in the middle"]);
    // What had arrived is in the session, and in its bill.
    let shown = home.run(["sessions", "show", &said.session()]).done();
    assert!(
        shown
            .out
            .contains("[The answer was cut off before its end.]"),
        "{}",
        shown.out
    );
    let used = home.run(["usage", "--json"]).done();
    assert!(!used.out.contains("\"output\":0,"), "{}", used.out);
    assert_eq!((fake.asked().len(), said.out.as_str()), (3, ""));
    goes_on(&home, &said);
}

#[test]
fn a_server_that_falls_silent_is_given_up() {
    let home = Home::new();
    let fake = Fake::new([
        FakeAnswer::say("the whole of it").hang(),
        FakeAnswer::say("there"),
    ]);
    let said = home.agent(&fake, &["--idle-timeout", "1", "Do it."]).done();
    assert_eq!(said.out, "there\n");
    assert!(said.err.contains("sent nothing for 1 s"), "{}", said.err);
}

#[test]
fn answers_that_are_none_end() {
    let home = Home::new();
    let fake = Fake::new([FakeAnswer::new(200, "<html>Welcome</html>")]);
    let said = home.agent(&fake, &["Do it."]);
    said.refused(5, &["--base-url"]);
    goes_on(&home, &said);
    let fake = Fake::new([FakeAnswer::say("")]);
    let said = home.agent(&fake, &["Do it."]);
    said.refused(5, &["empty"]);
    assert_eq!(fake.asked().len(), 2, "asked once more");
}

#[test]
fn a_corrupt_store_names_its_file_and_is_left_as_it_is() {
    let home = Home::new();
    let fake = Fake::new([FakeAnswer::say("hello")]);
    home.agent(&fake, &["Do it."]).done();
    let file = home.data().join("sessions.db");
    assert!(file.is_file());
    for beside in ["sessions.db-wal", "sessions.db-shm"] {
        let _ = std::fs::remove_file(home.data().join(beside));
    }
    let noise = vec![b'x'; 8_192];
    std::fs::write(&file, &noise).unwrap();
    let idle = Fake::new([]);
    for said in [
        home.agent(&idle, &["Do it."]),
        home.run(["sessions", "list"]),
    ] {
        said.refused(
            1,
            &[
                "sessions.db cannot be read as a session store",
                "move it away",
            ],
        );
    }
    assert_eq!(std::fs::read(&file).unwrap(), noise);
    // The cure works.
    std::fs::rename(&file, home.data().join("old.db")).unwrap();
    home.agent(&fake, &["Do it."]).done();
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let home = Home::new();
    let idle = Fake::new([]);
    let taken = home.file("taken", "a file");
    let mut command = home.command(super::command::with(&idle, &["Do it."]));
    command.env("PLIMSOLL_HOME", &taken);
    feed(command, b"").refused(1, &["taken", "a file stands where a folder is needed"]);

    let sealed = home.work().join("sealed");
    std::fs::create_dir(&sealed).unwrap();
    let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
    std::fs::set_permissions(&sealed, mode(0o555)).unwrap();
    if std::fs::write(sealed.join("probe"), "").is_ok() {
        println!("skipped: this user may write everywhere");
        return;
    }
    let mut command = home.command(super::command::with(&idle, &["Do it."]));
    command.env("PLIMSOLL_HOME", &sealed);
    let said = feed(command, b"");
    std::fs::set_permissions(&sealed, mode(0o755)).unwrap();
    said.refused(1, &["sealed", "writable"]);
}

#[test]
fn without_a_home_there_is_a_word_for_it() {
    let home = Home::new();
    let mut command = home.command(["sessions", "list"]);
    command.env_remove("PLIMSOLL_HOME");
    feed(command, b"").refused(2, &["set PLIMSOLL_HOME"]);
}

/// Clears the screen, names the window, rings, turns the direction of the text, and has no width.
const ORDERS: &str = "\u{1b}[2J\u{1b}]0;mine\u{7}\u{202e}\u{2066}\u{200b}\u{2028}";
/// What a terminal must not be given of that.
const OBEYED: [&str; 7] = [
    "\u{1b}[2J",
    "\u{1b}]",
    "\u{7}",
    "\u{202e}",
    "\u{2066}",
    "\u{200b}",
    "\u{2028}",
];

#[test]
fn what_a_server_says_is_no_order_to_the_terminal() {
    let home = Home::new();
    let fake = Fake::new([FakeAnswer::error(401, &format!("no {ORDERS}way"))]);
    let said = home.agent(&fake, &["Say it."]);
    assert!(said.err.contains("no \u{fffd}[2J"), "{:?}", said.err);
    assert!(
        said.err.contains(r"\u{202e}\u{2066}\u{200b}"),
        "{:?}",
        said.err
    );
    let obeyed = |text: &str| OBEYED.iter().any(|order| text.contains(order));
    assert!(!obeyed(&said.err), "{:?}", said.err);
    let arguments = serde_json::json!({"command": format!("echo {ORDERS}")}).to_string();
    let fake = || {
        Fake::new([
            FakeAnswer::call(&[
                ("bash", &arguments),
                (
                    "bash",
                    r#"{"command": "printf '\\033[2J\\007' >&2; false"}"#,
                ),
                (&format!("no{ORDERS}such"), "{}"),
            ]),
            FakeAnswer::say(&format!("Done{ORDERS}.")),
        ])
    };
    let said = home.agent(&fake(), &["--yes", "Look."]).done();
    assert!(said.err.contains("[2J"), "{:?}", said.err);
    assert!(!obeyed(&said.err), "{:?}", said.err);
    assert_eq!(
        said.out,
        format!("Done{ORDERS}.\n"),
        "a pipe gets all of it"
    );
    let fake = fake();
    let mut terminal = Terminal::run(&home, &fake, &["--yes", "Look."], 80);
    assert_eq!(terminal.end(), Some(0));
    let raw = terminal.raw();
    assert!(raw.contains("Done\u{fffd}[2J"), "{raw:?}");
    assert!(!obeyed(&raw), "{raw:?}");
}

#[test]
fn a_question_shows_what_would_run() {
    let home = Home::new();
    let arguments =
        "{\"command\":\"echo safe # \u{202e} fr- mr \u{2066};rm -rf a\u{2069}\u{200b}\"}";
    let fake = Fake::new([
        FakeAnswer::call(&[("bash", arguments)]),
        FakeAnswer::say("Done."),
    ]);
    let mut terminal = Terminal::run(&home, &fake, &["Look."], 80);
    terminal.until("[N]o:");
    terminal.keys("n\r");
    assert_eq!(terminal.end(), Some(0));
    let raw = terminal.raw();
    let shown = r"# \u{202e} fr- mr \u{2066};rm -rf a\u{2069}\u{200b}";
    assert!(raw.contains(shown), "{raw:?}");
    assert!(!OBEYED.iter().any(|order| raw.contains(order)), "{raw:?}");
}

#[test]
fn a_protected_file_is_asked_about_each_time() {
    let home = Home::new();
    let write = |path: &str| serde_json::json!({"path": path, "content": "x"}).to_string();
    let fake = Fake::new([
        FakeAnswer::call(&[("write", &write("AGENTS.md"))]),
        FakeAnswer::call(&[("write", &write("plimsoll.toml"))]),
        FakeAnswer::say("Done."),
    ]);
    let mut terminal = Terminal::run(&home, &fake, &["Write."], 80);
    terminal.until("execute this file without asking. Allow? [y]es, [N]o:");
    terminal.keys("y\r");
    terminal.until_times("Allow?", 2);
    // It is not offered, so it is no yes.
    terminal.keys("always\r");
    assert_eq!(terminal.end(), Some(0));
    assert!(home.work().join("AGENTS.md").is_file());
    assert!(!home.work().join("plimsoll.toml").exists());
}

#[test]
fn the_answer_does_not_depend_on_whether_anybody_reads_stderr() {
    fn nobody() -> Option<Stdio> {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Some(Stdio::from(writer))
    }
    fn full() -> Option<Stdio> {
        Some(Stdio::from(File::create("/dev/full").ok()?))
    }
    let sinks: [fn() -> Option<Stdio>; 2] = [nobody, full];
    for sink in sinks {
        // Only Linux has a device that is always full.
        if sink().is_none() {
            continue;
        }
        let home = Home::new();
        let said = |command: &mut Command, input: &str| {
            let mut child = command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(sink().unwrap())
                .spawn()
                .unwrap();
            let mut stdin = child.stdin.take().unwrap();
            stdin.write_all(input.as_bytes()).unwrap();
            drop(stdin);
            CommandOutput::of(child.wait_with_output().unwrap())
        };
        let fake = Fake::new([
            FakeAnswer::call(&[("list", "{}")]),
            FakeAnswer::say("Forty-two."),
            FakeAnswer::say("Again."),
        ]);
        let mut run = home.command(with(&fake, &["Which?"]));
        let run = said(run.env("PLIMSOLL_LOG", "debug"), "");
        assert_eq!((run.code, run.out.as_str()), (Some(0), "Forty-two.\n"));
        let mut chat = with(&fake, &[]);
        chat[0] = "chat".to_owned();
        let chat = said(&mut home.command(chat), "Once more.\n");
        assert_eq!((chat.code, chat.out.as_str()), (Some(0), "Again.\n"));

        let messages = r#"[{"role":"tool","tool_call_id":"x","content":"an orphan"}]"#;
        let repair = said(&mut home.command(["repair"]), messages);
        assert_eq!(repair.code, Some(0), "{}", repair.out);
        assert!(repair.out.starts_with('['), "{}", repair.out);
        let wrong = said(&mut home.command(["sessions", "show", "none"]), "");
        assert_eq!((wrong.code, wrong.out.as_str()), (Some(2), ""));
        let wrong = said(&mut home.command(["run", "--nonsense"]), "");
        assert_eq!((wrong.code, wrong.out.as_str()), (Some(2), ""));
    }
}
