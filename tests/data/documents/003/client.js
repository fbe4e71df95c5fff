async function streamChat(body) {
  const res = await fetch('/api/chat', {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'Accept': 'text/event-stream',
    },
    body: JSON.stringify(body),
  });

  const reader = res.body.getReader();
  const decoder = new TextDecoder();
  let buffer = '';
  while (true) {
    const { value, done } = await reader.read();
    if (done) break;
    buffer += decoder.decode(value, { stream: true });
    const chunks = buffer.split('\n\n');
    // keep last partial chunk in buffer
    buffer = chunks.pop() || '';
    for (const chunk of chunks) {
      if (!chunk.startsWith('data: ')) continue;
      const json = JSON.parse(chunk.slice(6));
      handleEvent(json);
    }
  }
}

function handleEvent(data) {
  switch (data.type) {
    case 'chat_start':
      handleChatStart(data);
      break;
    case 'chat':
      handleChat(data);
      break;
    case 'chat_end':
      handleChatEnd(data);
      break;
    case 'reasoning_start':
      handleReasoningStart(data);
      break;
    case 'reasoning':
      handleReasoning(data);
      break;
    case 'reasoning_end':
      handleReasoningEnd(data);
      break;
    case 'tool_call':
      handleToolCall(data);
      break;
    case 'user':
      handleUserMessage(data);
      break;
    case 'file_edit':
      handleFileEdit(data);
      break;
    case 'error':
      handleError(data);
      break;
    case 'done':
      handleDone();
      break;
    default:
      handleChat(data);
  }
}
