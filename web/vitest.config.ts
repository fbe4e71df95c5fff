import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [react()],
  test: {
    environment: "happy-dom", include: ["test/**/*.test.{ts,tsx}"],
    // These bound a hang and measure nothing: a busy machine may take its time.
    testTimeout: 60_000, hookTimeout: 60_000,
  },
});
