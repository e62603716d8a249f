//! The commands of `plimsoll chat`: their effect on the requests to the model, and their output.

use serde_json::Value;

use super::chatting::Chat;
use super::command::{Home, feed};
use super::fake::{Fake, FakeAnswer};
use super::runs::messages;

/// The texts of a request, without its system prompt.
fn sent(request: &Value) -> Vec<String> {
    let texts = messages(request).into_iter().skip(1);
    texts.map(|(_, text)| text).collect()
}

/// A chat that reads so many files of 6,000 characters before it answers.
fn reads(files: usize, then: Vec<FakeAnswer>) -> (Home, Fake) {
    let home = Home::new();
    let mut answers = Vec::new();
    for n in 0..files {
        let text: String = (0..100)
            .map(|line| {
                format!("line {line} of file number {n}, which says little more than that\n")
            })
            .collect();
        home.file(&format!("f{n}.txt"), text);
        answers.push(FakeAnswer::call(&[(
            "read",
            &format!("{{\"path\":\"f{n}.txt\"}}"),
        )]));
    }
    answers.push(FakeAnswer::say("All are read."));
    answers.extend(then);
    (home, Fake::new(answers))
}

#[test]
fn undo_takes_the_last_run_out_of_the_view() {
    let home = Home::with_notes();
    let fake = Fake::new(["one", "two", "three"].map(FakeAnswer::say));
    let said = Chat::start(&home, &fake, &[])
        .lines("First.\nSecond.\n/undo\nThird.\n/undo\n/undo\n/undo\n");
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines[..2], ["one", "two"]);
    assert_eq!(
        lines[2],
        "run 2 is undone: the model sees what it saw before; last message: First."
    );
    assert_eq!(lines[3], "three");
    assert_eq!(sent(&fake.asked()[2]), ["First.", "one", "Third."]);
    assert_eq!(
        lines[4],
        "run 3 is undone: the model sees what it saw before; last message: First."
    );
    assert_eq!(
        lines[5],
        "run 1 is undone: the model sees what it saw before"
    );
    assert!(
        said.err.contains("plimsoll: there is no run to undo"),
        "{}",
        said.err
    );
    assert_eq!(said.code, Some(2), "the last command was wrong");
}

#[test]
fn a_fork_goes_its_own_way_and_the_session_stays_as_it_was() {
    let home = Home::with_notes();
    let fake = Fake::new(["one", "two", "three"].map(FakeAnswer::say));
    let said = Chat::start(&home, &fake, &[]).lines("First.\n/fork side\nSecond.\n/session\n");
    assert_eq!(said.code, Some(0), "{}", said.err);
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(
        lines[1].starts_with("now in session side, a fork of "),
        "{lines:?}"
    );
    let before = lines[1].rsplit(' ').next().unwrap();
    assert_eq!(lines[2..], ["two", "this is session side"]);
    assert!(
        said.err
            .contains("continue with: plimsoll chat --session side")
    );
    let again = Chat::start(&home, &fake, &["--session", before]).lines("Third.\n");
    assert_eq!(again.out, "three\n");
    let asked = fake.asked();
    assert_eq!(sent(&asked[1]), ["First.", "one", "Second."]);
    assert_eq!(sent(&asked[2]), ["First.", "one", "Third."]);
}

#[test]
fn a_fork_needs_a_name_that_is_free_and_something_to_share() {
    let home = Home::with_notes();
    let fake = Fake::new(["one", "two"].map(FakeAnswer::say));
    let said = Chat::start(&home, &fake, &[])
        .lines("/fork side\nFirst.\n/fork a/b\n/fork side\n/fork side\nOn.\n");
    assert!(
        said.err
            .contains("cannot be forked: there is no such session"),
        "{}",
        said.err
    );
    assert!(
        said.err.contains("`a/b` cannot name a session"),
        "{}",
        said.err
    );
    assert!(said.err.contains("session side"), "{}", said.err);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.ends_with("two\n"), "{}", said.out);
}

#[test]
fn another_session_is_gone_on_with() {
    let home = Home::with_notes();
    let fake = Fake::new(["one", "two", "three"].map(FakeAnswer::say));
    let first = Chat::start(&home, &fake, &[]).lines("First.\n").session();
    let lines = format!("Second.\n/session {first}\nThird.\n/session nobody\n");
    let said = Chat::start(&home, &fake, &[]).lines(lines);
    assert!(
        said.out
            .contains(&format!("now in session {first}; last message: First.")),
        "{}",
        said.out
    );
    assert!(
        said.err.contains("there is no session nobody"),
        "{}",
        said.err
    );
    assert_eq!(sent(&fake.asked()[2]), ["First.", "one", "Third."]);
}

