import { Check, Copy } from "lucide-react";
import { memo, useState } from "react";
import { useColours } from "./highlight";

/** Code, plain while it is written and coloured when it is whole. */
export const Code = memo(function Code({ text, language, isClosed }: { text: string; language: string; isClosed: boolean }) {
  return (
    <figure className="code">
      <figcaption>
        <span>{language}</span>
        <CopyButton text={text} />
      </figcaption>
      <pre tabIndex={0} aria-label={language ? `Code in ${language}` : "Code"}>
        <code>
          <Coloured text={text} language={language} isWanted={isClosed} />
        </code>
      </pre>
    </figure>
  );
});

export function Coloured({ text, language, isWanted = true }: { text: string; language: string; isWanted?: boolean }) {
  const lines = useColours(text, language, isWanted);
  if (!lines) return text;
  return lines.map((line, at) => (
    <span key={at}>
      {line.map(([piece, colour], n) => (colour === "plain" ? piece : <span key={n} className={`tk-${colour}`}>{piece}</span>))}
      {at < lines.length - 1 && "\n"}
    </span>
  ));
}

export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <button type="button" className="copy" onClick={() => void copy()} aria-label={isCopied ? "Copied" : label}>
      {isCopied ? <Check /> : <Copy />}
    </button>
  );
}
