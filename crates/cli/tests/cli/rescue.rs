//! `plimsoll rescue`: a dead session of another agent becomes one that it resumes, and the original
//! is unchanged. The other commands read the same logs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::command::{CommandOutput, Home, feed};
use super::terminal::{END, Terminal};

const CODEX: &str = "rollout-2026-11-01T10-00-00-01a2108d-0000-7000-8000-000000000001.jsonl";
const CLAUDE: &str = ".claude/projects/-home-me-lamp/5e551011-0000-4000-8000-000000000001.jsonl";

fn data(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("../logs/tests/data").join(name)
}

/// Puts a log where its agent keeps it. Its session ran in the folder `lamp`.
fn put(home: &Home, path: &str, name: &str) -> PathBuf {
    put_of(home, path, name, "lamp")
}

/// Puts a log of a session in this folder.
fn put_of(home: &Home, path: &str, name: &str, directory: &str) -> PathBuf {
    let directory = home.work().join(directory);
    fs::create_dir_all(&directory).unwrap();
    let path = home.work().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = fs::read_to_string(data(name)).unwrap();
    let text = text.replace("\"/home/me/lamp\"", &format!("{directory:?}"));
    fs::write(&path, text).unwrap();
    path
}

/// Makes a file older than it is.
fn age(path: &Path, seconds: u64) {
    let time = std::time::SystemTime::now() - std::time::Duration::from_secs(seconds);
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(time).unwrap();
}

fn rescue(home: &Home, args: &[&str]) -> CommandOutput {
    let mut command = home.command([&["rescue"], args].concat());
    command.env("HOME", home.work());
    feed(command, b"")
}

/// The files beside a log, without it.
fn beside(log: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(log.parent().unwrap()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path != log).collect()
}

#[test]
fn a_dead_session_becomes_one_that_claude_code_resumes() {
    let home = Home::new();
    let log = put(&home, CLAUDE, "claude-code.jsonl");
    fs::set_permissions(&log, fs::Permissions::from_mode(0o400)).unwrap();
    let before = fs::read(&log).unwrap();
    let said = rescue(&home, &["--from", "claude-code"]).done();
    assert_eq!(fs::read(&log).unwrap(), before, "the original");
    let copies = beside(&log);
    let [copy] = copies.as_slice() else {
        panic!("one copy: {copies:?}");
    };
    let id = copy.file_stem().unwrap().to_str().unwrap();
    // The agent writes on into its copy.
    assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(
        lines[..8],
        [
            "Claude Code session 5e551011-0000-4000-8000-000000000001",
            &format!("  {}", log.display()),
            "  12 messages, about 203456 tokens of a window of 200000 (claude-sonnet-4-5)",
            "",
            "Wrong with it:",
            "  too long: the provider said \"API Error: 400 prompt is too long: 203456 tokens > 200000 maximum\"",
            "  tool calls without a result: 1",
            "  damaged lines: 1",
        ],
        "{}",
        said.out
    );
    assert!(said.out.ends_with(&format!(
        "Resume it with:\n  cd {}\n  claude --resume {id}\n",
        home.work().join("lamp").display()
    )));
    let text = fs::read_to_string(copy).unwrap();
    assert!(text.contains("Never touch the folder prod."));
    assert!(text.contains("aborted: this call has no result"));
    assert!(text.lines().all(|line| line.contains(id)));
    // The copy has nothing wrong with it.
    let again = rescue(&home, &[id]).done();
    assert!(
        again.out.contains("Nothing is wrong with it"),
        "{}",
        again.out
    );
    assert_eq!(beside(&log).len(), 1);
}

