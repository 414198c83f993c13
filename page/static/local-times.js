// Times of the page, which are written in UTC, in the reader's own zone; UTC is shown on hover.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
const EXACT = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)/g;

export function showLocalTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    if (time.title || Number.isNaN(moment.getTime())) continue;
    time.title = `${time.textContent.replace(/ UTC$/, "")} UTC`;
    time.textContent = format(moment);
  }
  root.querySelectorAll("option[data-datetime]").forEach(showInOption);
  for (const title of root.querySelectorAll("svg title")) {
    title.textContent = title.textContent.replace(EXACT, (text) => format(new Date(text)));
  }
  root.querySelectorAll("svg.ticks").forEach(moveTicks);
}

// Round times in UTC are not round in every zone: an axis gets ticks at those of the reader.
function moveTicks(axis) {
  const begin = new Date(axis.dataset.since);
  const end = new Date(axis.dataset.until);
  const step = Number(axis.dataset.step);
  const ticks = [];
  const count = (steps) => new Date(begin.getFullYear(), begin.getMonth(), begin.getDate(), 0, 0, steps * step);
  for (let steps = 0; count(steps) <= end; steps += 1) {
    const moment = count(steps);
    if (moment >= begin) ticks.push(drawTick(moment, ((moment - begin) / (end - begin)) * 100, step));
  }
  axis.replaceChildren(...ticks);
}

function drawTick(moment, percent, step) {
  const [day, time] = format(moment).split(" ");
  const x = `${percent.toFixed(2)}%`;
  const label = drawElement("text", { x, y: 16, "text-anchor": percent < 4 ? "start" : percent > 96 ? "end" : "middle" });
  const title = drawElement("title", {});
  title.textContent = `${moment.toISOString().slice(0, 19).replace("T", " ")} UTC`;
  label.append(time === "00:00:00" ? day.slice(5) : step < 60 ? time : time.slice(0, 5), title);
  const tick = drawElement("g", {});
  tick.append(drawElement("line", { x1: x, x2: x, y2: 4 }), label);
  return tick;
}

function drawElement(name, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

// An option has no elements: its text begins with the time.
function showInOption(option) {
  const moment = new Date(option.dataset.datetime);
  if (!Number.isNaN(moment.getTime())) option.textContent = format(moment) + option.textContent.slice(19);
  delete option.dataset.datetime;
}

export function nameZone() {
  const note = document.querySelector("[data-zone]");
  // An offset of zero is UTC under any name.
  if (note && new Date().getTimezoneOffset() !== 0) note.textContent = note.dataset.zone.replace("{zone}", zone);
}

function format(moment) {
  const [year, month, day, hour, minute, second] = [
    moment.getFullYear(), moment.getMonth() + 1, moment.getDate(), moment.getHours(), moment.getMinutes(), moment.getSeconds(),
  ].map((number) => String(number).padStart(2, "0"));
  return `${year}-${month}-${day} ${hour}:${minute}:${second}`;
}
