// Builds the script and the style sheets that report.html and notebooks embed, or checks (--check) that the
// committed files are what the sources make.
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "../../sdk/hallujudge/sdk/report/page");

const targets = ["chrome103", "firefox113", "safari16.4"];

async function bundle(entry, loader) {
  const built = await esbuild.build({
    entryPoints: [join(here, "src", entry)],
    bundle: true,
    minify: true,
    write: false,
    target: targets,
    charset: "ascii",
    legalComments: "none",
    jsx: "automatic",
    jsxImportSource: "preact",
    loader,
  });
  return built.outputFiles[0].text;
}

// The first screen in a notebook: its rules apply below one element only.
async function notebook() {
  const [around, rules] = await Promise.all(["notebook.css", "first.css"].map((name) => readFile(join(here, "src", name), "utf8")));
  const contents = `${around}\n.hallujudge.hallujudge {\n${rules}\n}`;
  const built = await esbuild.transform(contents, { loader: "css", minify: true, target: targets, charset: "ascii" });
  return built.code;
}

async function licences() {
  const text = await readFile(join(here, "node_modules/preact/LICENSE"), "utf8");
  const { version } = JSON.parse(await readFile(join(here, "node_modules/preact/package.json"), "utf8"));
  return `/*! Contains preact ${version}:\n\n${text.trim()}\n*/\n`;
}

const files = {
  "app.js": (await licences()) + (await bundle("main.tsx", {})),
  "live.js": await bundle("live.ts", {}),
  "page.css": await bundle("page.css", { ".css": "css" }),
  "notebook.css": await notebook(),
};
let stale = 0;
for (const [name, text] of Object.entries(files)) {
  // An inline script or style must not hold the text that would end its element.
  if (/<\/(script|style)|<!--/i.test(text)) throw new Error(`${name} would end its own element`);
  const path = join(target, name);
  if (!process.argv.includes("--check")) {
    await writeFile(path, text);
    console.log(`${name}: ${text.length} bytes`);
  } else if ((await readFile(path, "utf8").catch(() => "")) !== text) {
    console.error(`${name} is not what web/report makes: run make page and commit the result`);
    stale += 1;
  }
}
process.exitCode = stale ? 1 : 0;
