//! The user's own configuration: it applies in every directory, and a directory's own configuration
//! overrides it.

use super::command::Home;
use super::fake::{Fake, FakeAnswer};

fn home(users: &str) -> Home {
    let home = Home::new();
    std::fs::create_dir_all(home.data()).unwrap();
    std::fs::write(home.data().join("plimsoll.toml"), users).unwrap();
    home
}

#[test]
fn it_holds_for_what_the_other_file_does_not_say() {
    let home = home("max_turns = 7\nmax_tool_calls = 9\n");
    let fake = Fake::new([FakeAnswer::say("Done.")]);
    let alone = home.run(["config", "show", "--origin"]).done().out;
    assert!(alone.contains("max_turns = 7"), "{alone}");
    home.file("plimsoll.toml", "max_turns = 3\n");
    let both = home.run(["config", "show", "--origin"]).done().out;
    assert!(both.contains("max_turns = 3"), "{both}");
    assert!(both.contains("max_tool_calls = 9"), "{both}");
    let users = home.data().join("plimsoll.toml");
    assert!(both.contains(&format!("{}:2", users.display())), "{both}");
    let none = home.run(["config", "show", "--no-config"]).done().out;
    assert!(!none.contains("max_tool_calls = 9"), "{none}");
    // Nothing is announced of one's own file, and a flag still goes first.
    std::fs::remove_file(home.work().join("plimsoll.toml")).unwrap();
    let said = home.agent(&fake, &["--max-turns", "2", "Hi."]).done();
    assert!(!said.err.contains("plimsoll.toml"), "{}", said.err);
}

#[test]
fn its_faults_are_said_with_its_name() {
    let home = home("max_trns = 7\n");
    home.run(["config", "show"])
        .refused(2, &["plimsoll.toml", "did you mean `max_turns`?"]);
    home.run(["config", "show", "--no-config"]).done();
}

#[test]
fn servers_providers_and_agents_of_both_are_there() {
    let home = home(
        "[[agents]]\nname = \"scribe\"\nsystem = \"Write.\"\n\
         [[mcp]]\nname = \"files\"\ncommand = \"theirs\"\n\
         [[mcp]]\nname = \"own\"\ncommand = \"own\"\n",
    );
    home.file(
        "plimsoll.toml",
        "[[mcp]]\nname = \"files\"\ncommand = \"here\"\n[[agents]]\nname = \"cook\"\nsystem = \"Cook.\"\n",
    );
    let said = home.run(["config", "check"]).done().out;
    let after = |word| said.lines().filter_map(move |line| line.strip_prefix(word));
    let servers: Vec<&str> = after("mcp: ").collect();
    assert_eq!(servers, ["files, here", "own, own"]);
    assert_eq!(after("agent ").collect::<Vec<_>>(), ["cook", "scribe"]);
}
