// The page: its parts, put together.

import { Chat } from "./chat.js";
import { Composer } from "./composer.js";
import { Conversation } from "./conversation.js";
import { button, byId } from "./dom.js";
import { Engine } from "./engine.js";
import { Messages } from "./messages.js";
import { activity, key } from "./server.js";
import { Settings } from "./settings.js";
import { declared } from "./tools.js";

const EVERY = 2000; // milliseconds between two looks at the engine
const NARROW = matchMedia("(max-width: 60rem)");

let calls = null; // the path of the calls, from the server
let served = ""; // what it serves, as it was told last
let asking = null; // a promise of the server's first answer
let watching = false;
let ahead = activity(); // it is on its way while the page is put together
ahead.catch(() => {}); // who waits for it tells

const settings = new Settings(() => {
  if (served) settings.know(settings.served, settings.others);
  composer.letSee(settings.can("images"));
});
const engine = new Engine();
const chat = new Chat(Conversation.kept(), { how, changed, keyWanted, tell });
const messages = new Messages(chat, (text) => { composer.set(text); composer.submit(); });
const composer = new Composer({ ask: (text, pictures) => { tell(""); messages.follows = true; chat.ask(text, pictures); }, stop: () => chat.stop(), editLast, told: tell });

async function how() {
  await known();
  const tools = settings.can("tools") ? declared(settings.now) : [];
  return { calls, system: settings.now.system, options: { ...settings.options, ...(tools.length ? { tools } : {}) } };
}

function changed(node) {
  composer.show(chat.busy);
  if (node) messages.draw(node);
  else messages.drawAll();
}

function keyWanted(error) {
  askForKey(key.get() ? error.message : "");
}

function tell(text, ...actions) {
  byId("notice").replaceChildren(text, ...actions);
  byId("notice").hidden = !text;
  byId("notice").classList.toggle("mild", actions.length > 0);
}

// A new conversation. The one before can be brought back until something else is told.
function begin(conversation) {
  const before = chat.begin(conversation);
  tell("");
  if (before.root.children.length && !conversation.root.children.length) {
    tell("This is a new conversation. ", button("Bring the last one back", () => begin(before)));
  }
  composer.field.focus();
}

function editLast() {
  const last = chat.conversation.path().findLast((node) => node.role === "human");
  if (last && !chat.busy) messages.edit(last);
}

// The server, as it answers first. A key may have to be given before.
function known() {
  asking ??= look().catch((error) => { asking = null; throw error; });
  return asking;
}

async function look() {
  const coming = ahead ?? activity();
  ahead = null;
  const told = await coming;
  calls = told.calls;
  const now = JSON.stringify([told.served, told.others]);
  if (now !== served) {
    served = now;
    settings.know(told.served, told.others);
    composer.letSee(settings.can("images"));
  }
  if (isOpen()) engine.show(told);
}

// Look at the engine again and again, as long as somebody sees it.
async function watch() {
  if (watching) return;
  watching = true;
  while (!document.hidden && (isOpen() || !calls) && !byId("key").open) {
    try {
      await (calls ? look() : known());
      if (byId("notice").dataset.lost) { delete byId("notice").dataset.lost; tell(""); }
    } catch (error) {
      if (error.wantsKey) keyWanted(error);
      else { byId("notice").dataset.lost = "yes"; tell(error.message); }
    }
    await new Promise((done) => setTimeout(done, EVERY));
  }
  watching = false;
}

const isOpen = () => byId("toggle-engine").getAttribute("aria-pressed") === "true";

function toggle(open) {
  byId("toggle-engine").setAttribute("aria-pressed", String(open));
  document.body.classList.toggle("with-engine", open);
  byId("engine").hidden = !open;
  watch();
}

function askForKey(problem) {
  const dialog = byId("key");
  byId("key-problem").textContent = problem;
  if (!dialog.open) dialog.showModal();
  byId("key-field").focus();
}

byId("key-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const given = byId("key-field").value.trim();
  if (!/^[\x21-\x7e]+$/.test(given)) return askForKey("Expected letters, digits and signs without spaces. Copy the key again.");
  key.set(given);
  try {
    await look();
    byId("key-field").value = "";
    byId("key").close();
    watch();
    composer.field.focus();
  } catch (error) {
    if (error.wantsKey) key.forget();
    askForKey(error.message);
  }
});
byId("key").addEventListener("cancel", (event) => event.preventDefault()); // nothing can be done without

byId("new-chat").addEventListener("click", () => begin(new Conversation()));
byId("toggle-engine").addEventListener("click", () => toggle(!isOpen()));

addEventListener("keydown", (event) => {
  const writes = ["TEXTAREA", "INPUT", "SELECT"].includes(event.target.tagName);
  if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape" && chat.busy) chat.stop();
  else if (event.key === "/" && !writes) { event.preventDefault(); composer.field.focus(); }
  else if (event.key === "." && event.ctrlKey) toggle(!isOpen());
});

addEventListener("pagehide", () => { chat.stop(); chat.conversation.keep(); }); // with what was written so far

document.addEventListener("visibilitychange", watch);

toggle(!NARROW.matches);
messages.drawAll();
composer.field.focus();
