use serde_json::Value;

/// What Onyx's frontend does with the bytes of a stream, line for line: it splits at `\n`, keeps the last piece
/// for later, reads each `data:` line alone, takes the event's name for the type only where the packet has none
/// and the name is not `message`, and knows no other field.
#[derive(Default)]
pub(crate) struct OnyxReader {
    pending: Vec<u8>,
    event: String,
}

impl OnyxReader {
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<Value> {
        self.pending.extend_from_slice(bytes);
        let Some(end) = self.pending.iter().rposition(|byte| *byte == b'\n') else { return Vec::new() };
        let rest = self.pending.split_off(end + 1);
        let complete = std::mem::replace(&mut self.pending, rest);
        let text = String::from_utf8(complete).expect("streams are UTF-8");
        text.split('\n').filter_map(|line| self.line(line)).collect()
    }

    fn line(&mut self, line: &str) -> Option<Value> {
        if let Some(name) = line.strip_prefix("event:") {
            name.trim().clone_into(&mut self.event);
            return None;
        }
        let data = line.strip_prefix("data:")?.trim();
        let event = std::mem::take(&mut self.event);
        if data.is_empty() {
            return None;
        }
        let mut packet: Value = serde_json::from_str(data).expect("each data line is one JSON value");
        if packet["type"].is_null() && !event.is_empty() && event != "message" {
            packet["type"] = event.into();
        }
        Some(packet)
    }
}

/// A frame as it stands in the bytes, with its blank line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    pub(crate) id: String,
    pub(crate) text: String,
}

/// The frames of a stream; comments are not among them.
pub(crate) fn frames(stream: &str) -> Vec<Frame> {
    let pieces = stream.split_inclusive("\n\n").filter(|piece| !piece.starts_with(':'));
    pieces
        .map(|piece| {
            let lines: Vec<&str> = piece.trim_end_matches('\n').split('\n').collect();
            let [event, id, data] = lines[..] else { panic!("not a frame: {piece:?}") };
            assert_eq!(event, "event: message");
            assert!(data.starts_with("data: {"), "{piece}");
            Frame { id: id.strip_prefix("id: ").unwrap().to_owned(), text: piece.to_owned() }
        })
        .collect()
}

pub(crate) fn text_of(frames: &[Frame]) -> String {
    frames.iter().map(|frame| frame.text.as_str()).collect()
}

/// The fact that a frame's position names.
pub(crate) fn place(frame: &Frame) -> u64 {
    frame.id.split_once('.').unwrap().0.parse().unwrap()
}

#[test]
fn the_reader_reads_as_the_frontend_does() {
    let stream =
        ": keepalive\n\nevent: message\nid: 4.0\ndata: {\"type\":\"a\"}\n\nevent: b\ndata: {}\n\ndata: {\"x\":1}";
    let whole = OnyxReader::default().feed(stream.as_bytes());
    // The last line has no end yet, so it is not read.
    assert_eq!(whole, [serde_json::json!({ "type": "a" }), serde_json::json!({ "type": "b" })]);
    for cut in 0..stream.len() {
        let mut reader = OnyxReader::default();
        let mut parts = reader.feed(&stream.as_bytes()[..cut]);
        parts.extend(reader.feed(&stream.as_bytes()[cut..]));
        assert_eq!(parts, whole);
    }
}
