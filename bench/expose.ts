import { createGate, type View } from '@toolgate/core'
import { expose, type ExposeOptions } from '@toolgate/expose'
import { loadTokenizer } from '@toolgate/expose/tokens'
import { digits, measure, median, printFigures, printTable } from './lib.ts'
import { makeTools } from './tools.ts'

const TOOLS = 1000
const WARM_VIEWS = 10
const FRESH_VIEWS = 20
let bytes = 0

/** Views of tools that are new to the process; their fingerprints are known, as a gate knows them by then. */
async function freshViews(count: number): Promise<View[]> {
  const views: View[] = []
  for (let i = 0; i < count; i++) {
    const view = await createGate({ tools: makeTools(TOOLS) }).view({ user: 'vera' })
    bytes += view.fingerprint.length
    views.push(view)
  }
  return views
}

/** The fingerprints differ by the round: equal views would share one result. */
function numbered(view: View, i: number): View {
  return { ...view, tools: view.tools, fingerprint: `${view.fingerprint} ${i}` } as View
}

let next = 0

const [view] = await freshViews(1)
const known = view as View
const step = known.narrow({ activeTools: known.ids.slice(0, 20) })
const mask: ExposeOptions = { mode: 'mask', step }

const figures = await measure([
  {
    name: 'a plain loop: name, description and schema as they are',
    run(count) {
      for (let i = 0; i < count; i++) {
        const tools = known.tools.map(({ id, description, inputSchema }) => ({
          type: 'function',
          function: { name: id.replace(':', '__'), description, parameters: inputSchema },
        }))
        bytes += JSON.stringify(tools).length
      }
    },
  },
  {
    name: 'another view of the same tools',
    budget: '10,000 µs',
    run(count) {
      for (let i = 0; i < count; i++) bytes += expose(numbered(known, next++), 'mcp').bytes
    },
  },
  {
    name: 'the same view again',
    budget: '1 µs',
    run(count) {
      for (let i = 0; i < count; i++) bytes += expose(known, 'mcp').bytes
    },
  },
  {
    name: 'the same step of the same run again, masked',
    budget: '1 µs',
    run(count) {
      for (let i = 0; i < count; i++) bytes += expose(known, 'openai-responses', mask).bytes
    },
  },
])
printFigures(`Exposing ${TOOLS} tools`, figures, 'a plain loop: name, description and schema as they are')

/** The first time can be had only once for each tool, so it is measured over views of tools of their own. */
const stock = await freshViews(WARM_VIEWS + FRESH_VIEWS)
const rows: string[][] = []
for (const [target, options] of [
  ['mcp', {}],
  ['openai-responses', {}],
  ['openai-responses', { strict: true }],
  ['anthropic', { strict: true }],
  ['gemini', {}],
  ['ai-sdk', {}],
] as const) {
  globalThis.gc?.()
  const times = stock.map((each) => {
    const before = process.cpuUsage()
    bytes += expose(numbered(each, next++), target, options).bytes
    const { user, system } = process.cpuUsage(before)
    return user + system
  })
  const sorted = times.slice(WARM_VIEWS).toSorted((a, b) => a - b)
  const range = `${digits(sorted[0] ?? 0)} - ${digits(sorted.at(-1) ?? 0)}`
  rows.push([`${target}${'strict' in options ? ', strict' : ''}`, digits(median(sorted)), range, '10,000 µs'])
}
printTable(`Exposing ${TOOLS} tools for the first time`, ['target', 'µs CPU', 'low - high', 'budget'], rows)

const started = performance.now()
const tokenizer = await loadTokenizer()
const loadMs = performance.now() - started
const counted = [known, step].map((each) => expose(each, 'openai-responses', { tokenizer }).tokens.count)
const estimated = [known, step].map((each) => expose(each, 'openai-responses').tokens.count)
printTable(
  `Tokens of ${known.size} tools, and of the ${step.size} of a step (tokenizer loaded in ${loadMs.toFixed(0)} ms)`,
  ['how', 'all', 'step'],
  [
    [tokenizer.name, ...counted.map(String)],
    ['estimated', ...estimated.map(String)],
  ],
)
if (bytes === 0) throw new Error('nothing was exposed')
