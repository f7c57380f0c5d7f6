// The text of a cell selection, changed by a click. Pure: no page, no ComfyUI.
// The grammar is h3video/grid/select.py's: terms joined by `or` or a comma, `and` binds tighter.

const ID = /^8[0-9a-f]{14}$/i;
// A polygon's commas join numbers, not terms, so the whole of it is one token.
const NUMBER = String.raw`-?\d+(?:\.\d*)?%?`;
const TOKEN = new RegExp(
  String.raw`polygon(?:\s+${NUMBER}\s*,\s*${NUMBER}(?![0-9a-z_]))+|[a-z0-9_]+|[^\s]`, "gi",
);

/** The terms of a selection: what stands between top-level `or`s and commas, trimmed. */
export function terms(text) {
  const found = [];
  let depth = 0, start = 0;
  for (const token of text.matchAll(TOKEN)) {
    const word = token[0].toLowerCase();
    if (word === "(") depth++;
    else if (word === ")") depth--;
    else if (depth === 0 && (word === "," || word === "or")) {
      found.push(text.slice(start, token.index));
      start = token.index + word.length;
    }
  }
  found.push(text.slice(start));
  return found.map((term) => term.trim()).filter(Boolean);
}

/**
 * The selection after a click on cell `id`, which was `chosen` or not.
 *
 * not chosen: the term `id` is added, or an `and not id` that an earlier click left is taken away;
 * chosen by the term `id`: that is taken away;
 * chosen by something else: `and not id` is added to that.
 */
export function toggleSelect(text, id, chosen) {
  const all = terms(text).filter((term) => term.toLowerCase() !== "none");
  const result = chosen ? without(all, id.toLowerCase()) : withCell(all, id.toLowerCase());
  return result.join(" or ") || "none";
}

function withCell(all, id) {
  const exclusion = new RegExp(String.raw`\s+and\s+not\s+${id}(?![0-9a-z_])`, "i");
  const readmitted = all.map((term) => unwrapped(term.replace(exclusion, "")));
  const changed = readmitted.some((term, i) => term !== unwrapped(all[i]));
  return changed ? readmitted : [...all, id];
}

function without(all, id) {
  const rest = all.filter((term) => term.toLowerCase() !== id);
  if (rest.length < all.length) return rest;
  const cells = all.filter((term) => ID.test(term));
  const rules = all.filter((term) => !ID.test(term));
  const rule = rules.length > 1 ? `(${rules.join(" or ")})` : rules[0];
  return rule ? [`${rule} and not ${id}`, ...cells] : cells;
}

/** A term without parentheses that are all around it: `(a or b)` is `a or b`. */
function unwrapped(term) {
  if (!term.startsWith("(") || !term.endsWith(")")) return term;
  let depth = 0;
  for (let i = 0; i < term.length - 1; i++) {
    if (term[i] === "(") depth++;
    else if (term[i] === ")" && --depth === 0) return term;
  }
  return term.slice(1, -1).trim();
}
