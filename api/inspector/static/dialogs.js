// Opens what htmx puts into #dialog, and closes it; without JavaScript the same links lead to pages.
const dialog = document.getElementById("dialog");

document.addEventListener("htmx:after:swap", () => {
  if (dialog.childElementCount > 0 && !dialog.open) dialog.showModal();
});

dialog.addEventListener("click", (event) => {
  if (event.target.closest("[data-closes]") === null) return;
  event.preventDefault();
  dialog.close();
});

dialog.addEventListener("close", () => dialog.replaceChildren());
