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
    const input = h("input", {
      type: "password",
      autocomplete: "off",
      required: true,
      "aria-label": "Token",
    });
    const text =
      "The server asks for a token: one of those in its AUTH_TOKEN. It is kept in this tab alone.";
    await ask("Token", [h("p", {}, text), input], ["ok", "Continue", "main"]);
    sessionStorage.setItem(KEY, input.value.trim());
    asking = null;
  })();
  return asking;
}

async function request(method, path, body, { signal, headers } = {}) {
  const token = sessionStorage.getItem(KEY),
    sent = { ...headers };
  if (body !== undefined) sent["content-type"] = "application/json";
  if (token) sent.authorization = `Bearer ${token}`;
  const answer = await fetch(path, {
    method,
    signal,
    headers: sent,
    body: JSON.stringify(body),
  }).catch((error) => {
    throw signal?.aborted ? error : new Unreachable("the server does not answer");
  });
  if (answer.status === 401) {
    await askForToken();
    return request(method, path, body, { signal, headers });
  }
  if (!answer.ok)
    throw new Refused(
      answer.status,
      explain(await answer.text()) || `the server answered ${answer.status}`,
    );
  return answer;
}

// What a refusal says: the "detail" of its JSON, Aegra's "message", FastAPI's list, or all of it.
function explain(text) {
  try {
    const { detail, message } = JSON.parse(text);
    return [detail ?? message ?? text]
      .flat()
      .map((one) =>
        one.msg
          ? `${one.loc.join(".")}: ${one.msg}`
          : typeof one === "string"
            ? one
            : JSON.stringify(one),
      )
      .join("; ");
  } catch {
    return text;
  }
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
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const events = (rest + value).split(/\r?\n\r?\n/);
      rest = events.pop();
      for (const event of events) {
        const name = readField(event, "event"),
          data = readField(event, "data");
        if (name) yield [name, data ? JSON.parse(data) : null];
      }
    }
  } catch (error) {
    if (options?.signal?.aborted) throw error;
    throw new Unreachable("the connection has broken off");
  } finally {
    reader.cancel().catch(() => {});
  }
}

function readField(event, name) {
  const lines = event.split(/\r?\n/).filter((line) => line.startsWith(`${name}:`));
  return lines.map((line) => line.slice(name.length + 1).trim()).join("\n");
}
