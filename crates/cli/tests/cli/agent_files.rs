//! Agents that are Markdown files: the working agent may call them, and each can be run on its own.

use super::command::Home;
use super::fake::{Fake, FakeAnswer};

fn agent(home: &Home, folder: &str, name: &str, text: &str) {
    let folder = home.work().join(folder);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{name}.md")), text).unwrap();
}

const REVIEWER: &str =
    "---\nname: reviewer\ndescription: Reviews a file.\ntools: [read]\n---\nYou find bugs.\n";
const TESTER: &str =
    "---\nname: tester\ndescription: Tests.\ntools: Bash\nmodel: haiku\n---\nYou test.\n";

#[test]
fn an_agent_of_the_project_is_called() {
    let home = Home::new();
    agent(&home, ".plimsoll/agents", "reviewer", REVIEWER);
    agent(&home, ".claude/agents", "tester", TESTER);
    agent(&home, ".claude/agents", "broken", "no front matter");
    let fake = Fake::new([
        FakeAnswer::call(&[("reviewer", r#"{"task":"Review main.rs."}"#)]),
        FakeAnswer::say("Line 3 is wrong."),
        FakeAnswer::say("There is a bug."),
    ]);
    let said = home.agent(&fake, &["--yes", "Is it right?"]).done();
    for line in [
        "agents: reviewer, tester\n",
        "broken.md:1:1: it does not start with a line --- (the agent is left out)",
    ] {
        assert!(said.err.contains(line), "no `{line}` in {}", said.err);
    }
    let asked = fake.asked();
    let tools = |request: usize| asked[request]["tools"].to_string();
    assert!(tools(0).contains("Reviews a file.") && tools(0).contains("\"tester\""));
    let system = asked[1]["messages"][0]["content"].to_string();
    assert!(system.contains("You find bugs."), "{system}");
    assert!(
        tools(1).contains("\"read\"") && !tools(1).contains("\"bash\""),
        "{}",
        tools(1)
    );
    assert!(
        asked[2]["messages"]
            .to_string()
            .contains("Line 3 is wrong.")
    );
}

#[test]
fn such_an_agent_is_run_alone_and_ignored_with_the_configuration() {
    let home = Home::new();
    agent(&home, ".plimsoll/agents", "reviewer", REVIEWER);
    let fake = Fake::new([FakeAnswer::say("Fine."), FakeAnswer::say("Fine.")]);
    home.agent(&fake, &["--agent", "reviewer", "Look."]).done();
    home.agent(&fake, &["--no-config", "Look."]).done();
    let asked = fake.asked();
    assert!(
        asked[0]["messages"][0]
            .to_string()
            .contains("You find bugs.")
    );
    assert!(!asked[1]["tools"].to_string().contains("reviewer"));
    let said = home.agent(&fake, &["--agent", "reviwer", "Look."]);
    said.refused(2, &["did you mean `reviewer`?"]);
}
