// The tab's contents: which graph, on which devices, and simplace's page of it below.

const STYLE = `
  body { margin: 0; display: flex; flex-direction: column; height: 100vh; font: 14px/1.4 system-ui, sans-serif; }
  form { display: flex; flex-wrap: wrap; gap: 8px 16px; align-items: center; padding: 8px 16px; }
  select, input, button { font: inherit; padding: 4px 8px; min-height: 32px; }
  iframe { flex: 1; border: 0; border-top: 1px solid #ccc; }
`;

function add(parent, tag, properties = {}) {
  const made = Object.assign(document.createElement(tag), properties);
  parent.append(made);
  return made;
}

export async function render() {
  add(document.head, "style", { textContent: STYLE });
  const graphs = await (await fetch("./graphs")).json();
  if (!graphs.length) {
    add(document.body, "p", { textContent: "No run has a graph: record one with tf.summary.graph or trace_export." });
    return;
  }
  const form = add(document.body, "form");
  const graph = add(add(form, "label", { textContent: "Graph " }), "select", { name: "graph" });
  graphs.forEach((one, i) => add(graph, "option", { value: i, textContent: one.title }));
  const devices = add(add(form, "label", { textContent: "Devices " }), "input", {
    name: "devices", placeholder: "cpu:1,gpu:2", title: "empty: those that the graph names",
  });
  add(form, "button", { textContent: "Place" });
  const page = add(document.body, "iframe", { title: "simplace" });
  const show = () => {
    const { run, kind, tag } = graphs[Number(graph.value)];
    page.src = `./page?${new URLSearchParams({ run, kind, tag, devices: devices.value.trim() })}`;
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    show();
  });
  graph.addEventListener("change", show);
  show();
}
