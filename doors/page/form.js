// A form for a call's arguments, by the tool's JSON schema; the raw JSON beside it.
import { button, h } from "/app/dom.js";

let count = 0;

export function argumentsForm(schema, args) {
  const form = objectField({ ...schema, isRoot: true }, args, schema.$defs ?? {});
  const raw = h("textarea", { rows: 12, "aria-label": "Arguments as JSON", spellcheck: "false", value: JSON.stringify(args, null, 2) });
  const fields = h("div", {}, form.node), json = h("div", { hidden: true }, raw);
  let isRaw = false;
  const tabs = [button("Form", () => choose(false)), button("Raw JSON", () => choose(true))];
  function choose(wantsRaw) {
    if (wantsRaw && !isRaw) raw.value = JSON.stringify(form.read(), null, 2);
    if (!wantsRaw && isRaw) {
      const again = objectField({ ...schema, isRoot: true }, JSON.parse(raw.value), schema.$defs ?? {});
      form.read = again.read;
      fields.replaceChildren(again.node);
    }
    isRaw = wantsRaw;
    fields.hidden = isRaw;
    json.hidden = !isRaw;
    tabs.forEach((tab, n) => tab.setAttribute("aria-pressed", String((n === 1) === isRaw)));
  }
  choose(false);
  return {
    node: h("div", { class: "form" }, h("div", { class: "row" }, tabs), fields, json),
    read: () => (isRaw ? JSON.parse(raw.value) : form.read()),
  };
}

function resolve(schema, defs) {
  if (schema.$ref) return resolve(defs[schema.$ref.split("/").at(-1)] ?? {}, defs);
  const some = schema.anyOf?.filter((one) => one.type !== "null");
  return some?.length === 1 ? { ...schema, ...resolve(some[0], defs), isOptional: true } : schema;
}

function field(given, value, defs) {
  const schema = resolve(given, defs);
  if (schema.enum) return choice(schema.enum, value, schema);
  if (schema.type === "boolean") return checkbox(value);
  if (schema.type === "integer" || schema.type === "number") return number(value);
  if (schema.type === "string") return text(value, schema);
  if (schema.type === "object" && schema.properties) return objectField(schema, value ?? {}, defs);
  if (schema.type === "array" && schema.items) return listField(schema, value, defs);
  return json(value);
}

function text(value, schema) {
  const node = h("textarea", { rows: Math.min(14, Math.max(1, String(value ?? "").split("\n").length)), spellcheck: "false", value: value ?? "" });
  return { node, read: () => (node.value === "" && value == null && schema.isOptional ? undefined : node.value) };
}

function choice(names, value, schema) {
  const node = h("select", {}, schema.isOptional ? h("option", { value: "" }, "(none)") : null, names.map((one) => h("option", { selected: one === value }, one)));
  return { node, read: () => node.value || undefined };
}

function checkbox(value) {
  const node = h("input", { type: "checkbox" });
  node.checked = Boolean(value);
  return { node, read: () => node.checked };
}

function number(value) {
  const node = h("input", { type: "number", step: "any", value: value ?? "" });
  return { node, read: () => (node.value === "" ? undefined : Number(node.value)) };
}

function json(value) {
  const node = h("textarea", { rows: 3, spellcheck: "false", value: value === undefined ? "" : JSON.stringify(value, null, 1) });
  return { node, read: () => (node.value.trim() === "" ? undefined : JSON.parse(node.value)) };
}

function objectField(schema, values, defs) {
  const fields = Object.entries(schema.properties ?? {}).map(([name, one]) => [name, field(one, values[name], defs), one]);
  const rows = fields.map(([name, { node }, { description }]) => {
    const id = `field-${++count}`;
    const target = node.matches("input, textarea, select") ? node : null;
    if (target) target.id = id;
    return h("div", { class: "field" }, target ? h("label", { for: id }, name) : h("div", { class: "label" }, name),
      description ? h("p", { class: "faint" }, description) : null, node);
  });
  const read = () => Object.fromEntries(fields.map(([name, one]) => [name, one.read()]).filter(([, value]) => value !== undefined));
  return { node: h("div", { class: schema.isRoot ? "" : "inner" }, rows), read };
}

function listField(schema, values, defs) {
  let items = [];
  const list = h("div", {});
  const add = (value) => {
    const one = field(schema.items, value, defs);
    const row = h("div", { class: "item" }, one.node, button("Remove", () => {
      items = items.filter((other) => other !== one);
      row.remove();
    }, { class: "quiet" }));
    items.push(one);
    list.append(row);
  };
  (values ?? []).forEach(add);
  const node = h("div", {}, list, button("Add", () => add(undefined), { class: "quiet" }));
  return { node, read: () => (items.length || values != null ? items.map((one) => one.read()) : undefined) };
}
