//! How much a request holds, guessed: what it really was is known when the provider has answered.

use crate::native::model::{Input, Message, Output, ToolSpec};

/// A picture takes about so many tokens, whatever its bytes are.
const PICTURE: u64 = 1_600;
/// Of a file that is neither text nor picture, base64: most of it is not what the model reads.
const FILE: u64 = 16;

/// Prose has four bytes to a token, code has three.
pub(super) const BYTES: (u64, u64) = (7, 2);

pub(super) fn of_text(bytes: usize) -> u64 {
    (bytes as u64 * BYTES.1).div_ceil(BYTES.0)
}

pub(super) fn of_tools(tools: &[ToolSpec]) -> u64 {
    let bytes = |tool: &ToolSpec| tool.name.len() + tool.description.len() + tool.schema.to_string().len();
    tools.iter().map(|tool| of_text(bytes(tool))).sum()
}

/// About how many tokens a message is.
pub(in crate::native) fn tokens(message: &Message) -> u64 {
    let input = |input: &Input| match input {
        Input::Text(text) => of_text(text.len()),
        Input::Image { .. } => PICTURE,
        Input::File { data, .. } => of_text(data.len()) / FILE,
    };
    let output = |output: &Output| match output {
        Output::Text(text) | Output::Thought { text, .. } => of_text(text.len()),
        Output::Call { name, input, .. } => of_text(name.len() + input.get().len()),
    };
    match message {
        Message::User(inputs) => inputs.iter().map(input).sum(),
        Message::Model(outputs) => outputs.iter().map(output).sum(),
        Message::Results(returned) => returned.iter().flat_map(|returned| &returned.content).map(input).sum(),
    }
}
