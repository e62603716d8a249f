//! [`Approvals`]: the calls that the user always allows: commands and tools in one project, stored
//! in Plimsoll's data directory, and edits for one session. Protected files are always asked about.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use plimsoll::permissions::{CallTarget, Permission, PermissionRule, Permissions, Question};
use plimsoll::tools::{Root, Toolbox, saved_files};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lock;
use crate::terminal::text::clean;

/// The file in the data directory. No tool may write there.
const FILE: &str = "approvals.json";
/// Maximum size of the file in bytes. A larger one is considered damaged.
const MAX_FILE: u64 = 1024 * 1024;
/// The tool whose approval is that of all edits of files.
const EDIT: &str = "edit";
/// Stands for any text in a pattern.
const ANY: char = '*';
/// Maximum length of a stored command, in bytes.
const MAX_COMMAND: usize = 200;

/// The approvals of one project and session.
pub(crate) struct Approvals {
    file: PathBuf,
    /// The project's directory.
    project: String,
    /// The built-in tools; `None` if the directory does not exist.
    toolbox: Option<Toolbox>,
    approved: Mutex<Vec<Approval>>,
}

/// An approval of a tool or of commands. That of [`EDIT`] is for all edits, until the session ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Approval {
    tool: String,
    /// The approved command, or a pattern in which `*` stands for any text; `None` approves the whole
    /// tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<String>,
}

impl Approvals {
    /// Reads the approvals of the project in `root` from the data directory `data`.
    pub(crate) fn open(data: &Path, root: &Path) -> Self {
        let project = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
        let project = project.to_string_lossy().into_owned();
        let file = data.join(FILE);
        // An unreadable file allows nothing, and is not overwritten.
        let mut all = read(&file).unwrap_or_else(|error| {
            let file = file.display();
            say!("{file} cannot be used, so approvals are not remembered: {error}");
            BTreeMap::new()
        });
        let approved = all.remove(&project).unwrap_or_default();
        Self {
            file,
            project,
            toolbox: Root::new(root).ok().map(Toolbox::new),
            approved: Mutex::new(approved),
        }
    }

    /// Checks whether the user has allowed this call before.
    pub(crate) fn allow(&self, question: &Question) -> bool {
        let Some((arguments, target)) = self.target(question) else {
            return false;
        };
        let is_command = matches!(target, CallTarget::Command(_));
        let name = &question.call.name;
        let allows = |approval: &Approval| match &approval.command {
            // A tool that runs commands is approved only per command.
            None => !is_command,
            Some(command) => {
                let rule = PermissionRule::new(name, Permission::Allow);
                let rules = Permissions::new([rule.with_argument(&format!("command={command}"))]);
                rules.decide(name, &arguments, &target) == Some(Permission::Allow)
            }
        };
        let approved = lock(&self.approved);
        let mut approved = approved.iter();
        approved.any(|approval| approval.tool == tool(question) && allows(approval))
    }

    /// Returns the approvals that a question offers besides yes and no. None if it has to be asked each
    /// time.
    pub(crate) fn offers(&self, question: &Question) -> Vec<Approval> {
        let tool = tool(question).to_owned();
        let of = |command| Approval {
            command,
            tool: tool.clone(),
        };
        match self.target(question) {
            Some((_, CallTarget::Command(command))) => {
                let text = command.simple.map(|simple| simple.text);
                // In a rule, `*` is a wildcard.
                let is_plain = |text: &String| text.len() <= MAX_COMMAND && !text.contains(ANY);
                let text = text.filter(is_plain);
                let pattern = text.as_deref().and_then(pattern_of);
                let commands = text.into_iter().chain(pattern);
                commands.map(|command| of(Some(command))).collect()
            }
            Some(_) => vec![of(None)],
            None => Vec::new(),
        }
    }

    /// Adds an approval that the user has chosen, and stores it if it is for the project.
    pub(crate) fn add(&self, approval: &Approval) {
        lock(&self.approved).push(approval.clone());
        if approval.tool == EDIT {
            return;
        }
        if let Err(error) = self.remember(approval.clone()) {
            say!("it is allowed until the end, but not remembered: {error}");
        }
    }

    /// Returns the arguments and the target of a call, or `None` if it has to be asked about each time. Only
    /// the built-in tools know more than their arguments.
    fn target(&self, question: &Question) -> Option<(Value, CallTarget)> {
        if question.is_protected {
            return None;
        }
        let arguments = serde_json::from_str(&question.call.arguments).ok()?;
        let tool = self.toolbox.as_ref()?.tool(&question.call.name);
        let target = tool.map_or(CallTarget::Arguments, |tool| tool.target(&arguments));
        Some((arguments, target))
    }

    /// Stores an approval. The file is replaced atomically and readable only by its owner.
    fn remember(&self, approval: Approval) -> io::Result<()> {
        // Another process may have changed the file.
        let mut all = read(&self.file)?;
        let of_project = all.entry(self.project.clone()).or_default();
        if of_project.contains(&approval) {
            return Ok(());
        }
        of_project.push(approval);
        let text = serde_json::to_string_pretty(&all).map_err(io::Error::other)? + "\n";
        if text.len() as u64 > MAX_FILE {
            let file = self.file.display();
            let why = format!("too many are remembered; delete some in {file}");
            return Err(io::Error::other(why));
        }
        saved_files::replace_private(&self.file, &text)
    }
}

