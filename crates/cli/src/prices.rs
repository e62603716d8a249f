//! What the model of a run costs: what we know, and the user's own `prices.toml`, which knows better.

use std::fs::File;
use std::io::{ErrorKind, Read};

use plimsoll::PriceSheet;
use plimsoll::providers::{ModelRef, PriceBook, parse_prices};

use crate::exit::Stop;
use crate::paths;

/// A user's own prices, beside other settings.
const FILE: &str = "prices.toml";
/// Every model there is takes less than a tenth of it.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// What a model costs, `first` of all by these prices; `None` where nobody knows.
pub(crate) fn sheet(model: &ModelRef, first: &PriceBook) -> Result<Option<PriceSheet>, Stop> {
    let path = paths::config()?.join(FILE);
    let at = |what: &dyn std::fmt::Display| Stop::usage(format!("{}: {what}", path.display()));
    let mut text = String::new();
    match File::open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(at(&error)),
        Ok(file) => {
            let mut bounded = file.take(MAX_FILE + 1);
            bounded
                .read_to_string(&mut text)
                .map_err(|error| at(&error))?;
        }
    }
    if text.len() as u64 > MAX_FILE {
        return Err(at(&format!(
            "larger than {MAX_FILE} bytes; keep only the models that you use"
        )));
    }
    let mine = parse_prices(&text).map_err(|error| at(&error))?;
    let book = PriceBook::built_in().clone().overlay(mine);
    Ok(book.overlay(first.clone()).sheet(model))
}
