// What all views share: elements, one row's parts, and the talk with the model.
//
// Texts of rows only ever become text nodes.

const SVG = "http://www.w3.org/2000/svg";
const SIGNS = { yes: "✓", unsure: "?", no: "✗" };

function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name.startsWith("aria-")) made.setAttribute(name, String(value));
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function s(tag, attributes = {}) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

const number = (count) => count.toLocaleString("en-US");
const digits = (value) => (value === null || value === undefined ? "–" : value.toFixed(2));

function button(text, title, onclick, more = {}) {
  return h("button", { type: "button", class: "sk-button", title, onclick, ...more }, text);
}

function block(title, text, open = true) {
  return text === null || text === undefined ? null : h("details", { class: "sk-block", open }, h("summary", {}, title), h("div", { class: "sk-text" }, text));
}

function statement({ text, result, reason }, lower) {
  const kind = result === "unsure" || !result ? "unsure" : (result === "yes") !== lower ? "good" : "bad";
  return h("li", { class: `sk-statement sk-${kind}` }, h("span", { class: "sk-verdict" }, `${SIGNS[result] ?? "·"} ${result ?? "not judged"}`),
    h("div", {}, h("div", { class: "sk-text" }, text), reason ? h("div", { class: "sk-faint" }, reason) : ""));
}

function result(found) {
  const title = h("div", { class: "sk-result" }, h("b", {}, found.name), ` ${digits(found.score)}`, found.lower ? h("span", { class: "sk-faint" }, " lower is better") : "",
    found.error ? h("span", { class: "sk-error" }, ` ${found.error}`) : "", found.judge ? h("span", { class: "sk-faint" }, ` by ${found.judge}`) : "");
  const steps = Object.entries(found.steps);
  return h("section", {}, title, found.reason ? h("div", { class: "sk-text sk-reason" }, found.reason) : "",
    found.statements.length ? h("ol", { class: "sk-statements" }, ...found.statements.map((one) => statement(one, found.lower))) : "",
    steps.length ? h("details", { class: "sk-block" }, h("summary", {}, "step results"), pairs(steps)) : "",
    ...Object.entries(found.prompts).map(([name, text]) => block(`prompt of ${name}`, text, false)));
}

function pairs(entries) {
  return h("dl", { class: "sk-pairs" }, ...entries.flatMap(([name, value]) => [h("dt", {}, name), h("dd", { class: "sk-text" }, value)]));
}

function clip(text) {
  return text === undefined || text === null ? "" : text.length > 160 ? `${text.slice(0, 159)}…` : text;
}

// One message is under way at a time: kernels with subshells may handle two that come close together in the wrong order.
function messenger(model, state) {
  let asked = 0;       // number of the last message: the time, so that two outputs of one view never use the same
  let underWay = null; // the message that is not answered yet
  const queue = [];    // those behind it
  const unanswered = () => [underWay, ...queue].filter((message) => message);

  function send(message) {
    const last = queue.at(-1);
    if (message.do === "filters" && last?.do === "filters") queue.pop(); // a fast brush never queues up
    if (message.do === "step" && last?.do === "step" && message.by * last.by > 0) message.by += queue.pop().by;
    queue.push(message);
    if (underWay && Date.now() - underWay.asked > 10_000) underWay = null; // an answer that never comes must not stop the view
    next();
  }
  function next() {
    if (underWay || !queue.length) return;
    asked = Math.max(asked + 1, Date.now());
    underWay = { ...queue.shift(), asked };
    model.send(underWay);
  }
  function answered() {
    if (underWay && state().asked >= underWay.asked) { underWay = null; next(); }
  }
  return { send, answered, unanswered, pending: (kind) => unanswered().findLast((message) => message.do === kind) };
}

// Calls each function now and whenever the model changes what it shows; returns a function that ends this.
function follow(model, root, handlers) {
  // A button that is drawn anew or disabled takes the focus with it, and the keys would go to the notebook: its successor gets the focus, else the view.
  const keepingFocus = (handler) => () => {
    const before = document.activeElement;
    const inside = root.contains(before), name = before?.dataset?.focus;
    handler();
    if (!inside || (before.isConnected && !before.disabled)) return;
    const successor = name && [...root.querySelectorAll("[data-focus]")].find((one) => one.dataset.focus === name);
    (successor || root).focus({ preventScroll: true });
  };
  const follows = Object.entries(handlers).map(([event, handler]) => [event, keepingFocus(handler)]);
  for (const [event, handler] of follows) model.on(event, handler);
  for (const handler of Object.values(handlers)) handler();
  return () => { for (const [event, handler] of follows) model.off(event, handler); };
}
