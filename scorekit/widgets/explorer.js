// The view of explore() and of export_html: one element, built once, that follows a model.
//
// The model is either the widget's (Python answers) or staticModel below (the page answers from what is embedded in it). Both give:
//   get("setup" | "shown" | "detail" | "marked"), on("change:...", f), send({do: ...}).
// parts.js, which holds what all views share, stands before it.

const WIDTH = 240, HEIGHT = 60;
const ORDER_WORDS = { worst: "worst first", random: "random order", informative: "least sure first", frame: "frame's order" };
const KEYS = "j next · k previous · 1–9 tags · p pass · f fail · u unsure · n note (Esc leaves it) · t new tag · z undo · / search";

function mount(model, el) {
  const setup = model.get("setup");
  const writes = !setup.readonly;
  const state = () => model.get("shown");
  const { send, pending, unanswered, answered } = messenger(model, state);
  const arrived = () => (model.get("detail").position ?? -1) === state().row && unanswered().every((message) => message.do === "tag" || message.do === "label" || message.do === "note");
  const filters = () => structuredClone((pending("filters") ?? state()).filters ?? {});

  const root = h("div", { class: "sk", tabindex: "0", "data-lm-suppress-shortcuts": "true", role: "group", "aria-label": "scorekit explorer" });
  el.replaceChildren(root);

  // --- filters

  function change(kind, name, value) {
    const wanted = filters();
    if (name === null) wanted[kind] = value;
    else wanted[kind] = { ...wanted[kind], [name]: value };
    if (name !== null && value === null) delete wanted[kind][name];
    send({ do: "filters", filters: wanted });
  }

  function choice(label, options, onchange) {
    const select = h("select", { "aria-label": label, onchange: () => onchange(select.value || null) },
      ...options.map(([value, text]) => h("option", { value }, text)));
    return h("label", { class: "sk-field" }, h("span", {}, label), select);
  }

  const count = h("span", { class: "sk-count", "aria-live": "polite" });
  const search = h("input", { type: "search", class: "sk-search", placeholder: "search the texts", "aria-label": "search the texts" });
  let typed = null;
  search.addEventListener("input", () => { clearTimeout(typed); typed = setTimeout(() => change("text", null, search.value), 200); });
  const groups = Object.entries(setup.groups).map(([column, values]) =>
    [column, choice(column, [["", "all"], ...values.map((value) => [value, value])], (value) => change("groups", column, value))]);
  const errors = Object.entries(setup.errors).map(([name, codes]) =>
    [name, choice(`${name} errors`, [["", "all rows"], ["any", "any error"], ...Object.entries(codes).map(([code, rows]) => [code, `${code} (${number(rows)})`])],
      (code) => change("errors", name, code))]);
  const byLabel = choice("label", [["", "all"], ...setup.labels.map((label) => [label, label]), ["none", "not labelled"]], (label) => change("label", null, label));
  const byTag = choice("tag", [["", "all"]], (tag) => change("tag", null, tag));
  const order = choice("read", setup.orders.map((name) => [name, ORDER_WORDS[name] ?? name]), (name) => send({ do: "order", order: name }));
  const clear = button("Clear", "Take all filters away", () => send({ do: "filters", filters: {} }), { class: "sk-button sk-clear" });
  const problem = h("div", { class: "sk-problem", role: "alert" });
  const bar = h("div", { class: "sk-bar" }, count, search, ...groups.map(([, field]) => field), ...errors.map(([, field]) => field), byLabel, byTag, order, clear);

  // --- one small chart a score, with a brush

  function chart({ name, low, high, lower }) {
    const svg = s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "sk-svg", preserveAspectRatio: "none", role: "img", "aria-label": `distribution of ${name}`, "data-score": name });
    const behind = s("g", { class: "sk-all" }), front = s("g", { class: "sk-kept" });
    const span = s("rect", { class: "sk-span", y: 0, height: HEIGHT, width: 0 });
    svg.append(behind, front, span);
    const told = h("div", { class: "sk-faint" });
    const ends = ["from", "to"].map((word) => h("input", { type: "number", step: "any", class: "sk-end", "aria-label": `${name} ${word}`, placeholder: word }));
    const away = button("×", `Take the brush of ${name} away`, () => change("scores", name, null), { class: "sk-button sk-small" });
    const figure = h("figure", { class: "sk-chart" },
      h("figcaption", {}, h("div", {}, h("b", {}, name), h("span", { class: "sk-faint" }, lower ? " lower is better" : "")), told), svg,
      h("div", { class: "sk-axis" }, h("span", {}, String(low)), ends[0], ends[1], away, h("span", {}, String(high))));
    const value = (event) => {
      const box = svg.getBoundingClientRect();
      const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      return low + Math.round(share * 200) / 200 * (high - low);
    };
    let start = null, moved = false;
    svg.addEventListener("pointerdown", (event) => { start = value(event); moved = false; svg.setPointerCapture(event.pointerId); root.focus({ preventScroll: true }); event.preventDefault(); });
    svg.addEventListener("pointermove", (event) => {
      if (start === null) return;
      const here = value(event);
      if (Math.abs(here - start) < (high - low) / 100 && !moved) return;
      moved = true;
      draw([Math.min(start, here), Math.max(start, here)]);
      change("scores", name, [Math.min(start, here), Math.max(start, here)]);
    });
    svg.addEventListener("pointerup", (event) => {
      if (start === null) return;
      const here = value(event);
      if (moved) change("scores", name, [Math.min(start, here), Math.max(start, here)]);
      else {
        const width = (high - low) / setup.bins, place = Math.min(setup.bins - 1, Math.floor((here - low) / width));
        const end = (bin) => low + (bin - 1e-9) * width; // as in rows.py: a bin begins a little before its lower end, 0.3 lies in that of 6 * 0.05
        change("scores", name, [place === 0 ? low : end(place), place === setup.bins - 1 ? high : end(place + 1) - width * 1e-9]);
      }
      start = null;
    });
    svg.addEventListener("pointercancel", () => { start = null; });
    for (const end of ends) end.addEventListener("change", () => {
      const [from, to] = ends.map((input) => input.value === "" ? null : Number(input.value));
      change("scores", name, from === null && to === null ? null : [from ?? low, to ?? high]);
    });
    function draw(brush) {
      const x = (score) => (score - low) / (high - low) * WIDTH;
      span.setAttribute("x", brush ? x(brush[0]) : 0);
      span.setAttribute("width", brush ? Math.max(1, x(brush[1]) - x(brush[0])) : 0);
    }
    function bars(group, counts, tallest) {
      const width = WIDTH / counts.length;
      group.replaceChildren(...counts.flatMap((rows, i) => {
        if (!rows) return [];
        const height = Math.max(1.5, rows / tallest * (HEIGHT - 4));
        return [s("rect", { x: i * width + 0.5, y: HEIGHT - height, width: width - 1, height })];
      }));
    }
    function update(histogram, brush) {
      const tallest = Math.max(1, ...histogram.all);
      bars(behind, histogram.all, tallest);
      bars(front, histogram.kept, tallest);
      if (start === null) draw(brush);
      told.textContent = `mean ${digits(histogram.mean)} of ${number(histogram.scored)}` + (histogram.unscored ? `, ${number(histogram.unscored)} not scored` : "");
      ends.forEach((end, i) => { if (document.activeElement !== end) end.value = brush ? Number(brush[i].toFixed(4)) : ""; });
      away.disabled = !brush;
    }
    return { figure, update };
  }

  const charts = Object.fromEntries(setup.scores.map((score) => [score.name, chart(score)]));

  // --- the rows, a page at a time

  const table = h("table", {});
  const texts = setup.texts.filter((role) => role !== "context");
  const head = h("thead", {}, h("tr", {}, h("th", {}, "row"), ...setup.scores.map(({ name }) => h("th", { class: "sk-number", title: name }, ...name.split(/(?<=_)/).flatMap((part) => [h("wbr"), part]))), h("th", {}, "label")));
  const pageTold = h("span", { class: "sk-faint" });
  const pages = [
    button("«", "First page", () => send({ do: "page", page: 0 })), button("‹", "Previous page", () => send({ do: "page", page: state().page - 1 })),
    button("›", "Next page", () => send({ do: "page", page: state().page + 1 })), button("»", "Last page", () => send({ do: "page", page: Math.ceil(state().kept / setup.page) - 1 })),
  ];
  const scroll = h("div", { class: "sk-scroll" }, table);
  const list = h("div", { class: "sk-list" }, scroll, h("div", { class: "sk-pages" }, ...pages, pageTold));

  function line(row) {
    const cells = setup.scores.map(({ name }) => row.errors[name]
      ? h("td", { class: "sk-number sk-error", title: row.errors[name] }, "error") : h("td", { class: "sk-number" }, digits(row.scores[name])));
    const label = h("td", { class: "sk-mark", title: row.tags.join(", ") }, row.label ? h("span", { class: `sk-label sk-${row.label}` }, row.label) : "",
      row.tags.length ? h("span", { class: "sk-faint" }, ` +${row.tags.length}`) : "");
    const begins = h("td", { class: "sk-line", colspan: cells.length + 2 }, ...texts.map((role, i) => h("span", { class: i ? "sk-faint" : "" }, `${i ? " → " : ""}${clip(row.texts[role])}`)));
    const open = () => { keepNote(); send({ do: "open", position: row.position }); root.focus({ preventScroll: true }); };
    return h("tbody", { "data-position": row.position, "aria-selected": row.position === state().row, onclick: open },
      h("tr", {}, h("td", { class: "sk-name", title: row.name }, row.name), ...cells, label), h("tr", {}, begins));
  }

  // --- what the reader writes down

  const labels = setup.labels.map((label) => button(label, `${label} (${label[0]})`, () => send({ do: "label", label }), { class: `sk-button sk-choose sk-${label}`, "data-label": label }));
  const chips = h("span", { class: "sk-chips" });
  const newTag = h("input", { class: "sk-newtag", placeholder: "new tag", "aria-label": "new tag", maxlength: "60" });
  const note = h("textarea", { class: "sk-note", rows: "2", placeholder: "note: the first thing that is wrong", "aria-label": "note" });
  const undo = button("Undo", "Take the last change back (z)", () => send({ do: "undo" }));
  const back = button("‹ k", "Previous row (k)", () => step(-1), { "aria-label": "previous row" }), next = button("j ›", "Next row (j)", () => step(1), { "aria-label": "next row" });
  const place = h("span", { class: "sk-place" });
  const saturation = h("div", { class: "sk-saturation sk-faint" });
  let noted = -1;    // the row that the note is of; null: of the row that is still on its way
  let noting = null; // what is typed and not sent yet
  function keepNote() {
    if (noting === null) return;
    clearTimeout(noting);
    noting = null;
    send({ do: "note", ...(noted === null ? {} : { position: noted }), note: note.value }); // without a position: of the row that is open when its turn comes
  }
  const keepNoteSoon = () => { clearTimeout(noting); noting = setTimeout(() => { if (noted !== null) keepNote(); }, 250); };
  // Whoever presses j and n and types on does not wait for the row: what is typed is the next row's note.
  note.addEventListener("focus", () => { if (!arrived()) { keepNote(); noted = null; note.value = ""; } });
  note.addEventListener("input", keepNoteSoon);
  note.addEventListener("blur", keepNote);
  function showNote() {
    const row = model.get("detail");
    if (noted === null) {
      if (!arrived()) return;
      noted = row.position ?? -1;
      note.value = (row.note ?? "") + (noting === null ? "" : note.value);
      if (noting !== null) keepNoteSoon();
    } else if (row.position !== noted) {
      keepNote();
      noted = row.position ?? -1;
      note.value = row.note ?? "";
    } else if (document.activeElement !== note) note.value = row.note ?? "";
  }
  newTag.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && newTag.value.trim()) { send({ do: "tag", tag: newTag.value }); newTag.value = ""; root.focus({ preventScroll: true }); event.preventDefault(); }
  });
  const step = (by) => { keepNote(); send({ do: "step", by }); };
  const writing = writes
    ? [h("div", { class: "sk-row" }, ...labels, chips, newTag, undo), note]
    : [h("div", { class: "sk-row sk-written" })];
  const detail = h("div", { class: "sk-detail", tabindex: "0", "aria-label": "the row in full" });
  const reader = h("div", { class: "sk-reader" }, h("div", { class: "sk-row" }, back, next, place), ...writing, detail);

  function chip({ tag, rows }, i, held) {
    const made = button("", `${rows} rows; ${i < 9 ? `key ${i + 1}` : "no key"}`, () => send({ do: "tag", tag }), { class: "sk-button sk-chip", "aria-pressed": held.includes(tag), "data-focus": `tag ${tag}` });
    made.append(i < 9 ? h("kbd", {}, String(i + 1)) : "", tag, h("span", { class: "sk-faint" }, ` ×${rows}`));
    return made;
  }

  const matrix = h("div", { class: "sk-matrix" });
  function drawMatrix({ matrix: found, unmatched }) {
    if (!found) { matrix.replaceChildren(...(unmatched ? [h("p", { class: "sk-faint" }, unmatched)] : [])); return; }
    const chosen = state().filters.cell ?? [];
    const rows = found.rows.map((human, i) => h("tr", {}, h("th", {}, human), ...found.columns.map((judged, j) => h("td", {},
      button(number(found.counts[i][j]), `Open the rows that people call ${human} and the score ${judged}`,
        () => change("cell", null, chosen[0] === human && chosen[1] === judged ? null : [human, judged]), { class: "sk-button sk-cell", "aria-pressed": chosen[0] === human && chosen[1] === judged, "data-focus": `cell ${i} ${j}` })))));
    matrix.replaceChildren(h("table", {}, h("caption", {}, `${found.human} (rows) against ${found.score} (columns)`),
      h("thead", {}, h("tr", {}, h("td", {}), ...found.columns.map((judged) => h("th", {}, judged)))), h("tbody", {}, ...rows)),
      h("div", { class: "sk-faint" }, ...found.remarks.map((remark) => h("p", {}, remark))));
  }

  root.append(bar, problem, h("div", { class: "sk-charts" }, ...Object.values(charts).map(({ figure }) => figure), matrix), h("div", { class: "sk-body" }, list, reader), saturation, h("div", { class: "sk-keys sk-faint" }, writes ? KEYS : "j next · k previous · / search"));

  // --- what follows the model

  function showChosen() {
    const chosen = table.querySelector('[aria-selected="true"]')?.getBoundingClientRect(), box = scroll.getBoundingClientRect();
    // Not scrollIntoView, which moves the whole notebook: the reader may be looking at the row below, or at another output of this view.
    if (chosen) scroll.scrollTop += Math.min(0, chosen.top - box.top - head.offsetHeight) + Math.max(0, chosen.bottom - box.bottom);
  }
  const resized = new ResizeObserver(showChosen); // it is built before it is on the page, where it has no size yet
  resized.observe(scroll);

  function onState() {
    const now = state();
    count.textContent = now.kept === now.total ? `${number(now.total)} rows` : `${number(now.kept)} of ${number(now.total)} rows`;
    problem.textContent = now.problem ?? "";
    for (const [name, { update }] of Object.entries(charts)) update(now.histograms[name], now.filters.scores?.[name]);
    const put = (field, value) => { field.querySelector("select").value = value ?? ""; };
    for (const [column, field] of groups) put(field, now.filters.groups?.[column]);
    for (const [name, field] of errors) put(field, now.filters.errors?.[name]);
    put(byLabel, now.filters.label);
    put(byTag, now.filters.tag);
    put(order, now.order);
    if (document.activeElement !== search) search.value = now.filters.text ?? "";
    clear.disabled = Object.keys(now.filters).length === 0;
    table.replaceChildren(head, ...now.lines.map(line));
    const last = Math.max(1, Math.ceil(now.kept / setup.page));
    pageTold.textContent = `page ${number(now.page + 1)} of ${number(last)}`;
    pages.forEach((one, i) => { one.disabled = i < 2 ? now.page === 0 : now.page + 1 >= last; });
    place.textContent = now.row < 0 ? "no row is left" : now.place < 0 ? `not among the ${number(now.kept)}` : `${number(now.place + 1)} of ${number(now.kept)}`;
    showChosen();
    drawMatrix(model.get("marked"));
    answered();
    showNote();
  }

  function onDetail() {
    const row = model.get("detail");
    const held = row.tags ?? [];
    for (const one of labels) one.setAttribute("aria-pressed", one.dataset.label === row.label);
    chips.replaceChildren(...model.get("marked").tags.map((tag, i) => chip(tag, i, held)));
    showNote();
    for (const one of [...labels, newTag, note]) one.disabled = row.position === undefined;
    if (!writes) reader.querySelector(".sk-written").replaceChildren(row.label ? h("span", { class: `sk-label sk-${row.label}` }, row.label) : "", ...held.map((tag) => h("span", { class: "sk-chip" }, tag)), row.note ? h("span", {}, row.note) : "");
    if (detail.dataset.position === String(row.position)) return; // only its marks have changed: what was opened stays open
    detail.dataset.position = row.position;
    detail.replaceChildren(...(row.position === undefined ? [] : [
      ...setup.texts.map((role) => block(role, row.texts[role])).filter((one) => one !== null),
      ...row.results.map(result),
      Object.keys(row.cells).length ? h("details", { class: "sk-block" }, h("summary", {}, `row ${row.name}`), pairs(Object.entries(row.cells).map(([name, value]) => [name, value ?? ""]))) : "",
    ]));
    detail.scrollTop = 0;
  }

  function onMarked() {
    const now = model.get("marked");
    const select = byTag.querySelector("select"), value = select.value;
    select.replaceChildren(h("option", { value: "" }, "all"), ...now.tags.map(({ tag, rows }) => h("option", { value: tag }, `${tag} (${rows})`)));
    select.value = state().filters.tag ?? value;
    byTag.hidden = now.tags.length === 0;
    undo.disabled = !now.undo;
    const tens = now.saturation.slice(-12).join(", ");
    const line = tens ? ` New tags in each ten: ${now.saturation.length > 12 ? "… " : ""}${tens}.` : "";
    const counted = now.labels ? ` (${Object.entries(now.labels).map(([label, rows]) => `${rows} ${label}`).join(", ")})` : "";
    const kept = now.save ? ` Kept in ${now.save}${now.strangers ? `, which also has ${now.strangers} rows that are not in this frame` : ""}.` : writes ? " Not kept on disk: pass save=." : "";
    saturation.textContent = `${now.read} ${now.read === 1 ? "row" : "rows"} read${counted}.${line}${kept}`;
    drawMatrix(now);
    onDetail();
  }

  root.addEventListener("keydown", (event) => {
    event.stopPropagation(); // a letter must never reach the notebook, where it is a command
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.matches("input, textarea, select");
    if (typing) {
      if (event.key === "Escape") { keepNote(); root.focus({ preventScroll: true }); event.preventDefault(); }
      return;
    }
    const tags = model.get("marked").tags;
    const does = {
      j: () => step(1), k: () => step(-1), "/": () => search.focus(),
      ...(writes ? { n: () => note.focus(), t: () => newTag.focus(), z: () => send({ do: "undo" }),
        ...Object.fromEntries(setup.labels.map((label) => [label[0], () => send({ do: "label", label })])),
        ...Object.fromEntries(tags.slice(0, 9).map(({ tag }, i) => [String(i + 1), () => send({ do: "tag", tag })])) } : {}),
    }[event.key];
    if (does) { does(); event.preventDefault(); }
  });

  const unfollow = follow(model, root, { "change:shown": onState, "change:detail": onDetail, "change:marked": onMarked });
  return () => { resized.disconnect(); unfollow(); };
}

