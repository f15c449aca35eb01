import { Revision } from '@toolgate/values'
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { describe, it } from 'node:test'
import { hasBit } from '../../tools/bits.ts'
import { createCatalog } from '../../tools/catalog.ts'
import { definitionHash } from '../../tools/definition-hash.ts'
import { defineTool, type JsonSchema, type ToolDefinition } from '../../tools/tool.ts'
import { memoryState } from '../../memory/state.ts'
import { manualClock } from '../../../../testing/src/manual-clock.ts'
import { diffDefinitions } from './diff.ts'
import { createPins } from './pins.ts'
import { runs } from '../../../../testing/src/runs.ts'

const NAMES = ['a', 'b', 'c'] as const
const VERSIONS = [0, 1, 2] as const

type Step =
  | { readonly kind: 'list'; readonly versions: readonly (number | undefined)[] }
  /** The person looked at this version, whichever there is now. */
  | { readonly kind: 'accept'; readonly process: number; readonly name: string; readonly version: number }
  | { readonly kind: 'restart'; readonly process: number }

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant('list' as const),
      versions: fc.tuple(...NAMES.map(() => fc.option(fc.constantFrom(...VERSIONS), { nil: undefined }))),
    }),
    fc.record({
      kind: fc.constant('accept' as const),
      process: fc.nat(1),
      name: fc.constantFrom(...NAMES),
      version: fc.constantFrom(...VERSIONS),
    }),
    fc.record({ kind: fc.constant('restart' as const), process: fc.nat(1) }),
  ),
  { maxLength: 25 },
)

const toolOf = (name: string, version: number): ToolDefinition => ({ name, description: `Version ${version}.` })
const hashOf = (name: string, version: number) => definitionHash(defineTool(toolOf(name, version)))

/** Two processes that serve the same upstream, over one store. */
function openWorld(mode: 'warn' | 'suspend') {
  const clock = manualClock()
  const state = memoryState({ clock })
  let listed: readonly ToolDefinition[] = []
  const told: string[] = []
  const open = () => {
    let announce = () => {}
    const source = {
      name: 's',
      tools: () => listed,
      subscribe(listener: () => void) {
        announce = listener
        return () => {}
      },
    }
    const catalog = createCatalog({ changes: new Revision(), sources: [source] })
    const pins = createPins({
      catalog,
      state,
      mode,
      clock,
      refreshMs: 0,
      onEvent: (event) => {
        if (event.kind === 'changed') told.push(`${event.pinnedHash} ${event.hash}`)
      },
    })
    return { catalog, pins, announce: () => announce() }
  }
  const processes = [open(), open()]
  const heldIn = ({ catalog, pins }: ReturnType<typeof open>) => {
    const snapshot = catalog.snapshot()
    const effects = pins.effectsFor(snapshot)
    return snapshot.ids.filter((_, i) => effects.some(({ bits }) => hasBit(bits, i)))
  }
  return {
    told,
    processes,
    heldIn,
    listed: () => listed,
    async do(step: Step): Promise<void> {
      if (step.kind === 'list') {
        listed = NAMES.flatMap((name, i) => (step.versions[i] === undefined ? [] : [toolOf(name, step.versions[i])]))
        for (const { announce } of processes) announce()
      } else if (step.kind === 'accept') {
        const { pins } = processes[step.process] as ReturnType<typeof open>
        await pins.accept(step.name, { hash: hashOf(step.name, step.version), by: 'vera' }).catch(() => undefined)
      } else {
        processes[step.process]?.pins.close()
        processes[step.process] = open()
      }
      for (const { pins } of processes) await pins.settled()
    },
    close() {
      for (const { catalog, pins } of processes) {
        pins.close()
        catalog.close()
      }
    },
  }
}

describe('createPins', () => {
  it('holds back exactly what is not the first seen or last accepted definition, in whatever order things happen', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        const world = openWorld('suspend')
        const pinned = new Map<string, string>()
        for (const step of all) {
          const present = new Map(world.listed().map(({ name, description = '' }) => [name, description]))
          if (step.kind === 'accept' && present.get(step.name) === toolOf(step.name, step.version).description) {
            pinned.set(step.name, `Version ${step.version}.`)
          }
          await world.do(step)
          const now = world.listed()
          for (const { name, description = '' } of now) if (!pinned.has(name)) pinned.set(name, description)
          const expected = now
            .filter(({ name, description }) => pinned.get(name) !== description)
            .map(({ name }) => name)
          for (const each of world.processes) assert.deepEqual(world.heldIn(each), expected)
        }
        world.close()
      }),
      runs(150, 150),
    )
  })

  it('takes nothing away in mode warn, and tells each change of a pin once', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        const world = openWorld('warn')
        for (const step of all) {
          await world.do(step)
          for (const each of world.processes) assert.deepEqual(world.heldIn(each), [])
        }
        assert.equal(new Set(world.told).size, world.told.length)
        world.close()
      }),
      runs(100, 100),
    )
  })
})

