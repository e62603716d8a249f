//! Commands in a sandbox: their write and network access if the kernel supports a sandbox, and the
//! refusal if it does not.

use plimsoll::tools::{Sandbox, SandboxMode};

use super::command::{Home, feed, with};
use super::fake::{Fake, FakeAnswer};

fn is_offered() -> bool {
    Sandbox::new(SandboxMode::ReadOnly, ["launcher"]).is_ok()
}

/// What the model reads of a command in a sandbox. The temporary directory is one of the home's own.
fn ran(mode: &str, command: impl Fn(&Home, &Fake) -> String) -> (Home, String) {
    let home = Home::new();
    let outside = home.work().with_file_name("outside");
    let temporary = home.work().with_file_name("tmp");
    for folder in [&outside, &temporary] {
        std::fs::create_dir(folder).unwrap();
    }
    // A server to reach; nobody asks it anything.
    let other = Fake::new([]);
    let call = serde_json::json!({ "command": command(&home, &other) }).to_string();
    let fake = Fake::new([
        FakeAnswer::call(&[("bash", &call)]),
        FakeAnswer::say("done"),
    ]);
    let args = ["--max-context", "20000", "--yes", "--sandbox", mode, "Go."];
    let mut run = home.command(with(&fake, &args));
    run.env("TMPDIR", &temporary);
    feed(run, b"").done();
    let asked = fake.asked();
    let told = asked[1]["messages"].as_array().unwrap().last().unwrap();
    let text = told["content"].as_str().unwrap().to_owned();
    (home, text)
}

#[test]
fn a_sandbox_that_this_kernel_does_not_offer_is_refused_in_one_sentence() {
    if is_offered() {
        println!("skipped: this kernel offers a sandbox");
        return;
    }
    for mode in ["read-only", "workspace-write"] {
        let (home, fake) = (Home::new(), Fake::new([FakeAnswer::say("done")]));
        let args = ["--max-context", "20000", "--yes", "--sandbox", mode, "Go."];
        let said = home.agent(&fake, &args);
        said.refused(
            2,
            &[
                "offers no sandbox for commands",
                "Linux 6.2",
                "`sandbox` off",
            ],
        );
        assert!(fake.asked().is_empty(), "nothing was run");
        let args = ["sandbox", "--mode", mode, "--root", ".", "--", "echo ran"];
        let said = home.run(args);
        said.refused(1, &["offers no sandbox for commands"]);
        assert_eq!(said.out, "");
    }
    let (home, fake) = (Home::new(), Fake::new([]));
    let said = home.agent(&fake, &["--sandbox", "on", "Go."]);
    said.refused(2, &["--sandbox", "workspace-write"]);
}

#[test]
fn without_a_sandbox_the_launcher_is_the_shell() {
    let home = Home::new();
    let command = "echo \"$0 here\" > made; cat made; exit 3";
    let said = home.run(["sandbox", "--mode", "off", "--root", ".", "--", command]);
    assert_eq!((said.code, said.out.as_str()), (Some(3), "bash here\n"));
}

#[test]
fn commands_write_and_reach_what_the_mode_says() {
    if !is_offered() {
        println!("skipped: this kernel offers no sandbox");
        return;
    }
    let tries = "echo x > made && echo root; echo x > $TMPDIR/made && echo temporary; echo x > ../outside/made \
         && echo outside; echo x > /dev/null && echo null; cat ../seen && echo read; mkdir -p a/b && echo x > \
         a/b/f && mv a/b/f a/f && echo moved";
    for (mode, may) in [
        ("off", "root temporary outside null read moved"),
        ("workspace-write", "root temporary null read moved"),
        ("read-only", "null read"),
    ] {
        let (home, told) = ran(mode, |home, _| {
            std::fs::write(home.work().with_file_name("seen"), "").unwrap();
            format!("({tries}) 2>/dev/null | tr '\\n' ' '")
        });
        assert!(told.starts_with(&format!("{may} ")), "{mode}: {told}");
        let outside = home.work().with_file_name("outside").join("made");
        assert_eq!(outside.exists(), mode == "off");
    }
}

