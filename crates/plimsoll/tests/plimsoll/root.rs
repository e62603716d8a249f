//! The root of the facade stays small enough to be learnt: what few programs need is in a module.

/// Names at the root, modules included, at most.
const MAX_NAMES: usize = 60;

#[test]
fn the_root_has_few_names_and_each_is_chosen() {
    let text = include_str!("../../src/lib.rs");
    let lines = text.lines().map(str::trim);
    let code: String = lines.filter(|line| !line.starts_with("//")).collect();
    let items = code.split(';').filter_map(|item| {
        let (_, item) = item.split_once("pub ")?;
        item.strip_prefix("use ").or(item.strip_prefix("mod "))
    });
    let mut names = Vec::new();
    for item in items {
        let group = item.split_once('{').map_or(item, |(_, group)| group);
        let group = group.trim_end_matches('}').split(',').map(str::trim);
        names.extend(group.filter(|name| !name.is_empty()));
    }
    assert!(
        names.iter().all(|name| !name.ends_with('*')),
        "a glob at the root: {names:?}"
    );
    assert!(
        (30..=MAX_NAMES).contains(&names.len()),
        "{} names: {names:?}",
        names.len()
    );
}
