// The engine, live: what it does at this second, and where a request's time went.

import { byId, bytes, el, keepFocus, merge, seconds, svg, whole } from "./dom.js";

const MOST_SHOWN = 6; // requests
const HISTORY = 60; // seconds that the curve of tokens remembers
const CELL = 9; // pixels of a page in the picture of a pool

export class Engine {
  constructor() {
    this.panel = byId("engine");
    this.rates = [];
    this.before = null;
    this.parts = Object.fromEntries(["now", "pools", "requests", "models", "guards"].map((name) => [name, el("section", { class: name })]));
    this.panel.replaceChildren(...Object.values(this.parts));
  }

  show(told) {
    this.measure(told);
    this.draw("now", this.now(told));
    this.draw("requests", requests(told));
    const pages = JSON.stringify(told.pools);
    if (pages !== this.pages) this.draw("pools", pools(told));
    this.pages = pages;
    this.draw("models", models(told));
    this.draw("guards", guards(told));
  }

  // Change what differs from the last look, and keep open what a reader has opened.
  draw(name, made) {
    const part = this.parts[name];
    const open = new Set([...part.querySelectorAll("details[open] > summary")].map((each) => each.dataset.place));
    const now = el("section", {}, made);
    for (const each of now.querySelectorAll("summary")) each.parentElement.open = open.has(each.dataset.place);
    keepFocus(part, () => merge(part, now));
  }

  measure(told) {
    const { before } = this;
    if (before && told.at > before.at && told.generated_tokens >= before.generated_tokens) {
      this.rates.push({ at: told.at, rate: (told.generated_tokens - before.generated_tokens) / (told.at - before.at) });
      this.rates = this.rates.filter(({ at }) => at > told.at - HISTORY);
    }
    this.before = told;
  }

  now(told) {
    const rate = this.rates.at(-1)?.rate ?? 0;
    const read = told.reused_tokens + told.prefilled_tokens;
    const tile = (name, value) => el("div", { class: "tile" }, el("dt", {}, name), el("dd", {}, value));
    return [
      el("h2", {}, "Engine"),
      el("dl", { class: "tiles" },
        tile("Tokens a second", whole(rate)),
        tile("Running", whole(told.running)),
        tile("Waiting", whole(told.waiting)),
        tile("Known tokens", read ? `${Math.round((100 * told.reused_tokens) / read)} %` : "–")),
      this.curve(told.at),
    ];
  }

  curve(now) {
    const most = Math.max(10, ...this.rates.map(({ rate }) => rate));
    const points = this.rates.map(({ at, rate }) => `${(100 * (1 - (now - at) / HISTORY)).toFixed(1)},${(38 - (36 * rate) / most).toFixed(1)}`);
    const shape = points.length > 1 ? [svg("polygon", { points: `${points[0].split(",")[0]},40 ${points.join(" ")} 100,40` }), svg("polyline", { points: points.join(" ") })] : [];
    return svg("svg", { class: "curve", viewBox: "0 0 100 40", preserveAspectRatio: "none", role: "img", "aria-label": `Tokens a second in the last minute, at most ${whole(most)}` }, shape);
  }
}

function requests(told) {
  const latest = told.requests.slice(-MOST_SHOWN).reverse();
  const longest = Math.max(0.001, ...latest.map((each) => each.total_s));
  return [
    el("h2", {}, "Requests"),
    latest.length ? el("ol", { class: "list" }, latest.map((each) => request(each, longest))) : el("p", { class: "quiet" }, "None since this page was opened."),
    el("p", { class: "legend", "aria-hidden": "true" }, [["queue", "waited"], ["read", "read"], ["write", "wrote"]].map(([name, text]) => el("span", {}, el("i", { class: name }), text))),
  ];
}

