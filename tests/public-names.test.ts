import assert from 'node:assert/strict'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'

/**
 * The names that each package offers, as `public-names.json` has them: a change of it is a change for users.
 * `TOOLGATE_UPDATE=1` writes it anew.
 */
const ROOT = path.resolve(import.meta.dirname, '..')
const SNAPSHOT = path.join(import.meta.dirname, 'public-names.json')

const LIST = /^export\s+(type\s)?\{([^}]*)\}/gm
const DECLARATION = /^export\s+(?:declare\s+)?(?:async\s+)?(function\*?|const|let|class|interface|type)\s+(\w+)/gm

const entries = globSync('packages/*/package.json', { cwd: ROOT }).toSorted().flatMap(entriesOf)
const offered = Object.fromEntries(entries.map(({ name, file }) => [name, namesOf(readFileSync(file, 'utf8'))]))

if (process.env['TOOLGATE_UPDATE']) writeFileSync(SNAPSHOT, `${JSON.stringify(offered, null, 2)}\n`)

describe('the public names', () => {
  const expected = JSON.parse(readFileSync(SNAPSHOT, 'utf8')) as Record<string, string[]>

  it('are those of every entry of every package', () => {
    assert.deepEqual(Object.keys(offered), Object.keys(expected))
  })

  it('of core that a program needs first are at most sixty', () => {
    assert.ok((offered['@toolgate/core'] ?? []).length <= 60)
  })

  it('of core are each in one entry', () => {
    const names = Object.entries(offered).flatMap(([entry, list]) => (entry.startsWith('@toolgate/core') ? list : []))
    assert.deepEqual(
      names.filter((name, place) => names.indexOf(name) !== place),
      [],
    )
  })

  for (const { name, file } of entries) {
    it(`of ${name} are as they were`, () => assert.deepEqual(offered[name], expected[name]))

    it(`of ${name} are there when it is imported`, async () => {
      const values = Object.keys((await import(pathToFileURL(file).href)) as object)
      assert.deepEqual(
        values.toSorted(),
        offered[name]?.filter((one) => !one.startsWith('type ')),
      )
    })
  }
})

function entriesOf(manifest: string): { name: string; file: string }[] {
  const { name, exports = {} } = JSON.parse(readFileSync(path.join(ROOT, manifest), 'utf8')) as {
    name: string
    exports?: Record<string, { 'toolgate-source'?: string }>
  }
  return Object.entries(exports).flatMap(([entry, { 'toolgate-source': source }]) =>
    source === undefined
      ? []
      : [{ name: path.posix.join(name, entry), file: path.join(ROOT, path.dirname(manifest), source) }],
  )
}

/** Reads the names that a file exports: values as they are, types as `type Name`. */
function namesOf(text: string): readonly string[] {
  assert.doesNotMatch(text, /^export \*/m, 'public names are written by hand')
  const listed = [...text.matchAll(LIST)].flatMap(([, type, names = '']) =>
    names
      .split(',')
      .map((name) => name.trim().replace(/^(type\s+)?.*\sas\s+/, '$1'))
      .filter((name) => name !== '')
      .map((name) => (type === undefined || name.startsWith('type ') ? name : `type ${name}`)),
  )
  const declared = [...text.matchAll(DECLARATION)].map(([, kind, name = '']) =>
    kind === 'interface' || kind === 'type' ? `type ${name}` : name,
  )
  // A function with overloads is one name.
  return [...new Set([...listed, ...declared])].toSorted()
}
