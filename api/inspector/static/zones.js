// Lets people write times of forms in their own zone; they are sent in UTC. Without JavaScript they are written in UTC.
const FIELDS = "input[type=datetime-local]";
const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;

function localise() {
  for (const label of document.querySelectorAll("[data-zone]")) label.textContent = zone;
  for (const field of document.querySelectorAll(`${FIELDS}:not([data-local])`)) {
    field.dataset.local = "";
    if (field.value === "") continue;
    const at = new Date(`${field.value}Z`);
    field.value = new Date(at.getTime() - at.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
  }
}

document.addEventListener("formdata", ({ target, formData }) => {
  for (const field of target.querySelectorAll(`${FIELDS}[data-local]`)) {
    if (field.value !== "") formData.set(field.name, new Date(field.value).toISOString());
  }
  if (target.method !== "get") return;
  for (const [name, value] of [...formData]) if (value === "") formData.delete(name);
});

localise();
document.addEventListener("htmx:after:swap", localise);
