//! The files in `data/` are what the published tokenisers and Unicode say: the tokens of an encoding in the
//! order of their ranks, packed by zlib, which are read in a few milliseconds where unpacking and indexing them as the
//! tokeniser does takes a tenth of a second, and the classes of characters by which a text is split.
//! `PLIMSOLL_BLESS=1 cargo nextest run -p plimsoll-context the_data_are` writes them.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
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

/// The number of tokens as four bytes, the length of each as one byte, then their bytes.
fn vocabulary(encoding: &CoreBpe) -> Vec<u8> {
    let count = u32::try_from(encoding.vocab_size()).unwrap();
    let (mut lengths, mut bytes) = (Vec::new(), Vec::new());
    for rank in 0..count {
        let token = encoding.decode(&[rank]);
        assert!(!token.is_empty(), "rank {rank} has no token");
        lengths.push(u8::try_from(token.len()).unwrap());
        bytes.extend(token);
    }
    [&count.to_le_bytes()[..], &lengths, &bytes].concat()
}

/// The number of a block for each 256 characters, then the blocks: a class for each character.
fn classes() -> Vec<u8> {
    let mut of_char = vec![0_u8; 0x11_0000];
    for (class, pattern) in (1_u8..).zip(CLASSES) {
        let parsed = regex_syntax::parse(pattern).unwrap();
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
        let next = u8::try_from(known.len()).unwrap();
        let number = *known.entry(block).or_insert_with(|| {
            blocks.extend_from_slice(block);
            next
        });
        numbers.push(number);
    }
    [numbers, blocks].concat()
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn the_data_are_those_of_the_published_tokenisers() {
    let files = [
        (
            "o200k.tokens",
            vocabulary(&tiktoken::encoding::o200k_base()),
        ),
        (
            "cl100k.tokens",
            vocabulary(&tiktoken::encoding::cl100k_base()),
        ),
        ("characters.classes", classes()),
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    for (name, expected) in files {
        let path = folder.join(name);
        let is_packed = name.ends_with(".tokens");
        if std::env::var_os("PLIMSOLL_BLESS").is_some() {
            let kept = if is_packed {
                packed(&expected)
            } else {
                expected.clone()
            };
            std::fs::write(&path, kept).unwrap();
        }
        let mut found = std::fs::read(&path).unwrap_or_default();
        if is_packed {
            let kept = std::mem::take(&mut found);
            ZlibDecoder::new(&*kept).read_to_end(&mut found).unwrap();
        }
        assert!(found == expected, "{} is out of date", path.display());
    }
}
