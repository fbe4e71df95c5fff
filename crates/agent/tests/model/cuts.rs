//! Bytes come as they come: cut anywhere they are the same pieces, and an answer that stops anywhere is no answer.

use tolka_agent::native::model::{Anthropic, AnthropicOptions, Model, ModelErrorKind, OpenAi, OpenAiOptions, Piece};

use crate::raw::{Raw, SSE};
use crate::said::{about, endpoint, pieces, prompt};

/// With all that the standard allows: CR LF, comments, no space after the colon, data on several lines.
const OPENAI: &str = concat!(
    ": OPENROUTER PROCESSING\r\n\r\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\r\n\r\n",
    "data: {\"choices\":[{\"delta\":{\"reasoning\":\"Hm …\",\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"Hm …\",\"index\":0}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"reasoning_details\":[{\"type\":\"reasoning.text\",\"signature\":\"a+/=\",\"index\":0}]}}]}\n\n",
    "data:{\"choices\":[{\"delta\":{\"content\":\"世界 \\ud83d\\udc4b\"}}]}\n\n",
    "data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"!\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c0\",\"function\":{\"name\":\"a\",\"arguments\":\"\"}}]}}]}\r\r",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"c1\",\"function\":{\"name\":\"b\",\"arguments\":\"{\\\"x\\\"\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{}\"}},{\"index\":1,\"function\":{\"arguments\":\":1}\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3}}\n\n",
    "data: [DONE]\n\n",
);

const ANTHROPIC: &str = concat!(
    "event: message_start\r\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\r\n\r\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"Hm …\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"a+/=\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: ping\ndata: {\"type\":\"ping\"}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"世界 👋\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"a\",\"input\":{}}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"x\\\":1}\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":2}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":7}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

async fn both() -> [(Raw, Box<dyn Model>, &'static str, usize); 2] {
    let (one, other) = (Raw::start(SSE, &[]).await, Raw::start(SSE, &[]).await);
    let openai = OpenAi::new(endpoint(one.url()), about(), OpenAiOptions::default());
    let anthropic = Anthropic::new(endpoint(other.url()), about(), AnthropicOptions::default());
    [(one, Box::new(openai), OPENAI, 10), (other, Box::new(anthropic), ANTHROPIC, 6)]
}

#[tokio::test]
async fn cut_anywhere_they_are_the_same_pieces() {
    for (raw, model, stream, count) in both().await {
        raw.say(SSE, &[stream.as_bytes()]);
        let (whole, error) = pieces(model.ask(prompt("go"))).await;
        assert_eq!((error, whole.len()), (None, count), "{whole:?}");
        for cut in 1..stream.len() {
            let (before, after) = stream.as_bytes().split_at(cut);
            raw.say(SSE, &[before, after]);
            assert_eq!(pieces(model.ask(prompt("go"))).await, (whole.clone(), None), "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
        raw.say(SSE, &bytes);
        assert_eq!(pieces(model.ask(prompt("go"))).await, (whole, None));
        let connections = raw.asked.lock().unwrap().len();
        assert_eq!(connections, stream.len() + 1);
    }
}

#[tokio::test]
async fn an_answer_that_stops_anywhere_is_cut_off() {
    for (raw, model, stream, _) in both().await {
        raw.say(SSE, &[stream.as_bytes()]);
        let (whole, _) = pieces(model.ask(prompt("go"))).await;
        let finished = ["\"finish_reason\":\"tool_calls\"}]}\n\n", "{\"output_tokens\":7}}\n\n"];
        let finished = finished.iter().find_map(|mark| Some(stream.find(mark)? + mark.len())).unwrap();
        for end in 0..stream.len() {
            raw.say(SSE, &[&stream.as_bytes()[..end]]);
            let (given, error) = pieces(model.ask(prompt("go"))).await;
            // The last line end of an event may be left out, since CR alone ends a line too.
            if end >= finished {
                assert_eq!(error, None);
                assert!(matches!(given.last(), Some(Piece::Ended { .. })));
            } else {
                let error = error.unwrap();
                assert_eq!(error.kind, ModelErrorKind::Cut, "ends at {end}");
                assert!(error.message.contains("was cut off: the connection"), "words of ours: {error}");
                assert_eq!(given, whole[..given.len()], "ends at {end}");
            }
        }
    }
}
