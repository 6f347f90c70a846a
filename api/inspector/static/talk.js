// Sends words as a turn and shows its answer as it comes. Nothing typed is lost: a turn keeps the id that the page made
// until its answer is there, so that sending it again, by itself after an outage, stores it once.
import { isReady, watch } from "./connection.js";
import { events } from "./talk_events.js";
import { follow, replace } from "./talk_learning.js";
import { renew, token } from "./tokens.js";

const form = document.getElementById("talk");
const address = form.getAttribute("action");
const turns = document.getElementById("turns");
const problem = document.getElementById("problem");
const state = document.getElementById("state");
const words = form.elements.message;
const known = new WeakMap(); // the turn behind each article of an unfinished one
let running = null; // the turn on its way: {turn_id, thread_id, message, unremembered, article, isAccepted}
let tried = null; // the words that went out last under the form's turn_id

function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Takes the form's words as a turn. The id of words that may have arrived already stays theirs: others get a new one.
function typed() {
  const { thread_id, turn_id, message, unremembered } = form.elements;
  if (tried !== null && tried !== message.value) turn_id.value = newId();
  tried = message.value;
  return {
    turn_id: turn_id.value,
    thread_id: thread_id.value,
    message: message.value,
    unremembered: unremembered.checked,
    article: null,
    isAccepted: false,
  };
}

function stored(article) {
  const { thread_id } = article.querySelector(".talk-again").elements;
  return { turn_id: article.dataset.turn, thread_id: thread_id.value, article, isAccepted: true };
}

// Shows the turn with its words and an empty answer.
function begin(turn) {
  problem.replaceChildren();
  if (turn.article === null) {
    document.getElementById("nothing")?.remove();
    turn.article = document.getElementById("running").content.cloneNode(true).querySelector("article");
    turn.article.id = `turn-${turn.turn_id}`;
    turn.article.dataset.turn = turn.turn_id;
    turn.article.querySelector(".talk-message .said").textContent = turn.message;
    turns.append(turn.article);
    turn.article.scrollIntoView({ block: "nearest" });
  }
  known.set(turn.article, turn);
  turn.article.setAttribute("aria-busy", "true");
  turn.article.querySelector(".talk-reply").replaceChildren();
  turn.article.querySelector(".talk-problem").replaceChildren();
  turn.article.querySelector(".talk-again").hidden = true;
  words.readOnly = !turn.isAccepted;
  state.textContent = "Answering…";
}

function end(turn, text) {
  turn.article.removeAttribute("aria-busy");
  words.readOnly = false;
  state.textContent = text;
  running = null;
}

async function send(turn) {
  if (running !== null) return;
  running = turn;
  begin(turn);
  let html = null;
  try {
    const answer = await post(turn);
    if (!answer.ok) {
      html = await answer.text();
      if (answer.status < 500) return refused(turn, html);
    } else {
      for await (const [name, data] of events(answer.body)) {
        if (name === "message") return answered(turn, data.html);
        if (name === "error") html = data.html;
        else take(turn, name, data);
      }
    }
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // fetch and its body fail so where the connection is lost
  }
  await failed(turn, html);
}

// Posts the turn; a token of before a restart, or of another session, is exchanged once.
async function post({ turn_id, thread_id, message, unremembered }) {
  const body = JSON.stringify({ turn_id, thread_id, message, unremembered });
  for (let attempt = 1; ; attempt += 1) {
    const headers = { "Content-Type": "application/json", "Recollect-Token": token(), "HX-Request-Type": "partial" };
    const answer = await fetch(`${address}/stream`, { method: "POST", headers, body });
    if (answer.status !== 403 || attempt > 1 || !renew(answer.headers)) return answer;
  }
}

function take(turn, name, data) {
  if (name === "turn") accepted(turn);
  else if (name === "memory") turn.article.querySelector(".talk-recalled").outerHTML = data.html;
  else if (name === "tool_call") state.textContent = `Using ${data.name}…`;
  else if (name === "tool_result") state.textContent = "Answering…";
  else if (name === "token") turn.article.querySelector(".talk-reply").append(data.text);
}

// The words are stored: the form is free for the next ones.
function accepted(turn) {
  if (!turn.isAccepted) {
    words.value = "";
    form.elements.unremembered.checked = false;
    form.elements.turn_id.value = newId();
    tried = null;
  }
  turn.isAccepted = true;
  words.readOnly = false;
  history.replaceState(null, "", `${address}?thread=${encodeURIComponent(turn.thread_id)}`);
}

function answered(turn, html) {
  end(turn, "Answered.");
  replace(turn.article, html);
  follow(turns, address);
}

// The service is up, and gave no answer: the words stay in the form, or with their turn once they are stored.
function refused(turn, html) {
  if (turn.isAccepted) {
    turn.article.querySelector(".talk-problem").innerHTML = html;
    turn.article.querySelector(".talk-again").hidden = false;
    return end(turn, "Not answered yet.");
  }
  problem.innerHTML = html;
  turn.article.remove();
  end(turn, "Not sent. Your words are still here.");
}

// Sends the turn again by itself once the service is back; where the service is up, leaves that to the person.
async function failed(turn, html) {
  if (!(await isReady())) {
    state.textContent = "Waiting for the service. Your words go out when it is back.";
    document.addEventListener("recollect:back", () => again(turn), { once: true });
    return watch();
  }
  refused(turn, html ?? '<p class="notice bad">The connection was lost.</p>');
}

function again(turn) {
  running = null;
  send(turn);
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (running === null) send(typed());
});

turns.addEventListener("submit", (event) => {
  event.preventDefault();
  const article = event.target.closest("article");
  send(known.get(article) ?? stored(article));
});

words.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  form.requestSubmit();
});

document.getElementById("keys").hidden = false;
follow(turns, address);
