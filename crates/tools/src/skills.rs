//! [`Skills`]: instructions for kinds of tasks, each in a folder with a `SKILL.md`, as several agents
//! use them.
//!
//! The model sees the list of skills, and loads one when a task needs it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use plimsoll_context::{Bytes, ToolSpec};
use plimsoll_core::{Tool, ToolContext, ToolError, ToolOutput, parse_arguments};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::front_matter::front_matter;
use crate::input;
use crate::project_files::SKILL_FILE;

/// Maximum number of skills in the list for the model.
pub const MAX_SKILLS: usize = 100;
/// Maximum size of a skill's file that is read.
pub const MAX_SKILL: Bytes = Bytes(256 * 1024);

/// Maximum number of folders that are searched in one place.
const MAX_FOLDERS: usize = 1_000;
/// Maximum length of a name, in characters.
const MAX_NAME: usize = 64;
/// Maximum length of a description, in characters: every request contains all descriptions.
const MAX_DESCRIPTION: usize = 1_024;

/// The available skills.
#[derive(Debug, Clone, Default)]
pub struct Skills {
    skills: BTreeMap<String, Skill>,
    notes: Vec<String>,
}

#[derive(Debug, Clone)]
struct Skill {
    description: String,
    folder: PathBuf,
    /// Read when the skill is found, so that nothing that happens in a run changes it.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct SkillInput {
    #[serde(alias = "skill")]
    name: String,
    /// A file that the skill's instructions name, relative to its folder
    #[serde(default)]
    #[schemars(with = "String")]
    file: Option<String>,
}

struct SkillTool {
    spec: ToolSpec,
    skills: BTreeMap<String, Skill>,
}

impl Skills {
    /// Finds the skills in these places: a place is a skill, or contains skills. If two skills have
    /// the same name, the first one is used. Places that do not exist are ignored.
    pub fn find(places: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut found = Self::default();
        for place in places {
            if place.join(SKILL_FILE).is_file() {
                found.add(place);
                continue;
            }
            let Ok(folders) = fs::read_dir(&place) else {
                continue;
            };
            let folders = folders.flatten().take(MAX_FOLDERS);
            let mut folders: Vec<PathBuf> = folders.map(|folder| folder.path()).collect();
            folders.sort_unstable();
            for folder in folders {
                found.add(folder);
            }
        }
        found
    }

    /// Returns the names of the skills, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.skills.keys().map(String::as_str)
    }

    /// Returns one sentence for each skill that was ignored, for the user.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the tool `skill`, which loads a skill; `None` if there are no skills.
    #[must_use]
    pub fn tool(&self) -> Option<Arc<dyn Tool>> {
        if self.skills.is_empty() {
            return None;
        }
        let mut description =
            "Loads a skill: instructions for a kind of task. If your task fits one of \
                               these, load it before you begin, and follow it:"
                .to_owned();
        for (name, skill) in &self.skills {
            // Writing to a String cannot fail.
            let _ = write!(description, "\n- {name}: {}", skill.description);
        }
        let spec = ToolSpec {
            name: "skill".to_owned(),
            description,
            schema: input::schema::<SkillInput>(),
        };
        Some(Arc::new(SkillTool {
            spec,
            skills: self.skills.clone(),
        }))
    }

    fn add(&mut self, folder: PathBuf) {
        let path = folder.join(SKILL_FILE);
        if !path.is_file() {
            return;
        }
        let read = read(&path).and_then(|text| Ok((described(&text)?, text)));
        let ((name, description), text) = match read {
            Ok(read) => read,
            Err(why) => {
                self.notes
                    .push(format!("the skill {} is left out: {why}", path.display()));
                return;
            }
        };
        if self.skills.contains_key(&name) {
            return;
        }
        if self.skills.len() == MAX_SKILLS {
            self.notes.push(format!(
                "the skill {} is left out: there are {MAX_SKILLS} already",
                path.display()
            ));
            return;
        }
        let skill = Skill {
            description,
            folder,
            text,
        };
        self.skills.insert(name, skill);
    }
}

