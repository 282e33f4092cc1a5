/* tables.js - the tables of edges and of events. */
{
  const MOST = 300; // rows; the rest is said
  const weightOf = (i) => board.edges[i].weight;
  const heads = [
    ["edge", (l) => l.from * 1e6 + l.to, (l) => l.from + " → " + l.to, "left"],
    ["lag", (l) => l.lag, (l) => whole(l.lag)],
    ["MB/s", (l) => l.mb_s, (l) => number(l.mb_s)],
    ["round trip", (l) => l.round_trip_s,
      (l) => (l.round_trip_s === null ? "–" : number(1e3 * l.round_trip_s, " ms"))],
    ["waited for", (l) => l.wait_share, (l) => share(l.wait_share)],
    ["weight", (l, i) => weightOf(i), (l, i) => number(weightOf(i))],
    ["reconnects", (l) => l.reconnects, (l) => whole(l.reconnects)],
    ["protection", (l) => l.protection, (l) => l.protection || "–", "left"],
  ];
  const scroller = byId("links-table").parentElement, IN_VIEW = 24;
  let sorted = 0, falling = false, cells = [], body = null, filled = [], top = 0, drawn = 0;

  function sortBy(column) {
    falling = sorted === column ? !falling : column > 0;
    sorted = column;
    draw(["links"], true);
  }

  function buildHead() {
    const row = make("tr", {}, ...heads.map(([name, , , side], i) => {
      const button = make("button", { type: "button" }, name);
      button.addEventListener("click", () => sortBy(i));
      return make("th", { scope: "col", class: side }, button);
    }));
    body = make("tbody", {});
    byId("links-table").append(make("thead", {}, row), body);
    return row;
  }

  const headRow = buildHead();

  function order() {
    const value = heads[sorted][1];
    const list = board.links.map((link, i) => [value(link, i), i])
      .filter(([, i]) => chosen === null || board.links[i].from === chosen ||
        board.links[i].to === chosen);
    const rank = (a, b) => (a[0] === null) - (b[0] === null) ||
      (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0) * (falling ? -1 : 1) || a[1] - b[1];
    return list.sort(rank).map(([, i]) => i);
  }

  /* Cells stay; their texts change: of rows in view each time, of others each tenth time. */
  function fill(rows) {
    while (cells.length < rows.length) {
      const row = heads.map(([, , , side]) => make("td", { class: side }));
      body.append(make("tr", {}, ...row));
      cells.push(row);
    }
    while (cells.length > rows.length) cells.pop()[0].parentElement.remove();
    const all = drawn++ % 10 === 0 || rows.join() !== filled.join();
    filled = rows;
    write(all ? 0 : top, all ? rows.length : top + IN_VIEW);
  }

  function write(from, until) {
    filled.slice(from, until).forEach((i, at) => heads.forEach(([, , say], column) =>
      setText(cells[from + at][column], say(board.links[i], i))));
  }

  scroller.addEventListener("scroll", () => {
    const high = cells.length > 0 ? cells[0][0].offsetHeight : 1;
    top = Math.max(0, Math.floor(scroller.scrollTop / high) - 2);
    write(top, top + IN_VIEW);
  });

  addPanel({
    parts: ["links", "edges"],
    costly: scroller,
    draw() {
      const rows = order();
      [...headRow.children].forEach((head, i) => head.setAttribute("aria-sort",
        i !== sorted ? "none" : falling ? "descending" : "ascending"));
      fill(rows.slice(0, MOST));
      const words = [chosen === null ? count(rows.length, "edge") :
        count(rows.length, "edge") + " of node " + chosen];
      if (rows.length > MOST) words.push("the first " + MOST + " are shown; choose a node above");
      words.push("lag: rounds that the sender is behind; waited for: share of the receiver's time");
      setText(byId("links-text"), words.join("; "));
    },
  });

  /* ---- events ---- */

  function who(event) {
    if (event.node === null) return "all";
    return event.node + (event.nodes > 1 ? " and " + (event.nodes - 1) + " more" : "");
  }

  function eventRow(event) {
    const link = make("a", { href: "#round=" + event.round }, "round " + event.round);
    return make("tr", {}, make("td", {}, seconds(event.time)),
      make("td", { class: "left" }, who(event)),
      make("td", { class: "left" }, event.round > 0 ? link : "–"),
      make("td", { class: "says" }, event.text));
  }

  const eventBody = make("tbody", {});
  byId("events-table").append(make("thead", {}, make("tr", {},
    make("th", { scope: "col" }, "time"), make("th", { scope: "col", class: "left" }, "node"),
    make("th", { scope: "col", class: "left" }, "round"),
    make("th", { scope: "col", class: "left" }, "what happened"))), eventBody);

  addPanel({
    parts: ["events"],
    draw() {
      eventBody.replaceChildren(...[...board.events].reverse().map(eventRow));
    },
  });
}
