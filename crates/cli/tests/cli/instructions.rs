//! The instructions to a model before the task: from files up the tree, from the user's own file,
//! and about the environment.

use super::command::Home;
use super::fake::{Fake, FakeAnswer};
use super::runs::messages;

fn system(fake: &Fake) -> String {
    let (role, text) = messages(&fake.asked()[0]).remove(0);
    assert_eq!(role, "system");
    text
}

#[test]
fn files_are_read_from_the_repository_down_and_the_users_own_first() {
    let home = Home::new();
    let folder = home.work().join("a/b");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::create_dir_all(home.work().join(".git")).unwrap();
    std::fs::create_dir_all(home.data()).unwrap();
    home.file(".git/HEAD", "ref: refs/heads/port-it\n");
    std::fs::write(home.data().join("AGENTS.md"), "Be brief.").unwrap();
    home.file("AGENTS.md", "Use tabs.");
    home.file("CLAUDE.md", "Not read beside AGENTS.md.");
    home.file("a/CLAUDE.md", "Test first.");
    // Above the repository nothing is read.
    std::fs::write(home.work().join("../AGENTS.md"), "Not of the project.").unwrap();

    home.trust("a/b");
    let fake = Fake::new([FakeAnswer::say("one")]);
    let args = ["--root", "a/b", "Go."];
    let said = home.agent(&fake, &args).done();
    let text = system(&fake);
    let places = ["Be brief.", "Use tabs.", "Test first."].map(|words| text.find(words).unwrap());
    assert!(places.is_sorted(), "{text}");
    assert!(!text.contains("Not "), "{text}");
    assert!(text.contains("a/b, in a git repository."), "{text}");
    assert!(text.contains("Today is "), "{text}");
    let note = said
        .err
        .lines()
        .find(|line| line.starts_with("instructions from "));
    assert_eq!(note.unwrap().matches(".md").count(), 3, "{}", said.err);
}

#[test]
fn a_prompt_of_ones_own_is_not_told_where_it_works() {
    let home = Home::new();
    let prompt = home.file("system.md", "You count.");
    let fake = Fake::new([FakeAnswer::say("one")]);
    let args = ["--system", prompt.to_str().unwrap(), "Go."];
    let said = home.agent(&fake, &args).done();
    assert_eq!(system(&fake), "You count.");
    assert!(!said.err.contains("instructions from"), "{}", said.err);
}
