//! The reader of server-sent events: bytes cut anywhere give the same events, and no text comes of
//! nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_fuzz::events;

fuzz_target!(|data: &[u8]| {
    let Some((size, bytes)) = data.split_first() else {
        return;
    };
    let size = usize::from(*size) % 61 + 1;
    let whole = events(bytes, []);
    let pieces = events(bytes, std::iter::repeat_n(size, bytes.len() / size));
    assert_eq!(whole, pieces, "cut every {size} bytes");
    let single = events(bytes, std::iter::repeat_n(1, bytes.len()));
    assert_eq!(whole, single, "cut everywhere");
    // What is no UTF-8 becomes a replacement of three bytes.
    let text: usize = whole.events.iter().map(|(_, data)| data.len()).sum();
    assert!(text <= bytes.len() * 3, "{text} of {}", bytes.len());
    for (_, data) in &whole.events {
        assert!(!data.contains('\r'), "{data:?}");
    }
});
