// What a run's updates make of a thread's state, as the graph's reducers do.

const APPENDED = new Set(["mode_changes", "parents", "subtasks", "instructions"]);

export function applyUpdate(values, update) {
  const changed = { ...values };
  for (const [key, value] of Object.entries(update)) {
    if (value?.type === "__overwrite__") changed[key] = value.value;
    else if (key === "messages")
      changed.messages = addMessages(values.messages ?? [], [value].flat());
    else if (APPENDED.has(key)) changed[key] = [...(values[key] ?? []), ...[value].flat()];
    else if (key === "usage")
      changed[key] = { ...values[key], ...("last" in value ? { last: value.last } : {}) };
    else changed[key] = value;
  }
  return changed;
}

function addMessages(messages, more) {
  const all = [...messages];
  for (const message of more) {
    const place = all.findIndex((earlier) => earlier.id === message.id);
    if (message.type === "remove") place >= 0 && all.splice(place, 1);
    else if (place >= 0) all[place] = message;
    else all.push(message);
  }
  return all;
}

// The new state with the old one's messages where they are the same, so that nothing is drawn anew.
export function keepEqual(old, values) {
  const known = new Map((old.messages ?? []).map((message) => [message.id, message]));
  const messages = (values.messages ?? []).map((message) =>
    isSame(known.get(message.id), message) ? known.get(message.id) : message,
  );
  return { ...values, messages };
}

function isSame(known, message) {
  return (
    known !== undefined &&
    known.type === message.type &&
    known.status === message.status &&
    textOf(known) === textOf(message) &&
    JSON.stringify(known.tool_calls) === JSON.stringify(message.tool_calls)
  );
}

// A message that streams: its pieces joined.
export function joinMessage(message, piece) {
  const calls = { ...message?.calls };
  for (const chunk of piece.tool_call_chunks ?? []) {
    const before = calls[chunk.index] ?? { name: "", args: "" };
    calls[chunk.index] = {
      id: chunk.id ?? before.id,
      name: before.name + (chunk.name ?? ""),
      args: before.args + (chunk.args ?? ""),
    };
  }
  return {
    id: piece.id,
    type: "ai",
    isLive: true,
    content: (message?.content ?? "") + textOf(piece),
    calls,
  };
}

// The images in a message, as addresses; null for what the page may not show: it fetches none.
export function imagesOf({ content }) {
  const images = Array.isArray(content)
    ? content.filter(({ type }) => type === "image" || type === "image_url")
    : [];
  const urls = images.map(
    (image) => image.image_url?.url ?? `data:${image.mime_type};base64,${image.base64}`,
  );
  return urls.map((url) => (/^data:image\/(png|jpeg|gif|webp);base64,/.test(url) ? url : null));
}

export function textOf({ content }) {
  if (typeof content === "string") return content;
  return (content ?? [])
    .map((block) => (typeof block === "string" ? block : (block.text ?? "")))
    .join("");
}
