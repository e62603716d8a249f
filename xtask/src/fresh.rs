//! `cargo xtask fresh`: clones the last commit into an empty folder and follows the README's
//! instructions for newcomers there. A check before a release, too slow for every change.

use std::path::{Path, PathBuf};
use std::time::Instant;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};

use crate::command::Job;
use crate::error::Error;

/// Whether to use the existing caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caches {
    /// The existing caches: a model that is already here is not fetched again.
    Kept,
    /// Empty caches: everything is fetched, as on a new machine.
    Empty,
}

/// Variables for the directories of programs, and the folders that replace them.
const HOMES: [(&str, &str); 3] = [
    ("XDG_CACHE_HOME", "cache"),
    ("XDG_DATA_HOME", "data"),
    ("XDG_CONFIG_HOME", "config"),
];

/// Runs the README's first `sh` block in a fresh clone. The clone is removed on success, and kept
/// and printed on failure.
pub(crate) fn run(root: &Path, caches: Caches) -> Result<(), Error> {
    let place = place()?;
    println!("cloning into {}", place.display());
    let followed = follow(root, &place, caches);
    if followed.is_ok() {
        std::fs::remove_dir_all(&place).map_err(Error::file(&place))?;
    } else {
        println!("the clone is kept in {}", place.display());
    }
    followed
}

fn follow(root: &Path, place: &Path, caches: Caches) -> Result<(), Error> {
    Job::new("git", root)
        .args(["clone", "--quiet", "--no-local", "."])
        .args([place])
        .run()?;
    let readme = place.join("README.md");
    let text = std::fs::read_to_string(&readme).map_err(Error::file(&readme))?;
    let commands = commands(&text);
    if commands.is_empty() {
        return Err(Error::Unreadable {
            what: "README.md".to_owned(),
            why: "it has no ```sh block with commands in it".to_owned(),
        });
    }
    for command in &commands {
        if command.starts_with("git clone ") || command.starts_with("cd ") {
            println!("{command}: done already");
            continue;
        }
        let start = Instant::now();
        let mut job = Job::new("sh", place)
            .args(["-ec", command])
            .without("CARGO_TARGET_DIR");
        if caches == Caches::Empty {
            for (name, folder) in HOMES {
                job = job.env(name, place.join("target/home").join(folder));
            }
        }
        job.run()?;
        println!("took {:.1} s", start.elapsed().as_secs_f64());
    }
    println!(
        "the README's {} command(s) work in a fresh clone",
        commands.len()
    );
    Ok(())
}

/// Creates a new, empty folder. Fails if it already exists.
fn place() -> Result<PathBuf, Error> {
    let name = format!("plimsoll-fresh-{}", std::process::id());
    let place = std::env::temp_dir().join(name);
    std::fs::create_dir(&place).map_err(Error::file(&place))?;
    Ok(place)
}

/// Returns the commands of the first `sh` block, one per line. A line that ends with a backslash is
/// continued. Comments and empty lines are skipped.
pub(crate) fn commands(readme: &str) -> Vec<String> {
    let mut block = String::new();
    let mut inside = false;
    for event in Parser::new(readme) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                inside = info.split([' ', ',']).next() == Some("sh");
            }
            Event::Text(text) if inside => block.push_str(&text),
            Event::End(_) if inside => break,
            _ => {}
        }
    }
    let mut commands: Vec<String> = Vec::new();
    let mut open = false;
    for line in block.lines() {
        let line = line.trim();
        let (part, goes_on) = match line.strip_suffix('\\') {
            Some(part) => (part.trim_end(), true),
            None => (line, false),
        };
        match commands.last_mut() {
            Some(last) if open => {
                last.push(' ');
                last.push_str(part);
            }
            _ if part.is_empty() || part.starts_with('#') => {}
            _ => commands.push(part.to_owned()),
        }
        open = goes_on;
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_shell_block_is_read_line_by_line() {
        let readme = "\
# Plimsoll

```toml
not = \"a command\"
```

```sh
# builds everything
cargo run -- \\
    run \"count the words\"

cargo xtask test
```

```sh
later
```
";
        assert_eq!(
            commands(readme),
            ["cargo run -- run \"count the words\"", "cargo xtask test"]
        );
    }

    #[test]
    fn a_readme_without_commands_has_none() {
        assert!(commands("# Nothing\n\n```rust\nfn main() {}\n```\n").is_empty());
    }
}
