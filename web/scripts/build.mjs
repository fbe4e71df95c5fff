// Builds the page into `dist` as the server embeds it: text compressed, and nothing of an earlier build left.
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "vite";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");
// The server reads this one, to say where it stands.
const PLAIN = new Set(["index.html", ".gitignore"]);
const TEXT = new Set([".css", ".js", ".json", ".map", ".svg", ".txt"]);

// The folder itself stays: cargo watches it.
for (const name of await readdir(dist).catch(() => [])) {
  if (name !== ".gitignore") await rm(join(dist, name), { recursive: true });
}
await build({ root, logLevel: process.argv.includes("--verbose") ? "info" : "warn", build: { emptyOutDir: false } });
let total = 0;
for (const entry of await readdir(dist, { recursive: true, withFileTypes: true })) {
  const path = join(entry.parentPath ?? entry.path, entry.name);
  if (!entry.isFile() || PLAIN.has(entry.name)) continue;
  const content = await readFile(path);
  if (!TEXT.has(extname(entry.name))) {
    total += content.length;
    continue;
  }
  const packed = gzipSync(content, { level: 9 });
  await writeFile(`${path}.gz`, packed);
  await rm(path);
  total += packed.length;
}
console.log(`page: ${Math.round(total / 1000)} kB in web/dist`);
