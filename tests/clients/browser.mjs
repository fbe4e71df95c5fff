// A real browser with the server's own page open, and `EventSource` as any page would use it.

import { chromium } from "playwright-core";

const PATH = process.env.CHROMIUM ?? "/usr/bin/chromium";

export class Browser {
  static async open(t) {
    const browser = new Browser();
    // Tests run as root in containers, where Chromium's own sandbox cannot start.
    browser.chromium = await chromium.launch({ executablePath: PATH, args: ["--no-sandbox", "--disable-gpu"] });
    t.after(() => browser.chromium.close());
    return browser;
  }

  async page(server) {
    const page = await this.chromium.newPage();
    await page.goto(server.base);
    return page;
  }
}

/** An `EventSource` in a page; it collects what `onmessage` gives. */
export class Source {
  static async open(page, path) {
    const handle = await page.evaluateHandle((path) => {
      const kept = { events: [], connections: 0, ids: [] };
      kept.source = new EventSource(path);
      kept.source.onopen = () => kept.connections++;
      kept.source.onmessage = (event) => {
        kept.events.push(JSON.parse(event.data));
        kept.ids.push(event.lastEventId);
      };
      return kept;
    }, path);
    return Object.assign(new Source(), { handle });
  }

  connections() {
    return this.handle.evaluate((kept) => kept.connections);
  }

  isClosed() {
    return this.handle.evaluate((kept) => kept.source.readyState === EventSource.CLOSED);
  }

  events() {
    return this.handle.evaluate((kept) => kept.events);
  }

  ids() {
    return this.handle.evaluate((kept) => kept.ids);
  }

  /** How many events of this type there were. */
  count(type) {
    return this.handle.evaluate((kept, type) => kept.events.filter((event) => event.type === type).length, type);
  }

  async close() {
    await this.handle.evaluate((kept) => kept.source.close());
  }
}
