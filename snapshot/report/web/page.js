"use strict";
// Everything that a model or a file said reaches the page as text nodes, never as markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { statuses, columns, rows } = data;
  const $ = (id) => document.getElementById(id);
  const HEADING = 32;
  const SVG = "http://www.w3.org/2000/svg";

  const el = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "class") node.className = value;
      else node.setAttribute(name, value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  };
  const svg = (tag, attributes, text) => {
    const node = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    return node;
  };

  // ------------------------------------------------------------------ state

  const state = { row: -1, column: 0, query: "", chosen: new Set(), items: [] };
  const loud = (status) => ["bad", "warn"].includes(statuses[status].tone);
  const cellOf = (row, column) => rows[row] && rows[row].cells[column];
  const narrow = () => matchMedia("(max-width: 820px)").matches;
  const tall = () => (narrow() ? 56 : 32); // on a phone the key stands above its cells

  const dark = () => {
    const { theme } = document.documentElement.dataset;
    return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };

  // ----------------------------------------------------------------- header

  $("verdict").textContent = data.verdict;
  $("verdict").className = data.tone;
  $("facts").textContent = data.facts;
  const counts = statuses.map(() => 0);
  for (const row of rows) for (const cell of Object.values(row.cells)) counts[cell.status] += 1;
  statuses.forEach((status, i) => {
    if (!counts[i]) return;
    const part = el("span", { class: status.tone });
    part.style.flex = String(counts[i]);
    $("bar").append(part);
    const chip = el(
      "button",
      { class: `chip ${status.tone}`, type: "button", "aria-pressed": "false", title: status.meaning },
      el("i", {}, status.glyph), `${status.name} `, el("span", {}, counts[i].toLocaleString("en")),
    );
    chip.addEventListener("click", () => {
      if (!state.chosen.delete(i)) state.chosen.add(i);
      filter();
    });
    chip.dataset.status = i;
    $("chips").append(chip);
  });
  for (const alert of data.alerts) {
    const box = el("div", { class: `alert ${alert.tone}` }, el("b", {}, alert.title));
    for (const line of alert.lines) {
      box.append(el("p", { class: line.startsWith("  ") ? "sub" : "" }, line.trim()));
    }
    $("alerts").append(box);
  }

  // ----------------------------------------------------------------- matrix

  const heads = $("heads");
  heads.append(el("span", { class: "corner" }, data.corner));
  let group = null;
  columns.forEach((column, i) => {
    column.first = i === 0 || columns[i - 1].group !== column.group;
    if (column.first) {
      group = el("span");
      // A name may break after each of its parts.
      const title = el("b", { title: column.title }, ...column.group.split(/(?<=_)/).flatMap((part) => [part, el("wbr")]));
      heads.append(el("span", { class: "group" }, title, group));
    }
    group.append(el("em", { title: column.title }, column.label));
  });
  // A column is as wide as its share of the group's heading, on two lines, needs; within reason.
  let total = 0;
  for (const node of heads.querySelectorAll(".group")) {
    const labels = [...node.querySelectorAll("em")];
    const said = node.querySelector("b").textContent;
    const longest = Math.max(...said.split(/[\s_]/).map((word) => word.length));
    const letters = Math.max(said.length / 2, Math.min(longest, 12));
    const share = Math.min(4, Math.max(1, (letters * 6.9 + 16) / 34 / labels.length));
    labels.forEach((label) => { label.style.width = `calc(var(--cell) * ${share})`; });
    const at = columns.filter((column) => column.width).length;
    labels.forEach((_, i) => { columns[at + i].width = `calc(var(--cell) * ${share})`; });
    node.style.width = `calc(var(--cell) * ${share * labels.length})`;
    total += share * labels.length;
  }
  document.documentElement.style.setProperty("--columns", total.toFixed(2));

  const grid = $("grid");
  const space = $("space");
  let queued = false;
  const paint = () => {
    queued = false;
    if (state.tall !== tall()) lay();
    space.style.height = `${state.height + 12}px`;
    const [from, to] = [grid.scrollTop - 300, grid.scrollTop + grid.clientHeight + 300];
    const nodes = [];
    for (const item of state.items) {
      if (item.top < from || item.top > to) continue;
      const node = drawn(item);
      node.style.top = `${item.top}px`;
      nodes.push(node);
    }
    if (!state.items.length) nodes.push(el("div", { class: "empty" }, "Nothing matches. Esc clears."));
    space.replaceChildren(...nodes);
    grid.setAttribute("aria-activedescendant", `c${state.row}-${state.column}`);
    heads.style.paddingRight = `${grid.offsetWidth - grid.clientWidth}px`;
  };
  const lay = () => {
    state.tall = tall();
    state.height = 0;
    for (const item of state.items) {
      item.top = state.height;
      state.height += item.heading === undefined ? state.tall : HEADING;
    }
  };
  const repaint = () => {
    if (!queued) { queued = true; requestAnimationFrame(paint); }
  };
  const drawn = (item) => {
    if (item.heading !== undefined) return el("div", { class: "heading" }, item.heading);
    const row = rows[item.row];
    const cells = el("span", { class: "cells" });
    columns.forEach((column, i) => {
      const slot = el("span", { class: column.first ? "first" : "" });
      slot.style.width = column.width;
      const cell = row.cells[i];
      if (!cell) slot.append(el("span", { class: "none" }, "·"));
      else {
        const status = statuses[cell.status];
        const here = item.row === state.row && i === state.column;
        slot.append(el("button", {
          class: `cell ${status.tone}${here ? " here" : ""}`, id: `c${item.row}-${i}`, tabindex: "-1",
          type: "button", role: "gridcell", "data-row": item.row, "data-column": i,
          title: `${status.name}\n${row.key}\n${column.title}`,
          "aria-label": `${row.key}, ${column.title}: ${status.name}`,
        }, status.glyph));
      }
      cells.append(slot);
    });
    const cut = row.key.lastIndexOf("-");
    const key = el("span", { class: "key", title: row.key }, row.key.slice(row.short));
    if (cut > row.short && /^-[0-9a-f]{8}$/.test(row.key.slice(cut))) {
      key.replaceChildren(row.key.slice(row.short, cut), el("small", {}, row.key.slice(cut)));
    }
    return el("div", {
      class: `row${item.row === state.row ? " here" : ""}`, role: "row", "data-row": item.row,
    }, key, cells);
  };

  const haystack = (row) => {
    if (row.text === undefined) {
      const parts = [row.group, row.key];
      for (const cell of Object.values(row.cells)) parts.push(cell.headline || "", cell.search || "");
      row.text = parts.join("\n").toLowerCase();
    }
    return row.text;
  };
  const filter = () => {
    const words = state.query.toLowerCase().split(/\s+/).filter(Boolean);
    state.items = [];
    let heading = null;
    let shown = 0;
    rows.forEach((row, i) => {
      if (state.chosen.size && !Object.values(row.cells).some((c) => state.chosen.has(c.status))) return;
      if (words.length && !words.every((word) => haystack(row).includes(word))) return;
      if (row.group !== heading) { heading = row.group; state.items.push({ heading }); }
      state.items.push({ row: i });
      shown += 1;
    });
    for (const chip of $("chips").children) {
      chip.setAttribute("aria-pressed", String(state.chosen.has(Number(chip.dataset.status))));
    }
    const all = `${rows.length.toLocaleString("en")} case${rows.length === 1 ? "" : "s"}`;
    $("count").textContent = shown === rows.length ? all : `${shown.toLocaleString("en")} of ${all}`;
    document.body.dataset.shown = shown;
    lay();
    repaint();
  };

  const select = (row, column, open) => {
    state.row = row;
    state.column = column;
    const item = state.items.find((one) => one.row === row);
    if (item) {
      const { top } = item, room = 2 * state.tall;
      if (top < grid.scrollTop + state.tall) grid.scrollTop = Math.max(0, top - state.tall);
      else if (top > grid.scrollTop + grid.clientHeight - room) grid.scrollTop = top - grid.clientHeight + room;
    }
    detail(open);
    repaint();
    const hash = `#${encodeURIComponent(`${rows[row].id}@${columns[column].id}`)}`;
    try { history.replaceState(null, "", hash); } catch { /* some viewers forbid it */ }
  };

  const move = (down, right) => {
    const order = state.items.filter((item) => item.row !== undefined).map((item) => item.row);
    if (!order.length) return;
    let at = order.indexOf(state.row);
    at = at < 0 ? 0 : Math.min(order.length - 1, Math.max(0, at + down));
    let column = state.column;
    for (let i = column + right; right && i >= 0 && i < columns.length; i += right) {
      if (cellOf(order[at], i)) { column = i; break; }
    }
    select(order[at], nearest(order[at], column));
  };
  const nearest = (row, column) => {
    const known = Object.keys(rows[row].cells).map(Number);
    return known.includes(column) ? column
      : known.sort((a, b) => Math.abs(a - column) - Math.abs(b - column))[0];
  };
  const jump = (direction) => {
    const order = state.items.filter((item) => item.row !== undefined).map((item) => item.row);
    const cells = [];
    for (const row of order) {
      for (const column of Object.keys(rows[row].cells).map(Number)) {
        if (loud(rows[row].cells[column].status)) cells.push([row, column]);
      }
    }
    if (!cells.length) return;
    const rank = (row, column) => order.indexOf(row) * columns.length + column;
    const now = rank(state.row, state.column);
    const after = direction > 0 ? cells.find(([r, c]) => rank(r, c) > now)
      : cells.reverse().find(([r, c]) => rank(r, c) < now);
    const [row, column] = after || cells[0];
    select(row, column);
  };

  // ----------------------------------------------------------------- detail

  const runs = (pieces) => {
    const box = el("pre", { class: "words", tabindex: "0" });
    for (const [kind, text] of pieces) {
      if (kind === 0) box.append(el("bdi", {}, text));
      else {
        // What cannot be seen is what often differs.
        const node = el(kind < 0 ? "del" : "ins", {});
        text.split(/(\n| +$)/).forEach((part) => {
          if (part === "\n") node.append(el("i", {}, "⏎"), "\n");
          else if (/^ +$/.test(part)) node.append(el("i", {}, "·".repeat(part.length)));
          else if (part) node.append(part);
        });
        box.append(node);
      }
    }
    return box;
  };

  const blocks = {
    words: (block) => runs(block.runs),
    lines: (block) => el("ul", { class: "lines" }, ...block.lines.map((line) => el("li", {}, line))),
    text: (block) => el("p", {}, block.text),
    table: (block) => el("div", { class: "scroll" }, el("table", {},
      el("tr", {}, ...block.head.map((name) => el("th", {}, name))),
      ...block.rows.map((row) => el("tr", {}, ...row.map((value) => el("td", { class: value.length < 20 ? "short" : "" }, value)))))),
    plot: (block) => plot(block),
    heat: (block) => heat(block),
    wordings: (block) => {
      const box = el("div");
      const table = el("div", { class: "wordings" });
      table.style.gridTemplateColumns = `auto repeat(${block.across.length}, auto)`;
      table.append(el("span"), ...block.across.map((name) => el("span", {}, name)));
      block.cells.forEach((line, i) => {
        table.append(el("span", {}, block.down[i]));
        for (const which of line) {
          table.append(which === null ? el("span", {}, "·")
            : el("b", { class: `w${which % 6}` }, block.names[which]));
        }
      });
      box.append(table);
      block.texts.forEach((pieces, i) => {
        box.append(el("div", { class: "wording" }, el("b", {}, block.names[i]), runs(pieces)));
      });
      return box;
    },
  };

  const plot = ({ first, a, b, parted, names }) => {
    // Letters keep their size: a phone gets a narrower picture, not a smaller one.
    const width = narrow() ? 360 : 640, height = 216, left = 40, right = 14, top = 22, bottom = 46;
    const values = [...a, ...b].filter((v) => v !== null);
    const steps = Math.max(a.length, b.length), lowest = Math.min(-0.1, ...values);
    const rough = -lowest / 3, unit = 10 ** Math.floor(Math.log10(rough));
    const tick = unit * [1, 2, 5, 10].find((m) => m * unit >= rough), low = -tick * Math.ceil(-lowest / tick - 1e-9);
    const x = (i) => left + ((width - left - right) * (steps > 1 ? i / (steps - 1) : 0.5));
    const y = (v) => top + (height - top - bottom) * (v / low);
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
    picture.append(svg("title", {}, `Log-probability of each generated token, ${names[0]} and ${names[1]}`));
    for (let v = 0; v >= low - tick / 2; v -= tick) {
      picture.append(svg("line", { class: "axis", x1: left, x2: width - right, y1: y(v), y2: y(v) }));
      picture.append(svg("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, v.toFixed(tick < 0.1 ? 2 : tick < 1 ? 1 : 0)));
    }
    const every = Math.max(1, Math.ceil(steps / (narrow() ? 7 : 13)));
    for (let i = 0; i < steps; i += every) {
      picture.append(svg("text", { x: x(i), y: height - 29, "text-anchor": "middle" }, String(first + i)));
    }
    const split = parted === null ? steps : parted - first;
    if (parted !== null) {
      picture.append(svg("line", { class: "split", x1: x(split), x2: x(split), y1: top - 6, y2: height - bottom }));
      const far = split > steps / 2;
      picture.append(svg("text", {
        class: "split-label", x: x(split) + (far ? -6 : 6), y: top - 8, "text-anchor": far ? "end" : "start",
      }, `parts at step ${parted}`));
    }
    [["a", a], ["b", b]].forEach(([name, series]) => {
      const points = (from, to) => series.map((v, i) => [x(i), v === null ? null : y(v), i])
        .filter(([, v, i]) => v !== null && i >= from && i <= to).map(([px, py]) => `${px.toFixed(1)},${py.toFixed(1)}`).join(" ");
      picture.append(svg("polyline", { class: name, points: points(0, split), "stroke-width": 2 }));
      picture.append(svg("polyline", { class: `${name} after`, points: points(split, steps), "stroke-width": 1.5 }));
      series.forEach((v, i) => {
        if (v === null) return;
        const dot = svg("circle", { class: `${name}${i > split ? " after" : ""}`, cx: x(i), cy: y(v), r: i === split ? 4 : 2.5 });
        dot.append(svg("title", {}, `${names[name === "a" ? 0 : 1]}, step ${first + i}: ${v.toFixed(4)}`));
        picture.append(dot);
      });
    });
    names.forEach((name, i) => {
      const at = left + i * (28 + 6.5 * names[0].length);
      picture.append(svg("text", { class: "ab"[i], x: at, y: height - 8 }, `● ${name}`));
    });
    return picture;
  };

  // Cool up to the bound, hot from there on, by decades; what is not finite is magenta. Where
  // there is no bound, cool over all that there is. On dark ground what is little is dark.
  const COOL = [[226, 236, 243], [120, 170, 205], [38, 84, 132]];
  const DEEP = [[36, 44, 56], [48, 92, 132], [120, 180, 220]];
  const HOT = [[245, 180, 60], [226, 80, 35], [140, 8, 40]];
  const NONE = [200, 0, 200];
  const between = (stops, at) => {
    const place = Math.min(0.9999, Math.max(0, at)) * (stops.length - 1), i = Math.floor(place);
    return stops[i].map((v, c) => Math.round(v + (stops[i + 1][c] - v) * (place - i)));
  };
  const css = (colour) => `rgb(${colour.join(" ")})`;
  const brief = (v) => (v === 0 ? "0" : v.toExponential(1).replace(".0e", "e").replace("e+", "e"));

  const heat = ({ values, axes, unit, bound }) => {
    const height = values.length, width = values[0].length, cool = dark() ? DEEP : COOL;
    const canvas = el("canvas", { width, height, role: "img", "aria-label": `${unit} by ${axes.join(" and ")}` });
    // Rows that can be told apart, and a picture that fits beside what is said of it.
    canvas.style.height = `${Math.min(320, Math.max(height * 22, 48))}px`;
    const some = values.flat().filter((v) => v !== null && v > 0).map(Math.log10);
    const most = some.length ? Math.max(...some) : 0, least = some.length ? Math.min(...some) : -1;
    const limit = bound === null ? most : Math.log10(bound);
    const from = bound === null ? Math.min(least, most - 1) : limit - 3, to = Math.max(limit + 1, most);
    const colour = (v) => {
      if (v === null) return NONE;
      const at = v > 0 ? Math.log10(v) : -Infinity;
      return at > limit ? between(HOT, (at - limit) / (to - limit)) : between(cool, (at - from) / (limit - from || 1));
    };
    const context = canvas.getContext("2d");
    const image = context.createImageData(width, height);
    let worst = null, bad = 0, over = 0;
    values.forEach((line, r) => line.forEach((v, c) => {
      image.data.set([...colour(v), 255], 4 * (r * width + c));
      bad += v === null;
      over += bound !== null && v > bound;
      if (v !== null && (worst === null || v > values[worst[0]][worst[1]])) worst = [r, c];
    }));
    context.putImageData(image, 0, 0);

    const said = (r, c) => {
      const v = values[r][c];
      const times = bound && v > bound ? `, ${Number((v / bound).toPrecision(2)).toLocaleString("en")} times the bound` : "";
      return `${axes[0]} ${r}, ${axes[1]} ${c}: ${v === null ? "not finite" : v.toExponential(2)}${times}`;
    };
    const say = el("span", { class: "said" }, worst === null ? "no finite row" : `worst finite row: ${said(...worst)}`);
    const point = (event) => {
      const box = canvas.getBoundingClientRect();
      const c = Math.min(width - 1, Math.floor(((event.clientX - box.left) / box.width) * width));
      const r = Math.min(height - 1, Math.floor(((event.clientY - box.top) / box.height) * height));
      if (values[r] !== undefined && c >= 0) say.textContent = said(r, c);
    };
    for (const name of ["pointermove", "pointerdown"]) canvas.addEventListener(name, point);

    const key = (label, stops) => {
      const ramp = el("i");
      ramp.style.background = stops.length > 1 ? `linear-gradient(90deg, ${stops.map(css).join(", ")})` : css(stops[0]);
      return el("span", {}, ramp, label);
    };
    const scale = el("div", { class: "scale" }, key(
      bound === null ? `${brief(10 ** from)} to ${brief(10 ** limit)}` : `up to the bound, ${brief(bound)}`, cool,
    ));
    const rows = (n) => `${n.toLocaleString("en")} row${n === 1 ? "" : "s"}`;
    if (over) scale.append(key(`over it, to ${brief(10 ** most)}: ${rows(over)}`, HOT));
    if (bad) scale.append(key(`not finite: ${rows(bad)}`, [NONE]));
    const ends = (name, count) => [el("span", {}, "0"), el("span", {}, name), el("span", {}, String(count - 1))];
    const down = height > 4 ? ends(axes[0], height) : [el("span", {}), el("span", {}, axes[0]), el("span", {})];
    return el("div", {}, el("div", { class: "heat" }, el("div", { class: "down" }, ...down), canvas,
      el("div", { class: "across" }, ...ends(axes[1], width))), scale, say);
  };

  const detail = (open) => {
    const panel = $("detail");
    const row = rows[state.row], cell = cellOf(state.row, state.column);
    if (!row || !cell) return;
    const status = statuses[cell.status];
    const close = el("button", { id: "close", type: "button" }, "Close ✕");
    close.addEventListener("click", () => panel.classList.remove("open"));
    const column = columns[state.column];
    panel.replaceChildren(...[close,
      el("span", { class: `badge ${status.tone}` }, status.name), el("span", { class: "meaning" }, status.meaning),
      el("h2", {}, row.key), el("div", { class: "where" }, `${row.group} · ${column.title}`),
      cell.headline ? el("p", { class: "headline" }, cell.headline) : null,
    ].filter(Boolean));
    // What is equal has no difference to show: its text is what the search looks through.
    const plain = cell.search ? [{ type: "words", title: "Text", runs: [[0, cell.search]] }] : [];
    const own = cell.blocks && cell.blocks.length ? cell.blocks : plain;
    for (const block of [...own, ...(row.blocks || [])]) {
      panel.append(el("section", { class: `block is-${block.type}` }, block.title ? el("h3", {}, block.title) : null, blocks[block.type](block)));
    }
    panel.scrollTop = 0;
    if (open) panel.classList.add("open");
  };

  // ------------------------------------------------------------------- keys

  const search = $("search");
  search.addEventListener("input", () => { state.query = search.value; filter(); });
  space.addEventListener("click", (event) => {
    const target = event.target.closest("[data-row]");
    if (!target) return;
    const row = Number(target.dataset.row);
    const column = target.dataset.column === undefined ? worst(row) : Number(target.dataset.column);
    select(row, column, narrow());
    grid.focus({ preventScroll: true });
  });
  const worst = (row) => {
    const cells = Object.entries(rows[row].cells);
    return Number(cells.reduce((a, b) => (b[1].status < a[1].status ? b : a))[0]);
  };
  grid.addEventListener("scroll", () => { heads.scrollLeft = grid.scrollLeft; repaint(); }, { passive: true });
  addEventListener("resize", repaint);

  const stored = (() => { try { return localStorage.getItem("goldens-theme"); } catch { return null; } })();
  if (stored) document.documentElement.dataset.theme = stored;
  const theme = () => {
    const root = document.documentElement;
    root.dataset.theme = dark() ? "light" : "dark";
    detail();
    try { localStorage.setItem("goldens-theme", root.dataset.theme); } catch { /* file:// may forbid it */ }
  };
  const onlyLoud = () => {
    const wanted = statuses.map((_, i) => i).filter((i) => counts[i] && loud(i));
    const already = wanted.every((i) => state.chosen.has(i)) && state.chosen.size === wanted.length;
    state.chosen = new Set(already ? [] : wanted);
    filter();
  };
  $("theme").addEventListener("click", theme);
  $("help").addEventListener("click", () => $("keys").showModal());

  const actions = {
    ArrowDown: () => move(1, 0), j: () => move(1, 0), ArrowUp: () => move(-1, 0), k: () => move(-1, 0),
    ArrowRight: () => move(0, 1), l: () => move(0, 1), ArrowLeft: () => move(0, -1), h: () => move(0, -1),
    PageDown: () => move(15, 0), PageUp: () => move(-15, 0), Home: () => move(-1e9, 0), End: () => move(1e9, 0),
    n: () => jump(1), p: () => jump(-1), f: onlyLoud, t: theme, "?": () => $("keys").showModal(),
    "/": () => search.focus(), Enter: () => detail(true),
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
    if (event.key === "Escape") {
      if ($("detail").classList.contains("open")) $("detail").classList.remove("open");
      else { search.value = state.query = ""; state.chosen.clear(); filter(); grid.focus({ preventScroll: true }); }
      return;
    }
    if (event.target === search) {
      if (event.key === "Enter" || event.key === "ArrowDown") { grid.focus({ preventScroll: true }); move(0, 0); event.preventDefault(); }
      return;
    }
    if (event.key === "Enter" && event.target !== grid && event.target.tagName === "BUTTON") return;
    if ($("detail").contains(event.target) && /^(Arrow|Page|Home|End)/.test(event.key)) return;
    const action = actions[event.key];
    if (action) { action(); event.preventDefault(); }
  });

  // ------------------------------------------------------------------ start

  filter();
  const linked = decodeURIComponent(location.hash.slice(1)).split("@");
  let row = rows.findIndex((r) => r.id === linked[0]);
  let column = columns.findIndex((c) => c.id === linked[1]);
  if (row < 0 || !cellOf(row, column)) {
    let best = Infinity;
    rows.forEach((r, i) => Object.entries(r.cells).forEach(([c, cell]) => {
      if (cell.status < best) { best = cell.status; row = i; column = Number(c); }
    }));
  }
  if (row >= 0 && cellOf(row, column)) select(row, column);
  grid.focus({ preventScroll: true });
  paint();
  document.body.dataset.ready = String(Math.round(performance.now()));
})();
