import { Paperclip } from "lucide-react";
import { Markdown } from "../markdown";
import { bytes, textOf } from "../ui/words";
import type { Block } from "../wire";

/** What a person sent, at the right. */
export function Prompt({ content }: { content: Block[] }) {
  return (
    <div className="user">
      {content.map((block, at) => <Piece key={at} block={block} />)}
    </div>
  );
}

function Piece({ block }: { block: Block }) {
  switch (block.type) {
    case "text":
      return <Markdown text={textOf(block.text)} />;
    case "image":
      return <Attached name={block.uri ?? "Picture"} about={block.mime} />;
    case "audio":
      return <Attached name="Sound" about={block.mime} />;
    case "link":
      return <Attached name={block.title ?? block.name} about={block.size === undefined ? (block.mime ?? "") : bytes(block.size)} />;
    case "resource":
      return <Attached name={block.uri} about={block.mime ?? ""} />;
    default:
      block satisfies never;
      return null;
  }
}

const Attached = ({ name, about }: { name: string; about: string }) => (
  <p className="attached"><Paperclip aria-hidden="true" /><span>{name}</span><small>{about}</small></p>
);

export const wordsOf = (content: Block[]) => content.map((block) => (block.type === "text" ? textOf(block.text) : "")).join("\n").trim();
