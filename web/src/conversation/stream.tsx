// The conversation itself: rows that are drawn while they are near the screen, and a view that follows until the reader
// looks elsewhere.
import { ArrowDown } from "lucide-react";
import { type ReactNode, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import { type Row, useEntry, useLive, useRows, useSlice } from "../session";
import { count } from "../ui/words";
import { Aside, End } from "./aside";
import { Asks } from "./ask";
import { Prompt } from "./prompt";
import { Text, Thought } from "./said";
import { ToolCard } from "./tool/card";
import { Waiting } from "./waiting";

/** Within so many pixels of the end the view follows. */
const NEAR = 40;
/** Earlier turns are asked for before the reader is at the top. */
const EARLY = 600;

export function Stream() {
  const live = useLive();
  const rows = useRows();
  const before = useSlice("before");
  const scroll = useRef<HTMLDivElement>(null);
  const list = useRef<VirtualizerHandle>(null);
  const content = useRef<HTMLDivElement>(null);
  const { isFollowing, setFollowing, onScroll } = useFollowing(scroll, content);
  const isPrepending = usePrepending(rows);
  const unseen = useUnseen(rows.length, isFollowing);

  const early = useCallback(() => {
    onScroll();
    if (before !== null && (scroll.current?.scrollTop ?? EARLY) < EARLY) void live.loadEarlier().catch(() => {});
  }, [before, live, onScroll]);

  return (
    <div className="conv-box">
      <div
        ref={scroll} className="conv" onScroll={early} tabIndex={0} role="log" aria-label="Conversation" aria-live="off"
        onWheel={(event) => event.deltaY < 0 && setFollowing(false)}
      >
        <div ref={content} className="col turn">
          {before !== null && <p className="waiting"><button type="button" className="link" onClick={() => void live.loadEarlier().catch(() => {})}>Show earlier turns</button></p>}
          <Virtualizer ref={list} scrollRef={scroll} shift={isPrepending} bufferSize={600}>
            {rows.map((row) => <RowView key={row.key} row={row} />)}
          </Virtualizer>
          <Waiting />
          <Asks />
        </div>
      </div>
      {!isFollowing && (
        <button type="button" className="jump" onClick={() => setFollowing(true)}>
          <ArrowDown aria-hidden="true" />Jump to latest{unseen > 0 && `, ${count(unseen)} new`}
        </button>
      )}
    </div>
  );
}

function RowView({ row }: { row: Row }): ReactNode {
  const entry = useEntry(row.key);
  if (!entry) return <div />;
  switch (entry.kind) {
    case "prompt":
      return <Prompt content={entry.content} />;
    case "text":
      return <Text entry={entry} />;
    case "thought":
      return <Thought entry={entry} />;
    case "tool":
      return <ToolCard keys={row.keys} />;
    case "end":
      return <End entry={entry} />;
    case "aside":
      return <Aside entry={entry} />;
    default:
      entry satisfies never;
      return null;
  }
}

/** The end stays in sight while it grows, until the reader scrolls up; coming back to the end takes it up again. */
function useFollowing(scroll: React.RefObject<HTMLDivElement | null>, content: React.RefObject<HTMLDivElement | null>) {
  const [isFollowing, setState] = useState(true);
  const following = useRef(true);
  const last = useRef({ top: 0, height: 0 });
  const toEnd = useCallback(() => {
    const box = scroll.current;
    if (box) box.scrollTop = box.scrollHeight;
  }, [scroll]);
  const setFollowing = useCallback((follow: boolean) => {
    following.current = follow;
    setState(follow);
    if (follow) toEnd();
  }, [toEnd]);
  const onScroll = useCallback(() => {
    const box = scroll.current;
    if (!box) return;
    const { scrollTop, scrollHeight, clientHeight } = box;
    const isNear = scrollHeight - scrollTop - clientHeight <= NEAR;
    // A view that shrinks is pushed up by the browser: that is no reader.
    const isUp = scrollTop < last.current.top - 1 && scrollHeight >= last.current.height;
    last.current = { top: scrollTop, height: scrollHeight };
    if (isNear && !following.current) setFollowing(true);
    else if (isUp && !isNear && following.current) setFollowing(false);
  }, [scroll, setFollowing]);
  useLayoutEffect(() => {
    const watched = [content.current, scroll.current].filter((node) => node !== null);
    const observer = new ResizeObserver(() => following.current && toEnd());
    watched.forEach((node) => observer.observe(node));
    toEnd();
    return () => observer.disconnect();
  }, [content, scroll, toEnd]);
  return { isFollowing, setFollowing, onScroll };
}

/** Whether the rows grew at their beginning: then what is in sight must stay where it is. */
function usePrepending(rows: Row[]): boolean {
  const last = useRef<{ first: string | undefined; length: number }>({ first: undefined, length: 0 });
  const first = rows[0]?.key;
  const isPrepending = last.current.first !== undefined && first !== last.current.first && rows.length > last.current.length;
  useEffect(() => {
    last.current = { first, length: rows.length };
  });
  return isPrepending;
}

function useUnseen(length: number, isFollowing: boolean): number {
  const seen = useRef(length);
  if (isFollowing) seen.current = length;
  return Math.max(0, length - seen.current);
}
