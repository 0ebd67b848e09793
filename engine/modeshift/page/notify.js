// The browser's notification that a thread waits: off until somebody turns it on here.
import { button, toast } from "/app/dom.js";

const KEY = "modeshift-notify";
const isOn = () => localStorage.getItem(KEY) === "on" && Notification.permission === "granted";

export function notifyButton() {
  if (!("Notification" in window)) return null;
  const node = button("Notify", turn, {
    class: "quiet",
    title: "Tell me when a thread waits for me while this page is in the background",
    "aria-pressed": String(isOn()),
  });
  async function turn() {
    const wants = !isOn();
    if (wants && (await Notification.requestPermission()) !== "granted")
      toast("The browser does not let this page notify you; its settings of this site do.");
    localStorage.setItem(KEY, wants ? "on" : "off");
    node.setAttribute("aria-pressed", String(isOn()));
  }
  return node;
}

// What is asked stays on the page: whoever passes by may read a notification.
export function notify(mode) {
  if (!("Notification" in window) || !isOn() || !document.hidden) return;
  const shown = new Notification("Modeshift waits for you", { body: mode, tag: KEY });
  shown.onclick = () => (window.focus(), shown.close());
}