#[test]
fn the_model_can_be_changed_and_the_session_goes_on() {
    let home = Home::with_notes();
    let fake = Fake::new(["one", "two", "three"].map(FakeAnswer::say));
    let lines = "First.\n/model\n/model compatible/n\nSecond.\n/model nobody/x\nThird.\n";
    let said = Chat::start(&home, &fake, &[]).lines(lines);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let asked = fake.asked();
    let models: Vec<&Value> = asked.iter().map(|request| &request["model"]).collect();
    assert_eq!(models, ["m", "n", "n"]);
    assert_eq!(
        sent(&asked[2]),
        ["First.", "one", "Second.", "two", "Third."]
    );
    assert!(
        said.out.contains("the model is openai-compatible/m\n"),
        "{}",
        said.out
    );
    let now = "the model is now openai-compatible/n; before: openai-compatible/m\n";
    assert!(said.out.contains(now), "{}", said.out);
    assert!(said.err.contains("nobody"), "{}", said.err);
}

#[test]
fn a_model_of_another_provider_is_not_looked_for_at_the_address_of_the_last() {
    let home = Home::with_notes();
    let fake = Fake::new(["one", "two"].map(FakeAnswer::say));
    let url = fake.url();
    home.file(
        "plimsoll.toml",
        format!("model = \"openai-compatible/m\"\nbase_url = {url:?}\n"),
    );
    let mut command = home.command(["chat", "--config", "plimsoll.toml"]);
    command.env_remove("OPENAI_API_KEY");
    let said = feed(command, b"First.\n/model openai/gpt-5\nSecond.\n");
    assert_eq!(fake.asked().len(), 2, "{}\n{}", said.out, said.err);
    // The key of that provider is asked for, and would be sent to it alone.
    assert!(said.err.contains("OPENAI_API_KEY"), "{}", said.err);
    assert!(!said.out.contains("the model is openai/"), "{}", said.out);
}

#[test]
fn a_chat_goes_back_to_the_model_it_began_with() {
    let home = Home::with_notes();
    let fake = Fake::new(["one", "two"].map(FakeAnswer::say));
    let url = fake.url();
    let model = ["chat", "--model", "openai-compatible/m", "--base-url", &url];
    let mut command = home.command(model);
    command.env("OPENAI_API_KEY", "sk-unused");
    let lines = b"First.\n/model openai/gpt-4o\n/model compatible/m\nSecond.\n";
    let said = feed(command, lines);
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    assert!(
        said.out.contains("the model is now openai/gpt-4o"),
        "{}",
        said.out
    );
    let asked = fake.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(sent(&asked[1]), ["First.", "one", "Second."]);
}

#[test]
fn compact_plans_down_to_the_target_and_calls_no_model() {
    // Above the target, and below the trigger.
    let (home, fake) = reads(6, vec![FakeAnswer::say("Here.")]);
    let lines = "Read all.\n/compact the names\n/compact\nAre you there?\n";
    let said = Chat::start(&home, &fake, &["--max-context", "20000"]).lines(lines);
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(
        lines[1].starts_with("compacted (") || lines[1].starts_with("shortened ("),
        "{lines:?}"
    );
    assert!(lines[1].contains(" tokens freed"), "{lines:?}");
    assert!(
        said.err.contains("so the focus had no effect"),
        "{}",
        said.err
    );
    assert!(lines[2].starts_with("nothing to do: "), "{lines:?}");
    assert_eq!(lines[3], "Here.");
    let asked = fake.asked();
    assert_eq!(
        asked.len(),
        8,
        "seven of the first run and one of the second"
    );
    let weight = |request: &Value| request["messages"].to_string().len();
    assert!(weight(&asked[7]) < weight(&asked[6]), "less is sent");
    let id = said.session();
    let ledger = home.run(["sessions", "ledger", &id]).done();
    assert!(ledger.out.contains("asked"), "{}", ledger.out);
}

