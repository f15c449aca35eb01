// Copies the quickstart into the package `toolgate`, as `npm pack` and `npm publish` do before they pack: it is kept once, in
// examples/quickstart, where `npm start` in a clone runs it.
import { cpSync, rmSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = path.resolve(fileURLToPath(import.meta.url), '../..')
const FROM = path.join(ROOT, 'examples/quickstart')
const TO = path.join(ROOT, 'packages/cli/quickstart')

/** What belongs to the repository, and what a run or the tour has left there. */
const LEFT_OUT = new Set(['.toolgate', 'quickstart.test.ts', 'plan.md'])

rmSync(TO, { recursive: true, force: true })
cpSync(FROM, TO, { recursive: true, filter: (file) => !LEFT_OUT.has(path.basename(file)) })
