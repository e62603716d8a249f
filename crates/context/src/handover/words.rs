//! The lists in `words/`, by which hosts, tools, results and sentences are known.

use std::sync::LazyLock;

use foldhash::HashMap;

const FILES: [&str; 4] = [
    include_str!("words/cues.txt"),
    include_str!("words/hosts.txt"),
    include_str!("words/outcomes.txt"),
    include_str!("words/tools.txt"),
];

/// The lists by name. A list has one entry a line, or, if its heading ends with `|`, several.
static LISTS: LazyLock<HashMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let mut lists: HashMap<&str, Vec<&str>> = HashMap::default();
    let (mut name, mut has_several) = ("", false);
    let lines = FILES.iter().flat_map(|file| file.lines());
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with("; ")) {
        let heading = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'));
        if let Some(heading) = heading {
            has_several = heading.ends_with('|');
            name = heading.trim_end_matches([' ', '|']);
        } else if has_several {
            lists.entry(name).or_default().extend(line.split('|'));
        } else {
            lists.entry(name).or_default().push(line);
        }
    }
    lists
});

/// Returns the entries of a list.
pub(crate) fn list(name: &str) -> impl Iterator<Item = &'static str> + use<> {
    LISTS.get(name).into_iter().flatten().copied()
}

/// Returns `true` if `word` is in a list.
pub(crate) fn is_in(name: &str, word: &str) -> bool {
    list(name).any(|entry| entry == word)
}

/// Returns `true` if `text` contains an entry of a list.
pub(crate) fn any_in(name: &str, text: &str) -> bool {
    list(name).any(|entry| text.contains(entry))
}

/// Returns `text` behind the entry of a list with which it begins.
pub(crate) fn behind<'t>(name: &str, text: &'t str) -> Option<&'t str> {
    list(name).find_map(|entry| text.strip_prefix(entry))
}