#[test]
fn the_oldest_images_go_when_there_are_too_many_bytes_of_them() {
    let home = Home::new();
    let log = put(&home, CLAUDE, "claude-code.jsonl");
    let mut lines: Vec<Value> = Vec::new();
    for line in fs::read_to_string(&log).unwrap().lines() {
        lines.extend(serde_json::from_str::<Value>(line));
    }
    // The first message and the first answer, with seven images in between: 28 MB.
    lines.retain(|line| line["isSidechain"] == false);
    lines.truncate(2);
    let data = format!("iVBORw0KGgo{}", "A".repeat(4_000_000));
    let text = lines[0]["message"]["content"].take();
    let mut content = vec![serde_json::json!({"type": "text", "text": text})];
    for number in 0..7 {
        content.push(serde_json::json!({"type": "text", "text": format!("picture {number}")}));
        content.push(serde_json::json!({"type": "image", "source":
            {"type": "base64", "media_type": "image/png", "data": data}}));
    }
    lines[0]["message"]["content"] = content.into();
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    fs::write(&log, lines.join("\n")).unwrap();
    let said = rescue(&home, &["--from", "claude-code"]).done();
    for words in [
        "  messages with too many bytes of images: 1\n",
        "  repaired line 1: too many bytes of images: put a note in their place\n",
    ] {
        assert!(said.out.contains(words), "{}", said.out);
    }
    let copy = fs::read_to_string(&beside(&log)[0]).unwrap();
    let notes = copy.matches("An image stood here.").count();
    let images = copy.matches("iVBORw0KGgo").count();
    assert_eq!((notes, images), (3, 4));
    let last_note = copy.rfind("An image stood here.").unwrap();
    assert!(last_note < copy.find("picture 3").unwrap(), "the oldest go");
}

#[test]
fn every_agent_is_told_how_its_copy_is_resumed() {
    let home = Home::new();
    let table = [
        (
            ".codex/sessions/2026/11/01",
            CODEX,
            "codex",
            "codex resume ",
        ),
        (
            ".pi/agent/sessions/--home-me--",
            "pi.jsonl",
            "pi",
            "pi --session ",
        ),
        (
            ".gemini/tmp/abc/chats",
            "session-2026-11-01T10-00-9e313100.jsonl",
            "gemini",
            "gemini --resume ",
        ),
    ];
    for (folder, name, agent, command) in table {
        let log = put(&home, &format!("{folder}/{name}"), name);
        let said = rescue(&home, &["--from", agent, "--json"]).done();
        let report: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(report["agent"], agent);
        let resume = report["copy"]["resume"].as_str().unwrap();
        assert!(resume.starts_with(command), "{resume}");
        assert_eq!(beside(&log).len(), 1, "{agent}");
    }
    let export = home.file("export.json", fs::read(data("opencode.json")).unwrap());
    let said = rescue(&home, &[export.to_str().unwrap(), "--output", "copy.json"]).done();
    assert!(said.out.contains("  opencode import "), "{}", said.out);
    assert!(home.work().join("copy.json").exists());
    let twice = rescue(&home, &[export.to_str().unwrap(), "--output", "copy.json"]);
    assert_eq!(twice.code, Some(1));
    assert!(twice.err.contains("another file"), "{}", twice.err);
}

#[test]
fn nothing_is_written_where_nothing_should_be() {
    let home = Home::new();
    let log = put(&home, CLAUDE, "claude-code.jsonl");
    let said = rescue(&home, &["--dry-run"]).done();
    assert!(said.out.contains("Nothing was written"), "{}", said.out);
    let list = rescue(&home, &["--list"]).done();
    assert!(list.out.contains("5e551011-0000-4000-8000-000000000001"));
    let whole = data("claude-code-compacted.jsonl");
    let well = rescue(&home, &[whole.to_str().unwrap()]).done();
    assert!(
        well.out.contains("Nothing is wrong with it"),
        "{}",
        well.out
    );
    let fits = rescue(&home, &[whole.to_str().unwrap(), "--budget", "150k"]).done();
    assert!(
        fits.out.contains("It fits 150000 tokens already."),
        "{}",
        fits.out
    );
    let small = rescue(&home, &["--budget", "5"]);
    assert_eq!(small.code, Some(4), "{}", small.err);
    assert_eq!(beside(&log).len(), 0);
}

#[test]
fn the_list_says_which_session_it_is_and_what_is_wrong() {
    let home = Home::new();
    let log = put(&home, CLAUDE, "claude-code.jsonl");
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_795_266_131);
    let file = fs::File::options().write(true).open(&log).unwrap();
    file.set_modified(time).unwrap();
    let list = rescue(&home, &["--list"]).done();
    let days = time.elapsed().unwrap().as_secs() / 86_400;
    let expected = format!(
        "5e551011-0000-4000-8000-000000000001\n  Claude Code, {days} days ago, 2026-11-21 13:02 UTC, 203456 tokens\n  {}\n  in {}\n  {}\n  {}\n  {}\n",
        "Port the lamp controller to Rust. Never touch the folder prod.",
        home.work().join("lamp").display(),
        "too long: the provider said \"API Error: 400 prompt is too long: 203456 tokens > 200000 maximum\"",
        "tool calls without a result: 1",
        "damaged lines: 1",
    );
    assert_eq!(list.out, expected);
    rescue(&home, &[]).done();
    let list = rescue(&home, &["--list", "--json"]).done();
    let copy: Value = serde_json::from_str(list.out.lines().next().unwrap()).unwrap();
    let title = copy["title"].as_str().unwrap();
    assert!(title.ends_with("folder prod. (rescued)"), "{title}");
    assert_eq!(
        (&copy["wrong"], &copy["is_copy"]),
        (&serde_json::json!([]), &Value::Bool(true))
    );
}

