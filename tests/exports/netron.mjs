// Reads a file with Netron's own parser: node netron.mjs FOLDER_OF_NETRON FILE prints name, type and device of each node.
import * as fs from 'fs';
import * as path from 'path';

const [folder, file] = process.argv.slice(2);
globalThis.window = globalThis;
const view = await import(path.join(folder, 'view.js'));
const base = await import(path.join(folder, 'base.js'));
const fail = (error) => { throw error; };
const load = (id) => import(path.join(folder, `${id}.js`));
const read = async (name, encoding) => fs.readFileSync(path.join(folder, name), encoding);
const host = { environment: () => null, event: () => {}, exception: fail, require: load, request: read };
const name = path.basename(file);
const stream = new base.BinaryStream(new Uint8Array(fs.readFileSync(file)));
const context = { identifier: name, name, stream, entries: new Map(), request: read, require: load, error: fail };
const model = await new view.ModelFactoryService(host).open(context);
const nodes = model.modules.flatMap((graph) => graph.nodes);
console.log(JSON.stringify(nodes.map((node) => [node.name, node.type.name, node.device])));
