// Additions to pages that work without them: copying, refreshing, groups that open, the heat map under the keyboard.
import { enhanceHeatMaps } from "./heat-map.js";
import { refreshEvery } from "./refresh.js";

function enhance(root) {
  for (const button of root.querySelectorAll("button.copy")) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.previousElementSibling.textContent);
      const title = button.textContent;
      button.textContent = document.body.dataset.copied;
      setTimeout(() => { button.textContent = title; }, 1500);
    });
  }
  // A group's names are fetched when it is opened for the first time.
  for (const group of root.querySelectorAll("details[data-from]")) {
    group.addEventListener("toggle", () => open(group), { once: true });
  }
  for (const choice of root.querySelectorAll("select[data-at-once]")) {
    choice.addEventListener("change", () => choice.form.requestSubmit());
  }
  enhanceHeatMaps(root);
}

async function open(group) {
  const target = group.querySelector("[data-into]");
  const answer = await fetch(group.dataset.from, { headers: { accept: "text/html" } }).catch(() => null);
  if (!answer || !answer.ok) return; // the link inside leads to the same
  const found = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-part]");
  if (found) target.replaceChildren(...found.childNodes);
}

enhance(document);
refreshEvery(enhance);