#[test]
fn the_broken_session_of_this_folder_is_taken_and_never_a_copy() {
    let home = Home::new();
    let folder = ".claude/projects/x";
    // A broken one of another folder is the newest, a healthy one of this folder the second.
    let other = put(
        &home,
        &format!("{folder}/00000000-other.jsonl"),
        "claude-code.jsonl",
    );
    let healthy = format!("{folder}/00000000-healthy.jsonl");
    let healthy = put_of(&home, &healthy, "claude-code-compacted.jsonl", "here");
    let broken = put_of(
        &home,
        &format!("{folder}/00000000-broken.jsonl"),
        "claude-code.jsonl",
        "here",
    );
    age(&other, 10);
    age(&healthy, 20);
    age(&broken, 30);
    // Those of other folders do not hide it.
    for number in 0..25 {
        let name = format!("{folder}/00000000-new-{number}.jsonl");
        put(&home, &name, "claude-code.jsonl");
    }
    let here = |args: &[&str]| {
        let mut command = home.command([&["rescue"], args].concat());
        command
            .env("HOME", home.work())
            .current_dir(home.work().join("here"));
        feed(command, b"")
    };
    for _ in 0..2 {
        let said = here(&[]).done();
        assert!(said.out.contains("00000000-broken"), "{}", said.out);
        assert!(said.out.contains("The repaired copy"), "{}", said.out);
    }
    // Of two broken ones, the newest is taken without a terminal.
    let second = format!("{folder}/00000000-second.jsonl");
    put_of(&home, &second, "claude-code.jsonl", "here");
    let said = here(&[]).done();
    assert!(said.out.contains("00000000-second"), "{}", said.out);
    assert!(
        said.err.starts_with("the newest of 2 sessions with faults"),
        "{}",
        said.err
    );
    // At a terminal, one of the two is chosen.
    let at_terminal = |keys: &str, code: i32| {
        let mut command = home.command(["rescue", "--dry-run"]);
        command.current_dir(home.work().join("here"));
        let work = home.work();
        let mut terminal = Terminal::start(command, &[("HOME", work.to_str().unwrap())], 100);
        terminal.until("Number [1]:");
        let list = terminal.screen();
        assert!(list.starts_with(" 1  00000000-second\n"), "{list}");
        assert!(list.contains("\n 2  00000000-broken\n"), "{list}");
        assert!(
            !list.contains("other") && !list.contains("healthy"),
            "{list}"
        );
        terminal.keys(keys);
        assert_eq!(terminal.end(), Some(code), "{}", terminal.screen());
        terminal.screen().replace(&list, "")
    };
    assert!(at_terminal("\r", 0).contains("00000000-second"));
    assert!(at_terminal("2\r", 0).contains("00000000-broken"));
    for keys in ["3\r", END] {
        assert!(at_terminal(keys, 2).contains("no session was chosen"));
    }
}