/// A captain whose mate writes a file and runs a command, which says whether it could write outside.
fn crew(captain: &str, mate: &str) -> (Home, String) {
    let home = Home::new();
    let outside = home.work().with_file_name("outside");
    let temporary = home.work().with_file_name("tmp");
    std::fs::create_dir(&outside).unwrap();
    std::fs::create_dir(&temporary).unwrap();
    let config = format!(
        "[[agents]]\nname = \"captain\"\ntools = \"none\"\nsub_agents = [\"mate\"]\n{captain}[[agents]]\nname = \
         \"mate\"\ntools = \"bash,write\"\n{mate}"
    );
    home.file("plimsoll.toml", config);
    let write = r#"{"path":"log.txt","content":"calm\n"}"#;
    let bash = r#"{"command":"echo x > ../outside/made && echo outside || echo held"}"#;
    let fake = Fake::new([
        FakeAnswer::call(&[("mate", r#"{"task":"Write the log."}"#)]),
        FakeAnswer::call(&[("write", write), ("bash", bash)]),
        FakeAnswer::say("Written."),
        FakeAnswer::say("Done."),
    ]);
    let args = [
        "--max-context",
        "20000",
        "--yes",
        "--session",
        "s",
        "--agent",
        "captain",
        "Go.",
    ];
    let mut run = home.command(with(&fake, &args));
    run.env("TMPDIR", &temporary);
    feed(run, b"").done();
    let asked = fake.asked()[2]["messages"].to_string();
    (home, asked)
}

#[test]
fn a_called_agent_is_held_by_the_stricter_sandbox_and_its_files_are_the_callers() {
    let held = "sandbox = \"workspace-write\"\n";
    for (captain, mate, is_held) in [
        ("", "", false),
        (held, "", true),
        (held, "sandbox = \"off\"\n", true),
        ("", held, true),
    ] {
        if is_held && !is_offered() {
            println!("skipped: this kernel offers no sandbox");
            continue;
        }
        let (home, told) = crew(captain, mate);
        assert_eq!(
            told.contains("held\\n[exit 0]"),
            is_held,
            "{captain}{mate}: {told}"
        );
        let made = home.work().with_file_name("outside").join("made");
        assert_eq!(made.exists(), !is_held);
        let files = home.run(["sessions", "files", "s"]).done().out;
        assert!(files.contains("\nlog.txt  new file +1"), "{files}");
    }
}

/// Programs in Python, each with what it may do: in the modes off, workspace-write and read-only.
/// They print `may` if they succeed.
#[cfg(target_os = "linux")]
const TRIES: &[(&str, [bool; 3])] = &[
    ("s.socket(s.AF_INET, s.SOCK_STREAM)", [true, false, false]),
    (
        "s.socket(s.AF_INET, s.SOCK_STREAM, 262)",
        [true, false, false],
    ),
    ("s.socket(s.AF_INET6, s.SOCK_DGRAM)", [true, false, false]),
    ("s.socket(s.AF_NETLINK, s.SOCK_RAW)", [true, false, false]),
    ("s.socket(s.AF_UNIX, s.SOCK_STREAM)", [true, true, true]),
    ("s.socketpair()", [true, true, true]),
    ("os.chmod('../outside/seen', 0o640)", [true, true, false]),
    ("os.chmod('made', 0o640)", [true, true, false]),
    (
        "os.chown('../outside/seen', os.getuid(), os.getgid())",
        [true, true, false],
    ),
    ("os.utime('../outside/seen', (1, 1))", [true, true, false]),
    (
        "os.removexattr('../outside/seen', 'user.x')",
        [true, true, false],
    ),
    ("os.truncate('../outside/seen', 0)", [true, false, false]),
    ("open('../outside/seen').read()", [true, true, true]),
    (
        "os.rename('../outside/seen', '../outside/other')",
        [true, false, false],
    ),
    ("os.truncate('made', 0)", [true, true, false]),
    (
        "os.setsid() if os.fork() == 0 else os.wait()[1] and exit(1)",
        [true, false, false],
    ),
    ("open('/dev/tty')", [false, false, false]),
    ("fcntl.ioctl(0, 0x5412, b'x')", [false, false, false]),
];

#[cfg(target_os = "linux")]
#[test]
fn system_calls_are_refused_as_the_table_says() {
    if !is_offered() {
        println!("skipped: this kernel offers no sandbox");
        return;
    }
    let programs: Vec<&str> = TRIES.iter().map(|(program, _)| *program).collect();
    let list = serde_json::json!(programs);
    // Each try is a process of its own. Its answer says whether it was refused for lack of rights.
    let script = format!(
        "import subprocess, sys\nfor program in {list}:\n  \
         code = 'import os, fcntl, socket as s\\ntry:\\n  ' + program + '\\n  print(1)\\nexcept OSError as e:\\n  \
         print(int(e.errno == 61))'\n  \
         out = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True).stdout\n  \
         print(out.strip()[:1] or '0', end='')\n"
    );
    for (mode, at) in [("off", 0), ("workspace-write", 1), ("read-only", 2)] {
        let (_home, told) = ran(mode, |home, _| {
            std::fs::write(home.work().join("made"), "").unwrap();
            std::fs::write(home.work().with_file_name("outside").join("seen"), "").unwrap();
            std::fs::write(home.work().join("try.py"), &script).unwrap();
            "python3 try.py".to_owned()
        });
        let answers = told.lines().next().unwrap_or_default();
        assert_eq!(answers.len(), TRIES.len(), "{mode}: {told}");
        for ((program, may), answer) in TRIES.iter().zip(answers.chars()) {
            assert_eq!(answer == '1', may[at], "{mode}: {program}");
        }
    }
}
