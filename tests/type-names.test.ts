import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'

const ROOT = path.resolve(import.meta.dirname, '..')

/** The type names that more than one file declares. It may only fall. */
const MOST = 40
const SHOWN = 25

const DECLARES = /^(?:export )?(?:declare )?(?:interface|type|class) ([A-Z]\w*)/gm

/** Returns the files that declare each type, without tests and what only tests use. */
function findDeclarations(): ReadonlyMap<string, readonly string[]> {
  const files = globSync('packages/*/src/**/*.{ts,tsx}', { cwd: ROOT })
    .filter((file) => !/\.test(-d)?\.tsx?$/.test(file) && !file.includes('/testing/'))
    .toSorted()
  const declared = files.flatMap((file) =>
    [...readFileSync(path.join(ROOT, file), 'utf8').matchAll(DECLARES)].map(([, name = '']) => ({ name, file })),
  )
  return new Map(
    [...Map.groupBy(declared, ({ name }) => name)].map(([name, all]) => [
      name,
      [...new Set(all.map(({ file }) => file))],
    ]),
  )
}

describe('type names', () => {
  it(`are declared by one file each, but for ${MOST} at most`, () => {
    const repeated = [...findDeclarations()]
      .filter(([, files]) => files.length > 1)
      .toSorted(([, a], [, b]) => b.length - a.length)
    const list = repeated.slice(0, SHOWN).map(([name, files]) => `${name}\n  ${files.join('\n  ')}`)
    assert.ok(
      repeated.length <= MOST,
      `${repeated.length} type names are declared by more than one file, at most ${MOST} may be. ` +
        `Give a new type a name that needs no import path to be understood. The most frequent:\n${list.join('\n')}`,
    )
  })
})
