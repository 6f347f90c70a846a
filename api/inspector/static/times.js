// Shows times in the reader's zone; the exact one, in UTC, stays on hover.
const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

export function localise(root) {
  for (const time of root.querySelectorAll("time[datetime]:not([data-local])")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.textContent = format.format(at);
    time.dataset.local = "";
  }
}

localise(document);
document.addEventListener("htmx:after:swap", () => localise(document));
