// What the drawing says. Two languages, as everywhere in this pack.

const TEXTS = {
  en: {
    grid: (g) => `${g.count} cells, edge ${g.edge} px, hex_res ${g.res}`,
    chosen: (n, g) => `${n} of ${g.count} cells chosen`,
    cell: (c) => `${c.id}  ring ${c.ring}, ${c.neighbours.length} neighbours`,
    missing: "Connect the cells of an H3 Grid Encode to see them here.",
    unknown: (name) => `${name} comes from another node: run the workflow once to see the grid.`,
    offline: (why) => `The grid could not be read: ${why}`,
  },
  zh: {
    grid: (g) => `${g.count} 个单元，边长 ${g.edge} px，hex_res ${g.res}`,
    chosen: (n, g) => `已选 ${n} / ${g.count} 个单元`,
    cell: (c) => `${c.id}  第 ${c.ring} 环，${c.neighbours.length} 个相邻单元`,
    missing: "连接 H3 网格编码的 cells 后，这里会显示网格。",
    unknown: (name) => `${name} 来自其他节点：运行一次工作流即可看到网格。`,
    offline: (why) => `无法读取网格：${why}`,
  },
};

/** The texts for a ComfyUI locale such as en, zh or zh-TW. */
export function textsFor(locale) {
  return String(locale ?? "").startsWith("zh") ? TEXTS.zh : TEXTS.en;
}
