// Keeps the page's token fresh: after a restart or a new sign-in the service sends a new one, and the form goes out again.
const HEADER = "Recollect-Token";

export function token() {
  return document.querySelector("input[name=token]")?.value ?? "";
}

// Takes the new token that a refusal carries; tells whether there was one, so that the caller may try again once.
export function renew(headers) {
  const fresh = headers.get(HEADER);
  if (fresh === null) return false;
  for (const field of document.querySelectorAll("input[name=token]")) field.value = fresh;
  return true;
}

document.addEventListener("htmx:after:request", (event) => {
  const { response, sourceElement } = event.detail.ctx;
  if (response.status !== 403 || !renew(response.headers)) return;
  const form = sourceElement.closest("form");
  if (form === null || form.dataset.renewed !== undefined) return;
  form.dataset.renewed = "";
  event.preventDefault();
  setTimeout(() => {
    form.requestSubmit();
    delete form.dataset.renewed;
  });
});
