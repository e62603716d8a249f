//! Links in Markdown that stay inside the repository lead somewhere: to a file or folder of
//! it, and to a heading where they name one. Links to the web are not followed.

use super::fault::Fault;
use super::markdown;
use super::tree::{File, Tree};

/// Links that lead nowhere.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (file, text) in tree.markdown() {
        for (line, link) in markdown::links(text) {
            if let Some(why) = broken(tree, file, &link) {
                faults.push(Fault::at(&file.path, line, format!("{link}: {why}")));
            }
        }
    }
    faults
}

fn broken(tree: &Tree, from: &File, link: &str) -> Option<&'static str> {
    let (path, heading) = match link.split_once('#') {
        Some((path, heading)) => (path, Some(heading)),
        None => (link, None),
    };
    if path.contains("://") || path.starts_with("mailto:") {
        return None;
    }
    let target = if path.is_empty() {
        from.path.clone()
    } else {
        match resolve(&from.path, path) {
            Some(target) => target,
            None => return Some("leads out of the repository"),
        }
    };
    let Some(file) = tree.file(&target) else {
        let found = tree.has_folder(&target);
        return (!found).then_some("there is no such file or folder");
    };
    let (heading, text) = heading.zip(file.text_if(".md"))?;
    let found = markdown::anchors(text)
        .iter()
        .any(|anchor| anchor == heading);
    (!found).then_some("that file has no such heading")
}

/// The path from the root, or none where `..` climbs out of it.
fn resolve(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    if link.starts_with('/') {
        parts.clear();
    }
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_that_lead_nowhere_are_faults() {
        let table = [
            ("README.md", None),
            ("docs/a.md#second-part", None),
            ("/docs/a.md", None),
            ("crates/", None),
            ("https://example.com/none.md", None),
            ("mailto:a@example.com", None),
            ("#read-me", None),
            ("#none", Some("that file has no such heading")),
            ("docs/a.md#none", Some("that file has no such heading")),
            ("docs/none.md", Some("there is no such file or folder")),
            ("../shared/design.md", Some("leads out of the repository")),
        ];
        for (link, expected) in table {
            let readme = format!("# Read me\n\n[x]({link})\n");
            let tree = Tree::of(&[
                ("README.md", readme.as_str()),
                (
                    "docs/a.md",
                    "# First\n\n## Second part\n\n[up](../README.md)\n",
                ),
                ("crates/a/src/lib.rs", ""),
            ]);
            let faults = check(&tree);
            let said: Vec<_> = faults.iter().map(ToString::to_string).collect();
            let wanted = expected.map(|why| format!("README.md:3: {link}: {why}"));
            assert_eq!(said, wanted.into_iter().collect::<Vec<_>>());
        }
    }
}
