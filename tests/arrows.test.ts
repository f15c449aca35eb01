import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import path from 'node:path'
import { describe, it } from 'node:test'
import { ROOMS } from '../packages/gateway/src/compose/rooms.ts'
import type { Room } from '../packages/gateway/src/heart/room.ts'
import { type Import, readImports, targetFile } from './support/imports.ts'

const ROOT = path.resolve(import.meta.dirname, '..')

/** What each package may import of ours: types alone, where it says so. */
const PACKAGE_ARROWS: ReadonlyMap<string, readonly string[]> = new Map([
  ['values', []],
  ['core', ['values']],
  // Both stand on core, which imports neither.
  ['change', ['core', 'values']],
  ['expose', ['core', 'values']],
  // Suites for those who implement a port of core, and decisions as data.
  ['testing', ['change', 'core', 'values']],
  ['stores', ['core', 'values']],
  ['mcp', ['expose', 'core', 'values']],
  // Stores too, since the gateway opens the audit that its configuration names.
  ['gateway', ['mcp', 'stores', 'change', 'expose', 'core', 'values']],
  // Its runs are guarded as everybody's are who uses the AI SDK.
  ['planner', ['adapters', 'expose', 'core', 'values']],
  ['adapters', ['mcp', 'expose', 'core', 'values']],
  // It speaks HTTP; of what goes over it, the types.
  ['console', ['type gateway', 'type core']],
  ['cli', ['gateway', 'stores', 'change', 'core', 'values']],
])

/** Types that are read past a package's entry, as the entry would bring all of the gateway into the console's program. */
const PAST_THE_ENTRY: readonly string[] = ['packages/console/src/wire.ts → type ../../gateway/src/model/rows.ts']

/** Folders of values that nothing else in values imports. */
const LANGUAGES: ReadonlySet<string> = new Set(['cel', 'json-schema', 'redact'])

/** Core's folders and files in the order of its pipeline: each stands on those before it. */
const CORE_ORDER = [
  'ports',
  'tools',
  'history',
  'policy',
  'decide',
  'state',
  'audit',
  'memory',
  'groups',
  'telemetry',
  'call',
  'search',
  'gate',
  'index.ts',
  'entry',
]

/** The gateway's floors, from below: a room stands on those before it. */
const GATEWAY_ORDER = [
  // It names files beside it, also in a bundle.
  'files.ts',
  'util',
  'model',
  'config',
  'telemetry',
  'auth',
  'servers',
  'calls',
  'stdio',
  'replicas',
  'heart',
  'admin',
  'mcp',
  'edge',
  'compose',
  // The program of a thread, which a bundle has beside its main file.
  'change-thread.ts',
  'index.ts',
  'testing',
]

/** An entry of its own, which loads one of two large tables. */
const TOKENIZERS = 'packages/expose/src/tokenizers.ts'

/** Packages that do no I/O. */
const WITHOUT_IO: ReadonlySet<string> = new Set(['values', 'core', 'change', 'expose'])

/** Of Node they have the hash, deep equality and the context of a call. `node:module` would keep it out of bundles. */
const CORE_BUILTINS: ReadonlySet<string> = new Set(['node:async_hooks', 'node:crypto', 'node:util'])

/** Files that only tests import: they are not packed, so they may use what tests use. */
const HELPERS_OF_TESTS = /^packages\/[^/]+\/src\/(?:[^/]+\/)*testing\//

const sources = globSync('packages/*/src/**/*.{ts,tsx}', { cwd: ROOT })
  .filter((file) => !/\.test(-d)?\.tsx?$/.test(file))
  .toSorted()
const imports = sources.flatMap((file) => readImports(ROOT, file))

describe('the arrows between packages', () => {
  for (const name of new Set(sources.map(packageOf))) {
    const allowed = PACKAGE_ARROWS.get(name)
    it(`${name} imports ${allowed?.join(', ') || 'nothing of ours'}`, () => {
      assert.ok(allowed, `${name} has no row in the table of arrows`)
      const wrong = imports
        .filter(({ from }) => packageOf(from) === name)
        .filter((one) => {
          const to = targetPackage(one)
          if (to === undefined || to === name) return false
          if (to === 'testing' && HELPERS_OF_TESTS.test(one.from)) return false
          return !allowed.includes(to) && !(one.typeOnly && allowed.includes(`type ${to}`))
        })
      assert.deepEqual(wrong.map(describeImport), [])
    })
  }

  it('go through the packages’ own entries', () => {
    const past = imports.filter((one) => one.specifier.startsWith('.') && targetPackage(one) !== packageOf(one.from))
    assert.deepEqual(past.map(describeImport), PAST_THE_ENTRY)
  })
})

describe('the arrows inside values', () => {
  it('go from the languages to what all of them use', () => {
    const wrong = imports.filter((one) => {
      const [, name, , room = ''] = (targetFile(one) ?? '').split('/')
      return name === 'values' && LANGUAGES.has(room) && one.from.split('/')[3] !== room
    })
    assert.deepEqual(wrong.map(describeImport), [])
  })
})

