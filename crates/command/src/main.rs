//! The `headstart` command: all of it is in the library of the same name.

fn main() -> std::process::ExitCode {
    headstart::command::main().into()
}
