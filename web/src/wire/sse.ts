export interface Message {
  id: string | null;
  data: string;
}

/** Reads server-sent events from text in any pieces. An event that is cut off is never given. */
export class SseReader {
  private rest = "";
  private id: string | null = null;
  private data: string[] = [];

  /** The events that this piece completes. */
  push(piece: string): Message[] {
    const text = this.rest + piece;
    const messages: Message[] = [];
    let from = 0;
    for (let to = text.indexOf("\n"); to >= 0; to = text.indexOf("\n", from)) {
      const end = to > from && text.charCodeAt(to - 1) === 13 ? to - 1 : to;
      this.line(text.slice(from, end), messages);
      from = to + 1;
    }
    this.rest = text.slice(from);
    return messages;
  }

  private line(line: string, messages: Message[]): void {
    if (line === "") {
      if (this.data.length) messages.push({ id: this.id, data: this.data.join("\n") });
      this.data = [];
      return;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "data") this.data.push(value);
    else if (field === "id") this.id = value;
  }
}
