// The turns of a session that others ask for, each given once and in their order, however many are waited for.

import { until } from "./server.mjs";

export class Turns {
  #known = new Set();
  #before = Promise.resolve();

  constructor(server, session) {
    Object.assign(this, { server, path: `/api/build/sessions/${session}/turns/active` });
  }

  /** One's own is no news. */
  know(turn) {
    this.#known.add(turn);
  }

  /** The next one that is not known, once all who asked before have theirs. */
  next() {
    const found = this.#before.then(() => this.#look());
    this.#before = found.catch(() => {});
    return found;
  }

  async #look() {
    const turn = await until("a turn to follow", async () => {
      const active = await this.server.json(this.path);
      return active && !this.#known.has(active.turn_id) && active.turn_id;
    });
    this.#known.add(turn);
    return turn;
  }
}
