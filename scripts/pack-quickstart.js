// Copies the quickstart into the package `toolgate`, as `npm pack` and `npm publish` do before they pack: it is kept once, in
// examples/quickstart, where `npm start` in a clone runs it. Its demo servers are installed when it is tried: it gets a
// package.json with their versions, which are those of the clone.
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = path.resolve(fileURLToPath(import.meta.url), '../..')
const FROM = path.join(ROOT, 'examples/quickstart')
const TO = path.join(ROOT, 'packages/cli/quickstart')

/** What belongs to the repository, and what a run or the tour has left there. */
const LEFT_OUT = new Set(['.toolgate', 'quickstart.test.ts', 'plan.md'])

rmSync(TO, { recursive: true, force: true })
cpSync(FROM, TO, { recursive: true, filter: (file) => !LEFT_OUT.has(path.basename(file)) })

const { dependencies } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'))
const used = [...readFileSync(path.join(FROM, 'toolgate.yaml'), 'utf8').matchAll(/^ {4}package: "?([^"\n]+)"?$/gm)]
const demo = Object.fromEntries(used.map(([, name]) => [name, dependencies[name] ?? fail(name)]))
writeFileSync(
  path.join(TO, 'package.json'),
  `${JSON.stringify({ private: true, description: 'The demo servers of the quickstart.', dependencies: demo }, undefined, 2)}\n`,
)

function fail(name) {
  console.error(`scripts/pack-quickstart.js: ${name} is not among the dependencies of the clone`)
  process.exit(1)
}
