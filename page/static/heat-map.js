// Cells of a heat map: one of them is in the order of Tab, arrow keys move on, and the words of a cell stand below.

export function enhanceHeatMaps(root) {
  for (const map of root.querySelectorAll("[data-heat-map]")) enhanceHeatMap(map);
}

// A click on the map of all nodes opens the group below it; by keyboard the group itself is reached.
export function enhanceNodeMaps(root) {
  for (const part of root.querySelectorAll(".node-map [data-group]")) {
    part.addEventListener("click", () => {
      const group = part.closest("main").querySelectorAll("details.group")[Number(part.dataset.group)];
      if (!group) return;
      group.open = true;
      group.querySelector("summary").focus();
    });
  }
}

function enhanceHeatMap(map) {
  const words = map.querySelector("[data-words]");
  const rows = [...map.querySelectorAll("tr")].map((row) => [...row.querySelectorAll(".cell")]).filter((row) => row.length);
  if (!rows.length) return;
  const all = rows.flat();
  for (const cell of all) cell.tabIndex = -1;
  all[0].tabIndex = 0;

  function show(cell) {
    words.textContent = cell.title;
  }
  map.addEventListener("pointerover", (event) => event.target.classList.contains("cell") && show(event.target));
  map.addEventListener("focusin", (event) => {
    if (!event.target.classList.contains("cell")) return;
    for (const cell of all) cell.tabIndex = cell === event.target ? 0 : -1;
    show(event.target);
  });
  map.addEventListener("keydown", (event) => {
    const y = rows.findIndex((row) => row.includes(event.target));
    if (y < 0) return;
    const x = rows[y].indexOf(event.target);
    const [dx, dy] = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key] ?? [0, 0];
    const row = rows[y + dy];
    const next = row?.[Math.min(x, row.length - 1) + dx];
    if ((!dx && !dy) || !next) return;
    event.preventDefault();
    next.focus();
  });
}
