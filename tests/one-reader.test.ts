import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'

const ROOT = path.resolve(import.meta.dirname, '..')

/**
 * Where JSON may be parsed without `readJson` or `readOwnJson` of core, and why. V8 13.6 (Node 24) misreads keys that
 * hold escapes, and `JSON.parse` takes the last of two equal keys.
 */
const EXCEPTIONS: ReadonlyMap<string, string> = new Map([
  ['packages/values/src/json/read-json.ts', 'it is the reader'],
  ['packages/values/src/json/json-parser.ts', 'it parses single texts, never an object'],
  ['packages/gateway/src/files.ts', 'it reads the version in the package.json of the package itself'],
  ['packages/cli/src/files.ts', 'it reads the version in the package.json of the package itself'],
  ['packages/cli/src/commands/demo-servers.ts', 'it reads package.json files of the demo, for their versions'],
  // The console is a program of its own in the browser, and imports no code of core. The input that a person approves is
  // shown as its text, unparsed.
  ['packages/console/src/policy-draft.ts', 'it reads a list of three texts that it wrote'],
  ['packages/console/src/api.ts', 'it reads answers of its own gateway, in the browser'],
  ['packages/console/src/digits.ts', 'it reads answers of its own gateway and what a person types, in the browser'],
  ['packages/console/src/parts/caller-choice.tsx', 'it checks what a person types, and the gateway reads it again'],
  ['packages/console/src/run-timeline.ts', 'it reads operands that the gateway wrote, for people'],
])

const PARSES = /\bJSON\.parse\b|\.json\(\)/
const COMMENT = /^\s*(?:\*|\/\/|\/\*)/

const found = globSync('packages/*/src/**/*.{ts,tsx}', { cwd: ROOT })
  .filter((file) => !/\.test(-d)?\.tsx?$/.test(file) && !file.includes('/testing/'))
  .filter((file) =>
    readFileSync(path.join(ROOT, file), 'utf8')
      .split('\n')
      .some((line) => PARSES.test(line) && !COMMENT.test(line)),
  )
  .toSorted()

describe('JSON', () => {
  it('is parsed by the one reader, with the exceptions that this file names', () => {
    assert.deepEqual(found, [...EXCEPTIONS.keys()].toSorted())
  })
})
