// Where a question is written: the field, and pictures that are dropped, pasted or chosen.

import { button, byId, el } from "./dom.js";

const MOST_SIDE = 1600; // pixels: what is larger is made smaller before it is sent ...
const MOST_BYTES = 3_000_000; // ... and so is what has more bytes

export class Composer {
  constructor({ ask, stop, editLast, told }) {
    Object.assign(this, { ask, stop, editLast, told, pictures: [], adding: Promise.resolve(), sees: true });
    this.field = byId("question");
    byId("composer").addEventListener("submit", (event) => { event.preventDefault(); this.submit(); });
    byId("stop").addEventListener("click", () => { stop(); this.field.focus(); });
    byId("attach").addEventListener("click", () => byId("files").click());
    byId("files").addEventListener("change", (event) => { this.add([...event.target.files]); event.target.value = ""; });
    this.field.addEventListener("input", () => this.fit());
    this.field.addEventListener("keydown", (event) => this.pressed(event));
    this.field.addEventListener("paste", (event) => this.add([...event.clipboardData.files]));
    this.takeDrops();
  }

  pressed(event) {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.submit();
    } else if (event.key === "ArrowUp" && !this.field.value) {
      event.preventDefault();
      this.editLast();
    }
  }

  async submit() {
    await this.adding; // a picture that was dropped just now belongs to the question
    const text = this.field.value.trim();
    if (this.busy || !(text || this.pictures.length)) return;
    const { pictures } = this;
    this.pictures = [];
    this.set("");
    this.drawPictures();
    this.ask(text, pictures);
  }

  set(text) {
    this.field.value = text;
    this.fit();
  }

  fit() {
    this.field.style.height = "auto";
    this.field.style.height = `${Math.min(this.field.scrollHeight, 240)}px`;
  }

  show(busy) {
    if (busy === this.busy) return;
    this.busy = busy;
    byId("send").hidden = busy;
    byId("stop").hidden = !busy;
  }

  letSee(sees) {
    this.sees = sees;
    byId("attach").disabled = !sees;
    byId("attach").title = sees ? "Add a picture; or drop it anywhere" : "This model sees no pictures";
  }

  takeDrops() {
    const has = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
    addEventListener("dragover", (event) => { if (has(event)) { event.preventDefault(); byId("drop").hidden = false; } });
    addEventListener("dragleave", (event) => { if (!event.relatedTarget) byId("drop").hidden = true; });
    addEventListener("drop", (event) => {
      byId("drop").hidden = true;
      if (has(event)) { event.preventDefault(); this.add([...event.dataTransfer.files]); }
    });
  }

  add(files) {
    if (!files.length) return;
    if (!this.sees) return this.told("This model sees no pictures. Choose one that does.");
    this.adding = this.adding.then(() => this.addAll(files));
  }

  async addAll(files) {
    for (const file of files) {
      try {
        this.pictures.push(await picture(file));
      } catch {
        this.told(`${file.name} is no picture that this browser can read.`);
      }
    }
    this.drawPictures();
    this.field.focus();
  }

  drawPictures() {
    const listed = byId("pictures");
    listed.hidden = !this.pictures.length;
    listed.replaceChildren(...this.pictures.map((each, number) => el("li", {},
      el("img", { src: `data:${each.kind};base64,${each.data}`, alt: each.name }),
      button("×", () => { this.pictures.splice(number, 1); this.drawPictures(); this.field.focus(); }, { "aria-label": `Remove ${each.name}` }))));
  }
}

async function picture(file) {
  const bitmap = await createImageBitmap(file);
  const scale = Math.min(1, MOST_SIDE / Math.max(bitmap.width, bitmap.height));
  let blob = file;
  if (scale < 1 || file.size > MOST_BYTES || !["image/png", "image/jpeg"].includes(file.type)) {
    const canvas = el("canvas", { width: Math.round(bitmap.width * scale), height: Math.round(bitmap.height * scale) });
    canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    blob = await new Promise((done) => canvas.toBlob(done, file.type === "image/png" ? "image/png" : "image/jpeg", 0.9));
  }
  bitmap.close();
  const url = await new Promise((done, failed) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => done(reader.result));
    reader.addEventListener("error", failed);
    reader.readAsDataURL(blob);
  });
  return { name: file.name || "picture", kind: blob.type, data: url.slice(url.indexOf(",") + 1) };
}
