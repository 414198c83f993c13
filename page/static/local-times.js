// Times of the page, which are written in UTC, in the reader's own zone; UTC is shown on hover.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

export function showLocalTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    if (time.title || Number.isNaN(moment.getTime())) continue;
    time.title = `${time.textContent} UTC`;
    time.textContent = format(moment);
  }
  root.querySelectorAll("option[data-datetime]").forEach(showInOption);
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