#[test]
fn a_log_from_elsewhere_is_written_where_its_agent_finds_it() {
    let home = Home::new();
    let letters = |path: &Path| {
        path.display()
            .to_string()
            .replace(|c: char| !c.is_ascii_alphanumeric(), "-")
    };
    let lamp = home.work().join("lamp");
    let claude = put(&home, "downloads/session.jsonl", "claude-code.jsonl");
    let said = rescue(&home, &["downloads/session.jsonl"]).done();
    let copies = beside(
        &home
            .work()
            .join(".claude/projects")
            .join(letters(&lamp))
            .join("none"),
    );
    let [copy] = copies.as_slice() else {
        panic!("{copies:?}")
    };
    let id = copy.file_stem().unwrap().to_str().unwrap();
    let resume = format!("  cd {}\n  claude --resume {id}\n", lamp.display());
    assert!(said.out.ends_with(&resume), "{}", said.out);
    assert_eq!(beside(&claude).len(), 0);
    // Its folder is not on this machine: it is resumed in this one.
    fs::remove_dir(&lamp).unwrap();
    let said = rescue(&home, &["downloads/session.jsonl", "--json"]).done();
    let report: Value = serde_json::from_str(&said.out).unwrap();
    let project = home
        .work()
        .join(".claude/projects")
        .join(letters(&home.work()));
    assert!(
        Path::new(report["copy"]["path"].as_str().unwrap()).starts_with(&project),
        "{report}"
    );
    assert_eq!(report["copy"]["directory"], Value::Null);

    put(&home, "downloads/codex.jsonl", CODEX);
    rescue(&home, &["downloads/codex.jsonl"]).done();
    let copies = beside(&home.work().join(".codex/sessions/2026/11/01/none"));
    let name = copies[0].file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("rollout-2026-11-01T10-00-00-"), "{name}");

    // A relative name: the command works in the folder of the session.
    put(&home, "downloads/pi.jsonl", "pi.jsonl");
    let said = rescue(&home, &["downloads/pi.jsonl"]).done();
    let command = said.out.lines().last().unwrap().trim().to_owned();
    let file = command.strip_prefix("pi --session ").unwrap();
    assert!(
        Path::new(file).is_absolute() && Path::new(file).exists(),
        "{command}"
    );
    assert!(file.contains(".pi/agent/sessions/--"), "{command}");
}

#[test]
fn each_failure_names_its_cure() {
    let home = Home::new();
    let none = rescue(&home, &[]);
    assert_eq!(none.code, Some(1));
    assert!(
        none.err.contains("no session of Claude Code"),
        "{}",
        none.err
    );
    assert!(none.err.contains("plimsoll rescue FILE"), "{}", none.err);
    assert_eq!(none.err.lines().count(), 1, "{}", none.err);
    let mut homeless = home.command(["rescue", "--list"]);
    homeless.env_remove("HOME").env_remove("USERPROFILE");
    let homeless = feed(homeless, b"");
    assert!(
        homeless.err.contains("(HOME is not set)"),
        "{}",
        homeless.err
    );
    let unknown = rescue(&home, &["5e55"]);
    assert!(unknown.err.contains("--list"), "{}", unknown.err);
    let junk = home.file("junk.bin", [0, 159, 146, 150, 10, 0]);
    let junk = rescue(&home, &[junk.to_str().unwrap()]);
    assert!(junk.err.contains("no session log"), "{}", junk.err);
    let from = rescue(&home, &["--from", "aider"]);
    assert_eq!(from.code, Some(2));
    assert!(from.err.contains("claude-code, codex"), "{}", from.err);
    let log = put(&home, CLAUDE, "claude-code.jsonl");
    let folder = log.parent().unwrap();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o555)).unwrap();
    let locked = rescue(&home, &[]);
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    // Root writes everywhere.
    if locked.code == Some(1) {
        assert!(locked.err.contains("--output"), "{}", locked.err);
    }
    assert!(!beside(&log).iter().any(|path| path.ends_with(".part")));
}

#[test]
fn logs_are_counted_compacted_repaired_and_imported() {
    let home = Home::new();
    for name in [
        "claude-code.jsonl",
        CODEX,
        "pi.jsonl",
        "opencode.json",
        "swe-agent.traj",
        "mini-swe-agent.traj.json",
    ] {
        let log = data(name);
        let log = log.to_str().unwrap();
        let counted = home.run(["count", "--json", log]).done();
        let counted: Value = serde_json::from_str(&counted.out).unwrap();
        assert!(counted["total"].as_u64().unwrap() > 30, "{name}");
        let repaired = home.run(["repair", log]).done();
        let repaired: Value = serde_json::from_str(&repaired.out).unwrap();
        let list = if name == CODEX { "input" } else { "messages" };
        assert!(repaired[list].is_array(), "{name}");
        if !name.contains("swe-agent") {
            let total = counted["total"].as_u64().unwrap();
            let budget = (total * 3 / 4).to_string();
            let small = home.run(["compact", "--budget", &budget, log]).done();
            let again = home.pipe(["count", "--json"], &small.out).done();
            let again: Value = serde_json::from_str(&again.out).unwrap();
            assert!(again["total"].as_u64().unwrap() < total, "{name}");
        }
        let imported = home.run(["sessions", "import", log]).done();
        let messages = imported.err.split(" messages; continue with").next();
        let messages = messages.unwrap().lines().last().unwrap();
        assert!(messages.parse::<u64>().unwrap() >= 4, "{name}: {messages}");
    }
    let log = data("claude-code.jsonl");
    put(&home, CLAUDE, "claude-code.jsonl");
    let mut command = home.command([
        "sessions",
        "import",
        "--from",
        "claude-code",
        "--to",
        "lamp",
    ]);
    command.env("HOME", home.work());
    assert_eq!(feed(command, b"").done().out, "lamp\n");
    let shown = home.run(["sessions", "show", "lamp"]).done();
    assert!(
        shown.out.contains("Port the lamp controller"),
        "{}",
        shown.out
    );
    // Through a pipe the file cannot be named.
    let piped = home.pipe(["count"], fs::read(log).unwrap());
    assert_eq!(piped.code, Some(2));
    assert!(piped.err.contains("by name"), "{}", piped.err);
}

