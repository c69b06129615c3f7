//! Composable transformations of array programs: the Rust API and the dispatcher.
