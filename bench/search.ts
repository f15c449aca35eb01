import { createGate, defineTool, type Tool, type View } from '@toolgate/core'
import { type NaiveText, naiveSearch, naiveText } from '../packages/testing/support/naive-search.ts'
import { digits, measure, printFigures, printTable } from './lib.ts'

const COUNT = 10_000
const VERBS = 'create read update delete list search send get archive merge assign export import start stop'.split(' ')
const THINGS =
  'issue file ticket message channel invoice customer table query container image page event calendar report user'.split(
    ' ',
  )
const WORDS =
  `repository branch comment label review project board sprint status priority attachment folder directory path content
  thread reaction member workspace payment refund currency account address database schema column index backup volume
  network registry deployment replica pod cluster secret certificate domain record cache key value token session browser
  screenshot form link document paragraph translation language weather forecast region route distance meeting attendee
  reminder timezone contact lead campaign segment metric dashboard alert incident runbook pipeline job artifact release`.split(
    /\s+/,
  )

/** A generator with a seed: the same tools and queries in every run. */
let state = 7
function pick(items: readonly string[]): string {
  state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
  // The square prefers the first ones, as texts prefer some words.
  return items[Math.floor((state / 0x80000000) ** 2 * items.length)] ?? ''
}

function words(count: number): string {
  return Array.from({ length: count }, () => pick(WORDS)).join(' ')
}

/** Gives tools with texts as real ones have: about thirty words, a few parameters. */
function makeDescribedTools(count: number): readonly Tool[] {
  return Array.from({ length: count }, (_, i) => {
    const [verb, thing] = [pick(VERBS), pick(THINGS)]
    const properties = Object.fromEntries(Array.from({ length: 4 }, () => [pick(WORDS), { type: 'string' }]))
    return defineTool({
      namespace: `server${i % 100}`,
      name: `${verb}_${thing}_${i}`,
      title: `${verb} ${thing}`,
      description: `This tool can ${verb} a ${thing} with its ${words(8)}, and gives the ${words(12)} of it.`,
      tags: [i % 2 === 0 ? 'even' : 'odd'],
      inputSchema: { type: 'object', properties },
    })
  })
}

const tools = makeDescribedTools(COUNT)
const queries = Array.from({ length: 50 }, () => `${pick(VERBS)} a ${pick(THINGS)} ${words(1)} `)
const longest = WORDS.slice(0, 24).join(' ')
const gate = createGate({ tools, policy: { deny: [{ match: 'tag:odd', unless: "'admin' in caller.roles" }] } })
const all = await gate.view({ user: 'ada', roles: ['admin'] })
const half = await gate.view({ user: 'vera', roles: [] })
const texts = all.tools.map(naiveText)
let found = 0

function each(count: number, search: (query: string) => readonly unknown[]): void {
  for (let i = 0; i < count; i++) found += search(queries[i % queries.length] ?? '').length
}

const scan = (of: readonly NaiveText[]) => (query: string) => naiveSearch(of, query, 10)
const ask = (view: View) => (query: string) => view.search(query)

const before = process.cpuUsage()
all.search('warm')
const { user, system } = process.cpuUsage(before)

const figures = await measure([
  { name: 'a naive scan', run: (count) => each(count, scan(texts)) },
  { name: 'search: all 10,000 visible', budget: '500 µs', run: (count) => each(count, ask(all)) },
  { name: 'search: half of them hidden', budget: '500 µs', run: (count) => each(count, ask(half)) },
  { name: 'search: last word unfinished', run: (count) => each(count, (query) => all.search(query.trimEnd())) },
  { name: 'search: a beginning of two letters', run: (count) => each(count, () => all.search('re')) },
  { name: 'search: a word of every tool', run: (count) => each(count, () => all.search('tools give')) },
  { name: 'search: the most words a query can have', run: (count) => each(count, () => all.search(longest)) },
  {
    name: 'search: with schemas, 100 hits',
    run: (count) => each(count, (query) => all.search(query, { limit: 100, detail: 'schemas' })),
  },
])
printFigures('Searching 10,000 tools: three words', figures, 'a naive scan')
printTable('Indexing, once for a snapshot', ['tools', 'ms CPU'], [[String(COUNT), digits((user + system) / 1000)]])
if (found === 0) throw new Error('nothing was found')
