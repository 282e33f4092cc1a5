/* strip.js - rank by time: what each node did, in each recorded interval. */
{
  const LEFT = 34, BELOW = 20, phases = ["compute", "encode", "exchange", "wait"];
  const canvas = byId("strip-picture");
  let at = null; // {row, column} that is told of

  const last = () => Math.max(1e-3, ...board.strip.map((row) => row.until.at(-1) || 0),
    ...board.strip.flatMap((row) => row.down.map((down) => down[1] || down[0])));
  const first = () => Math.max(0, Math.min(...board.strip.map((row) => begin(row, 0))));

  /* An interval begins where the one before ended; the first one, when its first round began. */
  function begin(row, i) {
    if (i > 0) return row.until[i - 1];
    const spent = phases.reduce((sum, phase) => sum + (row[phase][0] || 0), 0);
    return row.until.length > 0 ? Math.max(0, row.until[0] - spent) : 0;
  }

  function scale() {
    const height = Math.max(7, Math.min(20, Math.floor(420 / Math.max(1, board.strip.length))));
    const width = canvas.parentElement.clientWidth, from = first(), until = last();
    const x = (time) => LEFT + ((width - LEFT - 4) * (time - from)) / Math.max(1e-9, until - from);
    return { height, width, x, from, until };
  }

  /* Of one colour after the other; what is narrower than a tenth of a point is not seen. */
  function paintRow(pen, row, index, s, inks) {
    const y = index * s.height, high = s.height - 1;
    const left = row.until.map((until, i) => s.x(begin(row, i)));
    const scales = row.until.map((until, i) => (s.x(until) - left[i]) / Math.max(1e-12,
      until - begin(row, i), phases.reduce((all, phase) => all + row[phase][i], 0)));
    for (const phase of phases) {
      pen.fillStyle = inks[phase];
      row[phase].forEach((time, i) => {
        const wide = scales[i] * time;
        if (wide >= 0.1) pen.fillRect(left[i], y, wide, high);
        left[i] += wide;
      });
    }
    pen.fillStyle = inks.down;
    for (const [from, until] of row.down)
      pen.fillRect(s.x(from), y, Math.max(2, s.x(until ?? s.until) - s.x(from)), high);
  }

  function paintAxes(pen, s) {
    const low = board.strip.length * s.height;
    pen.fillStyle = colour("dim");
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "right";
    const every = Math.ceil(12 / s.height);
    board.strip.forEach((row, i) => {
      if (i % every === 0) pen.fillText(row.rank, LEFT - 6, (i + 0.5) * s.height + 4);
    });
    pen.textAlign = "center";
    const ticks = Math.max(2, Math.floor(s.width / 140));
    const digits = s.until - s.from < 8 ? 2 : 1;
    for (let k = 0; k <= ticks; k++) {
      const time = s.from + ((s.until - s.from) * k) / ticks;
      const x = Math.min(s.width - 22, Math.max(LEFT + 12, s.x(time)));
      pen.fillText(seconds(time, digits), x, low + 14);
    }
  }

  function line(pen, x, low) {
    pen.fillStyle = colour("ink");
    pen.fillRect(x - 1, 0, 2, low);
  }

  function paint() {
    const s = scale(), high = board.strip.length * s.height, ratio = devicePixelRatio || 1;
    canvas.width = s.width * ratio;
    canvas.height = (high + BELOW) * ratio;
    canvas.style.width = s.width + "px";
    canvas.style.height = high + BELOW + "px";
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const inks = {};
    for (const phase of [...phases, "down"]) inks[phase] = colour(phase);
    board.strip.forEach((row, i) => paintRow(pen, row, i, s, inks));
    paintAxes(pen, s);
    if (shownRound !== null && board.strip.length > 0) {
      const row = board.strip.find((one) => one.round.length > 0) || board.strip[0];
      const i = row.round.findIndex((round) => round >= shownRound);
      if (i >= 0) line(pen, s.x(row.until[i]), high);
    }
    if (at !== null) {
      const row = board.strip[at.row];
      pen.strokeStyle = colour("ink");
      pen.lineWidth = 2;
      pen.strokeRect(s.x(begin(row, at.column)), at.row * s.height,
        s.x(row.until[at.column]) - s.x(begin(row, at.column)), s.height - 1);
    }
  }

  /* Of one interval, or of a node's whole run. */
  function sayShares(values) {
    const sum = values.reduce((all, [, value]) => all + value, 0);
    return values.filter(([, value]) => value > 0)
      .map(([name, value]) => name + " " + share(value / (sum || 1))).join(", ");
  }

  function sayAll() {
    const total = { compute: 0, encode: 0, exchange: 0, wait: 0, down: 0 };
    for (const node of board.nodes)
      for (const phase of Object.keys(total)) total[phase] += node.seconds[phase];
    return "all nodes: " + (sayShares(Object.entries(total)) || "nothing is recorded yet");
  }

  function tell() {
    let text = sayAll();
    const row = at !== null ? board.strip[at.row] : null;
    if (row && row.until.length > 0) {
      const i = at.column, values = phases.map((phase) => [phase, row[phase][i]]);
      text = `node ${row.rank}, until round ${row.round[i]}, ${seconds(begin(row, i))} to ` +
        `${seconds(row.until[i])}: ${sayShares(values)}`;
      if (row.down.length > 0)
        text += "; down " + row.down.map(([from, until]) => "from " + seconds(from) +
          (until === null ? " on" : " to " + seconds(until))).join(", ");
    }
    setText(byId("strip-text"), text);
    canvas.setAttribute("aria-label", "time of each node; " + text);
  }

  function pick(row, column) {
    const rows = board.strip.length;
    if (rows === 0) return;
    row = Math.min(rows - 1, Math.max(0, row));
    const columns = board.strip[row].until.length;
    at = columns > 0 ? { row, column: Math.min(columns - 1, Math.max(0, column)) } : null;
    paint();
    tell();
  }

  canvas.addEventListener("pointermove", (event) => {
    const s = scale(), row = Math.floor(event.offsetY / s.height);
    if (row >= board.strip.length) return;
    const column = board.strip[row].until.findIndex((until) => s.x(until) >= event.offsetX);
    pick(row, column < 0 ? Infinity : column);
  });
  canvas.addEventListener("pointerleave", () => { at = null; paint(); tell(); });
  canvas.addEventListener("blur", () => { at = null; paint(); tell(); });
  canvas.addEventListener("keydown", (event) => {
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1],
      ArrowRight: [0, 1] }[event.key] || [0, 0];
    if (down === 0 && right === 0) return;
    event.preventDefault();
    const now = at || { row: 0, column: -right };
    pick(now.row + down, now.column + right);
  });

  addPanel({
    parts: ["strip"],
    costly: canvas,
    draw() { paint(); tell(); },
    rebuild: paint,
    round: paint,
  });
  new ResizeObserver(() => { if (board.strip) paint(); }).observe(canvas.parentElement);
  byId("strip-key").append(...keyOf([["compute", "compute"], ["encode, combine", "encode"],
    ["exchange", "exchange"], ["wait", "wait"], ["down", "down"]]));
}
