use serde_json::Value;

/// What the client that the document shows does with the bytes of a stream, step for step: it splits at blank lines,
/// keeps the last piece for later, passes over what does not start with `data: `, and parses all the rest of a piece.
pub(crate) fn events(stream: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(stream).expect("streams are UTF-8");
    let mut chunks: Vec<&str> = text.split("\n\n").collect();
    assert_eq!(chunks.pop(), Some(""), "every event is whole");
    let data = chunks.iter().filter_map(|chunk| chunk.strip_prefix("data: "));
    data.map(|json| serde_json::from_str(json).unwrap_or_else(|error| panic!("{json:?}: {error}"))).collect()
}

/// The pieces of a stream as they stand, without comments.
pub(crate) fn pieces(stream: &[u8]) -> Vec<String> {
    let text = std::str::from_utf8(stream).unwrap();
    text.split_inclusive("\n\n").filter(|piece| !piece.starts_with(':')).map(str::to_owned).collect()
}

pub(crate) fn said(events: &[Value]) -> String {
    events.iter().filter(|event| event["type"] == "chat").map(|event| event["content"].as_str().unwrap()).collect()
}

#[test]
fn the_skeleton_reads_what_a_bare_stream_has_and_nothing_else() {
    let read = events(b": keepalive\n\ndata: {\"type\":\"chat\",\"content\":\"a\\n\"}\n\nid: 1\ndata: {}\n\n");
    assert_eq!(read, [serde_json::json!({ "type": "chat", "content": "a\n" })]);
}
