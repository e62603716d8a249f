//! Skills: found in the usual folders, announced to the model, loaded on request.

use super::command::Home;
use super::fake::{Fake, FakeAnswer};

fn skill(home: &Home, folder: &str, name: &str, text: &str) {
    let folder = home.work().join(folder).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!("---\nname: {name}\ndescription: For {name}.\n---\n{text}\n");
    std::fs::write(folder.join("SKILL.md"), text).unwrap();
}

#[test]
fn a_skill_of_the_project_is_loaded() {
    let home = Home::new();
    skill(&home, ".claude/skills", "release", "Tag it `v9`.");
    skill(&home, ".plimsoll/skills", "release", "Tag it `v1`.");
    skill(&home, ".agents/skills", "broken name", "x");
    let call = FakeAnswer::call(&[("skill", r#"{"name":"release"}"#)]);
    let fake = Fake::new([call, FakeAnswer::say("Tagged.")]);
    let said = home.agent(&fake, &["Release it."]).done();
    assert!(said.err.contains("skills: release\n"), "{}", said.err);
    assert!(
        said.err.contains("broken name/SKILL.md is left out"),
        "{}",
        said.err
    );
    let asked = fake.asked();
    let tools = asked[0]["tools"].to_string();
    assert!(tools.contains("- release: For release."), "{tools}");
    let result = asked[1]["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(
        result.contains("Tag it `v1`."),
        "our own folder goes before the others: {result}"
    );
}

#[test]
fn skills_can_be_switched_off_and_taken_from_elsewhere() {
    let home = Home::new();
    skill(&home, ".agents/skills", "release", "Tag it.");
    skill(&home, "elsewhere", "other", "Do it.");
    let offered = |args: &[&str]| {
        let fake = Fake::new([FakeAnswer::say("Done.")]);
        let args: Vec<&str> = args.iter().copied().chain(["Go."]).collect();
        home.agent(&fake, &args).done();
        let tools = fake.asked()[0]["tools"].to_string();
        ["release", "other"].map(|name| tools.contains(&format!("- {name}: ")))
    };
    assert_eq!(offered(&[]), [true, false]);
    assert_eq!(offered(&["--tools", "none"]), [false, false]);
    home.file("off.toml", "skills = []\n");
    assert_eq!(offered(&["--config", "off.toml"]), [false, false]);
    home.file("plimsoll.toml", "skills = [\"elsewhere\"]\n");
    assert_eq!(offered(&[]), [false, true]);
}
