// Shows what turns taught as soon as their updates end.
import { watch } from "./connection.js";
import { localise } from "./times.js";

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30000;
const GONE = new Set([401, 403, 404]); // deleted meanwhile, or the session has ended
const shown = new WeakMap(); // the text of each turn as it came last: what has not changed is not put in again
let isFollowing = false;
let wake = null;

// Puts the turn that the service rendered in place of `article`, and keeps the focus where it was.
export function replace(article, html) {
  const holder = document.createElement("template");
  holder.innerHTML = html;
  const fresh = holder.content.querySelector("article");
  const hadFocus = article.contains(document.activeElement);
  shown.set(fresh, html);
  article.replaceWith(fresh);
  localise(fresh);
  if (hadFocus) fresh.focus();
}

// Asks for the turns that are still learned from until none is left; `wait` lets the service answer at the end.
export async function follow(turns, address) {
  wake?.();
  if (isFollowing) return;
  isFollowing = true;
  let pause = FIRST_PAUSE_MS;
  for (;;) {
    const open = [...turns.querySelectorAll("[data-pending]")];
    if (open.length === 0) break;
    for (const article of open) await refresh(article, address, article === open.at(-1));
    const isWoken = await sleep(pause);
    pause = isWoken ? FIRST_PAUSE_MS : Math.min(pause * 1.5, LONGEST_PAUSE_MS);
  }
  isFollowing = false;
}

async function refresh(article, address, wait) {
  const url = `${address}/turns/${encodeURIComponent(article.dataset.turn)}${wait ? "?wait=true" : ""}`;
  const headers = { "HX-Request-Type": "partial", "Recollect-Live": "1" };
  let answer, html;
  try {
    answer = await fetch(url, { headers });
    html = await answer.text();
  } catch {
    return watch(); // the connection is lost; it is asked again
  }
  if (answer.status >= 500) return watch();
  if (GONE.has(answer.status)) delete article.dataset.pending;
  else if (answer.ok && shown.get(article) !== html) replace(article, html);
}

function sleep(milliseconds) {
  return new Promise((done) => {
    const timer = setTimeout(() => done(false), milliseconds);
    wake = () => {
      clearTimeout(timer);
      done(true);
    };
  });
}