#[test]
fn the_documentation_shows_what_is_printed() {
    let home = Home::new();
    put(&home, CLAUDE, "claude-code.jsonl");
    let page = include_str!("../../../../docs/rescue.md");
    let shown = page
        .split("```console\n$ plimsoll rescue\n")
        .nth(1)
        .unwrap();
    let shown: Vec<&str> = shown.split("```").next().unwrap().lines().collect();
    let said = rescue(&home, &[]).done();
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines.len(), shown.len(), "{}", said.out);
    for (line, shown) in lines.iter().zip(shown) {
        assert!(super::docs::fits(line, shown), "{line}\n{shown}");
    }
}

#[test]
fn budget_advice_report_and_copy_are_in_tokens_of_the_provider() {
    let home = Home::new();
    let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/dead-session.jsonl");
    let log = log.to_str().unwrap();
    let refused = rescue(&home, &[log, "--budget", "100", "--dry-run"]);
    refused.refused(4, &["but only 100 are allowed"]);
    let least = refused.err.split("allow at least ").nth(1).unwrap();
    let least = least.split(',').next().unwrap();
    for budget in [least, "5000", "50000", "100000", "158000"] {
        let file = format!("{budget}.jsonl");
        let args = [log, "--budget", budget, "--output", &file, "--json"];
        let report: Value = serde_json::from_str(&rescue(&home, &args).done().out).unwrap();
        let tokens = report["compacted"]["tokens"].as_u64().unwrap();
        assert!(tokens <= budget.parse().unwrap(), "{report}");
        let said = rescue(&home, &[&file, "--dry-run", "--json"]).done();
        let again: Value = serde_json::from_str(&said.out).unwrap();
        assert!(
            again["tokens"].as_u64().unwrap() <= tokens,
            "{budget}: {again}"
        );
        assert_eq!(again["too_long"], false, "{budget}: {again}");
    }
}

