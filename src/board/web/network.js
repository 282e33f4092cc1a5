/* network.js - the network: width of an edge: weight; its colour: share of waiting; an arrow leads
 * to who is waited for; edges of the round under way are bright; nodes that are gone are grey. */
{
  const SIZE = 400, MARGIN = 22;
  let edges = [], nodes = [], arrows = null, drawnEdges = null, drawnOf = "";

  const at = (rank) => board.positions[rank].map((x) => MARGIN + x * (SIZE - 2 * MARGIN));
  const isDense = () => board.nodes.length > 24;
  const radius = () => (isDense() ? Math.max(3, 60 / Math.sqrt(board.nodes.length)) : 11);

  /* Does a straight line between two nodes pass through a third one? */
  function isBlocked([x1, y1], [x2, y2], a, b) {
    const length = Math.hypot(x2 - x1, y2 - y1) || 1;
    return board.positions.some((_, rank) => {
      if (rank === a || rank === b) return false;
      const [x, y] = at(rank);
      const along = ((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)) / length;
      const across = Math.abs((x - x1) * (y2 - y1) - (y - y1) * (x2 - x1)) / length;
      return along > 1 && along < length - 1 && across < 2;
    });
  }

  /* From node to node, or from rim to rim, around those between them. */
  function wayOf(from, to, rim = 0) {
    const [x1, y1] = at(from), [x2, y2] = at(to), dx = x2 - x1, dy = y2 - y1;
    const bend = isBlocked([x1, y1], [x2, y2], from, to) ? 0.14 : 0;
    const side = from < to ? bend : -bend, cut = rim / (Math.hypot(dx, dy) || 1);
    const middle = `${(x1 + x2) / 2 + side * dy} ${(y1 + y2) / 2 - side * dx}`;
    return `M${x1 + cut * dx} ${y1 + cut * dy}Q${middle} ${x2 - cut * dx} ${y2 - cut * dy}`;
  }

  /* One line for both directions. */
  function pairs() {
    const known = new Map();
    board.edges.forEach((edge, index) => {
      const key = Math.min(edge.from, edge.to) + " " + Math.max(edge.from, edge.to);
      if (!known.has(key)) known.set(key, { a: edge.from, b: edge.to, indices: [] });
      known.get(key).indices.push(index);
    });
    return [...known.values()];
  }

  function addEdge(svg, pair) {
    const line = makeSvg("path", { d: wayOf(pair.a, pair.b), fill: "none" });
    svg.append(line);
    return { ...pair, line };
  }

  function addNode(svg, names, node) {
    const [x, y] = at(node.rank);
    const group = makeSvg("g", { role: "button", tabindex: node.rank === 0 ? 0 : -1 });
    group.append(makeSvg("circle", { cx: x, cy: y, r: radius(), "stroke-width": 2 }));
    svg.append(group);
    const text = makeSvg("text", isDense() ? { x: x + radius(), y: y - radius(), class: "small" }
      : { x, y: y + 3.5 });
    text.textContent = node.rank;
    if (board.nodes.length <= 150) names.append(text);
    group.addEventListener("click", () => choose(node.rank));
    group.addEventListener("focus", () => tell(node.rank));
    group.addEventListener("pointerenter", () => tell(node.rank));
    return group;
  }

  function tell(rank) {
    setText(byId("network-text"), sayNode(board.nodes[rank]));
  }

  /* One stop for the tab key; arrows lead from node to node. */
  function onKey(event) {
    const at = nodes.indexOf(document.activeElement);
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (at < 0 || (!step && event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    if (!step) return choose(at);
    const next = nodes[(at + step + nodes.length) % nodes.length];
    nodes[at].setAttribute("tabindex", -1);
    next.setAttribute("tabindex", 0);
    next.focus();
  }

  function build() {
    const svg = makeSvg("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "group",
      "aria-label": "the network; arrow keys lead from node to node" });
    /* In a picture of their own, which stays as it is: letters take longest to draw. */
    const names = makeSvg("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, "aria-hidden": true });
    const definitions = makeSvg("defs");
    const marker = makeSvg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4,
      markerWidth: 5, markerHeight: 5, orient: "auto-start-reverse" });
    marker.append(makeSvg("path", { d: "M0 0 8 4 0 8z" }));
    definitions.append(marker);
    arrows = makeSvg("g");
    svg.append(definitions);
    edges = pairs().map((pair) => addEdge(svg, pair));
    svg.append(arrows);
    nodes = board.nodes.map((node) => addNode(svg, names, node));
    svg.addEventListener("keydown", onKey);
    byId("graph").replaceChildren(svg, names);
  }

  function buildIfNew() {
    const of = JSON.stringify([board.positions, board.edges]);
    drawnEdges = board.edges;
    if (of !== drawnOf) build();
    drawnOf = of;
  }

  /* Is the edge one of the round that most nodes are in? */
  function isNow(index, round) {
    const slots = board.edges[index].slots;
    const slot = (round - 1) % board.run.period;
    return board.run.period > 1 && (slots === null || slots.includes(slot));
  }

  function paintEdges() {
    const rounds = board.nodes.map((node) => node.round).sort((a, b) => a - b);
    const round = Math.max(1, rounds[Math.floor(rounds.length / 2)] || 1);
    const heaviest = Math.max(...board.edges.map((edge) => Math.abs(edge.weight)), 1e-9);
    for (const edge of edges) {
      const mean = (of) => edge.indices.reduce((sum, i) => sum + (of(i) || 0), 0) /
        edge.indices.length;
      const weight = mean((i) => Math.abs(board.edges[i].weight));
      const waits = mean((i) => board.links[i] && board.links[i].wait_share);
      const now = edge.indices.some((i) => isNow(i, round));
      const most = edges.length > 500 ? 1.5 : 4;
      set(edge.line, "stroke-width", (0.4 + (most * weight) / heaviest).toFixed(2));
      set(edge.line, "class", waits > 0.05 ? "waits" : now ? "now" : "");
      const faint = board.run.period > 1 && !now ? 0.25 : edges.length > 500 ? 0.35 : 0.9;
      set(edge.line, "opacity", waits > 0.05 ? Math.min(1, 0.4 + waits).toFixed(1) : faint);
    }
  }

  /* From who waits to who is waited for, from rim to rim. */
  function paintArrows() {
    const lines = [];
    for (const node of board.nodes)
      for (const other of node.still_s > 0.3 ? node.waits_for : []) {
        if (!board.positions[other] || !board.positions[node.rank]) continue;
        lines.push(makeSvg("path", { d: wayOf(node.rank, other, radius() + 2), fill: "none",
          class: "awaited", "marker-end": "url(#arrow)" }));
      }
    arrows.replaceChildren(...lines);
  }

  function paintNodes() {
    board.nodes.forEach((node, i) => {
      const kind = "node " + kindOf(node) + (chosen === node.rank ? " chosen" : "");
      set(nodes[i], "class", kind);
      set(nodes[i], "aria-label", sayNode(node));
      set(nodes[i], "aria-pressed", chosen === node.rank);
    });
  }

  function summary() {
    const of = (kind) => board.nodes.filter((node) => kindOf(node) === kind);
    const missing = of("gone"), waiting = of("waits");
    const words = [count(board.nodes.length, "node"), count(edges.length, "edge")];
    const names = (list) => ranks(list.map((node) => node.rank));
    if (missing.length > 0 && missing.length < board.nodes.length)
      words.push("gone: " + names(missing));
    if (waiting.length > 0) words.push("waiting: " + names(waiting));
    if (board.run.rho !== null) words.push("a round shrinks the distance to " +
      number(board.run.rho) + " of it");
    return words.join("; ");
  }

  addPanel({
    parts: ["nodes", "links", "edges", "positions"],
    costly: byId("graph"),
    draw() {
      if (board.positions.length === 0) {
        setText(byId("network-text"), "so many nodes are not shown one by one");
        return;
      }
      if (drawnEdges !== board.edges) buildIfNew();
      paintEdges();
      paintArrows();
      paintNodes();
      const busy = nodes.indexOf(document.activeElement);
      setText(byId("network-text"), busy >= 0 ? sayNode(board.nodes[busy])
        : chosen !== null && board.nodes[chosen] ? sayNode(board.nodes[chosen]) : summary());
    },
  });

  const key = [["computes", "compute"], ["exchanges", "exchange"], ["waits", "wait"],
    ["connects", "encode"], ["gone", "down"]];
  byId("network-key").append(...keyOf(key));
}
