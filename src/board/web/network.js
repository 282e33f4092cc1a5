/* network.js - the network: width of an edge: weight; its colour: share of waiting; an arrow leads
 * to who is waited for; edges of the round under way are bright; nodes that are gone are grey. */
{
  const SIZE = 400, MARGIN = 22;
  let edges = [], nodes = [], arrows = null, drawnOf = "";

  const at = (rank) => board.positions[rank].map((x) => MARGIN + x * (SIZE - 2 * MARGIN));
  const radius = () => Math.max(3.5, Math.min(11, 60 / Math.sqrt(board.nodes.length)));

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
    const [x1, y1] = at(pair.a), [x2, y2] = at(pair.b);
    const line = makeSvg("line", { x1, y1, x2, y2 });
    svg.append(line);
    return { ...pair, line };
  }

  function addNode(svg, node) {
    const [x, y] = at(node.rank);
    const group = makeSvg("g", { role: "button", tabindex: node.rank === 0 ? 0 : -1 });
    group.append(makeSvg("circle", { cx: x, cy: y, r: radius(), "stroke-width": 2 }));
    const text = makeSvg("text", { x, y: y + 3.5 });
    text.textContent = node.rank;
    if (board.nodes.length <= 100) group.append(text);
    group.addEventListener("click", () => choose(node.rank));
    group.addEventListener("focus", () => tell(node.rank));
    group.addEventListener("pointerenter", () => tell(node.rank));
    svg.append(group);
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
    const definitions = makeSvg("defs");
    const marker = makeSvg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4,
      markerWidth: 5, markerHeight: 5, orient: "auto-start-reverse" });
    marker.append(makeSvg("path", { d: "M0 0 8 4 0 8z" }));
    definitions.append(marker);
    arrows = makeSvg("g");
    svg.append(definitions);
    edges = pairs().map((pair) => addEdge(svg, pair));
    svg.append(arrows);
    nodes = board.nodes.map((node) => addNode(svg, node));
    svg.addEventListener("keydown", onKey);
    byId("graph").replaceChildren(svg);
  }

  /* Is the edge one of the round that most nodes are in? */
  function isNow(index, round) {
    const slots = board.edges[index].slots;
    return board.run.period > 1 && (slots === null || slots.includes((round - 1) % board.run.period));
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
      edge.line.setAttribute("stroke-width", (0.4 + (most * weight) / heaviest).toFixed(2));
      edge.line.setAttribute("class", waits > 0.05 ? "waits" : now ? "now" : "");
      const faint = board.run.period > 1 && !now ? 0.25 : edges.length > 500 ? 0.35 : 0.9;
      edge.line.setAttribute("opacity", waits > 0.05 ? Math.min(1, 0.35 + waits) : faint);
    }
  }

  /* From who waits to who is waited for, from rim to rim. */
  function paintArrows() {
    const lines = [];
    for (const node of board.nodes)
      for (const other of node.still_s > 0.3 ? node.waits_for : []) {
        if (!board.positions[other] || !board.positions[node.rank]) continue;
        const [x1, y1] = at(node.rank), [x2, y2] = at(other);
        const length = Math.hypot(x2 - x1, y2 - y1) || 1, rim = radius() + 2;
        const dx = ((x2 - x1) * rim) / length, dy = ((y2 - y1) * rim) / length;
        lines.push(makeSvg("line", { x1: x1 + dx, y1: y1 + dy, x2: x2 - dx, y2: y2 - dy,
          class: "awaited", "marker-end": "url(#arrow)" }));
      }
    arrows.replaceChildren(...lines);
  }

  function paintNodes() {
    board.nodes.forEach((node, i) => {
      const kind = "node " + kindOf(node) + (chosen === node.rank ? " chosen" : "");
      if (nodes[i].getAttribute("class") !== kind) nodes[i].setAttribute("class", kind);
      nodes[i].setAttribute("aria-label", sayNode(node));
      nodes[i].setAttribute("aria-pressed", chosen === node.rank);
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

  panels.push({
    parts: ["nodes", "links", "edges", "positions"],
    draw() {
      if (board.positions.length === 0) {
        setText(byId("network-text"), "so many nodes are not shown one by one");
        return;
      }
      const of = JSON.stringify([board.positions, board.edges]);
      if (of !== drawnOf) build();
      drawnOf = of;
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