#[test]
fn a_focus_reaches_the_model_that_writes_the_summary() {
    let summary = "## Goal\n- read all files\n## Constraints\n- none\n## Decisions\n- none\n## Files\n\
        - f0.txt to f5.txt were read\n## Errors\n- none\n## Open work\n- none\n## NextStep step\n- answer";
    let (home, fake) = reads(6, vec![FakeAnswer::say(summary), FakeAnswer::say("Here.")]);
    let args = ["--max-context", "15000", "--policy", "summarize"];
    let lines = "Read all.\n/compact the names of the files\nAre you there?\n";
    let said = Chat::start(&home, &fake, &args).lines(lines);
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let asked = fake.asked();
    let system = &messages(&asked[7])[0].1;
    assert!(system.contains("the names of the files"), "{system}");
    let view = messages(&asked[8]);
    assert!(
        view.iter()
            .any(|(_, text)| text.contains("f0.txt to f5.txt were read")),
        "{view:?}"
    );
    assert!(said.out.contains("compacted (summarize): "), "{}", said.out);
}

#[test]
fn context_says_what_fills_the_window() {
    let (home, fake) = reads(3, Vec::new());
    let args = ["--max-context", "20000", "--pin", "Never touch vendor/."];
    let said = Chat::start(&home, &fake, &args).lines("Read all.\n/context\n");
    for part in [
        "  S system prompt ",
        "  T tools                           7 ",
        "  P pins                            1 ",
        "  U user                            1 ",
        "  A assistant                       4 ",
        "  R tool results                    3 ",
        "      read                          3 ",
        "  ░ free ",
        "  · kept for the answer ",
        "compacts at ",
        " of 20000 tokens, ",
    ] {
        assert!(said.out.contains(part), "no `{part}`:\n{}", said.out);
    }
    let id = said.session();
    let show = home.run(["sessions", "show", "--context", &id]).done();
    for part in [
        "  S system prompt ",
        "  R tool results                    3 ",
        " tokens, without the schemas of the tools\n",
    ] {
        assert!(show.out.contains(part), "no `{part}`:\n{}", show.out);
    }
    let json = home
        .run(["sessions", "show", "--context", "--json", &id])
        .done();
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["view"]["results"]["read"]["messages"], 3);
}