impl Skill {
    /// Returns the instructions, followed by the folder with the files that they name.
    fn load(&self) -> Result<String, String> {
        let (_, body) = front_matter(&self.text)?;
        let folder = self.folder.display();
        Ok(format!(
            "{}\n\n[folder of this skill: {folder}]",
            body.trim()
        ))
    }

    /// Returns another file of the skill.
    fn file(&self, relative: &str) -> Result<String, String> {
        let folder = self.folder.canonicalize().map_err(unreadable)?;
        let path = folder.join(relative).canonicalize().map_err(unreadable)?;
        if !path.starts_with(&folder) {
            return Err("it is not in the skill's folder".to_owned());
        }
        read(&path)
    }
}

#[async_trait]
impl Tool for SkillTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn idempotent(&self) -> bool {
        true
    }

    async fn call(&self, arguments: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
        let SkillInput { name, file } = parse_arguments(&self.spec, arguments)?;
        let Some(skill) = self.skills.get(&name).cloned() else {
            let names: Vec<&str> = self.skills.keys().map(String::as_str).collect();
            let names = names.join(", ");
            return Err(ToolError(format!(
                "there is no skill `{name}`, but {names}"
            )));
        };
        let of = match &file {
            Some(file) => format!("`{file}` of the skill `{name}`"),
            None => format!("the skill `{name}`"),
        };
        let work = move || match file.filter(|file| !file.is_empty()) {
            Some(file) => skill.file(&file),
            None => skill.load(),
        };
        let read = tokio::task::spawn_blocking(work).await;
        let read = read.unwrap_or_else(|error| Err(error.to_string()));
        read.map(Into::into)
            .map_err(|why| ToolError(format!("{of} cannot be read: {why}")))
    }
}

