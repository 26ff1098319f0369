// Changes a part of the page into a newer one, node by node, so that focus, scroll positions, chosen
// radio buttons and opened details stay as the reader left them.

/** Attributes that belong to the reader or to the script, not to the newer page. */
const KEPT = new Set(["open", "hidden"]);

export function morph(held: Node, fresh: Node): void {
  if (held.isEqualNode(fresh)) return;
  if (held.nodeName !== fresh.nodeName) {
    held.parentNode?.replaceChild(fresh, held);
    return;
  }
  if (held instanceof Element) attributes(held, fresh as Element);
  else held.nodeValue = fresh.nodeValue;
  children(held, fresh);
}

function attributes(held: Element, fresh: Element): void {
  for (const name of held.getAttributeNames()) {
    if (!fresh.hasAttribute(name) && !KEPT.has(name)) held.removeAttribute(name);
  }
  for (const name of fresh.getAttributeNames()) {
    if (!KEPT.has(name)) held.setAttribute(name, fresh.getAttribute(name) ?? "");
  }
}

/** Children are paired by their key, others with the next child of their kind. */
function children(held: Node, fresh: Node): void {
  const left = [...held.childNodes] as Node[];
  let at: Node | null = held.firstChild;
  for (const node of [...fresh.childNodes]) {
    const index = left.findIndex((each) => each.nodeName === node.nodeName && keyOf(each) === keyOf(node));
    const [own] = index < 0 ? [node] : left.splice(index, 1);
    if (own !== at) held.insertBefore(own as Node, at);
    else at = own.nextSibling;
    if (own !== node) morph(own as Node, node);
  }
  for (const node of left) node.parentNode?.removeChild(node);
}

function keyOf(node: Node): string {
  return node instanceof HTMLElement ? node.dataset["key"] ?? node.id : "";
}