/// The provider has refused a history with a line that is lost, which counts no longer.
#[test]
fn a_refused_size_counts_without_a_lost_line() {
    let home = Home::new();
    let log = put(&home, CLAUDE, "claude-code.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    let whole = text
        .lines()
        .position(|line| line.contains("Now the tests."));
    let report = |lost: &str| {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.insert(whole.unwrap(), lost);
        fs::write(&log, lines.join("\n")).unwrap();
        let report = rescue(&home, &["--dry-run", "--json"]).done();
        let report: Value = serde_json::from_str(&report.out).unwrap();
        report
    };
    let short = report("{\"parentUuid\":\"lost");
    let long = report(&"x".repeat(4_000_000));
    assert!(short["tokens"].as_u64() > Some(200_000), "{short}");
    assert!(short["compacted"].is_object(), "{short}");
    assert!(long["tokens"].as_u64() < Some(10_000), "{long}");
    assert_eq!(
        (&long["too_long"], &long["compacted"]),
        (&false.into(), &Value::Null)
    );
}

#[test]
fn a_copy_without_faults_is_not_rescued_unless_it_is_named() {
    let home = Home::new();
    let log = put(&home, CLAUDE, "claude-code.jsonl");
    rescue(&home, &[]).done();
    fs::remove_file(&log).unwrap();
    let said = rescue(&home, &[]);
    said.refused(1, &["only copies that Plimsoll wrote", "--list"]);
}

#[test]
fn a_policy_without_a_model_is_asked_for() {
    let home = Home::new();
    put(&home, CLAUDE, "claude-code.jsonl");
    let said = rescue(&home, &["--policy", "summarize", "--dry-run"]);
    said.misspelled(&["invalid value 'summarize' for '--policy", "extract"]);
    let args = ["--policy", "unlimited", "--budget", "50000"];
    rescue(&home, &args).refused(2, &["`unlimited` removes nothing", "--budget"]);
    let said = rescue(&home, &["--policy", "unlimited", "--dry-run"]).done();
    assert!(!said.out.contains("compacted"), "{}", said.out);
}

#[test]
fn half_a_character_in_a_log_is_told_and_replaced_in_the_copy() {
    let home = Home::new();
    let log = put(&home, CLAUDE, "claude-code.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.replace("folder prod.", "folder prod. \\ud83d")).unwrap();
    let said = rescue(&home, &[]).done();
    let words = "  repaired line 2: replaced half a character with U+FFFD\n";
    assert!(said.out.contains(words), "{}", said.out);
    let words = "  messages that would be refused: 1\n";
    assert!(said.out.contains(words), "{}", said.out);
    let copy = fs::read_to_string(&beside(&log)[0]).unwrap();
    assert!(copy.contains("Never touch the folder prod."));
    assert!(!copy.contains("\\ud83d"));
}

/// The provider refuses the same thinking again, so the copy has none.
#[test]
fn thinking_that_the_provider_refused_is_left_out() {
    let home = Home::new();
    let log = put(&home, CLAUDE, "claude-code.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    let refused = "API Error: 400 messages.1.content.0: Invalid `signature` in `thinking` block";
    let start = text.find("API Error: 400 prompt is too long").unwrap();
    let end = start + text[start..].find('"').unwrap();
    let text = format!("{}{refused}{}", &text[..start], &text[end..]);
    fs::write(&log, text).unwrap();
    let said = rescue(&home, &[]).done();
    assert!(said.out.contains(refused), "{}", said.out);
    assert!(said.out.contains("left out its thinking"), "{}", said.out);
    let copies = beside(&log);
    let copy = fs::read_to_string(&copies[0]).unwrap();
    assert!(!copy.contains("\"type\":\"thinking\""), "{copy}");
    // An error that the session does not explain is told, with what may help.
    let text = fs::read_to_string(&log).unwrap();
    let text = text.replace("Invalid `signature` in `thinking` block", "Overloaded");
    let whole: Vec<&str> = text.lines().filter(|line| line.ends_with('}')).collect();
    fs::write(&log, whole.join("\n")).unwrap();
    let said = rescue(
        &home,
        &["--policy", "unlimited", "--dry-run", log.to_str().unwrap()],
    )
    .done();
    assert!(!said.out.contains("Nothing is wrong"), "{}", said.out);
}

/// Codex resumes no archived session, and pi none of a folder that is not there.
#[test]
fn a_copy_is_one_that_its_agent_can_resume() {
    let home = Home::new();
    put(&home, &format!(".codex/archived_sessions/{CODEX}"), CODEX);
    let said = rescue(&home, &["--from", "codex"]).done();
    let (_, copy) = said.out.split_once("The repaired copy:").unwrap();
    assert!(
        copy.contains("/.codex/sessions/2026/11/01/"),
        "{}",
        said.out
    );
    let log = put(&home, ".pi/agent/sessions/x/1_2.jsonl", "pi.jsonl");
    fs::remove_dir(home.work().join("lamp")).unwrap();
    rescue(&home, &["--from", "pi"]).done();
    let sessions = home.work().join(".pi/agent/sessions");
    let folders = fs::read_dir(&sessions)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let copies = folders.flat_map(|folder| fs::read_dir(folder).unwrap());
    let copy = { copies.map(|entry| entry.unwrap().path()) }.find(|path| *path != log);
    let copy = fs::read_to_string(copy.unwrap()).unwrap();
    let header: Value = serde_json::from_str(copy.lines().next().unwrap()).unwrap();
    assert_eq!(header["cwd"], Value::from(home.work().to_str().unwrap()));
    // The newest part of a log that is too large has no header.
    let (_, part) = copy.split_once('\n').unwrap();
    fs::write(home.work().join("part.jsonl"), part).unwrap();
    let said = rescue(
        &home,
        &[
            home.work().join("part.jsonl").to_str().unwrap(),
            "--dry-run",
        ],
    )
    .done();
    assert!(said.out.starts_with("pi session"), "{}", said.out);
}
