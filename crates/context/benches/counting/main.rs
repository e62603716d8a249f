//! How fast texts are counted, side by side: `Bpe`, `Memo` on a history that is sent again (beside
//! its hashes alone), `Estimate`; and what else is done to every long result. Not a test of how
//! exact they are.

mod corpus;

use std::hint::black_box;

use divan::Bencher;
use divan::counter::BytesCount;
use plimsoll_context::{Bpe, Bytes, Estimate, Memo, TokenCounter, Tokens, shorten, shorten_bytes};

use corpus::Corpus;

fn main() {
    divan::main();
}

#[divan::bench(args = Corpus::ALL)]
fn bpe(bencher: Bencher<'_, '_>, corpus: Corpus) {
    let text = corpus.text();
    let bpe = Bpe::o200k();
    bencher
        .counter(BytesCount::of_str(&text))
        .bench_local(|| bpe.text(black_box(&text)));
}

#[divan::bench(args = Corpus::ALL)]
fn estimate(bencher: Bencher<'_, '_>, corpus: Corpus) {
    let text = corpus.text();
    bencher
        .counter(BytesCount::of_str(&text))
        .bench_local(|| Estimate.text(black_box(&text)));
}

/// A history of messages of 1 KB that was counted before.
#[divan::bench(args = Corpus::ALL)]
fn memo_sent_again(bencher: Bencher<'_, '_>, corpus: Corpus) {
    let messages = corpus.messages();
    let memo = Memo::new(Bpe::o200k());
    let count = || -> Tokens { messages.iter().map(|text| memo.text(black_box(text))).sum() };
    count();
    bencher.counter(bytes_of(&messages)).bench_local(count);
}

/// The floor of `memo_sent_again`: the hashes and nothing else.
#[divan::bench(args = Corpus::ALL)]
fn hashes_alone(bencher: Bencher<'_, '_>, corpus: Corpus) {
    let messages = corpus.messages();
    bencher.counter(bytes_of(&messages)).bench_local(|| {
        for text in &messages {
            black_box(blake3::hash(black_box(text.as_bytes())));
        }
    });
}

/// Where hashing begins to win: a text of so many bytes, remembered or counted.
#[divan::bench(args = [8, 16, 32, 64, 256], consts = [false, true])]
fn short_text<const REMEMBERED: bool>(bencher: Bencher<'_, '_>, len: usize) {
    let text = Corpus::Prose.text();
    let text = text.get(..len).unwrap_or_default();
    let (bpe, memo) = (Bpe::o200k(), Memo::new(Bpe::o200k()));
    memo.text(text);
    bencher.bench_local(|| {
        if REMEMBERED {
            memo.text(black_box(text))
        } else {
            bpe.text(black_box(text))
        }
    });
}

/// A result of 512 KB, cut to 8,000 tokens.
#[divan::bench(args = Corpus::ALL)]
fn shorten_to_tokens(bencher: Bencher<'_, '_>, corpus: Corpus) {
    let text = corpus.text();
    let memo = Memo::new(Bpe::o200k());
    memo.text(&text);
    bencher
        .counter(BytesCount::of_str(&text))
        .bench_local(|| shorten(black_box(&text), Tokens(8_000), &memo));
}

/// A result of 512 KB, cut to 200 bytes.
#[divan::bench(args = Corpus::ALL)]
fn shorten_to_bytes(bencher: Bencher<'_, '_>, corpus: Corpus) {
    let text = corpus.text();
    bencher
        .counter(BytesCount::of_str(&text))
        .bench_local(|| shorten_bytes(black_box(&text), Bytes(200)));
}

fn bytes_of(messages: &[String]) -> BytesCount {
    BytesCount::new(messages.iter().map(String::len).sum::<usize>())
}
