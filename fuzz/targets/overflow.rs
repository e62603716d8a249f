//! `overflow::classify` on any status and body: it never breaks, says the same twice, and its
//! numbers make sense.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use plimsoll_fuzz::{Input, mutate};
use plimsoll_wire::overflow::{Verdict, classify};

const STATUSES: [Option<u16>; 16] = [
    None,
    Some(200),
    Some(400),
    Some(401),
    Some(402),
    Some(403),
    Some(404),
    Some(408),
    Some(413),
    Some(422),
    Some(429),
    Some(500),
    Some(502),
    Some(503),
    Some(529),
    Some(65_535),
];

fuzz_target!(|data: &[u8]| {
    let Some(input) = Input::of(data) else {
        return;
    };
    let status = *input.choose(&STATUSES);
    let verdict = classify(status, input.text);
    assert_eq!(verdict, classify(status, input.text));
    if let Verdict::SoftWindow { limit, requested } = verdict {
        assert!(requested > limit, "{verdict:?}");
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(data, size, max_size, seed)
});
