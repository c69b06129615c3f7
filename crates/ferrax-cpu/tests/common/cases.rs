//! How many cases properties are tested with.

/// That many cases of a property, or a part of them where `FERRAX_TEST_SHARE` says which: an emulator is slow.
pub fn cases(most: u32) -> u32 {
    let share = std::env::var("FERRAX_TEST_SHARE").ok().and_then(|part| part.parse().ok());
    (most / share.unwrap_or(1).max(1)).max(1)
}