#[test]
fn a_chat_is_saved_as_json_and_as_text_and_never_over_a_file() {
    let home = Home::with_notes();
    let fake = Fake::new([
        FakeAnswer::call(&[("read", "{\"path\":\"notes.txt\"}")]),
        FakeAnswer::say("It is ```42```."),
    ]);
    let lines =
        "Which number?\n/save chat.json\n/save chat.md\n/save notes.txt\n/save no/such.json\n";
    let said = Chat::start(&home, &fake, &[]).lines(lines);
    assert!(
        said.out.contains("4 messages in chat.json\n"),
        "{}",
        said.out
    );
    let saved = std::fs::read_to_string(home.work().join("chat.json")).unwrap();
    let saved: Value = serde_json::from_str(&saved).unwrap();
    let roles: Vec<&Value> = saved["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| &message["role"])
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant"]);
    // Others of our commands read it.
    home.run(["compact", "--budget", "5000", "chat.json"])
        .done();
    let text = std::fs::read_to_string(home.work().join("chat.md")).unwrap();
    for part in [
        "# A chat with openai-compatible/m",
        "## You\n\nWhich number?",
        "Calls `read`:",
        "the number is forty-two",
        "It is ```42```.",
    ] {
        assert!(text.contains(part), "no {part}:\n{text}");
    }
    assert!(
        said.err.contains("notes.txt is there already"),
        "{}",
        said.err
    );
    assert!(
        said.err.contains("no/such.json cannot be written"),
        "{}",
        said.err
    );
    assert_eq!(
        std::fs::read_to_string(home.work().join("notes.txt")).unwrap(),
        "the number is forty-two\n"
    );
}

#[test]
fn rules_are_pinned_and_what_was_used_is_said() {
    let home = Home::with_notes();
    let fake = Fake::new(["one"].map(FakeAnswer::say));
    let lines = "/pins\n/pin Never touch vendor/.\n/pins\n/cost\nFirst.\n/cost\n";
    let said = Chat::start(&home, &fake, &["--max-turns", "7"]).lines(lines);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(lines[0].starts_with("nothing is pinned"), "{lines:?}");
    assert!(
        lines[1].ends_with("is pinned: Never touch vendor/."),
        "{lines:?}"
    );
    assert!(lines[2].contains("Never touch vendor/."), "{lines:?}");
    assert!(said.out.contains("0 runs: read 0"), "{lines:?}");
    assert!(
        said.out.contains(
            "1 run: read 100 (40 % cached), wrote 10, $0.0000 and 1 call of unknown price"
        ),
        "{lines:?}"
    );
    assert!(
        said.out
            .contains("the last run: 1 of 7 turns, 0 tool calls"),
        "{lines:?}"
    );
    assert!(
        sent(&fake.asked()[0])
            .iter()
            .any(|text| text.contains("Never touch vendor/."))
    );
}

#[test]
fn what_is_no_command_is_answered_with_the_nearest() {
    let (home, fake) = (Home::with_notes(), Fake::new([FakeAnswer::say("Hello.")]));
    let said =
        Chat::start(&home, &fake, &[]).lines("/contxt\n/frobnicate\n/save\n//etc is full\n/help\n");
    assert!(
        said.err
            .contains("there is no command /contxt; did you mean /context?"),
        "{}",
        said.err
    );
    assert!(
        said.err
            .contains("there is no command /frobnicate; /help lists all commands"),
        "{}",
        said.err
    );
    assert!(said.err.contains("/save needs FILE"), "{}", said.err);
    assert_eq!(sent(&fake.asked()[0]), ["/etc is full"]);
    for command in ["/compact [FOCUS]", "/undo", "/save FILE", "/quit"] {
        assert!(said.out.contains(command), "no {command}: {}", said.out);
    }
    let code = Chat::start(&home, &fake, &[]).lines("/contxt\n").code;
    assert_eq!(code, Some(2));
}

#[test]
fn quit_leaves_what_stands_behind_it() {
    let (home, fake) = (Home::with_notes(), Fake::new([FakeAnswer::say("Hello.")]));
    let said = Chat::start(&home, &fake, &[]).lines("Hi\n/quit\nAre you there?\n");
    assert_eq!((said.code, said.out.as_str()), (Some(0), "Hello.\n"));
    assert_eq!(fake.asked().len(), 1);
}

#[test]
fn there_is_nothing_to_go_on_with_before_the_first_word() {
    let (home, fake) = (Home::with_notes(), Fake::new([FakeAnswer::say("Hello.")]));
    let said = Chat::start(&home, &fake, &[]).lines("/go\n/compact\n/context\n");
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(
        said.err.contains("there is no run to continue yet"),
        "{}",
        said.err
    );
    assert!(said.out.contains("nothing to do"), "{}", said.out);
    assert!(fake.asked().is_empty());
    assert!(!said.err.contains("continue with"), "{}", said.err);
}

#[test]
fn a_chat_begins_a_new_session_and_finds_the_others() {
    let home = Home::with_notes();
    let fake = Fake::new(["one", "two", "three"].map(FakeAnswer::say));
    let said = Chat::start(&home, &fake, &[]).lines(
        "The first voyage.\n/new\nSecond.\n/sessions\n/sessions voyage\n/sessions zebra\n/clear\n",
    );
    assert_eq!(said.code, Some(0), "{}", said.err);
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(lines[1].contains("; go back with /session "), "{lines:?}");
    let first = lines[1].rsplit(' ').next().unwrap();
    assert!(lines[3].ends_with("Second.") && lines[4].ends_with("The first voyage."));
    assert!(lines[5].starts_with(first) && lines[6].contains("user message: The first voyage."));
    assert!(lines[7].starts_with("nothing was found"), "{lines:?}");
    assert_eq!(sent(&fake.asked()[1]), ["Second."], "nothing of the first");
}

#[test]
fn a_markdown_file_is_a_command() {
    let home = Home::with_notes();
    std::fs::create_dir_all(home.data().join("prompts")).unwrap();
    std::fs::create_dir_all(home.work().join(".plimsoll/prompts")).unwrap();
    let mine = home.data().join("prompts/review.md");
    std::fs::write(mine, "---\ndescription: x\n---\nReview $1 well.\n").unwrap();
    home.file(".plimsoll/prompts/review.md", "Not this one.");
    home.file(".plimsoll/prompts/port.md", "Port it.");
    let fake = Fake::new(["one", "two"].map(FakeAnswer::say));
    let said =
        Chat::start(&home, &fake, &[]).lines("/help\n/review notes.txt\n/port to Rust\n/rewiev\n");
    assert!(
        said.out.contains("Your prompts: /port, /review"),
        "{}",
        said.out
    );
    let asked = fake.asked();
    assert_eq!(sent(&asked[0]), ["Review notes.txt well."]);
    assert_eq!(sent(&asked[1])[2], "Port it.\n\nto Rust");
    assert!(
        said.err.contains("there is no command /rewiev"),
        "{}",
        said.err
    );
}
