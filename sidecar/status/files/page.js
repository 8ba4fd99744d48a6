// Renews the status page: waits for the next change as a quota callback does, then takes the
// page's parts anew. What its reader uses is left alone: focus, open details, a selection.

const WAIT_S = 10;            // without a change the figures are renewed so often
const ANSWER_MS = 5000;       // beyond that wait
const SPIN_MS = 1000;         // between two rounds at least
const ASKING_MS = 2000;       // while a broker is being read
const RETRY_MS = 2000;        // while the sidecar does not answer

const page = document.documentElement;
const lost = document.getElementById("lost");
const live = document.getElementById("live");
let answeredAt = new Date();
let announced = live.dataset.etag;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function ask(path, headers, ms) {
  const answer = await fetch(path, { headers, cache: "no-store", signal: AbortSignal.timeout(ms) });
  if (!answer.ok && answer.status !== 304) throw new Error(`${path}: ${answer.status}`);
  return answer;
}

async function wait() {
  const headers = { "If-None-Match": `"${live.dataset.etag}"`, Prefer: `wait=${WAIT_S}` };
  await ask("/v1/throttle-factor", headers, WAIT_S * 1000 + ANSWER_MS);
}

async function renew() {
  const answer = await ask("/status/parts", {}, ANSWER_MS);
  const made = new DOMParser().parseFromString(await answer.text(), "text/html");
  const next = made.getElementById("live");
  if (next.dataset.version !== live.dataset.version) return location.reload();
  document.title = `${next.dataset.title} – throttle-sidecar`;
  replace(next);
}

// Section by section and in its place, so that one that is in use stays as it is.
function replace(next) {
  const open = new Set([...live.querySelectorAll("details[open]")].map((each) => each.id));
  const focused = live.contains(document.activeElement) ? place(document.activeElement) : null;
  for (const details of next.querySelectorAll("details")) details.open = open.has(details.id);
  const parts = [...next.children];
  const names = new Set(parts.map((each) => each.id));
  for (const part of [...live.children]) if (!names.has(part.id)) part.remove();
  let at = live.firstElementChild;
  for (const part of parts) {
    if (at?.id !== part.id) {
      live.insertBefore(part, at);
      continue;
    }
    const after = at.nextElementSibling;
    if (at.outerHTML !== part.outerHTML && !isSelected(at)) at.replaceWith(part);
    at = after;
  }
  for (const name of next.getAttributeNames()) live.setAttribute(name, next.getAttribute(name));
  if (!("asking" in next.dataset)) delete live.dataset.asking;
  if (focused && !live.contains(document.activeElement)) focused()?.focus({ preventScroll: true });
}

// How to find the same control again: by its id, or by where it leads, or as a part of its details.
function place(element) {
  const details = element.closest("details");
  if (element.id) return () => document.getElementById(element.id);
  if (details) return () => document.getElementById(details.id)?.querySelector("summary");
  const href = element.getAttribute("href");
  return () => href && live.querySelector(`[href="${CSS.escape(href)}"]`);
}

function isSelected(part) {
  const selection = getSelection();
  return !selection.isCollapsed && selection.containsNode(part, true);
}

function announce(text) {
  document.getElementById("news").textContent = text;
}

function found() {
  answeredAt = new Date();
  if (!lost.hidden) {
    lost.hidden = true;
    page.classList.remove("is-lost");
    announce("The sidecar answers again.");
  }
  if (announced !== live.dataset.etag) {
    announced = live.dataset.etag;
    announce(document.getElementById("sentence").textContent);
  }
}

function lose() {
  const seconds = Math.round((Date.now() - answeredAt) / 1000);
  const ago = seconds < 120 ? `${seconds} s` : `${Math.floor(seconds / 60)} min`;
  const clock = answeredAt.toISOString().slice(11, 19);
  document.getElementById("lost-since").textContent = `Its last answer is from ${clock} UTC, ${ago} ago.`;
  if (lost.hidden) {
    lost.hidden = false;
    page.classList.add("is-lost");
    announce(`The sidecar has not answered since ${clock} UTC.`);
  }
}

for (;;) {
  const began = Date.now();
  try {
    if ("asking" in live.dataset) await pause(ASKING_MS);
    else if (lost.hidden) await wait();
    await renew();
    found();
    await pause(Math.max(0, SPIN_MS - (Date.now() - began)));
  } catch {
    lose();
    await pause(RETRY_MS);
  }
}
