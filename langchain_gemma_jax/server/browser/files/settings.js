// What is asked for with each question: kept in this browser, for this server alone.

import { button, byId, el } from "./dom.js";
import { key } from "./server.js";
import { kept } from "./store.js";
import { OWN, typed } from "./tools.js";

const store = kept("localStorage", "settings");
const AT_FIRST = { model: "", light: "", heavy: "", other: "", system: "", thinking: false, temperature: "", max_tokens: "", seed: "", tools: [], ownTools: "", theme: "" };
const NUMBERS = [["temperature", "Temperature", "the model's", 0, 100, 0.1], ["max_tokens", "Most tokens", "no limit", 1, 1_000_000, 1], ["seed", "Seed", "a new one", 0, 2 ** 31 - 1, 1]];
const KEYS = [["Enter", "send"], ["Shift + Enter", "a new line"], ["Esc", "stop the answer"], ["↑", "in an empty field: edit the last question"], ["/", "to the question"], ["Ctrl + .", "show or hide the engine"]];

export const AUTO = "auto"; // a route: the model is chosen at each step

export class Settings {
  constructor(changed) {
    this.changed = changed;
    this.served = [];
    this.others = false;
    try {
      Object.assign(this, { now: { ...AT_FIRST, ...JSON.parse(store.get()) } });
    } catch {
      this.now = { ...AT_FIRST };
    }
    this.paint();
    byId("model").addEventListener("change", (event) => this.set({ model: event.target.value }));
    byId("open-settings").addEventListener("click", () => this.open());
  }

  set(facts) {
    Object.assign(this.now, facts);
    store.set(JSON.stringify(this.now));
    this.paint();
    this.changed();
  }

  paint() {
    if (this.now.theme) document.documentElement.dataset.theme = this.now.theme;
    else delete document.documentElement.dataset.theme;
  }

  // The server has told what it serves.
  know(served, others) {
    Object.assign(this, { served, others });
    const names = [...served.map(({ name }) => name), ...(others && this.now.other ? [this.now.other] : [])];
    if (![...names, ...(names.length > 1 ? [AUTO] : [])].includes(this.now.model)) this.now.model = names[0];
    for (const [size, name] of [["light", names[0]], ["heavy", names.at(-1)]]) if (!names.includes(this.now[size])) this.now[size] = name;
    const choose = byId("model");
    choose.replaceChildren(...names.map((name) => el("option", { value: name }, shortened(name))));
    if (names.length > 1) choose.append(el("option", { value: AUTO }, `auto: ${shortened(this.now.light)} or ${shortened(this.now.heavy)}`));
    choose.value = this.now.model;
    choose.disabled = false;
  }

  // Whether the model in question can see, think or call tools. What is not known may be.
  can(what) {
    const asked = this.now.model === AUTO ? [this.now.light, this.now.heavy] : [this.now.model];
    return asked.every((name) => this.served.find((each) => each.name === name)?.[what] !== false);
  }

  get options() {
    const { now } = this;
    const found = now.model === AUTO ? { model: AUTO, route: { light: now.light, heavy: now.heavy } } : { model: now.model };
    for (const [name] of NUMBERS) if (now[name] !== "") found[name] = Number(now[name]);
    if (now.thinking && this.can("thinking")) found.thinking = true;
    return found;
  }

  open() {
    const { now } = this;
    const dialog = byId("settings");
    const field = (name, label, made) => el("p", {}, el("label", { for: `set-${name}` }, label), Object.assign(made, { id: `set-${name}`, name }));
    const choice = (name, label, listed) => {
      const made = el("select", {}, listed.map(([value, text]) => el("option", { value }, text)));
      made.value = now[name];
      return field(name, label, made);
    };
    const area = (name, label, facts) => {
      const made = el("textarea", { spellcheck: "false", ...facts });
      made.value = now[name];
      return field(name, label, made);
    };
    const tick = (name, label, checked) => el("label", { class: "tick" }, el("input", { type: "checkbox", name, checked }), " ", label);
    const names = this.served.map(({ name }) => [name, name]);
    const told = el("p", { role: "alert", class: "problem", hidden: true });
    const form = el("form", { on: { submit: (event) => { event.preventDefault(); this.take(form, told) && dialog.close(); } } },
      el("h2", { id: "settings-title" }, "Settings"),
      area("system", "System prompt", { rows: 3, spellcheck: "true" }),
      names.length > 1 ? el("fieldset", {}, el("legend", {}, "The route “auto”: a size for each step"), choice("light", "Light", names), choice("heavy", "Heavy", names)) : null,
      this.others ? field("other", "Another model that the server may load", el("input", { value: now.other, placeholder: "a folder, a file, an id on the Hub", spellcheck: "false" })) : null,
      el("fieldset", {}, el("legend", {}, "Tools"),
        Object.entries(OWN).map(([name, { description }]) => tick(`tool-${name}`, `${name}: ${description}`, now.tools.includes(name))),
        area("ownTools", "Your own, as JSON. Results are typed in by you.", { rows: 3, placeholder: '[{"name": "weather", "description": "…", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]' })),
      el("fieldset", { class: "numbers" }, el("legend", {}, "How tokens are chosen"),
        NUMBERS.map(([name, label, placeholder, min, max, step]) => field(name, label, el("input", { type: "number", value: String(now[name]), placeholder, min: String(min), max: String(max), step: String(step) })))),
      this.can("thinking") ? tick("thinking", "Think before answering", now.thinking) : null,
      choice("theme", "Colors", [["", "as the system has them"], ["light", "light"], ["dark", "dark"]]),
      el("details", {}, el("summary", {}, "Keys"), el("dl", {}, KEYS.map(([pressed, does]) => el("div", {}, el("dt", {}, el("kbd", {}, pressed)), el("dd", {}, does))))),
      told,
      el("div", { class: "row" }, el("button", { class: "main" }, "Done"), button("Cancel", () => dialog.close()),
        key.get() ? button("Forget the API key", () => { key.forget(); location.reload(); }) : null));
    dialog.replaceChildren(form);
    dialog.showModal();
  }

  take(form, told) {
    const given = new FormData(form);
    const texts = ["system", "light", "heavy", "other", "ownTools", "theme", ...NUMBERS.map(([name]) => name)];
    const facts = Object.fromEntries(texts.filter((name) => given.has(name)).map((name) => [name, String(given.get(name))]));
    try {
      typed(facts.ownTools ?? "");
    } catch (error) {
      told.textContent = `Your own tools: expected a list of objects in JSON. ${error.message}`;
      told.hidden = false;
      return false;
    }
    if (this.can("thinking")) facts.thinking = given.has("thinking");
    facts.tools = Object.keys(OWN).filter((name) => given.has(`tool-${name}`));
    if (facts.other && facts.other !== this.now.other) facts.model = facts.other;
    this.set(facts);
    return true;
  }
}

function shortened(name) {
  const parts = name.replace(/\/+$/, "").split("/");
  return name.startsWith("/") || parts.length > 2 ? parts.at(-1) : name;
}
