// Asks for what changed, more than once a second while the page is looked at, and shows it.
"use strict";
(() => {
  const page = document.body.dataset.page, query = document.body.dataset.query || "";
  const home = (id) => document.getElementById(id);
  let version = "", alerts = null;

  function fill(id, html) {
    const box = home(id);
    // Made by the server with everything from a program escaped; the same again would close what is open.
    if (box && box.dataset.shown !== html) { box.dataset.shown = html; box.innerHTML = html; }
  }
  function tell(state) {
    const box = home("live");
    if (!box) return;
    box.textContent = state;
    box.className = "live " + (state === "running" ? "running" : "");
  }

  async function run(answer) {
    home("title").textContent = answer.head.target;
    home("about").textContent = answer.head.line;
    tell(answer.state);
    fill("found", answer.found);
    fill("event-list", answer.events);
    if (alerts !== null && answer.alerts > alerts) {
      const latest = home("event-list").querySelector("tr:nth-child(2) td:last-child");
      home("alert").textContent = latest ? latest.textContent : "";
      home("alert").hidden = false;
    }
    alerts = answer.alerts;
    home("missing").replaceChildren(...answer.missing.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
    await clinic.show(answer.figures, home("figures"));
  }
  async function compare(answer) {
    fill("found", answer.found);
    await clinic.show(answer.figures, home("figures"));
  }
  function cell(row, text, className) {
    const made = row.insertCell();
    if (className) { const pill = document.createElement("span"); pill.className = className; pill.textContent = text; made.append(pill); } else made.textContent = text;
    return made;
  }
  function runs(answer) {
    const table = home("runs"), chosen = new Set([...table.querySelectorAll("input:checked")].map((box) => box.value));
    home("none").hidden = answer.runs.length > 0;
    const focused = document.activeElement && document.activeElement.value;
    table.replaceChildren();
    for (const one of answer.runs) {
      const row = table.insertRow(), box = Object.assign(document.createElement("input"), { type: "checkbox", name: "name", value: one.name, checked: chosen.has(one.name) });
      box.setAttribute("aria-label", "compare " + one.name);
      row.insertCell().append(box);
      const link = Object.assign(document.createElement("a"), { href: "/run?name=" + encodeURIComponent(one.name), textContent: one.name });
      row.insertCell().append(link);
      cell(row, one.target);
      cell(row, one.state, "live " + (one.state === "running" ? "running" : ""));
      cell(row, one.updates.toLocaleString("en"));
      cell(row, one.loss ?? "–");
      cell(row, one.verdict, "pill plain " + (one.worst || (one.verdict === "nothing found" ? "good" : "")));
      cell(row, new Date(one.started * 1000).toLocaleString());
      if (box.value === focused) box.focus();
    }
    document.body.dataset.drawn = "1";
  }

  const shows = { run, compare, runs }[page], address = { run: "/api/run?", compare: "/api/compare?", runs: "/api/runs?" }[page];
  async function look() {
    if (!document.hidden || !version) {
      try {
        const answer = await (await fetch(address + query + "&known=" + encodeURIComponent(version))).json();
        if (page === "runs" || answer.version !== version) { await shows(answer); version = answer.version || "seen"; }
      } catch { tell("no answer from the dashboard"); }
    }
    setTimeout(look, page === "runs" ? 2000 : 700);
  }
  document.addEventListener("DOMContentLoaded", look);
})();
