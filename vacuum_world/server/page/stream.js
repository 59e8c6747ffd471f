// Following the world: one stream of events, begun again whenever it ends.

const PATIENCE = [500, 1000, 2000, 4000];

/** Every `data:` of an event stream, parsed. */
async function* messages(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    waiting += value.replaceAll("\r", "");
    const blocks = waiting.split("\n\n");
    waiting = blocks.pop();
    for (const block of blocks) {
      const data = block.split("\n").filter((line) => line.startsWith("data:"));
      if (data.length) yield JSON.parse(data.map((line) => line.slice(5)).join("\n"));
    }
  }
}

/** Who watches the world: an onlooker, or with a token the experimenter. */
export class Stream {
  constructor({ onChange, onState, onRefused }) {
    Object.assign(this, { onChange, onState, onRefused });
    this.token = "";
    this.ending = new AbortController();
  }

  get headers() {
    return this.token ? { Authorization: `Bearer ${this.token}` } : {};
  }

  /** Follows until started with another token; reconnects when the world is back. */
  async follow(token = this.token) {
    this.ending.abort();
    this.ending = new AbortController();
    const { signal } = this.ending;
    this.token = token;
    let failures = 0;
    while (!signal.aborted) {
      const shown = await this.#once(signal).catch(() => false);
      if (signal.aborted) return;
      failures = shown ? 0 : failures + 1;
      this.onState("lost");
      await new Promise((resolve) => setTimeout(resolve, PATIENCE[Math.min(failures, PATIENCE.length - 1)]));
    }
  }

  /** One connection; whether anything was shown before it ended. */
  async #once(signal) {
    const response = await fetch("/api/events", { headers: this.headers, signal });
    if (response.status === 401 || response.status === 403) {
      this.token = "";
      this.onRefused();
      return true;
    }
    let first = true;
    for await (const change of messages(response)) {
      this.onState("live");
      this.onChange(change, first);
      first = false;
    }
    return !first;
  }

  /** Asks for something; its answer, or an error with the world's reason. */
  async ask(method, path, body) {
    const headers = { ...this.headers, "Content-Type": "application/json" };
    let response;
    try {
      response = await fetch(path, { method, headers, body: JSON.stringify(body ?? {}) });
    } catch {
      throw new Error("the world does not answer; nothing is known of what was asked");
    }
    const answer = response.status === 204 ? {} : await response.json();
    if (!response.ok) throw new Error(answer.detail ?? `status ${response.status}`);
    return answer;
  }
}
