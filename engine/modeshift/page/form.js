// A form for a call's arguments, by the tool's JSON schema; the raw JSON beside it.
// A field has a node and reads its value: undefined where there is none.
import { attempt } from "/app/api.js";
import { button, h } from "/app/dom.js";

let count = 0;

export function argumentsForm(schema, args) {
  const place = h("div", {}),
    tabs = [button("Form", () => choose(false)), button("Raw JSON", () => choose(true))];
  let shown = { read: () => args };
  const choose = (isRaw) =>
    attempt(() => {
      const now = shown.read();
      shown = isRaw ? jsonField(now, 4) : objectField(schema, now, schema.$defs ?? {});
      if (isRaw) shown.node.ariaLabel = "Arguments as JSON";
      place.replaceChildren(shown.node);
      tabs.forEach((tab, n) => tab.setAttribute("aria-pressed", String((n === 1) === isRaw)));
    });
  choose(false);
  return {
    node: h("div", { class: "form" }, h("div", { class: "row" }, tabs), place),
    read: () => shown.read(),
  };
}

function resolve(schema, defs) {
  if (schema.$ref) return resolve(defs[schema.$ref.split("/").at(-1)] ?? {}, defs);
  const some = schema.anyOf?.filter((option) => option.type !== "null");
  return some?.length === 1 ? { ...schema, ...resolve(some[0], defs), isOptional: true } : schema;
}

function makeField(declared, value, defs) {
  const schema = resolve(declared, defs);
  if (schema.enum) return choiceField(schema, value);
  if (schema.type === "boolean") return checkField(value);
  if (schema.type === "integer" || schema.type === "number") return numberField(value);
  if (schema.type === "string") return textField(schema, value);
  if (schema.type === "object" && schema.properties) return objectField(schema, value ?? {}, defs);
  if (schema.type === "array" && schema.items) return listField(schema, value, defs);
  return jsonField(value, 3);
}

const textArea = (rows, value) => h("textarea", { rows, spellcheck: "false", value });

function textField(schema, value) {
  const node = textArea(Math.min(14, String(value ?? "").split("\n").length), value ?? "");
  return {
    node,
    read: () => (node.value === "" && value == null && schema.isOptional ? undefined : node.value),
  };
}

function jsonField(value, rows) {
  const node = textArea(rows, value === undefined ? "" : JSON.stringify(value, null, 2));
  return { node, read: () => (node.value.trim() ? JSON.parse(node.value) : undefined) };
}

function choiceField(schema, value) {
  const none = schema.isOptional ? h("option", { value: "" }, "(none)") : null;
  const node = h(
    "select",
    {},
    none,
    schema.enum.map((option) => h("option", { selected: option === value }, option)),
  );
  return { node, read: () => schema.enum[node.selectedIndex - (none ? 1 : 0)] };
}

function checkField(value) {
  const node = h("input", { type: "checkbox", checked: Boolean(value) });
  return { node, read: () => node.checked };
}

function numberField(value) {
  const node = h("input", { type: "number", step: "any", value: value ?? "" });
  return { node, read: () => (node.value === "" ? undefined : Number(node.value)) };
}

// With what is given beside the schema: nothing of a call is left out.
function objectField(schema, values, defs) {
  const others = Object.keys(values).map((name) => [name, {}]);
  const fields = Object.entries({ ...Object.fromEntries(others), ...schema.properties }).map(
    ([name, property]) => {
      const field = makeField(property, values[name], defs),
        id = `field-${++count}`;
      const isOne = field.node.matches("input, textarea, select");
      if (isOne) field.node.id = id;
      const label = h(isOne ? "label" : "div", { class: "label", for: isOne ? id : null }, name);
      const about = property.description ? h("p", { class: "faint" }, property.description) : null;
      return {
        name,
        read: field.read,
        row: h("div", { class: "field" }, label, about, field.node),
      };
    },
  );
  const read = () =>
    Object.fromEntries(
      fields.map((field) => [field.name, field.read()]).filter(([, value]) => value !== undefined),
    );
  return {
    node: h(
      "div",
      { class: "inner" },
      fields.map((field) => field.row),
    ),
    read,
  };
}

function listField(schema, values, defs) {
  const items = new Set(),
    list = h("div", {});
  const add = (value) => {
    const field = makeField(schema.items, value, defs);
    const remove = () => {
      items.delete(field);
      row.remove();
    };
    const row = h(
      "div",
      { class: "item" },
      field.node,
      button("Remove", remove, { class: "quiet" }),
    );
    items.add(field);
    list.append(row);
  };
  (values ?? []).forEach(add);
  const node = h(
    "div",
    {},
    list,
    button("Add", () => add(undefined), { class: "quiet" }),
  );
  return {
    node,
    read: () => (items.size || values != null ? [...items].map((item) => item.read()) : undefined),
  };
}
