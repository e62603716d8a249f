//! Prepares the vocabularies for counting: the tokens in the order of their ranks, which are read in a few
//! milliseconds where unpacking and indexing them as the tokeniser does takes a tenth of a second. Also the
//! classes of characters by which a text is split before it is merged into tokens.
// It writes files, and a panic is how a build script fails.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use regex_syntax::hir::{Class, HirKind};
use tiktoken::CoreBpe;

/// Classes in the order of their numbers; 0 is everything else. `src/bpe/split.rs` knows them by these.
const CLASSES: [&str; 6] = [
    r"[\p{Lu}\p{Lt}]",
    r"\p{Ll}",
    r"[\p{Lm}\p{Lo}]",
    r"\p{M}",
    r"\p{N}",
    r"\s",
];
/// Characters of one block of the table.
const BLOCK: usize = 256;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    write_vocabulary(
        &folder.join("o200k.tokens"),
        tiktoken::encoding::o200k_base(),
    );
    write_vocabulary(
        &folder.join("cl100k.tokens"),
        tiktoken::encoding::cl100k_base(),
    );
    write_classes(&folder);
}

/// The number of tokens as four bytes, the length of each as one byte, then their bytes.
fn write_vocabulary(path: &Path, encoding: CoreBpe) {
    let count = u32::try_from(encoding.vocab_size()).expect("a rank is a u32");
    let (mut lengths, mut bytes) = (Vec::new(), Vec::new());
    for rank in 0..count {
        let token = encoding.decode(&[rank]);
        assert!(!token.is_empty(), "rank {rank} has no token");
        lengths.push(u8::try_from(token.len()).expect("a token is at most 255 bytes"));
        bytes.extend(token);
    }
    let file = [&count.to_le_bytes()[..], &lengths, &bytes].concat();
    std::fs::write(path, file).expect("OUT_DIR can be written");
}

/// A number of a block for each 256 characters, and the blocks: a class for each character.
fn write_classes(folder: &Path) {
    let mut of_char = vec![0_u8; 0x11_0000];
    for (class, pattern) in (1_u8..).zip(CLASSES) {
        let parsed = regex_syntax::parse(pattern).expect("a pattern of ours");
        let HirKind::Class(Class::Unicode(ranges)) = parsed.kind() else {
            panic!("{pattern} is no class");
        };
        for range in ranges.ranges() {
            for c in range.start()..=range.end() {
                of_char[c as usize] = class;
            }
        }
    }
    let mut known: HashMap<&[u8], u8> = HashMap::new();
    let (mut numbers, mut blocks) = (Vec::new(), Vec::new());
    for block in of_char.chunks(BLOCK) {
        let next = u8::try_from(known.len()).expect("at most 256 kinds of blocks");
        let number = *known.entry(block).or_insert_with(|| {
            blocks.extend_from_slice(block);
            next
        });
        numbers.push(number);
    }
    std::fs::write(folder.join("blocks.classes"), [numbers, blocks].concat())
        .expect("OUT_DIR can be written");
}
