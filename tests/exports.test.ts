import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { readImports, targetFile } from './support/imports.ts'

const ROOT = path.resolve(import.meta.dirname, '..')

const DECLARED =
  /^export (?:declare )?(?:abstract )?(?:async )?(?:function\*?|const|let|class|interface|type) ([\w$]+)/gm
const LISTED = /^export (?:type )?\{([^}]*)\}/gm

/** Returns the files of the packages, and of all that uses them. */
function findSources(): readonly string[] {
  return globSync(['{packages,tests,bench,examples,scripts,docs}/**/*.{ts,tsx,js}'], {
    cwd: ROOT,
    exclude: (name) => name === 'node_modules' || name === 'dist',
  }).map((file) => file.replaceAll(path.sep, '/'))
}

/** Returns the files that a package offers, or runs as a program. */
function findEntries(): ReadonlySet<string> {
  const entries = globSync('packages/*/package.json', { cwd: ROOT }).flatMap((manifest) => {
    const { exports = {}, bin = {} } = JSON.parse(readFileSync(path.join(ROOT, manifest), 'utf8')) as {
      exports?: Record<string, { 'toolgate-source'?: string }>
      bin?: Record<string, string>
    }
    const programs = Object.values(bin).map((file) => file.replace('dist/', 'src/').replace(/\.js$/, '.ts'))
    const offered = Object.values(exports).map((entry) => entry['toolgate-source'])
    return [...programs, ...offered]
      .filter((file) => file !== undefined)
      .map((file) => path.posix.join(path.posix.dirname(manifest), file))
  })
  return new Set(entries)
}

function exportsOf(file: string): readonly string[] {
  const text = readFileSync(path.join(ROOT, file), 'utf8')
  const declared = [...text.matchAll(DECLARED)].map(([, name = '']) => name)
  const listed = [...text.matchAll(LISTED)].flatMap(([, names = '']) => names.split(','))
  return [...declared, ...listed.map((name) => name.trim().replace(/^type |^.* as /g, ''))].filter(
    (name) => name !== '',
  )
}

/** Returns what other files take of each file: names, and `*` for all of them. */
function findUses(sources: readonly string[]): ReadonlyMap<string, ReadonlySet<string>> {
  const uses = new Map<string, Set<string>>()
  for (const one of sources.flatMap((file) => readImports(ROOT, file))) {
    const target = targetFile(one)
    if (target === undefined) continue
    const used = uses.get(target) ?? new Set()
    for (const name of one.names ?? ['*']) used.add(name)
    uses.set(target, used)
  }
  return uses
}

describe('exports', () => {
  it('are what another file uses, or what a package offers', () => {
    const sources = findSources()
    const uses = findUses(sources)
    const entries = findEntries()
    const unused = sources
      .filter((file) => /^packages\/[^/]+\/src\//.test(file) && !/\.test(-d)?\.tsx?$/.test(file) && !entries.has(file))
      .filter((file) => !uses.get(file)?.has('*'))
      .flatMap((file) =>
        exportsOf(file)
          .filter((name) => !uses.get(file)?.has(name))
          .map((name) => `${file}: ${name}`),
      )
    assert.deepEqual(unused, [], 'No other file imports these: remove "export".')
  })
})