describe('the arrows inside core', () => {
  const inCore = imports.filter(({ from }) => packageOf(from) === 'core')
  const pure = imports.filter(({ from }) => WITHOUT_IO.has(packageOf(from)))

  it('go from what comes later in the pipeline to what comes before', () => {
    const wrong = inCore.filter((one) => {
      const target = targetFile(one)
      return target !== undefined && placeIn(CORE_ORDER, target) > placeIn(CORE_ORDER, one.from)
    })
    assert.deepEqual(wrong.map(describeImport), [])
  })

  it('and in the packages on it are static, so that each is one file when it is bundled', () => {
    const wrong = pure.filter(({ dynamic, from }) => dynamic && from !== TOKENIZERS)
    assert.deepEqual(wrong.map(describeImport), [])
  })

  it('and in the packages on it leave I/O to others', () => {
    const wrong = pure.filter(({ specifier }) => isBuiltin(specifier) && !CORE_BUILTINS.has(specifier))
    assert.deepEqual(wrong.map(describeImport), [])
  })
})

describe('the arrows inside the gateway', () => {
  it('go down: a room imports those that stand below it', () => {
    const wrong = imports.filter((one) => {
      const target = targetFile(one)
      if (packageOf(one.from) !== 'gateway' || target === undefined || packageOf(target) !== 'gateway') return false
      return placeIn(GATEWAY_ORDER, target) > placeIn(GATEWAY_ORDER, one.from)
    })
    assert.deepEqual(wrong.map(describeImport), [])
  })
})

describe('the rooms of the gateway', () => {
  it('import the rooms that they need, and no other', async () => {
    const needs = await needsByFolder()
    const wrong = imports.filter((one) => {
      const [room, target] = [roomOf(one.from), roomOf(targetFile(one) ?? '')]
      if (room === undefined || target === undefined || room === target || target === HTTP) return false
      return !needs.get(room)?.has(target)
    })
    assert.deepEqual(wrong.map(describeImport), [])
  })

  it('have a folder of their name, and a row of the list', async () => {
    const folders = sources.flatMap((file) => roomOf(file) ?? []).filter((room) => room !== HTTP)
    assert.deepEqual([...(await needsByFolder()).keys()].toSorted(), [...new Set(folders)].toSorted())
  })

  it('need those that stand before them', async () => {
    const opened = new Set<string>()
    for (const part of ['start', 'people'] as const)
      for (const row of await loadRooms()) {
        const room = row[part]
        if (!room) continue
        const missing = (room.needs ?? []).map(({ name }) => name).filter((name) => !opened.has(name))
        assert.deepEqual(missing, [], `${room.name} is opened before what it needs`)
        opened.add(room.name)
      }
  })
})

describe('imports', () => {
  it('make no circle', () => {
    const targets = new Map<string, string[]>()
    for (const one of imports) {
      const target = targetFile(one)
      if (target !== undefined) targets.set(one.from, [...(targets.get(one.from) ?? []), target])
    }
    assert.deepEqual(findCircle(targets), [])
  })

  it('are of files that there are', () => {
    const known = new Set(sources)
    const wrong = imports.filter((one) => {
      const target = targetFile(one)
      return target !== undefined && /\.tsx?$/.test(target) && !known.has(target)
    })
    assert.deepEqual(wrong.map(describeImport), [])
  })

  it('are read from every source', () => {
    assert.ok(sources.length > 50 && imports.length > 200, `${sources.length} sources, ${imports.length} imports`)
  })
})

/** What all rooms of people share. */
const HTTP = 'http'

/** Rooms of people are folders of `admin`. `mcp` is a room, and those that bring its methods are its folders. */
function roomOf(file: string): string | undefined {
  const [, floor, room] = /^packages\/gateway\/src\/(admin|mcp)\/(?:([^/]+)\/)?/.exec(file) ?? []
  return room ?? (floor === 'mcp' ? floor : undefined)
}

async function loadRooms(): Promise<
  readonly { readonly start: Room | undefined; readonly people: Room | undefined }[]
> {
  return Promise.all(ROOMS.map(async ({ start, people }) => ({ start, people: (await people?.())?.room })))
}

async function needsByFolder(): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const needs = new Map<string, Set<string>>()
  for (const { start, people } of await loadRooms())
    for (const room of [start, people]) {
      if (!room) continue
      const own = needs.get(room.name) ?? new Set()
      for (const { name } of room.needs ?? []) own.add(name)
      needs.set(room.name, own)
    }
  return needs
}

function packageOf(file: string): string {
  return file.split('/')[1] ?? ''
}

function targetPackage(one: Import): string | undefined {
  const target = targetFile(one)
  if (target !== undefined) return packageOf(target)
  if (one.specifier === 'toolgate') return 'cli'
  return /^@toolgate\/([^/]+)/.exec(one.specifier)?.[1]
}

function placeIn(order: readonly string[], file: string): number {
  const top = file.split('/')[3] ?? ''
  const place = order.indexOf(top)
  assert.notEqual(place, -1, `${file}: "${top}" has no place in the order of its package`)
  return place
}

function describeImport({ from, specifier, typeOnly }: Import): string {
  return `${from} → ${typeOnly ? 'type ' : ''}${specifier}`
}

/** Gives the first circle, or an empty list. */
function findCircle(targets: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const done = new Set<string>()
  const visit = (file: string, trail: readonly string[]): readonly string[] => {
    if (trail.includes(file)) return [...trail.slice(trail.indexOf(file)), file]
    if (done.has(file)) return []
    for (const target of targets.get(file) ?? []) {
      const circle = visit(target, [...trail, file])
      if (circle.length > 0) return circle
    }
    done.add(file)
    return []
  }
  for (const file of targets.keys()) {
    const circle = visit(file, [])
    if (circle.length > 0) return circle
  }
  return []
}
