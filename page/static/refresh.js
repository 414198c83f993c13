// A page with data-refresh (seconds) is fetched again while it is looked at; what is open in it stays open.

export function refreshEvery(enhance) {
  const main = document.querySelector("main");
  const marker = main?.querySelector("[data-refresh]");
  if (!marker) return;
  const seconds = Number(marker.dataset.refresh);
  let shown = "";
  setInterval(async () => {
    // Nothing moves under somebody who types, selects or reads an opened group.
    if (document.hidden || isBusy(main)) return;
    const answer = await fetch(location.href, { headers: { accept: "text/html" } }).catch(() => null);
    const state = main.querySelector("[data-live]");
    if (state) state.dataset.live = answer && answer.ok ? "on" : "off";
    if (!answer || !answer.ok || answer.redirected) return;
    const text = await answer.text();
    const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("main");
    if (!fresh || fresh.innerHTML === shown) return;
    // A page that names its version changes with it alone, and not with the seconds that pass.
    const version = (root) => root.querySelector("[data-version]")?.dataset.version;
    if (version(fresh) && version(fresh) === version(main)) return;
    shown = fresh.innerHTML;
    main.replaceChildren(...fresh.childNodes);
    enhance(main);
  }, seconds * 1000);
}

function isBusy(main) {
  const active = document.activeElement;
  return (
    !getSelection().isCollapsed ||
    main.querySelector("details[open]:not([data-stays-open])") !== null ||
    (main.contains(active) && active !== main)
  );
}
