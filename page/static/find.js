// Completion of the search field: names come from the page that lists them.
const WAIT_MS = 150;

export function completeNames(root) {
  for (const field of root.querySelectorAll("input[data-find]")) {
    let timer = 0;
    field.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => listNames(field), WAIT_MS);
    });
  }
}

async function listNames(field) {
  const text = field.value.trim();
  if (!text) return;
  const address = new URL(field.dataset.find, location.href);
  address.searchParams.set("q", text);
  const answer = await fetch(address, { headers: { accept: "text/html" } }).catch(() => null);
  // Somebody who types on has asked again.
  if (!answer?.ok || field.value.trim() !== text) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  field.list.replaceChildren(...[...page.querySelectorAll("[data-name]")].map((link) => {
    const option = document.createElement("option");
    option.value = link.dataset.name;
    option.label = `${link.dataset.name} · ${link.previousElementSibling.textContent}`;
    return option;
  }));
}
