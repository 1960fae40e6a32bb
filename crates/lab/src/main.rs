//! The `headstart` command: a thin door to the library of the same name.

fn main() {}
