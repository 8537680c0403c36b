// The view of side_by_side(): a scatter of one variant's scores against the baseline's, the pairs under a brush, and one pair in full.

const SIZE = 260, MARGIN = 8;
const VOTE_KEYS = { baseline: "b", variant: "v", tie: "t" };
const PAIR_ORDERS = { losses: "losses first", wins: "wins first", largest: "largest difference first", frame: "frame's order" };

function mountPairs(model, el) {
  const setup = model.get("setup"), writes = !setup.readonly;
  const root = h("div", { class: "sk sk-pairs-view", tabindex: "0", "data-lm-suppress-shortcuts": "true", role: "group", "aria-label": "scorekit side by side" });
  el.replaceChildren(root);
  const state = () => model.get("shown");
  const { send, pending, answered } = messenger(model, state);
  const filters = () => structuredClone(pending("filters")?.filters ?? state().filters ?? {});
  const change = (name, value) => { const wanted = filters(); if (value === null || value === "") delete wanted[name]; else wanted[name] = value; send({ do: "filters", filters: wanted }); };
  const choice = (label, options, onchange) => {
    const select = h("select", { "aria-label": label, onchange: () => onchange(select.value) }, ...options.map(([value, text]) => h("option", { value }, text)));
    return h("label", { class: "sk-field" }, h("span", {}, label), select);
  };

  const count = h("span", { class: "sk-count", "aria-live": "polite" });
  const search = h("input", { type: "search", class: "sk-search", placeholder: "search the texts", "aria-label": "search the texts" });
  let typed = null;
  search.addEventListener("input", () => { clearTimeout(typed); typed = setTimeout(() => change("text", search.value), 200); });
  const score = choice("score", setup.scores.map((name) => [name, name]), (name) => send({ do: "score", score: name }));
  const variant = choice("variant", setup.variants.map((name) => [name, name]), (name) => send({ do: "variant", variant: name }));
  const outcome = choice("outcome", [["", "all"], ["win", "wins"], ["tie", "ties"], ["loss", "losses"]], (name) => change("outcome", name));
  const voted = choice("vote", [["", "all"], ...setup.votes.map((vote) => [vote, vote]), ["none", "no vote"]], (vote) => change("vote", vote));
  const order = choice("read", setup.orders.map((name) => [name, PAIR_ORDERS[name] ?? name]), (name) => send({ do: "order", order: name }));
  const clear = button("Clear", "Take all filters away", () => send({ do: "filters", filters: {} }), { class: "sk-button sk-clear" });
  const problem = h("div", { class: "sk-problem", role: "alert" });

  // --- the scatter

  const svg = s("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, class: "sk-svg sk-scatter", role: "img", "aria-label": "scores of both sides" });
  const diagonal = s("line", { class: "sk-diagonal" }), dots = s("g", {}), ring = s("circle", { class: "sk-ring", r: 6 }), span = s("rect", { class: "sk-span", width: 0, height: 0 });
  svg.append(diagonal, dots, span, ring);
  const under = h("div", { class: "sk-faint" }), beside = h("div", { class: "sk-faint sk-ylabel" }), sampled = h("div", { class: "sk-faint" });
  const place = (value) => { const { low, high } = model.get("scatter"); return MARGIN + (value - low) / (high - low) * (SIZE - 2 * MARGIN); };
  const unplace = (pixel) => { const { low, high } = model.get("scatter"); return low + (pixel - MARGIN) / (SIZE - 2 * MARGIN) * (high - low); };
  const at = (event) => { const box = svg.getBoundingClientRect(); return [(event.clientX - box.left) / box.width * SIZE, SIZE - (event.clientY - box.top) / box.height * SIZE]; };
  let start = null, moved = false;
  const brush = ([x, y]) => [Math.min(start[0], x), Math.max(start[0], x), Math.min(start[1], y), Math.max(start[1], y)].map(unplace);
  function drawBrush(wanted) {
    const [x0, x1, y0, y1] = (wanted ?? [0, 0, 0, 0]).map((value) => wanted ? place(value) : 0);
    for (const [name, value] of Object.entries({ x: x0, y: SIZE - y1, width: x1 - x0, height: y1 - y0 })) span.setAttribute(name, Math.max(0, value));
  }
  svg.addEventListener("pointerdown", (event) => { start = at(event); moved = false; svg.setPointerCapture(event.pointerId); root.focus({ preventScroll: true }); event.preventDefault(); });
  svg.addEventListener("pointermove", (event) => {
    if (start === null) return;
    const here = at(event);
    if (!moved && Math.hypot(here[0] - start[0], here[1] - start[1]) < 4) return;
    moved = true;
    drawBrush(brush(here));
    change("brush", brush(here));
  });
  svg.addEventListener("pointerup", (event) => {
    if (start === null) return;
    const here = at(event);
    if (moved) change("brush", brush(here));
    else { // the nearest dot, where one is near: of several in one place the next one at each click
      const { x, y, positions } = model.get("scatter");
      const near = positions.map((position, i) => [Math.hypot(place(x[i]) - here[0], place(y[i]) - here[1]), position]).filter(([distance]) => distance < 10);
      if (near.length) {
        const least = Math.min(...near.map(([distance]) => distance)), same = near.filter(([distance]) => distance <= least + 1e-6).map(([, position]) => position);
        send({ do: "open", position: same[(same.indexOf(state().row) + 1) % same.length] });
      }
    }
    start = null;
  });
  svg.addEventListener("pointercancel", () => { start = null; });
  function onScatter() {
    const { low, high, total, positions, x, y, outcomes } = model.get("scatter");
    for (const [name, value] of Object.entries({ x1: place(low), y1: SIZE - place(low), x2: place(high), y2: SIZE - place(high) })) diagonal.setAttribute(name, value);
    dots.replaceChildren(...positions.map((_, i) => s("circle", { cx: place(x[i]), cy: SIZE - place(y[i]), r: 3, class: `sk-dot sk-${outcomes[i]}` })));
    sampled.textContent = positions.length < total ? `${number(positions.length)} of ${number(total)} pairs are drawn, a random choice.` : "";
  }

  // --- the numbers, the list, the pair

  const numbers = h("div", { class: "sk-numbers", "aria-live": "polite" });
  const table = h("table", {});
  const head = h("thead", {}, h("tr", {}, ...["item", "baseline", "variant", "difference", "vote"].map((name, i) => h("th", { class: i % 4 ? "sk-number" : "" }, name))));
  const pageTold = h("span", { class: "sk-faint" });
  const pages = [
    button("«", "First page", () => send({ do: "page", page: 0 })), button("‹", "Previous page", () => send({ do: "page", page: state().page - 1 })),
    button("›", "Next page", () => send({ do: "page", page: state().page + 1 })), button("»", "Last page", () => send({ do: "page", page: Math.ceil(state().kept / setup.page) - 1 })),
  ];
  const scroll = h("div", { class: "sk-scroll sk-short" }, table);
  const signed = (value) => (value > 0 ? "+" : "") + digits(value);
  function line(row) {
    const open = () => { send({ do: "open", position: row.position }); root.focus({ preventScroll: true }); };
    return h("tbody", { "data-position": row.position, "aria-selected": row.position === state().row, onclick: open },
      h("tr", {}, h("td", { class: "sk-name", title: row.name }, row.name), h("td", { class: "sk-number" }, digits(row.baseline)), h("td", { class: "sk-number" }, digits(row.variant)),
        h("td", { class: `sk-number sk-outcome sk-${row.outcome}` }, signed(row.delta)), h("td", {}, row.vote ?? "")),
      h("tr", {}, h("td", { class: "sk-line sk-faint", colspan: 5 }, row.input)));
  }
  const step = (by) => send({ do: "step", by });
  const back = button("‹ k", "Previous pair (k)", () => step(-1), { "aria-label": "previous pair" }), next = button("j ›", "Next pair (j)", () => step(1), { "aria-label": "next pair" });
  const where = h("span", { class: "sk-place" });
  const votes = setup.votes.map((vote) => button("", `${vote} (${VOTE_KEYS[vote]})`, () => send({ do: "vote", vote }), { class: "sk-button sk-vote", "data-vote": vote }));
  const undo = button("Undo", "Take the last vote back (z)", () => send({ do: "undo" }));
  const asked = h("div", { class: "sk-text sk-asked" });
  const columns = ["baseline", "variant"].map((side) => h("div", { class: "sk-side", "data-side": side }));
  const counted = h("div", { class: "sk-saturation sk-faint" });

  function onState() {
    const now = state(), told = now.numbers;
    count.textContent = now.kept === now.total ? `${number(now.total)} pairs` : `${number(now.kept)} of ${number(now.total)} pairs`;
    problem.textContent = now.problem ?? "";
    const put = (field, value) => { field.querySelector("select").value = value ?? ""; };
    put(score, now.score); put(variant, now.variant); put(outcome, now.filters.outcome); put(voted, now.filters.vote); put(order, now.order);
    if (document.activeElement !== search) search.value = now.filters.text ?? "";
    clear.disabled = Object.keys(now.filters).length === 0;
    if (start === null) drawBrush(now.filters.brush);
    under.textContent = `${setup.baseline} →`;
    beside.textContent = `↑ ${now.variant}`;
    const interval = told.low === null ? "" : ` (${signed(told.low)} to ${signed(told.high)})`;
    const direction = now.better === "lower" ? "; lower is better" : now.better === "higher" ? "; higher is better" : "";
    numbers.replaceChildren(
      h("span", { class: "sk-win" }, `${number(told.wins)} wins`), ", ", h("span", {}, `${number(told.ties)} ties`), ", ", h("span", { class: "sk-loss" }, `${number(told.losses)} losses`),
      h("div", {}, `Mean difference ${told.mean === null ? "–" : signed(told.mean)}${interval}`),
      h("div", { class: "sk-faint" }, `${now.variant} less ${setup.baseline}${direction}${now.kept < now.total ? ". Of the pairs that are left: chosen by looking, so no evidence" : ""}.`));
    table.replaceChildren(head, ...now.lines.map(line));
    const last = Math.max(1, Math.ceil(now.kept / setup.page));
    pageTold.textContent = `page ${number(now.page + 1)} of ${number(last)}`;
    pages.forEach((one, i) => { one.disabled = i < 2 ? now.page === 0 : now.page + 1 >= last; });
    where.textContent = now.row < 0 ? "no pair is left" : now.place < 0 ? `not among the ${number(now.kept)}` : `${number(now.place + 1)} of ${number(now.kept)}`;
    const chosen = table.querySelector('[aria-selected="true"]')?.getBoundingClientRect(), box = scroll.getBoundingClientRect();
    if (chosen) scroll.scrollTop += Math.min(0, chosen.top - box.top - head.offsetHeight) + Math.max(0, chosen.bottom - box.bottom);
    const names = { baseline: setup.baseline, variant: now.variant, tie: "tie" };
    for (const one of votes) one.replaceChildren(h("kbd", {}, VOTE_KEYS[one.dataset.vote]), one.dataset.vote === "tie" ? "tie" : `${names[one.dataset.vote]} is better`);
    undo.disabled = !now.undo;
    const cast = now.votes ? Object.entries(now.votes).map(([vote, pairs]) => `${number(pairs)} ${names[vote]}`).join(", ") : "";
    counted.textContent = writes ? `Votes: ${cast}.${now.save ? ` Kept in ${now.save}.` : " Not kept on disk: pass save=."}` : "";
    const row = model.get("scatter"), dot = row.positions.indexOf(now.row);
    ring.setAttribute("display", dot < 0 ? "none" : "inline");
    if (dot >= 0) { ring.setAttribute("cx", place(row.x[dot])); ring.setAttribute("cy", SIZE - place(row.y[dot])); }
    answered();
  }

  let read = ""; // the pair in the columns: a vote leaves them where they were scrolled to
  function onDetail() {
    const row = model.get("detail"), showed = `${state().score} ${state().variant} ${row.position}`;
    for (const one of votes) { one.setAttribute("aria-pressed", one.dataset.vote === row.vote); one.disabled = row.position === undefined; }
    asked.textContent = row.input ?? "";
    for (const side of columns) {
      const name = side.dataset.side;
      side.replaceChildren(...(row.position === undefined ? [] : [
        h("div", { class: "sk-sidehead" }, h("b", {}, name === "baseline" ? setup.baseline : state().variant), ` ${digits(row[name])}`,
          row.repeats[name] > 1 ? h("span", { class: "sk-faint" }, ` mean of ${number(row.repeats[name])} rows; this is the first`) : ""),
        h("div", { class: "sk-text sk-output" }, ...row.outputs[name].map(([text, differs]) => differs ? h("mark", { class: `sk-${name}` }, text) : text)),
        ...row.results[name].map(result),
      ]));
      if (showed !== read) side.scrollTop = 0;
    }
    if (showed !== read) asked.scrollTop = 0;
    read = showed;
  }

  root.append(h("div", { class: "sk-bar" }, count, search, score, variant, outcome, voted, order, clear), problem,
    h("div", { class: "sk-top" }, h("div", { class: "sk-plot" }, beside, h("div", {}, svg, under, sampled)), h("div", { class: "sk-listing sk-list" }, numbers, scroll, h("div", { class: "sk-pages" }, ...pages, pageTold))),
    h("div", { class: "sk-row" }, back, next, where, ...(writes ? [...votes, undo] : [])), asked, h("div", { class: "sk-sides" }, ...columns), counted,
    h("div", { class: "sk-keys sk-faint" }, writes ? "j next · k previous · b baseline better · v variant better · t tie · z undo · / search" : "j next · k previous · / search"));

  root.addEventListener("keydown", (event) => {
    event.stopPropagation(); // a letter must never reach the notebook, where it is a command
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("input, textarea, select")) {
      if (event.key === "Escape") { root.focus({ preventScroll: true }); event.preventDefault(); }
      return;
    }
    const does = { j: () => step(1), k: () => step(-1), "/": () => search.focus(),
      ...(writes ? { z: () => send({ do: "undo" }), ...Object.fromEntries(setup.votes.map((vote) => [VOTE_KEYS[vote], () => send({ do: "vote", vote })])) } : {}) }[event.key];
    if (does) { does(); event.preventDefault(); }
  });

  return follow(model, root, { "change:scatter": onScatter, "change:shown": onState, "change:detail": onDetail });
}

