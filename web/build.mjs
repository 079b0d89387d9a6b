// Bundles the page into the folder that `halfgraph serve` serves and the wheel ships, and holds it to its size.
import { build } from "esbuild";
import { cp, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const HERE = dirname(fileURLToPath(import.meta.url));
const OUT = join(HERE, "..", "src", "halfgraph", "serving", "page");
const MOST = 250 * 1000; // bytes of everything a first visit loads, gzipped
const PACKED = new Set([".woff2", ".png"]); // compressed already

await rm(OUT, { recursive: true, force: true });
await mkdir(OUT, { recursive: true });
const result = await build({
  absWorkingDir: HERE,
  entryPoints: { page: "src/main.ts", theme: "src/theme-first.ts", styles: "src/styles/styles.css" },
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022", "chrome123", "firefox120", "safari17.5"],
  legalComments: "none", // the licences are in licences.txt, whole
  loader: { ".woff2": "file" },
  assetNames: "[name]",
  outdir: OUT,
  metafile: true,
  define: { "process.env.NODE_ENV": '"production"' },
});
for (const file of ["index.html", "icon.svg"]) await cp(join(HERE, "src", file), join(OUT, file));
await writeFile(join(OUT, "licences.txt"), await licences(Object.keys(result.metafile.inputs)));
await weigh();

/** The licence texts of every package of which something is in the bundle. */
async function licences(inputs) {
  const names = new Set();
  for (const path of inputs) {
    const found = path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)/g)?.at(-1);
    if (found) names.add(found.slice("node_modules/".length));
  }
  const texts = ["The page of halfgraph contains these packages.\n"];
  for (const name of [...names].sort()) {
    const folder = join(HERE, "node_modules", name);
    const card = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry));
    if (!file && !card.license) throw new Error(`${name} has no licence`);
    const text = file ? await readFile(join(folder, file), "utf8") : card.license;
    texts.push(`${name} ${card.version}\n${"=".repeat(78)}\n${text.trim()}\n`);
  }
  return texts.join("\n");
}

/** Prints the size of each file as it goes over the wire, and fails above the limit. */
async function weigh() {
  let total = 0;
  for (const file of (await readdir(OUT)).sort()) {
    if (file === "licences.txt") continue; // opened only by who asks for it
    const bytes = await readFile(join(OUT, file));
    const size = PACKED.has(extname(file)) ? bytes.length : gzipSync(bytes, { level: 6 }).length;
    total += size;
    console.log(`${(size / 1000).toFixed(1).padStart(8)} KB  ${file}`);
  }
  console.log(`${(total / 1000).toFixed(1).padStart(8)} KB  in all, gzipped; at most ${MOST / 1000}`);
  if (total > MOST) throw new Error("The page is too large.");
}
