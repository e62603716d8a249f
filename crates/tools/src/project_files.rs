//! The names of the files that Plimsoll itself loads from a project: `is_loaded` protects them,
//! and whoever loads a file uses these names.

use std::io::{self, Error};
use std::path::Path;

use plimsoll_context::Bytes;

use crate::saved_files;

/// The name of the configuration file.
pub const CONFIG_FILE: &str = "plimsoll.toml";
/// The names of instruction files. In each folder, the first existing one is used.
pub const INSTRUCTION_FILES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// Plimsoll's own folder in a project, with skills, agents and prompts.
pub const PLIMSOLL_FOLDER: &str = ".plimsoll";
/// Folders of other programs with skills.
pub const SKILL_FOLDERS: [&str; 2] = [".agents", CLAUDE_FOLDER];
/// Folders of other programs with agents.
pub const AGENT_FOLDERS: [&str; 1] = [CLAUDE_FOLDER];
/// The file that makes a folder a skill.
pub const SKILL_FILE: &str = "SKILL.md";
/// Maximum size of a file that Plimsoll loads from a project.
pub const MAX_PROJECT_FILE: Bytes = Bytes(64 * 1024);

const CLAUDE_FOLDER: &str = ".claude";

/// Checks whether Plimsoll loads a file or folder of this name. Case is ignored, as by some file
/// systems.
pub(crate) fn is_loaded(name: &str) -> bool {
    let files = [CONFIG_FILE, SKILL_FILE, PLIMSOLL_FOLDER];
    let names = files.iter().chain(&INSTRUCTION_FILES);
    let mut names = names.chain(&SKILL_FOLDERS).chain(&AGENT_FOLDERS);
    names.any(|loaded| loaded.eq_ignore_ascii_case(name))
}

/// Reads a file of a project. A link is followed if it leads to a file of the project.
///
/// # Errors
/// If the file is not a regular file below `top`, is larger than [`MAX_PROJECT_FILE`], or is not
/// UTF-8. [`io::ErrorKind::NotFound`] if there is none.
pub fn read_project_file(top: &Path, path: &Path) -> io::Result<String> {
    let top = top.canonicalize()?;
    let path = path.canonicalize()?;
    let relative = path
        .strip_prefix(&top)
        .map_err(|_| Error::other("it is a link out of the project"))?;
    let bytes = saved_files::read(&top, relative, MAX_PROJECT_FILE)?;
    String::from_utf8(bytes).map_err(|_| Error::other("it is not UTF-8 text"))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_a_small_regular_file_of_the_project_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().join("project");
        fs::create_dir(&top).unwrap();
        fs::write(folder.path().join("secret"), "hush").unwrap();
        fs::write(top.join("AGENTS.md"), "Be kind.").unwrap();
        fs::write(top.join("large"), vec![b'x'; 64 * 1024 + 1]).unwrap();
        fs::write(top.join("binary"), [0xff]).unwrap();
        symlink("AGENTS.md", top.join("CLAUDE.md")).unwrap();
        symlink("../secret", top.join("out")).unwrap();
        symlink("/proc/self/environ", top.join("environ")).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(top.join("fifo"))
            .status();
        assert!(made.unwrap().success());
        let read = |name: &str| {
            read_project_file(&top, &top.join(name)).map_err(|error| error.to_string())
        };
        for (name, part) in [
            ("AGENTS.md", Ok("Be kind.")),
            ("CLAUDE.md", Ok("Be kind.")),
            ("out", Err("a link out of the project")),
            ("environ", Err("a link out of the project")),
            ("fifo", Err("not a regular file")),
            (".", Err("not a regular file")),
            ("large", Err("larger than 64 KiB")),
            ("binary", Err("not UTF-8")),
        ] {
            match (read(name), part) {
                (Ok(text), Ok(expected)) => assert_eq!(text, expected, "{name}"),
                (Err(error), Err(part)) => assert!(error.contains(part), "{name}: {error}"),
                (got, _) => panic!("{name}: {got:?}"),
            }
        }
    }
}