const json = fc.jsonValue({ maxDepth: 3 }).filter((value) => !JSON.stringify(value).includes('__proto__'))
const names = fc.stringMatching(/^[a-z/~]{1,4}$/)
const schemas: fc.Arbitrary<JsonSchema> = fc.record({
  type: fc.constant('object'),
  'x-notes': json,
  properties: fc.dictionary(
    names,
    fc.record(
      {
        type: fc.constantFrom('string', 'number'),
        description: fc.string({ unit: 'grapheme' }),
        default: json,
        enum: fc.uniqueArray(fc.string(), { minLength: 1, maxLength: 4 }),
      },
      { requiredKeys: [] },
    ),
    { maxKeys: 5, noNullPrototype: true },
  ),
})
const definitions: fc.Arbitrary<ToolDefinition> = fc.record({
  name: fc.constant('tool'),
  title: fc.string(),
  description: fc.string({ unit: 'grapheme' }),
  inputSchema: schemas,
  outputSchema: schemas,
  annotations: fc.record({ title: fc.string(), readOnlyHint: fc.boolean(), openWorldHint: fc.boolean() }),
})

/** The same, with the keys of every object in another order. */
function shuffled(value: unknown, random: () => number): unknown {
  if (Array.isArray(value)) return value.map((item) => shuffled(item, random))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, item]) => [random(), key, shuffled(item, random)] as const)
  return Object.fromEntries(entries.toSorted(([a], [b]) => a - b).map(([, key, item]) => [key, item]))
}

/** Where every scalar, and every list and object that is empty, stands. */
function leavesOf(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null || Object.keys(value).length === 0) return [path]
  return Object.entries(value).flatMap(([key, item]) => leavesOf(item, [...path, key]))
}

function changedAt(value: unknown, [key, ...rest]: readonly string[], change: (leaf: unknown) => unknown): unknown {
  if (key === undefined) return change(value)
  if (Array.isArray(value)) return value.map((item, i) => (String(i) === key ? changedAt(item, rest, change) : item))
  const entries = Object.entries(value as object)
  return Object.fromEntries(entries.map(([name, item]) => [name, name === key ? changedAt(item, rest, change) : item]))
}

function another(leaf: unknown): unknown {
  if (leaf === 'number') return 'integer'
  if (leaf === 'string') return 'null'
  if (typeof leaf === 'string') return `${leaf}\u200b`
  if (typeof leaf === 'number') return leaf === 0 ? 1 : leaf < 0 ? 1 : -1
  if (typeof leaf === 'boolean') return !leaf
  return leaf === null ? 0 : Array.isArray(leaf) ? [0] : { x: 0 }
}

describe('definitionHash and diffDefinitions', () => {
  it('take the order of keys, at any depth, for no change', () => {
    fc.assert(
      fc.property(definitions, fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })), (definition, numbers) => {
        const random = () => numbers.next().value as number
        const turned = shuffled(definition, random) as ToolDefinition
        assert.equal(definitionHash(defineTool(turned)), definitionHash(defineTool(definition)))
        assert.deepEqual(diffDefinitions(definition, turned).changes, [])
      }),
    )
  })

  it('take the change of any one leaf for a change, and say where it is', () => {
    fc.assert(
      fc.property(definitions, fc.nat(), (definition, pick) => {
        const { name, ...rest } = definition
        const leaves = leavesOf(rest).filter((path) => path.at(-1) !== 'type' || path.length !== 2)
        const path = leaves[pick % leaves.length] as readonly string[]
        const changed = { name, ...(changedAt(rest, path, another) as object) }
        let tool
        try {
          tool = defineTool(changed)
        } catch {
          return // What is no schema any more never comes into a catalog.
        }
        assert.notEqual(definitionHash(tool), definitionHash(defineTool(definition)))
        const { changes } = diffDefinitions(definition, changed)
        const pointer = path.map((step) => `/${step.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
        assert.ok(changes.length > 0)
        for (const { pointer: told } of changes) {
          assert.ok(pointer.startsWith(told) || told.startsWith(pointer), `${told} ${pointer}`)
        }
      }),
      runs(300, 300),
    )
  })
})
