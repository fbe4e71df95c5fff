import { memo, useMemo, useRef } from "react";
import { type Block, Blocks } from "./blocks";
import { Code } from "./code";
import { htmlOf } from "./html";

/** GitHub's Markdown, drawn while it is written: a piece that arrives changes the last block and no other. */
export function Markdown({ text, isOpen = false }: { text: string; isOpen?: boolean }) {
  const blocks = useRef<Blocks>(null);
  const cut = useMemo(() => (blocks.current ??= new Blocks()).of(text), [text]);
  return (
    <div className="prose">
      {cut.map((block, at) => (
        <BlockView key={block.at} raw={block.raw} block={block} isOpen={isOpen && at === cut.length - 1} />
      ))}
    </div>
  );
}

/** The same words are the same block, whenever they were cut. */
const BlockView = memo(
  function BlockView({ block, isOpen }: { raw: string; block: Block; isOpen: boolean }) {
    if (block.code) return <Code text={block.code.text} language={block.code.language} isClosed={block.code.isClosed || !isOpen} />;
    if (block.kind === "plain") return <pre className="plain" tabIndex={0}>{block.raw}</pre>;
    return <div dangerouslySetInnerHTML={{ __html: htmlOf(block.raw, isOpen) }} />;
  },
  (a, b) => a.raw === b.raw && a.isOpen === b.isOpen,
);
