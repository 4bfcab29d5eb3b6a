// Draws the tree of classes as bars below bars, and lets people zoom into it by mouse, touch and keys.
(() => {
  "use strict";
  const holder = document.getElementById("icicle");
  if (!holder) return;

  const SVG = "http://www.w3.org/2000/svg";
  const ROW = 38;
  const GAP = 2;
  const FONT = "12.5px system-ui, sans-serif";
  // Bars that would be narrower than this, in pixels, are drawn as one.
  const NARROW = 3;
  const MOST_LEVELS = 9;

  const data = JSON.parse(document.getElementById("icicle-data").textContent);
  const { names, parents, weights, outside, destinations, breaks, noun } = data;
  const children = names.map(() => []);
  parents.forEach((parent, node) => {
    if (parent >= 0 && weights[node] > 0) children[parent].push(node);
  });
  const sum = (nodes, column) => nodes.reduce((total, node) => total + column[node], 0);
  const below = (nodes) => nodes.flatMap((node) => children[node]);
  const count = (value) => value.toLocaleString("en-US", { maximumFractionDigits: 2 });
  const percent = (value) => `${(100 * value).toFixed(1)}%`;
  const path = (node) => {
    const steps = [];
    for (let one = node; one > 0; one = parents[one]) steps.unshift(names[one]);
    return steps.join(" / ") || names[0];
  };

  // What is looked at, from all to the branch in view: each a list of nodes, since narrow bars are one.
  let trail = [[0]];
  let bars = [];
  let active = 0;

  const element = (parent, name, attributes = {}, text = "") => {
    const made = name.startsWith("svg:")
      ? document.createElementNS(SVG, name.slice(4))
      : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text) made.textContent = text;
    parent.append(made);
    return made;
  };

  const title = (nodes) => (nodes.length === 1 ? names[nodes[0]] : `${count(nodes.length)} small branches`);
  const error = (nodes) => sum(nodes, outside) / sum(nodes, weights);
  const describe = (nodes) => {
    const kept = nodes[0] === 0 ? "" : `, ${percent(error(nodes))} placed elsewhere`;
    return `${title(nodes)}: ${count(sum(nodes, weights))} ${noun}${kept}`;
  };

  // Sets nodes side by side, narrow ones that follow each other as one bar.
  const layOut = (nodes, left, scale, level, above) => {
    const row = [];
    let x = left;
    for (const node of nodes) {
      const width = weights[node] * scale;
      const last = row[row.length - 1];
      if (last && width < NARROW && last.narrow && last.width < 2 * NARROW) {
        last.nodes.push(node);
        last.width += width;
      } else {
        row.push({ nodes: [node], x, width, level, above, narrow: width < NARROW });
      }
      x += width;
    }
    for (const bar of row) {
      const number = bars.push(bar) - 1;
      if (level < MOST_LEVELS) layOut(below(bar.nodes), bar.x, scale, level + 1, number);
    }
  };

  const pen = document.createElement("canvas").getContext("2d");
  pen.font = FONT;
  const fitted = (text, room) => {
    if (pen.measureText(text).width <= room) return text;
    let length = Math.min(text.length, Math.floor(room / 4));
    while (length > 1 && pen.measureText(`${text.slice(0, length)}…`).width > room) length -= 1;
    return length > 2 ? `${text.slice(0, length).trimEnd()}…` : "";
  };

  const barsHolder = holder.querySelector(".bars");
  const draw = () => {
    const width = barsHolder.clientWidth;
    const focus = trail[trail.length - 1];
    bars = [];
    layOutFocus(focus, width);
    const levels = Math.max(...bars.map((bar) => bar.level)) + 1;
    barsHolder.replaceChildren();
    const svg = element(barsHolder, "svg:svg", {
      width, height: levels * (ROW + GAP), role: "tree", "aria-label": "Errors by branch of the tree",
    });
    bars.forEach((bar, number) => drawBar(svg, bar, number));
    drawTrail();
    activate(0);
  };

  const layOutFocus = (focus, width) => {
    const scale = width / sum(focus, weights);
    if (focus.length === 1) {
      bars.push({ nodes: focus, x: 0, width, level: 0, above: -1 });
      layOut(children[focus[0]], 0, scale, 1, 0);
    } else {
      layOut(focus, 0, scale, 0, -1);
    }
  };

  const drawBar = (svg, bar, number) => {
    const rate = error(bar.nodes);
    const shade = breaks.filter((one) => rate > one).length;
    const inner = below(bar.nodes).length > 0;
    const group = element(svg, "svg:g", {
      class: `node e${shade}${inner ? " inner" : ""}`, role: "treeitem", tabindex: -1, "data-bar": number,
      "aria-level": bar.level + 1, "aria-label": describe(bar.nodes),
    });
    const gap = bar.width > 4 ? 1 : 0;
    const y = bar.level * (ROW + GAP);
    element(group, "svg:rect", {
      x: bar.x.toFixed(2), y, width: Math.max(bar.width - gap, 0.5).toFixed(2), height: ROW, rx: bar.width > 12 ? 3 : 0,
    });
    const room = bar.width - 12;
    if (room < 14) return;
    const name = title(bar.nodes);
    const long = bar.nodes[0] === 0 ? `${name} (${count(weights[0])})` : `${name} · ${percent(rate)}`;
    const written = pen.measureText(long).width <= room ? long : fitted(name, room);
    if (written) element(group, "svg:text", { x: (bar.x + 6).toFixed(2), y: y + ROW / 2, dy: ".35em" }, written);
  };

  const drawTrail = () => {
    const list = holder.querySelector(".crumbs");
    list.replaceChildren();
    trail.forEach((nodes, depth) => {
      const item = element(list, "li");
      const last = depth === trail.length - 1;
      const button = element(item, "button", { type: "button", dir: "auto" }, title(nodes));
      if (last) button.setAttribute("aria-current", "true");
      button.addEventListener("click", () => zoomOut(depth));
    });
  };

  // Shows what is known of a bar, and makes it the one that the keys start from.
  const activate = (number, focus = false) => {
    const groups = barsHolder.querySelectorAll("[data-bar]");
    groups[active]?.setAttribute("tabindex", -1);
    active = Math.min(number, groups.length - 1);
    groups[active].setAttribute("tabindex", 0);
    if (focus) groups[active].focus();
    showDetails(bars[active].nodes);
  };

  const showDetails = (nodes) => {
    const panel = holder.querySelector(".details");
    panel.replaceChildren();
    const heading = element(panel, "p", { class: "where" });
    element(heading, "bdi", {}, nodes.length === 1 ? path(nodes[0]) : title(nodes));
    const total = sum(nodes, weights);
    const wrong = sum(nodes, outside);
    const facts = nodes[0] === 0
      ? `${count(total)} ${noun}. Point at a bar to see where its errors go.`
      : `${count(total)} ${noun}, ${count(wrong)} placed elsewhere (${percent(wrong / total)})`;
    element(panel, "p", {}, facts);
    const places = nodes.length === 1 ? destinations[nodes[0]] : [];
    if (!places.length) return;
    const line = element(panel, "p", {}, "Most often in ");
    for (let i = 0; i < places.length; i += 2) {
      if (i) line.append(", ");
      element(line, "bdi", {}, path(places[i]));
      line.append(` (${count(places[i + 1])})`);
    }
  };

  const zoomIn = (number) => {
    const bar = bars[number];
    if (number === 0 && bar.level === 0 && bar.nodes === trail[trail.length - 1]) {
      zoomOut(trail.length - 2);
      return;
    }
    if (!below(bar.nodes).length && bar.nodes.length === 1) {
      activate(number, true);
      return;
    }
    const steps = [];
    for (let one = number; one >= 0; one = bars[one].above) steps.unshift(bars[one].nodes);
    const here = trail[trail.length - 1];
    trail = trail.concat(steps.filter((nodes) => nodes !== here));
    draw();
    activate(0, true);
  };

  const zoomOut = (depth) => {
    if (depth < 0 || depth >= trail.length - 1) return;
    trail = trail.slice(0, depth + 1);
    draw();
    activate(0, true);
  };

  const numberOf = (event) => {
    const group = event.target.closest?.("[data-bar]");
    return group ? Number(group.dataset.bar) : -1;
  };
  barsHolder.addEventListener("click", (event) => {
    const number = numberOf(event);
    if (number >= 0) zoomIn(number);
  });
  barsHolder.addEventListener("pointerover", (event) => {
    const number = numberOf(event);
    if (number >= 0) showDetails(bars[number].nodes);
  });
  barsHolder.addEventListener("pointerleave", () => showDetails(bars[active].nodes));
  barsHolder.addEventListener("focusin", (event) => {
    const number = numberOf(event);
    if (number >= 0 && number !== active) activate(number);
  });

  const neighbour = (key) => {
    const { level, above } = bars[active];
    const row = bars.map((_, number) => number).filter((number) => bars[number].level === level);
    row.sort((one, other) => bars[one].x - bars[other].x);
    const place = row.indexOf(active);
    switch (key) {
      case "ArrowRight": return row[place + 1];
      case "ArrowLeft": return row[place - 1];
      case "ArrowUp": return above >= 0 ? above : undefined;
      case "ArrowDown": { const found = bars.findIndex((bar) => bar.above === active); return found < 0 ? undefined : found; }
      case "Home": return row[0];
      case "End": return row[row.length - 1];
      default: return undefined;
    }
  };
  barsHolder.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Enter" || event.key === " ") zoomIn(active);
    else if (event.key === "Escape" || event.key === "Backspace") zoomOut(trail.length - 2);
    else {
      const next = neighbour(event.key);
      if (next === undefined) return;
      activate(next, true);
    }
    event.preventDefault();
  });

  let drawnWidth = 0;
  new ResizeObserver(() => {
    if (barsHolder.clientWidth === drawnWidth) return;
    drawnWidth = barsHolder.clientWidth;
    draw();
  }).observe(barsHolder);
  drawnWidth = barsHolder.clientWidth;
  draw();
  holder.dataset.drawn = "true";
})();
