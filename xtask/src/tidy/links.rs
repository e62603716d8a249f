//! Checks that links within the repository lead to an existing file or folder, and to an existing
//! heading if they name one. Links to the web are not followed.

use super::fault::Fault;
use super::markdown;
use super::tree::{File, Tree};

/// The table of contents of the site that is built from `docs/`.
const CONTENTS: &str = "docs/SUMMARY.md";

/// Returns broken links, and pages that are missing from the site.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = outside(tree);
    for (file, text) in tree.markdown() {
        for (line, link) in markdown::links(text) {
            if let Some(why) = broken(tree, file, &link) {
                faults.push(Fault::at(&file.path, line, format!("{link}: {why}")));
            }
        }
    }
    faults
}

/// Returns pages of `docs/` that are missing from the table of contents, and their links to files
/// outside the folder, which the site does not have.
fn outside(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    let contents = tree.file(CONTENTS).and_then(|file| file.text_if(".md"));
    let links = contents.map(markdown::links).unwrap_or_default();
    let listed: Vec<String> = links
        .into_iter()
        .filter_map(|(_, link)| resolve(CONTENTS, &link))
        .collect();
    for (file, text) in tree.markdown() {
        if !file.path.starts_with("docs/") || file.path == CONTENTS {
            continue;
        }
        if !listed.contains(&file.path) {
            let text = format!("the page is not in {CONTENTS}");
            faults.push(Fault::of(&file.path, text));
        }
        for (line, link) in markdown::links(text) {
            let path = link.split('#').next().unwrap_or_default();
            let is_page = !path.is_empty() && !path.contains("://") && !path.starts_with("mailto:");
            let target = resolve(&file.path, path);
            if is_page && target.is_some_and(|target| !target.starts_with("docs/")) {
                let text = format!("{link}: the site has only docs/; give the whole address");
                faults.push(Fault::at(&file.path, line, text));
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

/// Returns the path from the root. `None` if `..` leads out of it.
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
                ("docs/a.md", "# First\n\n## Second part\n"),
                ("docs/SUMMARY.md", "# Summary\n\n- [a](a.md)\n"),
                ("crates/a/src/lib.rs", ""),
            ]);
            let faults = check(&tree);
            let said: Vec<_> = faults.iter().map(ToString::to_string).collect();
            let wanted = expected.map(|why| format!("README.md:3: {link}: {why}"));
            assert_eq!(said, wanted.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_site_has_every_page_and_what_they_link_to() {
        let tree = Tree::of(&[
            ("README.md", "# Read me\n\n[x](docs/a.md)\n"),
            ("docs/SUMMARY.md", "# Summary\n\n- [a](a.md)\n"),
            ("docs/a.md", "# A\n\n[up](../README.md)\n"),
            ("docs/b.md", "# B\n"),
        ]);
        let said: Vec<_> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "docs/a.md:3: ../README.md: the site has only docs/; give the whole address",
                "docs/b.md: the page is not in docs/SUMMARY.md",
            ]
        );
    }
}
