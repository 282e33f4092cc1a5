/* curves.js - the curves by round: loss, held-out accuracy, consensus distance measured and
 * predicted, bytes. */
{
  const HEIGHT = 150;
  let shown = { round: [] }; // the board's curves, as they are drawn
  const figures = [
    { title: "loss", log: true, lines: [
      { of: "loss", name: "mean", ink: "compute", say: number }] },
    { title: "held-out accuracy", lines: [
      { of: "accuracy", name: "mean of nodes", ink: "compute", say: percent },
      { of: "averaged", name: "averaged model", ink: "encode", say: percent }] },
    { title: "consensus distance", log: true, lines: [
      { of: "distance", name: "measured", ink: "compute", say: number },
      { of: "predicted", name: "predicted by averaging alone", ink: "wait", dashed: true,
        say: number },
      { of: "apart", name: "of neighbours", ink: "exchange", say: number }] },
    { title: "sent by a node", lines: [{ of: "bytes", name: "", ink: "compute", say: megabytes }] },
  ];

  function columns(figure) {
    const c = shown;
    return [c.round, ...figure.lines.map((line) => c[line.of])];
  }

  const short = (value) => (value === null ? "" : Math.abs(value) >= 1e4 || Math.abs(value) < 1e-3
    ? value === 0 ? "0" : value.toExponential(0) : String(Number(value.toPrecision(3))));

  /* By what was measured; a prediction may leave it. */
  function range(figure) {
    const main = figure.lines.filter((line) => line.of !== "predicted");
    const values = main.flatMap((line) => shown[line.of])
      .filter((value) => value !== null && (!figure.log || value > 0));
    if (values.length === 0) return figure.log ? [0.1, 1] : [0, 1];
    const low = Math.min(...values), high = Math.max(...values);
    if (figure.log) return [low, high].map((v, i) => (i ? 1.5 : 1 / 1.5) *
      Math.min(1e30, Math.max(1e-30, v)));
    const gap = high > low ? 0.05 * (high - low) : Math.abs(high) * 0.1 || 1;
    return [Math.max(0, low - gap), high + gap];
  }

  /* Prediction begins anew at each exact point: from there a line, as the scale is logarithmic, to
   * where the next point would be, or to the lower end of the picture. */
  function pathOfPrediction(u) {
    const { round, distance, predicted } = shown, path = new Path2D();
    const x = (i) => u.valToPos(round[i], "x", true), bottom = u.bbox.top + u.bbox.height;
    const y = (value) => u.valToPos(Math.max(value, 1e-300), "y", true);
    for (let i = 1; i < round.length; i++) {
      if (!(distance[i - 1] > 0) || predicted[i] === null) continue;
      const top = y(distance[i - 1]), end = y(predicted[i]);
      const part = end > bottom ? (bottom - top) / (end - top) : 1;
      path.moveTo(x(i - 1), top);
      path.lineTo(x(i - 1) + part * (x(i) - x(i - 1)), top + part * (end - top));
    }
    return { stroke: path, fill: null, clip: null, band: null, gaps: null, flags: 0 };
  }

  /* uPlot's own never end where a logarithmic scale does not begin at a round number. Few decades
   * have three ticks each, many less than one. */
  function logTicks(u, axis, low, high) {
    const from = Math.floor(Math.log10(low)), until = Math.ceil(Math.log10(high));
    const every = Math.ceil((until - from) / 5), ticks = [];
    for (let exponent = from; exponent <= until; exponent += every)
      for (const digit of until - from > 2 ? [1] : [1, 2, 5])
        ticks.push(Number(`${digit}e${exponent}`));
    return ticks.filter((tick) => tick >= low && tick <= high);
  }

  function options(figure, width) {
    const axis = { stroke: colour("dim"), grid: { stroke: colour("rule"), width: 1 },
      ticks: { show: false }, font: "11px system-ui, sans-serif" };
    return {
      width, height: HEIGHT, legend: { show: false },
      cursor: { sync: { key: "rounds" }, y: false, drag: { x: false, y: false } },
      scales: { x: { time: false },
        y: { distr: figure.log ? 3 : 1, range: () => range(figure) } },
      axes: [
        { ...axis, size: 24, values: (u, ticks) => ticks.map(short) },
        { ...axis, size: 52, space: 26,
          ...(figure.log ? { splits: logTicks, filter: (u, ticks) => ticks } : {}),
          values: (u, ticks) => ticks.map((v) => (figure.lines[0].of === "bytes"
            ? short(v / 1e6) + " MB" : short(v))) }],
      series: [{}, ...figure.lines.map((line) => ({ stroke: colour(line.ink), width: 1.7,
        dash: line.dashed ? [5, 4] : undefined,
        paths: line.dashed ? pathOfPrediction : undefined,
        points: { show: !line.dashed && shown.round.length < 2 } }))],
      hooks: { setCursor: [() => tell(figure)] },
    };
  }

  function say(line, at) {
    return (line.name ? line.name + " " : "") + line.say(shown[line.of][at] ?? null);
  }

  /* Of the round at the cursor; else of the last one that the first line that is shown has a value
   * of: of the very last ones not all nodes may have told. */
  function tell(figure) {
    const lines = figure.lines.filter((line) => shown[line.of].some((v) => v !== null));
    const rounds = shown.round, last = lines.length > 0
      ? shown[lines[0].of].findLastIndex((v) => v !== null) : rounds.length - 1;
    const at = figure.plot?.cursor.idx ?? last;
    figure.spans.forEach((span, i) => {
      span.hidden = !lines.includes(figure.lines[i]);
      setText(span.lastChild, say(figure.lines[i], at));
    });
    const where = rounds.length > 0 ? "round " + rounds[at] : "nothing is recorded yet";
    setText(figure.where, where);
    figure.box.setAttribute("aria-label", figure.title + ", " + where + ": " +
      lines.map((line) => say(line, at)).join(", "));
  }

  /* Arrow keys move along the rounds. */
  function onKey(figure, event) {
    const last = shown.round.length - 1;
    const now = figure.plot.cursor.idx ?? last;
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    goTo(figure, Math.min(last, Math.max(0, to)));
  }

  function goTo(figure, index) {
    const left = figure.plot.valToPos(shown.round[index], "x");
    figure.plot.setCursor({ left, top: 10 });
  }

  function place(figure) {
    figure.where = make("span", {});
    figure.spans = figure.lines.map((line) => {
      const mark = make("i", { class: line.dashed ? "dashed" : null });
      mark.style.color = `var(--${line.ink})`;
      return make("span", {}, mark, make("span", {}));
    });
    figure.box = make("div", { tabindex: 0, role: "img", class: "plot" });
    figure.box.addEventListener("keydown", (event) => onKey(figure, event));
    byId("charts").append(make("figure", {}, make("figcaption", {},
      make("b", {}, figure.title), figure.where, ...figure.spans), figure.box));
  }

  function build(figure) {
    if (figure.plot) figure.plot.destroy();
    figure.plot = new uPlot(options(figure, figure.box.clientWidth || 300), columns(figure),
      figure.box);
    tell(figure);
  }

  figures.forEach(place);
  addPanel({
    parts: ["curves"],
    costly: byId("charts"),
    draw() {
      shown = board.curves;
      for (const figure of figures) {
        if (!figure.plot || figure.wasFew) build(figure);
        else figure.plot.setData(columns(figure));
        figure.wasFew = shown.round.length < 2;
        tell(figure);
      }
    },
    rebuild() {
      figures.forEach(build);
    },
    round(round) {
      const index = shown.round.findIndex((recorded) => recorded >= round);
      if (index >= 0) goTo(figures[0], index);
    },
  });
  new ResizeObserver(() => {
    for (const figure of figures)
      if (figure.plot && figure.box.clientWidth !== figure.plot.width)
        figure.plot.setSize({ width: figure.box.clientWidth, height: HEIGHT });
  }).observe(byId("charts"));
}
