"use strict";
// The address of what is shown: program, view, grouping, colours, open scopes, search and node, after the "#".

class Address {
  /** `read()` returns what is shown as [key, value] pairs, "" for what is as at first; `show(fields, then)` shows it and calls `then`. */
  constructor({ read, show }) {
    this.read = read;
    this.show = show;
    this.isShowing = false;
    this.written = "";
    addEventListener("popstate", () => this.restore());
    addEventListener("hashchange", () => this.restore());
  }

  /** Write what is shown into the address: as a new step of the history, or in place of the last one. */
  keep(isStep = true) {
    if (this.isShowing) return;
    const fields = this.read().filter(([, value]) => value !== "");
    const hash = fields.map(([key, value]) => `${key}=${encodeURIComponent(value).replace(/%(2C|2F|3A|20)/g, (code) => (code === "%20" ? "+" : decodeURIComponent(code)))}`).join("&");
    if (hash === this.written) return;
    this.written = hash;
    try {
      history[isStep ? "pushState" : "replaceState"](null, "", `#${hash}`);
    } catch (error) {
      if (error.name !== "SecurityError") throw error; // a page inside a notebook has no address of its own
    }
  }

  /** Show what the address names, `then` act. */
  restore(then = () => {}) {
    const hash = location.hash.slice(1);
    if (hash === this.written) { then(); return; }
    this.written = hash;
    const fields = new Map(hash.split("&").filter((part) => part.includes("=")).map((part) => {
      const [key, value] = [part.slice(0, part.indexOf("=")), part.slice(part.indexOf("=") + 1)];
      return [key, decoded(value)];
    }));
    this.isShowing = true;
    this.show(fields, () => { this.isShowing = false; then(); });
  }
}

/** Return the text of a part of an address; one that a person broke stays as it is. */
function decoded(value) {
  try {
    return decodeURIComponent(value.replace(/\+/g, " "));
  } catch (error) {
    if (!(error instanceof URIError)) throw error;
    return value;
  }
}
