//! Tests the translation of other systems' configurations, and the notes on untranslated settings.

use super::rows::{ImportRow, ROWS};
use super::*;
use crate::config::tests::{good, with_cases};

/// Returns the translation, its notes, or the error. The result causes no warnings.
fn report(text: &str) -> String {
    let import = match Import::of(&format!("{text}\n")) {
        Ok(import) => import,
        Err(error) => return error.to_string(),
    };
    check(&import);
    let mut report = import.toml;
    for setting in import.settings.iter().filter(|it| !it.became.is_empty()) {
        if let Some(note) = &setting.note {
            report.push_str(&format!("{}: {note}\n", setting.name));
        }
    }
    report
}

fn check(import: &Import) {
    let config = good(&import.toml);
    assert_eq!(config.warnings(), [], "{}", import.toml);
    for name in config.agents() {
        assert_eq!(
            config.agent(name).unwrap().warnings(),
            [],
            "{}",
            import.toml
        );
    }
}

/// Each case of `cases/imports.txt` is a title, a file of another system and its translation.
#[test]
fn files_of_other_systems_are_translated() {
    with_cases("imports.txt", |text| {
        let report = report(text);
        assert!(!report.contains("hush"), "{report}");
        report
    });
}

#[test]
fn what_cannot_be_imported_gets_one_sentence() {
    let deep_json = format!("{}1{}", "{\"limits\":".repeat(5_000), "}".repeat(5_000));
    let deep_yaml = "- ".repeat(5_000) + "x";
    for (text, part) in [
        (" \n", "line 1: it has no setting of Heartbit or phi-core"),
        ("\0\x01\u{fffd}ELF", "it is not TOML, YAML or JSON"),
        (deep_json.as_str(), "it is not TOML, YAML or JSON"),
        (deep_yaml.as_str(), "it is not TOML, YAML or JSON"),
    ] {
        let error = Import::of(text).unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains('\n'), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        let error = Import::read(&path).unwrap_err().to_string();
        error.replace(&format!("{}/", folder.path().display()), "")
    };
    assert!(read("a.toml", b"[provider]\nname = ").starts_with("a.toml:2:8: this is no TOML"));
    assert!(read("a.yaml", b"a: [1\nb: }").starts_with("a.yaml:1:1: this is no YAML: "));
    assert!(read("a.json", b"{").starts_with("a.json:1:1: this is no JSON: "));
    assert!(read("a.bin", &[0xff, 0xfe, 0x80]).contains("a.bin cannot be read: it is not text"));
    assert!(read("a.json", &vec![b' '; 50_000_000]).contains("larger than 1 MiB"));
}

/// The conversions of the parts of a model. Several settings of the other system make one of them.
const OF_MODELS: [&str; 6] = ["provider", "api", "model", "base_url", "key", "price"];

/// Returns the rows that are settings.
fn settings() -> impl Iterator<Item = (&'static str, &'static ImportRow)> {
    let rows = ROWS.settings.iter().map(|(path, row)| (path.as_str(), row));
    rows.filter(|(_, row)| !["each", "as"].contains(&row.how.as_str()))
}

/// Every row produces a text that Plimsoll's parser accepts, whatever the value is.
#[test]
fn every_row_becomes_something_that_is_read() {
    let values = [
        "3",
        "20000",
        "0.5",
        "true",
        "\"low\"",
        "\"parallel\"",
        "\"User\"",
        "\"Auto\"",
        "\"TokenBudget\"",
        "\"sliding_window\"",
        "[\"read\"]",
        "[{ tool = \"x\", action = \"deny\" }]",
    ];
    for (path, row) in settings() {
        let path = match path.strip_prefix("agents.") {
            Some("name" | "id") => continue,
            Some(path) => format!("[[agent.instances]]\n{path}"),
            None => path.to_owned(),
        };
        let mut became = false;
        for value in values {
            let text = format!("{path} = {value}\n");
            if let Ok(import) = Import::of(&text) {
                check(&import);
                if !import.settings.last().unwrap().became.is_empty() {
                    became = true;
                    break;
                }
            }
        }
        let is_alone = !(OF_MODELS.contains(&row.how.as_str()) || row.how == "size");
        assert!(became || row.how == "-" || !is_alone, "{path}");
    }
}

#[test]
fn every_row_names_a_setting_of_ours() {
    assert!(settings().count() > 120);
    for (path, row) in settings() {
        let implied = row.implied.keys().map(String::as_str);
        let other = row.how == "-" || row.ours.contains("PROVIDER");
        for name in [row.ours.as_str()]
            .into_iter()
            .chain(implied)
            .filter(|_| !other)
        {
            assert!(crate::config::key(name).is_some(), "{path} is `{name}`");
        }
        assert!(!row.ours.is_empty(), "{path}");
    }
}