/// Reads the name and the description of a skill.
fn described(text: &str) -> Result<(String, String), String> {
    let (fields, _) = front_matter(text)?;
    let field = |name: &str| {
        let text = fields.get(name)?.as_str()?;
        Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let missing = |name: &str| format!("it needs a text `{name}` between two lines --- at its top");
    let name = field("name").ok_or_else(|| missing("name"))?;
    let is_name = |c: char| c.is_alphanumeric() || "-_:".contains(c);
    if name.is_empty() || name.chars().count() > MAX_NAME || !name.chars().all(is_name) {
        return Err(format!(
            "a name is at most {MAX_NAME} letters, digits and hyphens, and `{name}` is not"
        ));
    }
    let description = field("description").filter(|text| !text.is_empty());
    let description = description.ok_or_else(|| missing("description"))?;
    Ok((name, description.chars().take(MAX_DESCRIPTION).collect()))
}

fn read(path: &Path) -> Result<String, String> {
    let text = File::open(path).and_then(|file| io::read_to_string(file.take(MAX_SKILL.0 + 1)));
    let text = text.map_err(unreadable)?;
    if text.len() as u64 > MAX_SKILL.0 {
        Err(format!("it is larger than {} KiB", MAX_SKILL.0 / 1024))
    } else {
        Ok(text)
    }
}

fn unreadable(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Workspace as Files, context};

    fn load(skills: &Skills, arguments: Value) -> Result<String, String> {
        let tool = skills.tool().unwrap();
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let got = runtime.block_on(tool.call(arguments, context()));
        got.map(|output| {
            output
                .parts
                .iter()
                .filter_map(|part| part.as_text())
                .collect()
        })
        .map_err(|error| error.0)
    }

    fn skills(files: &Files) -> Skills {
        let root = files.root();
        Skills::find(["first", "none", "second"].map(|place| root.path().join(place)))
    }

    #[test]
    fn the_model_is_told_of_skills_and_loads_one() {
        let files = Files::new();
        let pdf = "---\nname: pdf\ndescription: >-\n  Fills\n  forms.\nlicense: MIT\n---\n# Forms\n\nSee `ref.md`.\n";
        files.put("first/pdf/SKILL.md", pdf);
        files.put("first/pdf/ref.md", "Fields have names.\n");
        files.put("first/pdf/scripts/fill.py", "print()\n");
        files.put("first/pdf/.git/config", "");
        files.put(
            "second/pdf/SKILL.md",
            "---\nname: pdf\ndescription: Another.\n---\n",
        );
        let review =
            "\u{feff}---\r\nname: 'review'\r\ndescription: \"Reviews: changes\"\r\n---\r\nLook.";
        files.put("second/review/SKILL.md", review);
        let skills = skills(&files);
        assert_eq!(skills.names().collect::<Vec<_>>(), ["pdf", "review"]);
        assert_eq!(skills.notes(), [""; 0]);
        let tool = skills.tool().unwrap();
        let told = &tool.spec().description;
        assert!(
            told.ends_with("\n- pdf: Fills forms.\n- review: Reviews: changes"),
            "{told}"
        );
        let loaded = load(&skills, serde_json::json!({"name": "pdf"})).unwrap();
        let folder = files.root().path().join("first/pdf");
        let expected = format!(
            "# Forms\n\nSee `ref.md`.\n\n[folder of this skill: {}]",
            folder.display()
        );
        assert_eq!(loaded, expected);
        let file = load(
            &skills,
            serde_json::json!({"name": "pdf", "file": "ref.md"}),
        );
        assert_eq!(file.as_deref(), Ok("Fields have names.\n"));
        let look = load(&skills, serde_json::json!({"name": "review"}));
        assert!(look.unwrap().starts_with("Look.\n"));
    }

    #[test]
    fn a_skill_does_not_lead_out_of_its_folder() {
        let files = Files::new();
        files.put("secret.txt", "s");
        files.put(
            "first/a/SKILL.md",
            "---\nname: a\ndescription: A.\n---\nDo.",
        );
        for (arguments, why) in [
            (
                serde_json::json!({"name": "b"}),
                "there is no skill `b`, but a",
            ),
            (
                serde_json::json!({"name": "a", "file": "../../secret.txt"}),
                "not in the skill's folder",
            ),
            (
                serde_json::json!({"name": "a", "file": "/etc/passwd"}),
                "not in the skill's folder",
            ),
            (
                serde_json::json!({"name": "a", "file": "none"}),
                "`none` of the skill `a` cannot be read",
            ),
        ] {
            let error = load(&skills(&files), arguments).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_damaged_skill_is_left_out_and_named() {
        let files = Files::new();
        let large = usize::try_from(MAX_SKILL.0).unwrap() + 1;
        for (name, text, why) in [
            (
                "a",
                "# No front matter\n".to_owned(),
                "does not start with a line ---",
            ),
            (
                "b",
                "---\nname: b\n".to_owned(),
                "a second line --- after its fields is missing",
            ),
            (
                "c",
                "---\nname: c\n---\n".to_owned(),
                "needs a text `description`",
            ),
            (
                "d",
                "---\ndescription: d\nname: [x]\n---\n".to_owned(),
                "needs a text `name`",
            ),
            (
                "e",
                "---\nname: a b\ndescription: e\n---\n".to_owned(),
                "`a b` is not",
            ),
            (
                "f",
                "---\nname: \"f\ndescription: f\n---\n".to_owned(),
                "not valid YAML",
            ),
            ("g", " ".repeat(large), "larger than 256 KiB"),
            ("h", "---\n---\n".to_owned(), "needs a text `name`"),
        ] {
            let files = Files::new();
            files.put(&format!("first/{name}/SKILL.md"), text);
            let skills = skills(&files);
            assert!(skills.tool().is_none(), "{name}");
            let [note] = skills.notes() else {
                panic!("{name}: {:?}", skills.notes());
            };
            assert!(note.contains(why), "{note}");
        }
        files.put("first/not-one/README.md", "x");
        assert!(skills(&files).notes().is_empty());
    }
}