// --- the model of an exported page: it holds all pairs and filters them itself

function staticPairs({ setup, rows, span, intervals, better, start }) {
  const hears = {}, values = { setup, scatter: {}, shown: {}, detail: {} };
  const now = { filters: start.filters, score: start.score, variant: start.variant, order: start.order, page: 0, row: -1, asked: 0, votes: null };
  let pairs = [], kept = [], place = new Map();
  const of = (row) => row.scores[now.score];
  const gain = (row) => (better[now.score] === "lower" ? -1 : 1) * of(row).delta;
  const folded = rows.map((row) => [row.input, ...["baseline", "variant"].map((side) => row.outputs[side].map(([text]) => text).join(""))].join("\n").toLowerCase());
  const keeps = (row, { brush, outcome, vote, text }) => {
    const { baseline, variant, outcome: came } = of(row);
    return (!brush || (baseline >= brush[0] && baseline <= brush[1] && variant >= brush[2] && variant <= brush[3]))
      && (!outcome || came === outcome) && (!vote || (vote === "none" ? row.vote === null : row.vote === vote)) && (!text || folded[row.position].includes(text.toLowerCase()));
  };
  function choose() {
    pairs = rows.filter((row) => row.of === now.variant && of(row) && of(row).delta !== null);
    const [low, high] = span[now.score];
    values.scatter = { low, high, total: pairs.length, positions: pairs.map((row) => row.position), x: pairs.map((row) => of(row).baseline), y: pairs.map((row) => of(row).variant), outcomes: pairs.map((row) => of(row).outcome) };
    for (const hear of hears["change:scatter"] ?? []) hear();
  }
  function select() {
    kept = pairs.filter((row) => keeps(row, now.filters));
    const keys = { losses: gain, wins: (row) => -gain(row), largest: (row) => -Math.abs(gain(row)) }[now.order];
    if (keys) kept = kept.toSorted((a, b) => keys(a) - keys(b));
    place = new Map(kept.map((row, i) => [row.position, i]));
    if (!place.has(now.row)) { now.page = 0; open(kept[0]?.position); } else open(now.row);
  }
  function open(position) {
    now.row = position ?? -1;
    if (place.has(now.row)) now.page = Math.floor(place.get(now.row) / setup.page);
  }
  const shown = (row) => ({ ...row, ...of(row) });
  function tell() {
    const counts = (name) => kept.filter((row) => of(row).outcome === name).length;
    const mean = kept.length ? kept.reduce((sum, row) => sum + of(row).delta, 0) / kept.length : null;
    const whole = kept.length === setup.pairs[now.score][now.variant]; // of a part there is no interval here: open the view in Python
    const [low, high] = whole ? intervals[now.score][now.variant] : [null, null];
    values.shown = { ...now, better: better[now.score], total: pairs.length, kept: kept.length, place: place.get(now.row) ?? -1, problem: "", undo: false, save: null,
      numbers: { n: kept.length, wins: counts("win"), ties: counts("tie"), losses: counts("loss"), mean, low, high },
      lines: kept.slice(now.page * setup.page, (now.page + 1) * setup.page).map(shown) };
    values.detail = now.row < 0 ? {} : shown(rows[now.row]);
    for (const event of ["change:shown", "change:detail"]) for (const hear of hears[event] ?? []) hear();
  }
  choose();
  select();
  tell();
  return {
    get: (name) => values[name],
    on: (event, hear) => { (hears[event] ??= []).push(hear); },
    off: (event, hear) => { hears[event] = (hears[event] ?? []).filter((other) => other !== hear); },
    send(message) {
      now.asked = message.asked;
      if (["filters", "score", "variant", "order"].includes(message.do)) now[message.do] = message[message.do];
      if (message.do === "score" || message.do === "variant") { // the same item stays open, as in Python
        const item = rows[now.row]?.name;
        delete now.filters.brush;
        choose();
        now.row = pairs.find((row) => row.name === item)?.position ?? -1;
      }
      if (["filters", "score", "variant", "order"].includes(message.do)) select();
      if (message.do === "page") now.page = Math.max(0, Math.min(message.page, Math.ceil(kept.length / setup.page) - 1));
      if (message.do === "open") open(message.position);
      if (message.do === "step" && kept.length) open(kept[Math.max(0, Math.min(kept.length - 1, (place.get(now.row) ?? -1) + message.by))].position);
      tell();
    },
  };
}

export default {
  render({ model, el }) { return mountPairs(model, el); },
};
