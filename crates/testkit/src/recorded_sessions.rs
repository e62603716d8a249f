//! The recorded sessions beside the repository, as Chat Completions requests.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use flate2::read::GzDecoder;

/// Returns each session with the name of its source, in a fixed order, or `None` with a message if there
/// are no recordings.
pub fn sessions() -> Option<impl Iterator<Item = (String, String)>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/normalized");
    let Ok(entries) = std::fs::read_dir(folder) else {
        println!("skipped: no ../shared/data/normalized");
        return None;
    };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    Some(paths.into_iter().flat_map(|path| {
        let source = path.file_name().unwrap().to_string_lossy().into_owned();
        let lines = BufReader::new(GzDecoder::new(File::open(path).unwrap())).lines();
        lines.map(move |line| (source.clone(), line.unwrap()))
    }))
}
