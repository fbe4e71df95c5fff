//! How much of files is taken in at once. One place, since these must agree: what one part refuses no other should
//! promise, and what is told with its contents must be what a checkpoint can give back.

/// A file of more bytes is not taken in whole, to be read, edited or patched: no model can use as much, and a few of
/// them side by side must fit into memory.
pub const WHOLE: u64 = 16 << 20;

/// Contents of more bytes are not kept, neither with a fact nor from a checkpoint: nobody reads a diff of them.
pub const KEPT: u64 = 8 << 20;

/// Contents that are held at the same time, for diffs: those of an ordinary turn, many times over.
pub const TOGETHER: usize = 64 << 20;

/// Texts of together more bytes are not repeated inside the output of a call, which is sent to every client: its
/// content has them.
pub const REPEATED: usize = 64 << 10;
