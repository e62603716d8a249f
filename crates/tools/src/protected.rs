//! Files that `write` and `edit` change only with approval, even if everything else is allowed.
//!
//! These are the files that Plimsoll itself [loads](crate::project_files), and those in
//! `data/protected.txt`, which programs run, or agents read as instructions, without a decision of the
//! user: opening the directory, entering it or committing in it is enough. Files that a user runs on
//! purpose, such as a Makefile, a script or a test, are not protected.

use std::path::{Path, PathBuf};

use crate::project_files::is_loaded;

/// The protected names, one on each line. A directory ends with `/`.
const NAMES: &str = include_str!("../data/protected.txt");

/// Suffixes of protected file names.
const ENDINGS: [&str; 1] = [".code-workspace"];

/// Checks whether a file is changed only with approval. `others` are additional files and directories
/// of this run, such as its configuration.
pub(crate) fn is_protected(relative: &str, absolute: &Path, others: &[PathBuf]) -> bool {
    // Some file systems ignore case.
    let relative = relative.to_lowercase();
    let file = relative.rsplit('/').next().unwrap_or_default();
    is_listed(file)
        || ENDINGS.iter().any(|ending| file.ends_with(ending))
        || relative
            .split('/')
            .any(|name| is_listed(&format!("{name}/")) || is_loaded(name))
        || relative.contains(".github/instructions")
        || others.iter().any(|other| absolute.starts_with(other))
}

fn is_listed(name: &str) -> bool {
    let is_name = !name.is_empty() && !name.starts_with('#');
    is_name && NAMES.lines().any(|listed| listed == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_run_or_obeyed_unasked_is_protected() {
        let others = [PathBuf::from("/w/prompts"), PathBuf::from("/w/guard.sh")];
        for (path, protected) in [
            ("plimsoll.toml", true),
            ("deep/in/AGENTS.md", true),
            ("Claude.md", true),
            (".plimsoll/skills/x/SKILL.md", true),
            (".agents/skills/x/run.sh", true),
            ("docs/skill.md", true),
            (".plimsoll/prompts/go.md", true),
            (".claude/agents/helper.md", true),
            (".kiro/steering/x.md", true),
            (".github/instructions/x.md", true),
            (".mise/config.toml", true),
            (".netrc", true),
            (".git/hooks/pre-commit", true),
            (".git", true),
            ("vendor/x/.GIT/config", true),
            (".cargo/config.toml", true),
            (".vscode/tasks.json", true),
            (".envrc", true),
            ("my.code-workspace", true),
            ("prompts/system.md", true),
            ("guard.sh", true),
            ("guard.sh.txt", false),
            ("Makefile", false),
            ("package.json", false),
            ("src/main.rs", false),
            (".gitignore", false),
            (".github/workflows/ci.yml", false),
            ("agents.md.txt", false),
            ("# files", false),
            ("/", false),
            (".", false),
        ] {
            let absolute = Path::new("/w").join(path);
            assert_eq!(is_protected(path, &absolute, &others), protected, "{path}");
        }
    }
}
