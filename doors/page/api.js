// Talks to the server that the page came from, and to no other.
import { ask, h, toast } from "/app/dom.js";

const KEY = "modeshift-token"; // in this tab, until it is closed

export class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

export class Unreachable extends Error {}

let asking = null;

function askForToken() {
  asking ??= (async () => {
    const input = h("input", { type: "password", autocomplete: "off", required: true, "aria-label": "Token" });
    const text = "The server asks for a token: one of those in its AUTH_TOKEN. It is kept in this tab alone.";
    await ask("Token", [h("p", {}, text), input], [["ok", "Continue", "main"]]);
    sessionStorage.setItem(KEY, input.value.trim());
    asking = null;
  })();
  return asking;
}

async function request(method, path, body, { signal, headers } = {}) {
  const token = sessionStorage.getItem(KEY);
  let answer;
  try {
    answer = await fetch(path, {
      method,
      signal,
      headers: {
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(token ? { authorization: `Bearer ${token}` } : {}),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Unreachable("the server does not answer");
  }
  if (answer.status === 401) {
    await askForToken();
    return request(method, path, body, { signal, headers });
  }
  if (!answer.ok) {
    const text = await answer.text();
    let detail = text;
    try {
      detail = JSON.parse(text).detail ?? text;
    } catch { /* no JSON: as it is */ }
    throw new Refused(answer.status, typeof detail === "string" ? detail : JSON.stringify(detail));
  }
  return answer;
}

export async function call(method, path, body, options) {
  const answer = await request(method, path, body, options);
  const text = await answer.text();
  return text ? JSON.parse(text) : null;
}

// What was refused is said to the person; null then.
export async function attempt(action) {
  try {
    return await action();
  } catch (error) {
    toast(error.message);
    return null;
  }
}

// Server-sent events, as [name, data].
export async function* stream(method, path, body, options) {
  const answer = await request(method, path, body, options);
  options?.onopen?.();
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", name = "", data = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      for (const line of lines) {
        if (line.startsWith("event:")) name = line.slice(6).trim();
        else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
        else if (line === "" && name) {
          yield [name, data.length ? JSON.parse(data.join("\n")) : null];
          [name, data] = ["", []];
        }
      }
    }
  } catch (error) {
    if (options?.signal?.aborted) throw error;
    throw new Unreachable("the connection has broken off");
  } finally {
    reader.cancel().catch(() => {});
  }
}