function request(each, longest) {
  const first = each.first_token_s ?? each.total_s;
  const parts = { queue: each.queued_s, read: Math.max(0, first - each.queued_s), write: Math.max(0, each.total_s - first) };
  const bar = el("div", { class: "bar-of-time", role: "img", "aria-label": `waited ${seconds(parts.queue)}, read ${seconds(parts.read)}, wrote ${seconds(parts.write)}` },
    Object.entries(parts).map(([name, took]) => {
      const part = el("i", { class: name });
      part.style.width = `${(100 * took) / longest}%`;
      return part;
    }));
  const state = each.outcome ?? (each.running ? (each.generated_tokens ? "writing" : "reading") : "waiting");
  return el("li", { class: each.failed ? "bad" : each.outcome ? "over" : "open" },
    el("div", { class: "line" }, el("strong", {}, `#${each.number}`), el("span", { class: "name" }, each.model), el("span", { class: "tag" }, state)),
    bar,
    el("div", { class: "line quiet" },
      el("span", {}, `${whole(each.reused_tokens)} of ${whole(each.prompt_tokens)} known, ${whole(each.generated_tokens)} written${each.compiled ? `, ${each.compiled} compiled` : ""}`),
      el("span", {}, seconds(each.total_s))));
}

function pools(told) {
  if (!told.pools.length) return [el("h2", {}, "Pages"), el("p", { class: "quiet" }, "No conversation is in memory.")];
  return [
    el("h2", {}, "Pages"),
    told.pools.map(pool),
    el("p", { class: "legend", "aria-hidden": "true" }, [["busy", "running"], ["kept", "kept"], ["shared", "shared"], ["free", "free"]].map(([name, text]) => el("span", {}, el("i", { class: name }), text))),
  ].flat();
}

function pool(each) {
  const columns = 32;
  const rows = Math.max(1, Math.ceil(each.busy.length / columns));
  const cells = each.busy.map((busy, n) => {
    const state = busy ? "busy" : each.shared[n] ? "shared" : each.kept[n] ? "kept" : "free";
    return svg("rect", { class: state, x: (n % columns) * CELL, y: Math.floor(n / columns) * CELL, width: CELL - 1.5, height: CELL - 1.5, rx: 1.5 });
  });
  const told = `${whole(each.used)} of ${whole(each.pages)} pages, ${bytes(each.used * each.page_bytes)}`;
  return el("figure", { class: "pool" },
    el("figcaption", { class: "line" }, el("span", { class: "name" }, `${each.model}, ${each.kind}`), el("span", { class: "quiet" }, told)),
    svg("svg", { viewBox: `0 0 ${columns * CELL} ${rows * CELL}`, role: "img", "aria-label": `${each.model}, ${each.kind} layers: ${told}; ${each.page_tokens} tokens a page, ${each.pages_per_cell} pages a square` }, cells));
}

function models(told) {
  const gone = told.evictions.slice(-8).reverse();
  return [
    el("h2", {}, "Models in memory"),
    el("ul", { class: "list" }, told.models.map(model)),
    gone.length ? el("details", {}, el("summary", { data: { place: "gone" } }, `Why something went (${told.evictions.length})`),
      el("ul", { class: "list" }, gone.map((each) => el("li", {}, el("strong", {}, each.model), ` ${each.what}, ${bytes(each.nbytes)}: ${each.reason}`)))) : null,
  ].filter(Boolean);
}

function model(each) {
  const state = each.state === "resident" ? (each.leases ? `used by ${each.leases}` : `idle for ${seconds(each.idle_s)}`) : each.state;
  const sizes = [["weights", each.weights], ["conversations", each.kv], ["workspace", each.workspace], ["in host memory", each.host_kv]].filter(([, size]) => size);
  return el("li", {},
    el("div", { class: "line" }, el("span", { class: "name" }, each.name), el("span", { class: "tag" }, each.pinned ? `${state}, pinned` : state)),
    el("div", { class: "quiet" }, sizes.map(([name, size]) => `${bytes(size)} ${name}`).join(" · ") || "nothing in memory"));
}

function guards(told) {
  const kinds = Object.entries(told.trips);
  const latest = told.latest_trips.slice(-6).reverse();
  return [
    el("h2", {}, "Guards"),
    kinds.length ? el("p", {}, kinds.map(([name, count]) => el("span", { class: "tag bad" }, `${name}: ${whole(count)}`))) : el("p", { class: "quiet" }, "None was tripped."),
    latest.length ? el("details", {}, el("summary", { data: { place: "trips" } }, "The latest"),
      el("ul", { class: "list" }, latest.map((each) => el("li", {}, el("strong", {}, each.guard), ` ${seconds(each.s_ago)} ago: ${each.reason}.`, el("div", { class: "quiet" }, each.advice))))) : null,
  ].filter(Boolean);
}
