//! An in-memory index of the words of archived items.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

use crate::archive::search::{MatchedTerm, spaced_words};

/// Maximum number of list lookups in one search. Normal searches need far fewer.
const LOOKUPS: usize = 200_000;

/// For each word, the sorted numbers of the items that contain it.
#[derive(Debug, Default)]
pub(super) struct WordIndex(BTreeMap<Box<str>, VecDeque<u64>>);

impl WordIndex {
    /// Adds an item. Its number must be greater than those of all earlier items.
    pub(super) fn insert(&mut self, number: u64, text: &str) {
        for word in words(&spaced_words(text)) {
            match self.0.get_mut(word) {
                Some(numbers) => numbers.push_back(number),
                None => {
                    self.0.insert(word.into(), VecDeque::from([number]));
                }
            }
        }
    }

    /// Removes an item. `text` must be the text that it was added with.
    pub(super) fn remove(&mut self, number: u64, text: &str) {
        for word in words(&spaced_words(text)) {
            let Some(numbers) = self.0.get_mut(word) else {
                continue;
            };
            if let Ok(at) = numbers.binary_search(&number) {
                numbers.remove(at);
            }
            if numbers.is_empty() {
                self.0.remove(word);
            }
        }
    }

    /// Returns the words that begin with `prefix`, in byte order.
    pub(super) fn beginning_with<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let words = self.0.range::<str, _>(from).map(|(word, _)| &**word);
        words.take_while(move |word| word.starts_with(prefix))
    }

    /// Returns the newest items that have the words of all terms and that `accepts` approves,
    /// newest first. Ignores the order of words within a term.
    pub(super) fn newest(
        &self,
        terms: &[MatchedTerm<'_>],
        most: usize,
        mut accepts: impl FnMut(u64) -> bool,
    ) -> Vec<u64> {
        // An item must be in at least one list of each group.
        let mut groups: Vec<Vec<&VecDeque<u64>>> = Vec::new();
        for MatchedTerm { term, last } in terms {
            let before = term.words.iter().rev().skip(1);
            groups.extend(before.map(|word| self.lists([word])));
            groups.push(self.lists(last));
        }
        let lists: usize = groups.iter().map(Vec::len).sum();
        let mut found = Vec::new();
        // Only numbers below `end` are left to check.
        let mut end = u64::MAX;
        for _ in 0..LOOKUPS / lists.max(1) {
            let of_group = |lists: &Vec<&VecDeque<u64>>| {
                lists.iter().filter_map(|list| highest(list, end)).max()
            };
            let candidates: Option<Vec<u64>> = groups.iter().map(of_group).collect();
            let candidates = candidates.unwrap_or_default();
            let (Some(&low), Some(&high)) = (candidates.iter().min(), candidates.iter().max())
            else {
                break;
            };
            if low < high {
                // Higher numbers are missing in at least one group.
                end = low + 1;
                continue;
            }
            end = low;
            if accepts(low) {
                found.push(low);
                if found.len() == most {
                    break;
                }
            }
        }
        found
    }

    fn lists<'a>(&self, words: impl IntoIterator<Item = &'a String>) -> Vec<&VecDeque<u64>> {
        let lists = words
            .into_iter()
            .filter_map(|word| self.0.get(word.as_str()));
        lists.collect()
    }
}

/// Returns the highest number below `end`. The numbers must be sorted.
fn highest(numbers: &VecDeque<u64>, end: u64) -> Option<u64> {
    let at = numbers.partition_point(|number| *number < end);
    at.checked_sub(1).and_then(|at| numbers.get(at)).copied()
}

/// Returns the distinct words of a text.
fn words(spaced: &str) -> BTreeSet<&str> {
    spaced.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::search::SearchQuery;

    fn newest(index: &WordIndex, query: &str, most: usize) -> Vec<u64> {
        let query = SearchQuery::parse(query).unwrap();
        let wanted = |term| {
            let prefix: &crate::archive::search::Term = term;
            let last = index.beginning_with(prefix.words.last().unwrap());
            MatchedTerm {
                term,
                last: last.map(str::to_owned).collect(),
            }
        };
        let terms: Vec<MatchedTerm<'_>> = query.terms().iter().map(wanted).collect();
        index.newest(&terms, most, |number| number != 3)
    }

    #[test]
    fn what_has_all_words_is_found_newest_first() {
        let mut index = WordIndex::default();
        for number in 0..1_000 {
            let even = if number % 2 == 0 { "even" } else { "odd" };
            index.insert(
                number,
                &format!("{even} number{number} third{}", number % 3),
            );
        }
        assert_eq!(newest(&index, "even", 3), [998, 996, 994]);
        assert_eq!(newest(&index, "even third0", 2), [996, 990]);
        assert_eq!(
            newest(&index, "number99", 20),
            [999, 998, 997, 996, 995, 994, 993, 992, 991, 990, 99]
        );
        assert_eq!(newest(&index, "even odd", 2), Vec::<u64>::new());
        assert_eq!(newest(&index, "nothing", 2), Vec::<u64>::new());
        assert_eq!(newest(&index, "number3 odd", 1), [399], "3 is not accepted");
        index.remove(998, "even number998 third2");
        assert_eq!(newest(&index, "even", 1), [996]);
        assert_eq!(index.beginning_with("number99").count(), 10);
        assert!(!index.0.contains_key("number998"));
    }
}
