import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// `npm run dev` serves the page with fast reloads and passes the rest on to a server of ours.
const server = process.env["TOLKA_URL"] ?? "http://127.0.0.1:4096";

export default defineConfig({
  // Relative: the page may stand under any path prefix. The document's base says which.
  base: "./",
  plugins: [react(), tailwind()],
  build: { target: "es2022", assetsInlineLimit: 0, chunkSizeWarningLimit: 1024, modulePreload: { polyfill: false } },
  worker: { format: "es" },
  server: { proxy: { "/v1": { target: server, changeOrigin: false } } },
});
