/*
 * page.js - what the admin page does beyond reading: it reads the same page again and replaces what has changed, takes keys, shows local
 * times. Everything works without it. No HTML is made here: parts of documents that the server made are moved, texts are texts.
 */
"use strict";

const REFRESH_MS = 4000;
const stored = (name) => {
	try {
		return localStorage.getItem(name);
	} catch {
		return null;
	}
};
const store = (name, value) => {
	try {
		localStorage.setItem(name, value);
	} catch {
		/* not allowed: it holds for this page */
	}
};

const status = document.getElementById("status");
const say = (text) => {
	if (status && status.textContent !== text) status.textContent = text;
};

/* -------- local times ------------------------------------------------------------------------------- */

const localTimes = (root) => {
	for (const time of root.querySelectorAll("time[datetime]")) {
		const date = new Date(time.dateTime);
		if (!Number.isNaN(date.getTime())) time.title = `${date.toLocaleString()} (${time.dateTime})`;
	}
};
localTimes(document);

/* -------- ages and times that go on -------------------------------------------------------------------- */

const MINUTE = 60, HOUR = 3600, DAY = 86400;
/* As the server words it (html_ago, html_duration). */
const ago = (seconds) => {
	if (seconds < 2 * MINUTE) return `${seconds} s ago`;
	if (seconds < 2 * HOUR) return `${Math.floor(seconds / MINUTE)} min ago`;
	return seconds < 2 * DAY ? `${Math.floor(seconds / HOUR)} h ago` : `${Math.floor(seconds / DAY)} days ago`;
};
const elapsed = (seconds) => {
	if (seconds < 2 * MINUTE) return `${seconds} s`;
	return seconds < 2 * HOUR ? `${Math.floor(seconds / MINUTE)} min` : `${Math.floor(seconds / HOUR)} h`;
};
const since = new WeakMap(); /* when an element came, by our clock: the server's may differ */
const tick = () => {
	for (const part of document.querySelectorAll("[data-age], [data-elapsed]")) {
		if (!since.has(part)) since.set(part, performance.now());
		const seconds = Number(part.dataset.age ?? part.dataset.elapsed) + Math.floor((performance.now() - since.get(part)) / 1000);
		const text = part.dataset.age === undefined ? elapsed(seconds) : ago(seconds);
		if (part.textContent !== text) part.textContent = text;
	}
};
tick();
setInterval(tick, 1000);

/* -------- reading again ------------------------------------------------------------------------------- */

const live = () => document.querySelectorAll("[data-live]");
let paused = stored("paused") === "yes";
let asking = false;

/* The page as the server would make it now. */
const read = (done) => {
	const request = new XMLHttpRequest();
	request.open("GET", location.href);
	request.responseType = "document";
	request.timeout = 15000;
	request.setRequestHeader("X-Sallyport-Refresh", "1");
	request.onloadend = () => done(request.status, request.response);
	request.send();
};

const newRows = (fresh) => {
	const rows = document.querySelector("[data-new] tr[data-id]");
	if (!rows) return 0;
	return [...fresh.querySelectorAll("[data-new] tr[data-id]")].filter((row) => row.dataset.id > rows.dataset.id).length;
};

/* What has the focus, or is selected, stays as it is. */
const inUse = (part) => part.contains(document.activeElement) || (!getSelection().isCollapsed && part.contains(getSelection().anchorNode));

const update = (code, fresh) => {
	asking = false;
	if (code === 401) {
		say("The session has ended. Load the page again to sign in.");
		return;
	}
	if (code !== 200 || !fresh) {
		say("The gateway does not answer. What you see may be old.");
		return;
	}
	for (const part of live()) {
		const other = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
		if (!other || inUse(part) || part.isEqualNode(other)) continue;
		localTimes(other);
		part.replaceWith(document.adoptNode(other));
	}
	const count = newRows(fresh);
	say(count ? `${count === 50 ? "50 or more" : count} new: press r to load them` : "");
};

const wanted = () => live().length > 0 || document.querySelector("[data-new]");
setInterval(() => {
	if (paused || asking || document.visibilityState !== "visible" || !wanted()) return;
	asking = true;
	read(update);
}, REFRESH_MS);

/* -------- pause, keys --------------------------------------------------------------------------------- */

const controls = document.getElementById("keys");
const button = (text, act) => {
	const made = document.createElement("button");
	made.type = "button";
	made.textContent = text;
	made.addEventListener("click", act);
	controls.append(made);
	return made;
};
let pauseButton = null;
const showPause = () => {
	if (pauseButton) pauseButton.textContent = paused ? "Go on updating" : "Pause updating";
};
const pause = () => {
	paused = !paused;
	store("paused", paused ? "yes" : "no");
	showPause();
	say(paused ? "Updating is paused." : "Updating.");
};

const rows = () => [...document.querySelectorAll("main tbody tr a[href^='/admin/run/']")];
const move = (step) => {
	const all = rows();
	if (!all.length) return;
	const at = all.indexOf(document.activeElement);
	all[Math.min(Math.max(at < 0 ? 0 : at + step, 0), all.length - 1)].focus();
};
const follow = (selector) => document.querySelector(selector)?.click();
const keys = {
	"/": ["search", () => document.getElementById("search") ? document.getElementById("search").focus() : (location.href = "/admin/runs")],
	j: ["next row", () => move(1)],
	k: ["row before", () => move(-1)],
	u: ["up to the runs", () => (location.href = "/admin/runs")],
	"[": ["page or run before", () => follow("a[rel=prev]")],
	"]": ["next page or run", () => follow("a[rel=next]")],
	r: ["load again", () => location.reload()],
	p: ["pause updating", pause],
	"?": ["these keys", () => say(Object.entries(keys).map(([key, [what]]) => `${key}: ${what}`).join(", "))],
};
let keysOn = stored("keys") !== "off";
document.addEventListener("keydown", (event) => {
	if (!keysOn || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
	const found = keys[event.key];
	if (!found) return;
	event.preventDefault();
	found[1]();
});

if (controls) {
	if (wanted()) pauseButton = button("", pause);
	showPause();
	const keysButton = button("", () => {
		keysOn = !keysOn;
		store("keys", keysOn ? "on" : "off");
		keysButton.textContent = keysOn ? "Switch keys off" : "Switch keys on";
	});
	keysButton.textContent = keysOn ? "Switch keys off" : "Switch keys on";
}