// --- the model of an exported page: it holds all rows and filters them itself

function staticModel({ setup, rows, bins, orders, start, marked }) {
  const hears = {};
  const values = { setup, marked, detail: {}, shown: {} };
  let now = { filters: start.filters, order: start.order, page: 0, row: -1, asked: 0 };
  let kept = [], place = new Map();

  const folded = rows.map((row) => Object.values(row.texts).join("\n").toLowerCase());
  const keeps = (row, filters) =>
    Object.entries(filters.scores ?? {}).every(([name, [low, high]]) => row.scores[name] !== null && row.scores[name] >= low && row.scores[name] <= high)
    && Object.entries(filters.errors ?? {}).every(([name, code]) => row.errors[name] && (code === "any" || row.errors[name] === code))
    && Object.entries(filters.groups ?? {}).every(([column, value]) => row.groups[column] === value)
    && (!filters.label || (filters.label === "none" ? row.label === null : row.label === filters.label))
    && (!filters.tag || row.tags.includes(filters.tag))
    && (!filters.cell || (row.cell && row.cell[0] === filters.cell[0] && row.cell[1] === filters.cell[1]))
    && (!filters.text || folded[row.position].includes(filters.text.toLowerCase()));

  function select() {
    const left = new Set(rows.filter((row) => keeps(row, now.filters)).map((row) => row.position));
    kept = orders[now.order].filter((position) => left.has(position));
    place = new Map(kept.map((position, i) => [position, i]));
  }

  function histograms() {
    return Object.fromEntries(setup.scores.map(({ name }) => {
      const all = Array(setup.bins).fill(0), some = Array(setup.bins).fill(0);
      let sum = 0, scored = 0;
      for (const row of rows) if (bins[name][row.position] >= 0) all[bins[name][row.position]] += 1;
      for (const position of kept) if (bins[name][position] >= 0) { some[bins[name][position]] += 1; sum += rows[position].scores[name]; scored += 1; }
      return [name, { all, kept: some, mean: scored ? sum / scored : null, scored, unscored: kept.length - scored }];
    }));
  }

  function tell() {
    values.shown = { ...now, total: rows.length, kept: kept.length, place: place.get(now.row) ?? -1, problem: "", histograms: histograms(),
      lines: kept.slice(now.page * setup.page, (now.page + 1) * setup.page).map((position) => rows[position]) };
    values.detail = now.row < 0 ? {} : rows[now.row];
    for (const event of ["change:shown", "change:detail"]) for (const hear of hears[event] ?? []) hear();
  }

  function open(position) {
    now.row = position ?? -1;
    if (place.has(now.row)) now.page = Math.floor(place.get(now.row) / setup.page);
  }

  select();
  open(kept[0]);
  tell();
  return {
    get: (name) => values[name],
    on: (event, hear) => { (hears[event] ??= []).push(hear); },
    off: (event, hear) => { hears[event] = (hears[event] ?? []).filter((other) => other !== hear); },
    send(message) {
      now.asked = message.asked;
      if (message.do === "filters") now.filters = Object.fromEntries(Object.entries(message.filters).filter(([, value]) => value && (typeof value !== "object" || Object.keys(value).length)));
      if (message.do === "order") now.order = message.order;
      if (message.do === "filters" || message.do === "order") { select(); if (message.do === "order" || !place.has(now.row)) { now.page = 0; open(kept[0]); } else open(now.row); }
      if (message.do === "page") now.page = Math.max(0, Math.min(message.page, Math.ceil(kept.length / setup.page) - 1));
      if (message.do === "open") open(message.position);
      if (message.do === "step" && kept.length) open(kept[Math.max(0, Math.min(kept.length - 1, (place.get(now.row) ?? 0) + message.by))]);
      tell();
    },
  };
}

export default {
  render({ model, el }) { return mount(model, el); },
};
