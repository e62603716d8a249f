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
        lines[2].ends_with("so the focus had no effect"),
        "{lines:?}"
    );
    assert!(lines[3].starts_with("nothing was compacted: "), "{lines:?}");
    assert_eq!(lines[4], "Here.");
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
        "system prompt ",
        "part            count  tokens   share\n",
        "tools               9  ",
        "pins                1  ",
        "user                1  ",
        "assistant           4  ",
        "tool results        3  ",
        "  read              3  ",
        "free ",
        "answer reserve ",
        "compacts at ",
        " of 20000 tokens, ",
    ] {
        assert!(said.out.contains(part), "no `{part}`:\n{}", said.out);
    }
    let id = said.session();
    let show = home.run(["sessions", "show", "--context", &id]).done();
    for part in [
        " tokens, without the schemas of the tools\n",
        "\nsystem prompt ",
        "\ntool results       3  ",
    ] {
        assert!(show.out.contains(part), "no `{part}`:\n{}", show.out);
    }
}

#[test]
fn a_markdown_file_is_a_command() {
    let home = Home::with_notes();
    std::fs::create_dir_all(home.data().join("prompts")).unwrap();
    std::fs::create_dir_all(home.work().join(".plimsoll/prompts")).unwrap();
    let mine = home.data().join("prompts/review.md");
    std::fs::write(mine, "---\ndescription: x\n---\nReview $ARGUMENTS well.\n").unwrap();
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
