// Elements: make one, and change one only where it differs.
export const at = (id) => document.getElementById(id);

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function setAttribute(node, name, value) {
  if (value === null) node.removeAttribute(name);
  else if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

// Replaces only the letters that differ, so that text beside them stays selected.
export function setText(node, words) {
  const text = node.firstChild ?? node.appendChild(new Text()), old = text.data, shorter = Math.min(old.length, words.length);
  if (old === words) return;
  let head = 0, tail = 0;
  while (head < shorter && old[head] === words[head]) head += 1;
  while (tail < shorter - head && old.at(-1 - tail) === words.at(-1 - tail)) tail += 1;
  text.replaceData(head, old.length - head - tail, words.slice(head, words.length - tail));
}
