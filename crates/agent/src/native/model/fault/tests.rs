use super::*;
use ModelErrorKind::{Auth, Overflow, RateLimited, Rejected, Unavailable, UnknownModel};

/// As the providers say it.
#[test]
fn faults_are_known_in_every_shape() {
    for (status, body, kind) in [
        // OpenAI
        (
            401,
            r#"{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}"#,
            Auth,
        ),
        (
            429,
            r#"{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}"#,
            RateLimited,
        ),
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            Auth,
        ),
        (
            404,
            r#"{"error":{"message":"The model `x` does not exist","type":"invalid_request_error","code":"model_not_found"}}"#,
            UnknownModel,
        ),
        (
            400,
            r#"{"error":{"message":"This model's maximum context length is 128000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
            Overflow,
        ),
        (
            400,
            r#"{"error":{"message":"Unsupported parameter: 'max_tokens'","type":"invalid_request_error","code":"unsupported_parameter"}}"#,
            Rejected,
        ),
        (500, r#"{"error":{"message":"The server had an error","type":"server_error"}}"#, Unavailable),
        // Anthropic
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            Overflow,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 1 + 2 > 2"}}"#,
            Overflow,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}"#,
            Auth,
        ),
        (404, r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-x"}}"#, UnknownModel),
        (
            413,
            r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
            Overflow,
        ),
        (529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, Unavailable),
        // vLLM
        (
            400,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000","type":"BadRequestError","code":400}"#,
            Overflow,
        ),
        (
            400,
            r#"{"error":{"message":"You passed 1015 input tokens. However, the model's context length is only 1024 tokens","type":"BadRequestError","code":400}}"#,
            Overflow,
        ),
        (
            400,
            r#"{"error":{"message":"The decoder prompt (length 5000) is longer than the maximum model length of 4096","code":400}}"#,
            Overflow,
        ),
        (
            404,
            r#"{"error":{"message":"The model `x` does not exist.","type":"NotFoundError","code":404}}"#,
            UnknownModel,
        ),
        (422, r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#, Rejected),
        // llama.cpp
        (
            400,
            r#"{"error":{"code":400,"message":"request (4390 tokens) exceeds the available context size (4096 tokens)","type":"exceed_context_size_error"}}"#,
            Overflow,
        ),
        (500, r#"{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}"#, Overflow),
        (503, r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#, Unavailable),
        // Ollama
        (
            404,
            r#"{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error"}}"#,
            UnknownModel,
        ),
        (400, r#"{"error":"prompt too long; exceeded max context length by 4 tokens"}"#, Overflow),
        (400, r#"{"error":{"message":"models.example/x does not support tools","type":"api_error"}}"#, Rejected),
        // OpenRouter
        (402, r#"{"error":{"message":"Insufficient credits","code":402}}"#, Auth),
        (400, r#"{"error":{"message":"x is not a valid model ID","code":400}}"#, UnknownModel),
        (404, r#"{"error":{"message":"No endpoints found for x","code":404}}"#, UnknownModel),
        (
            400,
            r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"message\":\"prompt is too long: 3 tokens\"}"}}}"#,
            Overflow,
        ),
        (401, r#"{"error":{"message":"No auth credentials found","code":401}}"#, Auth),
        // Gemini
        (
            400,
            r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]"#,
            Auth,
        ),
        (
            400,
            r#"[{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8).","status":"INVALID_ARGUMENT"}}]"#,
            Overflow,
        ),
        (503, r#"[{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}]"#, Unavailable),
        (429, r#"[{"error":{"code":429,"message":"Resource exhausted","status":"RESOURCE_EXHAUSTED"}}]"#, RateLimited),
        // Groq
        (
            413,
            r#"{"error":{"message":"Request too large for model `x` on tokens per minute (TPM): Limit 6000","type":"tokens","code":"rate_limit_exceeded"}}"#,
            RateLimited,
        ),
        // Whoever stands before them.
        (502, "<html><body>Bad Gateway</body></html>", Unavailable),
        (504, "upstream timed out", Unavailable),
        (404, "404 page not found", Rejected),
        (403, "", Auth),
        (400, "", Rejected),
        (418, "{}", Rejected),
    ] {
        let complaint = Complaint::answered(status, &HeaderMap::new(), body);
        assert_eq!(complaint.kind(), kind, "{status} {body}");
    }
}

#[test]
fn words_are_for_people() {
    let accuser = Accuser {
        endpoint: Arc::new(Endpoint::new("http://localhost/v1")),
        model: Model { provider: "ollama".to_owned(), id: "qwen".to_owned() },
    };
    let said = |status, body: &str| accuser.complains(&Complaint::answered(status, &HeaderMap::new(), body)).message;
    assert_eq!(
        said(404, r#"{"error":{"message":"model \"qwen\" not found, try pulling it first"}}"#),
        "ollama has no model qwen (404): model \"qwen\" not found, try pulling it first. `tolka models` lists those that \
         can be used."
    );
    assert_eq!(
        said(502, "<html>Bad Gateway</html>"),
        "ollama is not able to answer (502): it answered with a web page"
    );
    assert_eq!(
        said(422, r#"{"detail":[{"msg":"field required"},{"msg":"no"}]}"#),
        "ollama rejected the request (422): field required; no"
    );
    assert_eq!(said(500, ""), "ollama is not able to answer (500)");
    assert!(said(400, &"long ".repeat(10_000)).len() < 800);
}

/// It is cut after the key is gone, or half of it would be left.
#[test]
fn a_key_at_the_cut_is_not_told_in_part() {
    let key = "sk-very-secret-and-long";
    let mut endpoint = Endpoint::new("http://localhost/v1");
    endpoint.key = Some(crate::native::model::Secret::new(key));
    let accuser =
        Accuser { endpoint: Arc::new(endpoint), model: Model { provider: "openai".to_owned(), id: "gpt".to_owned() } };
    for before in WORDS - key.len()..=WORDS {
        let body = format!("{}{key} and more", "x".repeat(before));
        let complaint = Complaint::answered(400, &HeaderMap::new(), &body);
        for error in [accuser.complains(&complaint), accuser.garbled(&body)] {
            assert!(!error.message.contains("sk-"), "{before}: {}", error.message);
        }
    }
}
