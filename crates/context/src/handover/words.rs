//! The lists in `words/`, by which hosts, tools, results and sentences are known.

use std::sync::{LazyLock, OnceLock};

use aho_corasick::AhoCorasick;
use foldhash::{HashMap, HashSet};

use super::sentences::clip;

/// The maximum length of a text that `*` or `%` stands for, in bytes.
const FORM_MAX: usize = 2_000;

const FILES: [&str; 5] = [
    include_str!("words/commands.txt"),
    include_str!("words/cues.txt"),
    include_str!("words/hosts.txt"),
    include_str!("words/outcomes.txt"),
    include_str!("words/tools.txt"),
];

/// The lists by name. A list has one entry a line, or, if its heading ends with `|`, several, or, if it
/// ends with `" "`, several phrases that match as whole words. `\n` stands for the end of a line.
static LISTS: LazyLock<HashMap<&str, WordList>> = LazyLock::new(|| {
    let mut lists: HashMap<&str, WordList> = HashMap::default();
    let (mut name, mut form) = ("", "");
    let lines = FILES.iter().flat_map(|file| file.lines());
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with("; ")) {
        let heading = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'));
        if let Some(heading) = heading {
            (name, form) = heading.split_once(' ').unwrap_or((heading, ""));
            continue;
        }
        let list = &mut lists.entry(name).or_default().entries;
        match form {
            "" => list.push(line.replace("\\n", "\n")),
            "|" => list.extend(line.split('|').map(str::to_owned)),
            _ => list.extend(line.split('|').map(|phrase| format!(" {phrase} "))),
        }
    }
    lists
});

/// A list, its entries as a set, and a search for all of them at once.
#[derive(Default)]
struct WordList {
    entries: Vec<String>,
    set: OnceLock<HashSet<&'static str>>,
    search: OnceLock<Option<AhoCorasick>>,
}

/// Returns the entries of a list.
pub(crate) fn list(name: &str) -> impl Iterator<Item = &'static str> + use<> {
    let list = LISTS.get(name).into_iter();
    list.flat_map(|list| &list.entries).map(String::as_str)
}

/// Returns `true` if `word` is in a list.
pub(crate) fn is_in(name: &str, word: &str) -> bool {
    let Some(all) = LISTS.get(name) else {
        return false;
    };
    let set = all.set.get_or_init(|| list(name).collect());
    set.contains(word)
}

/// Returns `true` if `text` contains an entry of a list.
pub(crate) fn any_in(name: &str, text: &str) -> bool {
    let Some(list) = LISTS.get(name) else {
        return false;
    };
    let search = list
        .search
        .get_or_init(|| AhoCorasick::new(&list.entries).ok());
    search.as_ref().is_some_and(|search| search.is_match(text))
}

/// Returns `text` behind the entry of a list with which it begins.
pub(crate) fn behind<'t>(name: &str, text: &'t str) -> Option<&'t str> {
    list(name).find_map(|form| behind_form(form, text))
}

/// Returns a text up to the first entry of a list.
pub(crate) fn until<'t>(name: &str, text: &'t str) -> &'t str {
    let end = list(name).filter_map(|end| text.find(end)).min();
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// Returns `text` behind a form with which it begins: `*` stands for any text on the line, `%` for one
/// word, and `$` for the end of the text.
pub(crate) fn behind_form<'t>(form: &str, text: &'t str) -> Option<&'t str> {
    // Most texts differ from most forms in their first byte.
    let first = form.bytes().next().filter(|first| !b"*%$".contains(first));
    if first.is_some() && first != text.bytes().next() {
        return None;
    }
    let Some(at) = form.find(['*', '%', '$']) else {
        return text.strip_prefix(form);
    };
    let (before, rest) = form.split_at(at);
    let text = text.strip_prefix(before)?;
    if rest == "$" {
        return text.is_empty().then_some(text);
    }
    let is_end = |c: char| c == '\n' || c.is_whitespace() && rest.starts_with('%');
    let near = clip(text, FORM_MAX);
    let end = near.find(is_end).unwrap_or(near.len());
    let mut places = (0..=end).filter_map(|at| text.get(at..));
    places.find_map(|text| behind_form(rest.get(1..)?, text))
}
