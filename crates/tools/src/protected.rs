//! Files that `write` and `edit` change only with approval, even if everything else is allowed.
//!
//! These are the files that Plimsoll itself [loads](crate::project_files), and the files that programs run, or agents read as instructions, without a decision of the
//! user: opening the directory, entering it or committing in it is enough. Files that a user runs on
//! purpose, such as a Makefile, a script or a test, are not protected.

use std::path::{Path, PathBuf};

use crate::project_files::is_loaded;

/// Directories whose whole content is protected, at any depth.
const FOLDERS: &[&str] = &[
    // git and its hooks
    ".git",
    ".githooks",
    ".husky",
    // editors, which run tasks
    ".vscode",
    ".idea",
    ".zed",
    ".devcontainer",
    // agents
    ".amazonq",
    ".codex",
    ".continue",
    ".cursor",
    ".gemini",
    ".junie",
    ".kilocode",
    ".kiro",
    ".opencode",
    ".qwen",
    ".roo",
    ".trae",
    ".windsurf",
    ".clinerules",
    // programs with a configuration in the directory
    ".cargo",
    ".config",
    ".direnv",
    ".mise",
    ".ssh",
    ".yarn",
];

/// Files that are protected, at any depth.
const FILES: &[&str] = &[
    // agents
    "agents.override.md",
    "claude.local.md",
    "gemini.md",
    "qwen.md",
    "copilot-instructions.md",
    ".aider.conf.yml",
    ".claude.json",
    ".crush.json",
    ".cursorrules",
    ".goosehints",
    ".mcp.json",
    ".roorules",
    ".windsurfrules",
    "opencode.json",
    "opencode.jsonc",
    "warp.md",
    // run when the directory is entered
    ".envrc",
    ".mise.local.toml",
    ".mise.toml",
    "mise.local.toml",
    "mise.toml",
    // git
    ".gitconfig",
    ".gitmodules",
    ".lefthook.yml",
    "lefthook-local.yml",
    "lefthook.yml",
    "lefthook.yaml",
    ".pre-commit-config.yaml",
    ".pre-commit-config.yml",
    // npm, yarn and pnpm, which run programs named in these files
    ".npmrc",
    ".pnp.cjs",
    ".pnpmfile.cjs",
    ".yarnrc",
    ".yarnrc.yml",
    // shells and other programs, in case the root is a home directory
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".cshrc",
    ".curlrc",
    ".devcontainer.json",
    ".dir-locals.el",
    ".exrc",
    ".gdbinit",
    ".inputrc",
    ".lldbinit",
    ".login",
    ".netrc",
    ".nvim.lua",
    ".profile",
    ".ripgreprc",
    ".tmux.conf",
    ".vimrc",
    ".zlogin",
    ".zprofile",
    ".zshenv",
    ".zshrc",
];

/// Suffixes of protected file names.
const ENDINGS: [&str; 1] = [".code-workspace"];

/// Checks whether a file is changed only with approval. `others` are additional files and directories
/// of this run, such as its configuration.
pub(crate) fn is_protected(relative: &str, absolute: &Path, others: &[PathBuf]) -> bool {
    // Some file systems ignore case.
    let relative = relative.to_lowercase();
    let file = relative.rsplit('/').next().unwrap_or_default();
    FILES.contains(&file)
        || ENDINGS.iter().any(|ending| file.ends_with(ending))
        || relative
            .split('/')
            .any(|name| FOLDERS.contains(&name) || is_loaded(name))
        || relative.contains(".github/instructions")
        || others.iter().any(|other| absolute.starts_with(other))
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
            (".", false),
        ] {
            let absolute = Path::new("/w").join(path);
            assert_eq!(is_protected(path, &absolute, &others), protected, "{path}");
        }
    }
}
