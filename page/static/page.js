// Additions to pages that work without them: copying, printing, refreshing, parts that come later, completion, local times, the heat map under the keyboard.
import { completeNames } from "./find.js";
import { enhanceHeatMaps, enhanceNodeMaps } from "./heat-map.js";
import { nameZone, showLocalTimes } from "./local-times.js";
import { refreshEvery } from "./refresh.js";

function enhance(root) {
  for (const button of root.querySelectorAll("button.copy")) copyWith(button);
  // The names of a group are fetched when it is opened for the first time.
  for (const group of root.querySelectorAll("details[data-from]")) {
    group.addEventListener("toggle", () => fill(group, group.dataset.from), { once: true });
  }
  for (const section of root.querySelectorAll("[data-load]")) {
    section.querySelector("[data-into]").textContent = section.dataset.loading;
    fill(section, section.dataset.load);
  }
  for (const choice of root.querySelectorAll("select[data-at-once]")) {
    choice.addEventListener("change", () => choice.form.requestSubmit());
  }
  completeNames(root);
  showLocalTimes(root);
  enhanceHeatMaps(root);
  enhanceNodeMaps(root);
}

function copyWith(button) {
  if (!navigator.clipboard) return;
  const title = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.previousElementSibling.textContent);
    button.textContent = document.body.dataset.copied;
    setTimeout(() => { button.textContent = title; }, 1500);
  });
}

// Another page of ours, of which the part that it exists for is shown here.
async function fill(owner, address) {
  const into = owner.querySelector("[data-into]");
  const answer = await fetch(address, { headers: { accept: "text/html" } }).catch(() => null);
  const page = answer && new DOMParser().parseFromString(await answer.text(), "text/html");
  const part = page?.querySelector("[data-part]");
  if (part) {
    // A heading without anything below it says nothing.
    if (part.querySelector("[data-nothing]")) { owner.remove(); return; }
    into.replaceChildren(...part.childNodes);
    enhance(into);
  } else if (owner.dataset.failed) {
    into.textContent = owner.dataset.failed;
  }
}

// Paper can't be opened: what is folded is printed, but the names of thousands of nodes, the commands, and what is folded
// twice: each further obstacle and question has evidence of its own, which is mostly the same record.
function unfoldOnPaper() {
  const folded = [...document.querySelectorAll("main details:not([open], .group, .commands, details details)")];
  for (const each of folded) each.open = true;
  addEventListener("afterprint", () => { for (const each of folded) each.open = false; }, { once: true });
}

enhance(document);
nameZone();
addEventListener("beforeprint", unfoldOnPaper);
refreshEvery(enhance);
