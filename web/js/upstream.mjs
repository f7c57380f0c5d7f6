// Follows links of a LiteGraph graph backwards: through reroutes, into subgraphs and out of them.
// Needs no ComfyUI: it only reads the objects it is given.

const SUBGRAPH_INPUT = -10; // LiteGraph's id of a subgraph's own input node
const MOST_HOPS = 100; // a workflow file may hold a circle

/**
 * What feeds an input.
 *
 * Returns null when nothing is connected, {node, slot} for a node's output, or {node, input} for
 * an input of a subgraph's outer node that is itself not connected (its value is a widget there).
 */
export function origin(node, inputName) {
  let graph = node.graph;
  let link = graph?.getLink(node.inputs?.find((i) => i.name === inputName)?.link);
  for (let hop = 0; link && hop < MOST_HOPS; hop++) {
    if (Number(link.origin_id) === SUBGRAPH_INPUT) {
      const host = hostOf(graph, graph.rootGraph ?? graph);
      const input = host?.inputs[link.origin_slot];
      if (!input) return null;
      if (input.link == null) return { node: host, input };
      graph = host.graph;
      link = graph.getLink(input.link);
      continue;
    }
    const from = graph.getNodeById(link.origin_id);
    if (!from) return null;
    if (from.isSubgraphNode?.()) {
      graph = from.subgraph;
      link = graph.getLink(graph.outputNode?.slots[link.origin_slot]?.linkIds[0]);
    } else if (from.type === "Reroute") {
      link = graph.getLink(from.inputs?.[0]?.link);
    } else {
      return { node: from, slot: link.origin_slot };
    }
  }
  return null;
}

/** The value that an origin is known to have before anything runs, else undefined. */
export function constant(from) {
  if (from?.input) {
    const name = from.input.widget?.name ?? from.input.name;
    return from.node.widgets?.find((w) => w.name === name)?.value;
  }
  return /^Primitive/.test(from?.node.type ?? "") ? from.node.widgets?.[0]?.value : undefined;
}

/** Whether a node's input is connected. */
export function linked(node, inputName) {
  return node.inputs?.find((i) => i.name === inputName)?.link != null;
}

/** The subgraph node that holds `graph`, searched from `root` down; the first if several do. */
function hostOf(graph, root) {
  for (const node of root.nodes ?? []) {
    if (!node.isSubgraphNode?.()) continue;
    if (node.subgraph === graph) return node;
    const deeper = hostOf(graph, node.subgraph);
    if (deeper) return deeper;
  }
  return null;
}
