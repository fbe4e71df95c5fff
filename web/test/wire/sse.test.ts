import { expect, test } from "vitest";
import { SseReader } from "../../src/wire/sse";

const STREAM = ": hello\n\nid: 1.0\ndata: {\"a\":1}\n\nevent: message\r\nid: 2.0\r\ndata:{\"b\":2}\r\n\r\ndata: one\ndata: two\n\nid: 3.0\n\nretry: 100\n\ndata: cut";
const WHOLE = [{ id: "1.0", data: '{"a":1}' }, { id: "2.0", data: '{"b":2}' }, { id: "2.0", data: "one\ntwo" }];

test.each([1, 2, 3, 7, 1000])("in pieces of %i the events are the same, and what is cut off is not told", (step) => {
  const reader = new SseReader();
  const messages = [];
  for (let from = 0; from < STREAM.length; from += step) messages.push(...reader.push(STREAM.slice(from, from + step)));
  expect(messages).toEqual(WHOLE);
});
