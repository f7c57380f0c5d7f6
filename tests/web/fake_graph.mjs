// The few fields of a LiteGraph graph that upstream.mjs reads.

export class Graph {
  constructor(rootGraph) {
    this.rootGraph = rootGraph ?? this;
    this.nodes = [];
    this.links = new Map();
  }

  /** A node with unconnected inputs of these names and widgets {name: value}. */
  add(comfyClass, { inputs = [], widgets = {}, ...more } = {}) {
    const node = {
      id: this.nodes.length + 1, type: comfyClass, comfyClass, graph: this,
      inputs: inputs.map((name) => ({ name, link: null })),
      widgets: Object.entries(widgets).map(([name, value]) => ({ name, value })),
      ...more,
    };
    this.nodes.push(node);
    return node;
  }

  /** A node that holds `inner`; its inputs are `inputs`, its one output is `from`'s first. */
  addSubgraph(inner, { inputs = [], from = null, widgets = {} } = {}) {
    if (from) {
      const id = inner.store({ origin_id: from.id, origin_slot: 0 });
      inner.outputNode = { slots: [{ linkIds: [id] }] };
    }
    return this.add("subgraph", { inputs, widgets, subgraph: inner, isSubgraphNode: () => true });
  }

  connect(from, to, name, slot = 0) {
    const origin_id = from === "subgraph input" ? -10 : from.id;
    to.inputs.find((i) => i.name === name).link = this.store({ origin_id, origin_slot: slot });
  }

  store(link) {
    this.links.set(this.links.size + 1, link);
    return this.links.size;
  }

  getLink(id) {
    return this.links.get(id);
  }

  getNodeById(id) {
    return this.nodes.find((n) => n.id === id);
  }
}
