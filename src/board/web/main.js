/* main.js - the head of the page, and where the board comes from: the page itself, if it is a
 * report; else a stream of what has changed. */
{
  let connected = true;

  function sayState() {
    const run = board.run, words = [];
    const round = Math.max(0, ...board.nodes.map((node) => node.round),
      ...board.curves.round.slice(-1));
    words.push(run.outcome + (run.why ? ": " + run.why : ""));
    words.push("round " + round + (run.rounds > 0 ? " of " + run.rounds : ""));
    words.push(run.algorithm);
    words.push(run.members === run.nodes ? count(run.nodes, "node")
      : run.members + " of " + count(run.nodes, "node"));
    if (run.rank !== null) words.push("as agent " + run.rank + " sees it");
    if (run.started) words.push("began " + run.started.replace("T", " ").replace("Z", " UTC"));
    if (!connected) words.push("no connection to the run; what is shown is old");
    return words.join(" · ");
  }

  addPanel({
    parts: ["run", "nodes", "curves"],
    draw() {
      setText(byId("name"), board.run.name);
      document.title = board.run.name + " – Starling";
      setText(byId("state"), sayState());
      byId("notes").replaceChildren(...board.run.notes.map((note) => make("li", {}, note)));
    },
  });

  function take(part) {
    Object.assign(board, part);
    draw(Object.keys(part));
  }

  function follow() {
    const stream = new EventSource("events");
    stream.onmessage = (event) => {
      connected = true;
      take(JSON.parse(event.data));
      if (board.run.outcome !== "running") stream.close();
    };
    stream.onerror = () => {
      connected = false;
      if (board.run) draw(["run"]);
    };
  }

  function showRound() {
    const found = /^#round=(\d+)$/.exec(location.hash);
    shownRound = found ? Number(found[1]) : null;
    if (board.run && shownRound !== null)
      for (const panel of panels) if (panel.round) panel.round(shownRound);
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    if (board.run) for (const panel of panels) if (panel.rebuild) panel.rebuild();
  });
  addEventListener("hashchange", showRound);
  const report = byId("board");
  if (report) take(JSON.parse(report.textContent));
  else follow();
  showRound();
}
