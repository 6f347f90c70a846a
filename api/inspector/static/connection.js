// Says when the service or a part of it is down, and when it is back ("recollect:back" on the document).
const EVERY_MS = 2000;
let watching = false;

async function isGood(address) {
  try {
    const answer = await fetch(address, { cache: "no-store" });
    return answer.ok;
  } catch {
    return false;
  }
}

export function isReady() {
  return isGood("/health/ready");
}

export async function watch() {
  if (watching) return;
  watching = true;
  const banner = document.getElementById("down");
  banner.hidden = false;
  do await new Promise((done) => setTimeout(done, EVERY_MS));
  while (!(await isReady()));
  banner.hidden = true;
  watching = false;
  document.getElementById("notice").replaceChildren();
  document.dispatchEvent(new CustomEvent("recollect:back"));
}

// A form with written words that is sent while the service is down stays: an error page of the browser has none of them.
document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (event.defaultPrevented || !form.matches("[method=post]:not([hx-post]):has(textarea)")) return;
  event.preventDefault();
  form.inert = true; // pressed once
  if (await isGood("/health")) return form.submit();
  form.inert = false;
  watch();
});

document.addEventListener("htmx:error", watch);
document.addEventListener("htmx:response:error", (event) => {
  if (event.detail.ctx.response.status === 503) watch();
});
