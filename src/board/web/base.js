/* base.js - what the panels share: the board, its elements, numbers as text. */
"use strict";

const board = {};
let chosen = null; // a rank
let shownRound = null; // that a link of an event has led to
const panels = []; // {parts: members of the board it shows, draw; costly: the element that it fills}

const byId = (id) => document.getElementById(id);

function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {}))
    if (value !== null && value !== undefined) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function makeSvg(name, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  return element;
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/* What stays as it is costs no drawing. */
function set(element, name, value) {
  if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

/* Three digits, or what is unknown. */
function number(value, unit = "") {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0" + unit;
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-3) return value.toExponential(2) + unit;
  return String(size >= 1000 ? Math.round(value) : Number(value.toPrecision(3))) + unit;
}

const whole = (value) => (value === null ? "–" : String(value));
const share = (value) => (value === null ? "–" : (100 * value).toFixed(0) + " %");
const percent = (value) => (value === null ? "–" : (100 * value).toFixed(2) + " %");
const megabytes = (value) => (value === null ? "–" : number(value / 1e6, " MB"));
const count = (n, what) => n + " " + what + (n === 1 ? "" : "s");

function seconds(value, digits = 1) {
  if (value === null) return "–";
  if (value < 120) return value.toFixed(digits) + " s";
  const whole = Math.round(value);
  const pad = (n) => String(n).padStart(2, "0");
  const minutes = Math.floor(whole / 60);
  return minutes < 60
    ? minutes + ":" + pad(whole % 60)
    : Math.floor(minutes / 60) + ":" + pad(minutes % 60) + ":" + pad(whole % 60);
}

/* "1, 2, 5 and 9 more" */
function ranks(list, most = 8) {
  const rest = list.length - most;
  return list.slice(0, most).join(", ") + (rest > 0 ? " and " + rest + " more" : "");
}

const gone = new Set(["lost", "failed", "stopped", "left", "saved", "killed", "crashed",
  "cut off", "is not connected", "does not answer", "is silent"]);

/* The class that a node is drawn with. */
function kindOf(node) {
  if (gone.has(node.state)) return "gone";
  if (node.state === "unknown") return "unknown";
  if (node.state === "connects") return "joins";
  if (node.waits_for.length > 0 && node.still_s > 0.5) return "waits";
  return node.state === "exchanges" ? "exchanges" : "computes";
}

function sayNode(node) {
  const words = ["node " + node.rank + ": " + node.state];
  if (node.round > 0) words.push("round " + node.round);
  if (node.still_s !== null && node.still_s >= 0.5) words.push("since " + seconds(node.still_s));
  if (node.waits_for.length > 0) words.push("waits for " + ranks(node.waits_for));
  if (node.loss !== null) words.push("loss " + number(node.loss));
  if (node.accuracy !== null) words.push("accuracy " + percent(node.accuracy));
  if (node.sent > 0) words.push("sent " + megabytes(node.sent));
  return words.join(", ");
}

function choose(rank) {
  chosen = chosen === rank ? null : rank;
  draw(["nodes", "links"], true);
}

/* What colours mean: [words, colour]. */
function keyOf(rows) {
  return rows.map(([words, ink]) => {
    const mark = make("i", { "aria-hidden": "true" });
    mark.style.background = `var(--${ink})`;
    return make("span", {}, mark, words);
  });
}

const OFTEN_MS = 1200, LATE_MS = 3000; // as fast as one can read; at the latest
const SELDOM_MS = 10000; // where nobody looks
const SHARE = 0.01; // of the time, at most, for one panel
const inView = new Set();

/* What is costly waits for its turn, the longer the more it costs. */
function drawInTime(panel) {
  clearTimeout(panel.later);
  const seen = inView.has(panel.costly);
  const every = seen ? Math.min(LATE_MS, Math.max(OFTEN_MS, panel.took / SHARE)) : SELDOM_MS;
  const early = panel.costly ? panel.drawnAt + every - performance.now() : 0;
  if (early > 0) {
    panel.later = setTimeout(drawInTime, early, panel);
    return;
  }
  panel.later = 0;
  panel.drawnAt = performance.now();
  panel.draw();
  panel.took = performance.now() - panel.drawnAt;
}

/* Draws the panels that show one of these members of the board. */
function draw(parts, atOnce) {
  for (const panel of panels)
    if (panel.parts.some((part) => parts.includes(part))) {
      if (atOnce) panel.drawnAt = -Infinity;
      drawInTime(panel);
    }
}

const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    inView[isIntersecting ? "add" : "delete"](target);
    for (const panel of panels) if (panel.costly === target && panel.later) drawInTime(panel);
  }
});

function addPanel(panel) {
  panels.push({ drawnAt: -Infinity, took: 0, ...panel });
  if (panel.costly) watcher.observe(panel.costly);
}
