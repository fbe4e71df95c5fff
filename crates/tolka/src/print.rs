use std::io::Write;

/// A line for whoever reads stdout. A reader that has gone, as `head` does, is an error like any other here; `main`
/// takes it for the quiet end that it is.
pub(crate) fn line(text: impl std::fmt::Display) -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{text}")
}

pub(crate) fn is_gone_reader(error: &anyhow::Error) -> bool {
    let io = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.into_iter().any(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
