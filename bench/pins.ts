import { createHash } from 'node:crypto'
import type { Tool } from '@toolgate/core'
import { canonicalize } from '@toolgate/values/json'
import { checkDefinition, createPins, type Pins } from '@toolgate/core/pins'
import { memoryState, systemClock } from '@toolgate/core/stores'
import { createToolset, type Toolset } from '@toolgate/core/toolset'
import { digits, type Figure, measure, printFigures, printTable } from './lib.ts'
import { makeTools } from './tools.ts'

/** What an upstream that lists everything anew gives: equal tools, none of them the object of before. */
const anew = (tools: readonly Tool[]): readonly Tool[] => tools.map((tool) => ({ ...tool }))

const DESCRIBED = 'Reads what is asked for and gives it as text, with a line for each part. '

function toolsOf(count: number): readonly Tool[] {
  return makeTools(count).map((tool) => ({ ...tool, description: DESCRIBED.repeat(5) }))
}

interface World {
  readonly pins: Pins
  readonly tools: readonly Tool[]
  change(next: Toolset): void
}

function open(count: number): World {
  const tools = toolsOf(count)
  let snapshot = createToolset(tools)
  let announce: () => void = () => {}
  const catalog = {
    snapshot: () => snapshot,
    items: () => createToolset([]),
    own: [],
    get: (id: string) => snapshot.get(id),
    subscribe(listener: (change: never) => void) {
      announce = () => listener(undefined as never)
      return () => {}
    },
  }
  const pins = createPins({ catalog, state: memoryState(), mode: 'suspend', check: 'quarantine', clock: systemClock })
  return {
    pins,
    tools,
    change(next) {
      snapshot = next
      announce()
      if (pins.effectsFor(snapshot).length > 0) throw new Error('something is held back')
    },
  }
}

let sink = 0

/** The least that a comparison of definitions takes: the canonical text of each, and its hash. */
function hashAll(tools: readonly Tool[]): void {
  for (const { id, title = null, description, inputSchema, annotations } of tools) {
    const text = canonicalize({ id, title, description, inputSchema, annotations })
    sink += createHash('sha256').update(text).digest('hex').length
  }
}

const FLOOR = 'hashing 1,000 definitions'
const COUNT = 1000
const world = open(COUNT)
const same = createToolset(world.tools)
world.change(same)
const first = world.tools[0] as Tool

printFigures(
  'Pins over 1,000 tools',
  await measure([
    {
      name: FLOOR,
      run(count) {
        for (let i = 0; i < count; i++) hashAll(anew(world.tools))
      },
    },
    {
      name: 'checking 1,000 definitions',
      run(count) {
        for (let i = 0; i < count; i++) for (const tool of anew(world.tools)) sink += checkDefinition(tool).length
      },
    },
    {
      name: 'a catalog of 1,000 new objects',
      budget: '3 ×',
      run(count) {
        for (let i = 0; i < count; i++) world.change(createToolset(anew(world.tools)))
      },
    },
    {
      name: 'a catalog with one new object',
      budget: '0.5 ×',
      run(count) {
        for (let i = 0; i < count; i++) world.change(createToolset([{ ...first }, ...world.tools.slice(1)]))
      },
    },
    {
      name: 'making that catalog, without pins',
      run(count) {
        for (let i = 0; i < count; i++) sink += createToolset([{ ...first }, ...world.tools.slice(1)]).size
      },
    },
    {
      name: 'the marks again, as each decision asks',
      budget: '0.1 µs',
      run(count) {
        world.change(same)
        for (let i = 0; i < count; i++) sink += world.pins.effectsFor(same).length + world.pins.revision
      },
    },
  ]),
  FLOOR,
)

const SIZES = [100, 1000, 10_000]
const worlds = SIZES.map((size) => open(size))
const growing: readonly Figure[] = await measure(
  worlds.map(({ tools, change }, i) => ({
    name: `${SIZES[i]}`,
    run(count) {
      for (let n = 0; n < count; n++) change(createToolset(anew(tools)))
    },
  })),
  { rounds: 3 },
)
const costs = growing.map(({ lowUs }) => lowUs)
printTable(
  'Pins as the catalog grows: all of its tools anew',
  ['µs CPU', ...SIZES.map((size) => size.toLocaleString('en')), 'steepest × per 10 ×'],
  [
    [
      'a change of the catalog',
      ...costs.map(digits),
      digits(Math.max(...costs.slice(1).map((us, i) => us / (costs[i] as number)))),
    ],
  ],
)
for (const { pins } of [world, ...worlds]) pins.close()
if (sink === 0) throw new Error('nothing was measured')
