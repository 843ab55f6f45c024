// Tools: a clock and a calculator that this page carries out, and a user's own, whose results are typed in.

export const OWN = {
  current_time: {
    description: "Return the date and the time now.",
    parameters: { type: "object", properties: { timezone: { type: "string", description: "such as Europe/Berlin" } } },
    run: ({ timezone }) => new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "long", timeZone: timezone || undefined }).format(new Date()),
  },
  calculate: {
    description: "Calculate the value of an expression with numbers, + - * / ^ and brackets.",
    parameters: { type: "object", properties: { expression: { type: "string" } }, required: ["expression"] },
    run: ({ expression }) => String(calculated(String(expression))),
  },
};

export function declared(settings) {
  const own = Object.entries(OWN).filter(([name]) => settings.tools.includes(name));
  return [...own.map(([name, { description, parameters }]) => ({ name, description, parameters })), ...typed(settings.ownTools)];
}

// A user's tools, as JSON: with or without OpenAI's frame around each.
export function typed(text) {
  if (!text.trim()) return [];
  const told = JSON.parse(text);
  return (Array.isArray(told) ? told : [told]).map((each) => {
    const { name, description = "", parameters = { type: "object", properties: {} } } = each.function ?? each;
    if (typeof name !== "string" || !name) throw new Error("each tool needs a name");
    return { name, description, parameters };
  });
}

// The result of a call: null where a person gives it.
export function carriedOut(call) {
  const tool = Object.hasOwn(OWN, call.name) ? OWN[call.name] : null;
  if (!tool) return null;
  try {
    return { text: tool.run(call.args), failed: false };
  } catch (error) {
    return { text: String(error.message || error), failed: true };
  }
}

const LEVELS = [{ "+": (a, b) => a + b, "-": (a, b) => a - b }, { "*": (a, b) => a * b, "/": (a, b) => a / b, "%": (a, b) => a % b }];

export function calculated(text) {
  const parts = text.replaceAll("×", "*").replaceAll("÷", "/").replaceAll("**", "^").match(/\d+\.?\d*(?:e[+-]?\d+)?|\.\d+|[-+*/%^()]|\S/gi) ?? [];
  let at = 0;
  const level = (depth) => {
    if (depth === LEVELS.length) return power();
    let value = level(depth + 1);
    while (Object.hasOwn(LEVELS[depth], parts[at] ?? "")) value = LEVELS[depth][parts[at++]](value, level(depth + 1));
    return value;
  };
  const power = () => {
    if (parts[at] === "-") return at++, -power();
    if (parts[at] === "+") return at++, power();
    const base = single();
    return parts[at] === "^" ? (at++, base ** power()) : base;
  };
  const single = () => {
    const part = parts[at++];
    if (part === "(") {
      const value = level(0);
      if (parts[at++] !== ")") throw new Error("a bracket is not closed");
      return value;
    }
    if (part === undefined || !/^[\d.]/.test(part)) throw new Error(`expected a number, found ${part ?? "the end"}`);
    return Number(part);
  };
  const value = level(0);
  if (at < parts.length) throw new Error(`expected the end, found ${parts[at]}`);
  return Number.parseFloat(value.toPrecision(15)); // 0.1 + 0.2 is 0.3
}
