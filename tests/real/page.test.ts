import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'

/** docs/guide/compatibility.md names the servers, clients and versions that the tests of this folder run. */

const HERE = import.meta.dirname
const ROOT = path.join(HERE, '../..')
const text = (...file: readonly string[]) => readFileSync(path.join(...file), 'utf8')
const page = text(ROOT, 'docs/guide/compatibility.md')
const sources = globSync(['*.e2e.test.ts', 'support/compare.ts'], { cwd: HERE }).map((file) => text(HERE, file))

/** The pinned versions, by the last part of the name of a package. */
function pinned(file: string, pattern: RegExp): ReadonlyMap<string, string> {
  return new Map([...text(file).matchAll(pattern)].map(([, name = '', version = '']) => [name, version]))
}

const python = ['1', '2'].map((n) => pinned(path.join(HERE, `python/requirements-${n}.txt`), /^([\w-]+)==(\S+)$/gm))
const [python1 = new Map(), python2 = new Map()] = python
const npm = pinned(path.join(HERE, 'npm/package.json'), /"([^"]+)": "(?:npm:[^"]+@)?([\d.]+)"/g)
const root = pinned(path.join(ROOT, 'package.json'), /"([^"]+)": "([\d.]+)"/g)
const go = pinned(path.join(HERE, 'go/go.mod'), /^\t\S+\/(\S+) (\S+)$/gm)
const rust = pinned(path.join(HERE, 'rust/Cargo.toml'), /^(\w+) = \{ version = "=([\d.]+)"/gm)

/** The first two cells of the rows of a table. */
function rowsOf(heading: string): readonly (readonly [string, string])[] {
  const section = page.split(`## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  const rows = [...section.matchAll(/^\| (.+?) \| (.+?) \|/gm)].map(([, a = '', b = '']) => [a, b] as const)
  return rows.slice(1)
}

describe('docs/guide/compatibility.md', () => {
  it('names each server that is tested, with its version', () => {
    const names = sources.flatMap((source) => [...source.matchAll(/^ {4,6}name: '(.+)',$/gm)].map(([, name]) => name))
    const rows = rowsOf('Servers')
    assert.deepEqual(rows.map(([name]) => name).toSorted(), names.toSorted())
    assert.ok(rows.length >= 10)
    for (const [name, version] of rows) {
      const [key = ''] = name.split(' ')
      const [found] = [python2, python1, npm, go, rust].flatMap((pins) => pins.get(key) ?? [])
      assert.equal(version, found, name)
    }
  })

  it('names each client that is tested, with its version', () => {
    assert.deepEqual(rowsOf('Clients'), [
      ['SDK of TypeScript', npm.get('sdk-1.12')],
      ['SDK of TypeScript', root.get('@modelcontextprotocol/sdk')],
      ['SDK of TypeScript', root.get('@modelcontextprotocol/client')],
      ['mcp of Python', python1.get('mcp')],
      ['mcp of Python', python2.get('mcp')],
      ['SDK of Go', go.get('go-sdk')],
      ['rmcp', rust.get('rmcp')],
    ])
  })

  it('has the reason of each difference', () => {
    const reasons = sources.flatMap((source) => [...source.matchAll(/^(?:export )?const [A-Z]+ = (['"])(.* .*)\1$/gm)])
    assert.ok(reasons.length > 3)
    const plain = page.replaceAll(/\s+/g, ' ')
    for (const [, , reason = ''] of reasons) assert.ok(plain.includes(reason), reason)
  })
})
