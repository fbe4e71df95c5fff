// What code can be coloured as; what is not here is shown plain.
const NAMES = [
  "bash", "c", "clojure", "cpp", "csharp", "css", "dart", "diff", "dockerfile", "elixir", "go", "graphql", "haskell",
  "html", "ini", "java", "javascript", "json", "jsx", "kotlin", "lua", "make", "markdown", "nix", "php", "powershell",
  "python", "ruby", "rust", "scala", "scss", "sql", "swift", "toml", "tsx", "typescript", "xml", "yaml", "zig",
] as const;

export type Language = (typeof NAMES)[number];

const known = new Set<string>(NAMES);

const ALIASES: Record<string, Language> = {
  "c++": "cpp", "c#": "csharp", cjs: "javascript", console: "bash", cs: "csharp", docker: "dockerfile", gql: "graphql", h: "c", hpp: "cpp",
  hs: "haskell", htm: "html", js: "javascript", jsonc: "json", kt: "kotlin", makefile: "make", md: "markdown", mjs: "javascript",
  ps1: "powershell", py: "python", rb: "ruby", rs: "rust", sh: "bash", shell: "bash", svg: "xml", ts: "typescript", yml: "yaml", zsh: "bash",
};

/** The language by any of its names, or by the end of a file's name. */
export function languageOf(name: string): Language | null {
  const meant = (Object.hasOwn(ALIASES, name) && ALIASES[name]) || name;
  return known.has(meant) ? (meant as Language) : null;
}

export const languageOfPath = (path: string): Language | null => languageOf(/([^./]+)$/.exec(path.toLowerCase())?.[1] ?? "");
