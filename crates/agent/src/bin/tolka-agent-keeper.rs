//! A keeper by itself, for the tests of this crate. In the product it is the command line that keeps commands.

fn main() -> std::process::ExitCode {
    tolka_workspace::command::keep()
}
