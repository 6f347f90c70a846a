// Says when the service or a part of it is down, and when it is back ("recollect:back" on the document).
const EVERY_MS = 2000;
let watching = false;

export async function isReady() {
  try {
    const answer = await fetch("/health/ready", { cache: "no-store" });
    return answer.ok;
  } catch {
    return false;
  }
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

document.addEventListener("htmx:error", watch);
document.addEventListener("htmx:response:error", (event) => {
  if (event.detail.ctx.response.status === 503) watch();
});
