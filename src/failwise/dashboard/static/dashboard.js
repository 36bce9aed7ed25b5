// Live updates and the keyboard. Every page works without this file.
"use strict";
(() => {
  const body = document.body;
  const regions = () => document.querySelectorAll("[data-region]");
  let paused = false, behind = false, busy = false, version = "";

  // The server renders; what is new is taken over piece by piece, as nodes, never as text put into markup.
  async function refresh() {
    if (busy) { behind = true; return; }
    busy = true; behind = false;
    try {
      const headers = version ? { "if-none-match": version } : {};
      const answer = await fetch(location.href, { credentials: "same-origin", headers });
      if (answer.status === 304 || !answer.ok || answer.redirected) return;
      version = answer.headers.get("etag") || "";
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const old of regions()) {
        const next = fresh.querySelector(`[data-region="${old.dataset.region}"]`);
        const used = old.contains(document.activeElement) || old.querySelector("details[open]");
        if (used) version = ""; // it was left as it was: the next change brings it
        else if (next && old.innerHTML !== next.innerHTML) {
          old.replaceChildren(...document.adoptNode(next).childNodes);
          mark(at);
        }
      }
      body.dataset.updates = String(Number(body.dataset.updates || 0) + 1);
    } catch { /* the next change tries again */ } finally {
      busy = false;
      if (behind) later();
    }
  }

  // Many changes make one update, and many viewers do not come at the same moment.
  let waiting = 0;
  function later() {
    behind = true;
    if (waiting || paused || document.hidden) return;
    waiting = setTimeout(() => { waiting = 0; if (behind && !paused && !document.hidden) refresh(); }, 300 + Math.random() * 700);
  }

  if (regions().length && !document.querySelector("[data-still]") && window.EventSource) {
    const source = new EventSource(body.dataset.live);
    source.addEventListener("change", later);
    document.addEventListener("visibilitychange", () => { if (behind) later(); });
    window.addEventListener("pagehide", () => source.close());
    const button = document.createElement("button");
    button.className = "quiet";
    button.type = "button";
    button.textContent = body.dataset.pause;
    button.addEventListener("click", () => {
      paused = !paused;
      button.textContent = paused ? body.dataset.resume : body.dataset.pause;
      if (!paused && behind) later();
    });
    document.querySelector(".tools").prepend(button);
  }

  // j and k walk over the rows, Enter opens one, / goes to the search.
  let at = -1;
  const rows = () => Array.from(document.querySelectorAll("table.rows tbody tr")).filter((row) => row.querySelector("a.go"));
  function mark(place) {
    for (const row of document.querySelectorAll(".here")) row.classList.remove("here");
    const found = rows();
    if (place < 0 || !found.length) return;
    at = Math.min(place, found.length - 1);
    found[at].classList.add("here");
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    if (event.key === "j" || event.key === "k") {
      mark(Math.max(0, at + (event.key === "j" ? 1 : -1)));
      const row = rows()[at];
      if (row) { row.querySelector("a.go").focus({ preventScroll: true }); row.scrollIntoView({ block: "nearest" }); }
    } else if (event.key === "/") {
      const search = document.querySelector("[data-search]");
      event.preventDefault();
      if (search) search.focus(); else location.href = document.querySelector('.top a[href*="/calls"]').href;
    }
  });
  body.dataset.ready = "1";
})();
