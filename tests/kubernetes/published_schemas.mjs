// Judges Kubernetes objects by the validators of kubernetes-models, and writes them as a TypeScript program whose types
// refuse a field that the schemas do not know: the validators let it pass.
// usage: node published_schemas.mjs OBJECTS.json PROGRAM.ts
import { readFileSync, writeFileSync } from "node:fs";

// Of what extends Kubernetes there is no published schema.
const others = ["monitoring.coreos.com/"];

const [input, program] = process.argv.slice(2);
const objects = JSON.parse(readFileSync(input, "utf8"));
const lines = [];
let wrong = 0;
for (const [at, object] of objects.entries()) {
  const { apiVersion, kind } = object;
  const name = `${kind} ${object.metadata?.name}`;
  if (others.some((prefix) => apiVersion.startsWith(prefix))) continue;
  const path = `kubernetes-models/${apiVersion}`;
  try {
    const model = (await import(path))[kind];
    if (!model) throw new Error(`${apiVersion} has no kind ${kind}`);
    new model(object).validate();
    lines.push(`import type { I${kind} as T${at} } from "${path}";`);
    lines.push(`export const o${at}: T${at} = ${JSON.stringify(object)};`);
  } catch (error) {
    console.error(`${name}: ${error.message}`);
    wrong += 1;
  }
}
writeFileSync(program, lines.join("\n") + "\n");
console.log(`${lines.length / 2} of ${objects.length} objects judged`);
process.exit(wrong === 0 && lines.length > 0 ? 0 : 1);