impl Approval {
    /// Returns the answer that gives the approval, which may be shortened to its first letter: "always",
    /// or "pattern" for similar commands.
    pub(crate) fn word(&self) -> &'static str {
        match &self.command {
            Some(command) if command.contains(ANY) => "pattern",
            _ => "always",
        }
    }

    /// Describes the approval in a few words.
    pub(crate) fn label(&self) -> String {
        if self.tool == EDIT {
            return "edits in this session".to_owned();
        }
        let name = self.command.as_ref().unwrap_or(&self.tool);
        format!("`{}` in this project", clean(name))
    }
}

/// Returns a pattern for commands that begin like this one: its first two words, as in
/// `cargo test *`. Returns `None` if there are no further words, or the second word is an option.
fn pattern_of(command: &str) -> Option<String> {
    let mut words = command.split(' ');
    let (program, second) = (words.next()?, words.next()?);
    words.next()?;
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-_:".contains(c);
    let is_plain = second.starts_with(char::is_alphabetic) && second.chars().all(is_word);
    is_plain.then(|| format!("{program} {second} *"))
}

/// Checks whether a call changes a file with a built-in tool.
pub(crate) fn is_edit(question: &Question) -> bool {
    matches!(question.call.name.as_str(), "write" | EDIT)
}

/// Returns the name by which a call is approved.
fn tool(question: &Question) -> &str {
    if is_edit(question) {
        EDIT
    } else {
        &question.call.name
    }
}

/// Reads the approvals of all projects.
fn read(file: &Path) -> io::Result<BTreeMap<String, Vec<Approval>>> {
    let text = match fs::metadata(file) {
        Ok(metadata) if metadata.len() > MAX_FILE => {
            return Err(io::Error::other("it is too large"));
        }
        Ok(_) => fs::read_to_string(file)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error),
    };
    serde_json::from_str(&text).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {

    use plimsoll::ToolCall;
    use plimsoll::limits::CallKey;
    use plimsoll::model::CallId;
    use serde_json::json;

    use super::*;

    fn question(tool: &str, arguments: &Value) -> Question {
        Question {
            call: ToolCall {
                id: CallId("c".to_owned()),
                name: tool.to_owned(),
                arguments: arguments.to_string(),
                opaque: None,
            },
            asks_hook: false,
            asks_gate: true,
            key: CallKey::default(),
            is_protected: false,
        }
    }

    fn bash(command: &str) -> Question {
        question("bash", &json!({ "command": command }))
    }

    fn approvals(data: &Path, root: &Path) -> Approvals {
        Approvals::open(data, root)
    }

    #[test]
    fn a_command_is_remembered_for_its_project_and_for_nothing_more() {
        let (data, root, other) = (
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
        );
        let first = approvals(data.path(), root.path());
        let offers = first.offers(&bash("git diff  -U1"));
        let [always, pattern] = offers.as_slice() else {
            panic!("{offers:?}");
        };
        assert_eq!(always.label(), "`git diff -U1` in this project");
        assert_eq!(pattern.label(), "`git diff *` in this project");
        assert!(!first.allow(&bash("git diff -U1")));
        first.add(always);
        let commands = [
            ("git diff -U1", true, true),
            ("git  diff -U1", true, true),
            ("git diff --output=x", false, true),
            ("git diff", false, false),
            ("git -c a=b diff -U1", false, false),
            ("git diff -U1; rm -rf x", false, false),
            ("git diff $(rm -rf x)", false, false),
            ("git diff -U1 > x", false, false),
            ("sudo git diff -U1", false, false),
        ];
        let later = approvals(data.path(), root.path());
        for (command, allowed, _) in commands {
            assert_eq!(later.allow(&bash(command)), allowed, "{command}");
        }
        later.add(pattern);
        let last = approvals(data.path(), root.path());
        for (command, _, allowed) in commands {
            assert_eq!(last.allow(&bash(command)), allowed, "{command}");
        }
        let elsewhere = approvals(data.path(), other.path());
        assert!(!elsewhere.allow(&bash("git diff -U1")));
    }

    #[test]
    fn what_always_means_depends_on_the_call() {
        let (data, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let approvals = approvals(data.path(), root.path());
        let label = |question: &Question| {
            let offers = approvals.offers(question);
            offers.first().map(|always| always.label())
        };
        assert_eq!(
            label(&bash("ls -l")).as_deref(),
            Some("`ls -l` in this project")
        );
        assert_eq!(label(&bash("ls; rm x")), None);
        assert_eq!(label(&bash("rm *")), None);
        let edit = question("edit", &json!({"path": "a", "old": "b", "new": "c"}));
        assert_eq!(label(&edit).as_deref(), Some("edits in this session"));
        let protected = Question {
            is_protected: true,
            ..edit.clone()
        };
        assert_eq!(label(&protected), None);
        approvals.add(&approvals.offers(&edit)[0]);
        assert!(approvals.allow(&edit) && !approvals.allow(&protected));
        let search = question("github_search", &json!({"query": "x"}));
        assert_eq!(
            label(&search).as_deref(),
            Some("`github_search` in this project")
        );
        approvals.add(&approvals.offers(&search)[0]);
        assert!(approvals.allow(&question("github_search", &json!({"query": "y"}))));
    }

    #[test]
    fn a_damaged_file_allows_nothing_and_stays_as_it_is() {
        let (data, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = data.path().join(FILE);
        fs::write(&file, "{").unwrap();
        let approvals = approvals(data.path(), root.path());
        approvals.add(&approvals.offers(&bash("ls"))[0]);
        assert!(approvals.allow(&bash("ls")), "until the end");
        assert_eq!(fs::read_to_string(&file).unwrap(), "{");
    }
}
