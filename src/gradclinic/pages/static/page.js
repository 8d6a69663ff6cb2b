// Draws the figures of a page, in the colours of its theme, and answers its controls.
"use strict";
const clinic = (() => {
  const drawn = new Map(); // figure id -> {figure, chart}
  const root = document.documentElement;
  let wanted = "";

  const system = matchMedia("(prefers-color-scheme: dark)");
  const remembered = () => { try { return localStorage.getItem("gradclinic-theme"); } catch { return null; } };
  function setTheme(theme, remember) {
    root.dataset.theme = theme;
    if (remember) { try { localStorage.setItem("gradclinic-theme", theme); } catch { /* private window */ } }
  }
  setTheme(remembered() || (system.matches ? "dark" : "light"), false);

  // Numbers come packed: {"f4": base64} or {"i4": base64}, with a shape when they are rows.
  function unpacked(value) {
    const kind = value.f4 !== undefined ? Float32Array : Int32Array;
    const bytes = Uint8Array.from(atob(value.f4 ?? value.i4), (letter) => letter.charCodeAt(0));
    const flat = new kind(bytes.buffer);
    if (!value.shape) return flat;
    const [rows, columns] = value.shape;
    return Array.from({ length: rows }, (_, row) => flat.subarray(row * columns, (row + 1) * columns));
  }
  function unpackAll(node) {
    if (Array.isArray(node)) return node.map(unpackAll);
    if (node === null || typeof node !== "object") return node;
    if (node.f4 !== undefined || node.i4 !== undefined) return unpacked(node);
    return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, unpackAll(value)]));
  }

  const COLOURED = new Set(["color", "fillcolor"]);
  function coloured(node, style) {
    if (Array.isArray(node)) return node.map((item) => coloured(item, style));
    if (node === null || typeof node !== "object" || ArrayBuffer.isView(node)) return node;
    return Object.fromEntries(Object.entries(node).map(([key, value]) => {
      if (key === "colorscale") return [key, "Viridis"];
      const named = COLOURED.has(key) && typeof value === "string" && value.startsWith("@");
      return [key, named ? style.getPropertyValue("--" + value.slice(1)).trim() : coloured(value, style)];
    }));
  }

  function layoutOf(figure, style) {
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = { gridcolor: colour("--grid"), zerolinecolor: colour("--grid"), linecolor: colour("--line"), automargin: true };
    const own = coloured(figure.layout, style);
    const rows = own.yaxis && own.yaxis.type === "category";
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", height: figure.height,
      margin: { l: 62, r: 18, t: 12, b: 46 }, hovermode: rows ? "closest" : "x",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12.5, color: colour("--muted") },
      hoverlabel: { bgcolor: colour("--card"), bordercolor: colour("--line"), font: { color: colour("--ink") }, align: "left" },
      legend: { orientation: "h", x: 0, y: 1.02, xanchor: "left", yanchor: "bottom" },
      ...own,
      xaxis: { ...axis, ...own.xaxis }, yaxis: { ...axis, ...own.yaxis },
    };
  }

  function powers(z) {
    let low = Infinity, high = -Infinity;
    for (const row of z) for (const value of row) if (value === value) { low = Math.min(low, value); high = Math.max(high, value); }
    if (low > high) return {};
    const every = Math.max(1, Math.ceil((high - low) / 6)), values = [];
    for (let power = Math.ceil(low); power <= high; power += every) values.push(power);
    if (values.length < 2) values.splice(0, values.length, low, high);
    return { tickvals: values, ticktext: values.map((p) => (10 ** p).toExponential(Number.isInteger(p) ? 0 : 1)) };
  }

  const matches = (name) => String(name).toLowerCase().includes(wanted);
  function filtered(figure) {
    if (!wanted || !figure.filters) return figure.data;
    return figure.data.map((trace) => {
      if (figure.filters === "lines") return { ...trace, visible: trace.name === "median" ? false : matches(trace.name) };
      const keep = trace.y.map((name, row) => (matches(name) ? row : -1)).filter((row) => row >= 0);
      const pick = (values) => keep.map((row) => values[row]);
      return figure.filters === "rows" ? { ...trace, y: pick(trace.y), z: pick(trace.z) } : { ...trace, y: pick(trace.y), x: pick(trace.x) };
    });
  }

  function paint(entry) {
    const style = getComputedStyle(root);
    let { figure } = entry;
    if (figure.slider) figure = atStep(entry);
    let data = coloured(filtered(figure), style);
    if (figure.powers) data = data.map((trace) => ({ ...trace, colorbar: { ...trace.colorbar, ...powers(trace.z) } }));
    return Plotly.react(entry.chart, data, layoutOf(figure, style), { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] });
  }

  function atStep(entry) {
    const from = drawn.get(entry.figure.slider);
    if (!from) return entry.figure;
    const heat = from.figure.data[0];
    if (entry.column === undefined || entry.column >= heat.x.length) entry.column = heat.x.length - 1;
    entry.range.max = heat.x.length - 1;
    entry.range.value = entry.column;
    entry.told.textContent = "update " + heat.x[entry.column];
    entry.range.setAttribute("aria-valuetext", entry.told.textContent);
    const data = entry.figure.data.map((trace) => ({ ...trace, x: heat.z.map((row) => 10 ** row[entry.column]) }));
    return { ...entry.figure, data };
  }

  function element(kind, className, text) {
    const made = document.createElement(kind);
    if (className) made.className = className;
    if (text) made.textContent = text;
    return made;
  }

  function place(figure, home) {
    const box = element("figure", "card figure" + (figure.wide ? " wide" : ""));
    box.id = "figure-" + figure.id;
    const title = element("h3", "", figure.title), note = element("p", "note", figure.note), chart = element("div", "chart");
    chart.setAttribute("role", "img");
    chart.setAttribute("aria-label", [figure.title, figure.note].join(". "));
    chart.style.minHeight = figure.height + "px";
    box.append(title, note);
    const entry = { figure, chart, title, note };
    if (figure.slider) {
      const controls = element("div", "slider");
      entry.range = element("input");
      Object.assign(entry.range, { type: "range", min: 0, max: 0 });
      entry.range.setAttribute("aria-label", "update");
      entry.told = element("span");
      entry.range.addEventListener("input", () => { entry.column = Number(entry.range.value); paint(entry); });
      controls.append(entry.range, entry.told);
      box.append(controls);
    }
    box.append(chart);
    home.append(box);
    drawn.set(figure.id, entry);
    return entry;
  }

  // Figures one by one, so that the first can be read while the last is drawn.
  async function show(figures, home) {
    const ids = new Set(figures.map((figure) => figure.id));
    for (const [id, entry] of drawn) if (!ids.has(id)) { entry.chart.closest("figure").remove(); drawn.delete(id); }
    for (const packed of figures) {
      const figure = unpackAll(packed);
      let entry = drawn.get(figure.id);
      if (entry) {
        const followed = figure.slider && Number(entry.range.value) >= Number(entry.range.max);
        Object.assign(entry, { figure }, followed ? { column: undefined } : {});
        entry.title.textContent = figure.title;
        entry.note.textContent = figure.note;
      } else entry = place(figure, home);
      await paint(entry);
      await new Promise((next) => setTimeout(next));
    }
    document.body.dataset.drawn = String(Number(document.body.dataset.drawn || 0) + 1);
  }

  const repaint = () => drawn.forEach(paint);
  document.addEventListener("DOMContentLoaded", () => {
    const toggle = document.getElementById("theme"), search = document.getElementById("layers");
    const name = () => { toggle.textContent = root.dataset.theme === "dark" ? "Light" : "Dark"; };
    if (toggle) {
      name();
      toggle.addEventListener("click", () => { setTheme(root.dataset.theme === "dark" ? "light" : "dark", true); name(); repaint(); });
    }
    system.addEventListener("change", () => { if (!remembered()) { setTheme(system.matches ? "dark" : "light", false); if (toggle) name(); repaint(); } });
    if (search) search.addEventListener("input", () => { wanted = search.value.trim().toLowerCase(); repaint(); });
    const kept = document.getElementById("kept-figures");
    if (kept) show(JSON.parse(kept.textContent), document.getElementById("figures"));
  });
  // Paper is light, and as wide as it is.
  addEventListener("beforeprint", () => { root.dataset.before = root.dataset.theme; root.dataset.theme = "light"; repaint(); });
  addEventListener("afterprint", () => { root.dataset.theme = root.dataset.before || "light"; repaint(); });
  return { show };
})();
