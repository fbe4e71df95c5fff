// Numbers and times as people read them.
import type { Body, Json, Time } from "../wire";

export const count = (n: number) => n.toLocaleString("en");
export const plural = (n: number, one: string, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

/** Microseconds as `0.4 s`, `12 s`, `2m 14s`. */
export function lasted(micros: number): string {
  const seconds = micros / 1e6;
  if (seconds < 10) return `${seconds < 0.05 ? "0" : seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${whole % 60}s`;
  return `${Math.floor(whole / 3600)}h ${Math.floor((whole % 3600) / 60)}m`;
}

export function age(time: Time, now: number): string {
  const minutes = Math.floor(Math.max(0, now - time / 1000) / 60_000);
  if (minutes < 1) return "now";
  if (minutes < 60) return `${minutes}m`;
  return minutes < 1440 ? `${Math.floor(minutes / 60)}h` : `${Math.floor(minutes / 1440)}d`;
}

export const short = (n: number) => (n < 1000 ? String(n) : n < 1e6 ? `${Math.round(n / 1000)}k` : `${(n / 1e6).toFixed(1)}M`);
export const bytes = (n: number) => (n < 1000 ? `${n} B` : n < 1e6 ? `${Math.round(n / 1000)} kB` : `${(n / 1e6).toFixed(1)} MB`);

export function money(amount: number, currency: string): string {
  const text = amount < 0.01 && amount > 0 ? "<0.01" : amount.toFixed(2);
  return currency === "USD" ? `$${text}` : `${text} ${currency}`;
}

/** The end of a folder's path, which is what people call it. */
export const folder = (path: string) => path.split("/").filter(Boolean).slice(-2).join("/");

/** What of a text stands in its fact; the rest is in a blob. */
export const textOf = (body: Body | undefined) => (typeof body === "string" ? body : (body?.head ?? ""));
export const blobOf = (body: Body | undefined) => (typeof body === "object" ? body : null);

/** A field of foreign JSON, if it is a text. */
export function field(json: Json | undefined, ...names: string[]): string | undefined {
  if (typeof json !== "object" || json === null) return undefined;
  for (const name of names) {
    const value = (json as Record<string, unknown>)[name];
    if (typeof value === "string") return value;
  }
  return undefined;
}

export const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));
