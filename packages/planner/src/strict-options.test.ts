import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Caller, ConfigError, createGate, defineTool } from '@toolgate/core'
import * as planner from './index.ts'
import { scriptedModel } from './testing/scripted-model.ts'

const { askForInput, createPlanner, subAgent } = planner

/** What is misspelt, the key as it is written, the key that was meant, and the use. */
type Misspelling = readonly [where: string, key: string, meant: string, use: () => unknown]

/** Takes a value past the compiler, as a variable of a wider type does. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the type is the caller's to say
function loose<T>(value: unknown): T {
  return value as T
}

const VERA: Caller = { user: 'vera' }
const gate = createGate({ tools: [defineTool({ name: 'search', execute: () => 'found' })] })
const planWith = (options: object) =>
  createPlanner(loose<planner.PlannerOptions>({ model: scriptedModel(['hello']), gate, ...options }))
const run = (options: object) => planWith({}).run(loose<planner.RunOptions>({ prompt: 'hi', caller: VERA, ...options }))
const resume = (options: object) =>
  planWith({}).resume('token', loose<planner.ResumeOptions>({ caller: VERA, ...options }))

const MISSPELLINGS: Readonly<Record<string, readonly Misspelling[]>> = {
  createPlanner: [
    ['options', 'budget', 'budgets', () => planWith({ budget: { calls: 1 } })],
    ['options', 'stopwhen', 'stopWhen', () => planWith({ stopwhen: [] })],
    ['settings', 'temprature', 'temperature', () => planWith({ settings: { temprature: 0 } })],
    ['budgets', 'call', 'calls', () => planWith({ budgets: { call: 1 } })],
    ['keys', 'secrt', 'secret', () => planWith({ keys: [{ id: 'a', secret: 'x'.repeat(32), secrt: 'y' }] })],
    ['run', 'activTools', 'activeTools', () => run({ activTools: [] })],
    ['run', 'budget', 'budgets', () => run({ budget: { calls: 1 } })],
    ['run’s budgets', 'stps', 'steps', () => run({ budgets: { stps: 1 } })],
    [
      'stream',
      'visibilty',
      'visibility',
      () => planWith({}).stream(loose({ prompt: 'hi', caller: VERA, visibilty: [] })),
    ],
    ['resume', 'aprove', 'approve', () => resume({ aprove: true })],
    ['resume', 'visibilty', 'visibility', () => resume({ visibilty: [] })],
    ['resume’s rejection', 'reson', 'reason', () => resume({ reject: { reson: 'no' } })],
    ['resumeStream', 'rejct', 'reject', () => planWith({}).resumeStream('token', loose({ caller: VERA, rejct: true }))],
    ['fork', 'polcy', 'policy', () => planWith({}).fork(loose({ polcy: { deny: ['*'] } }))],
  ],
  subAgent: [
    ['definition', 'activTools', 'activeTools', () => subAgent(loose({ name: 'a', activTools: [] }))],
    ['definition', 'requiredScope', 'requiredScopes', () => subAgent(loose({ name: 'a', requiredScope: ['x'] }))],
  ],
  askForInput: [['question', 'schma', 'schema', () => askForInput(loose({ question: 'Why?', schma: {} }))]],
}

/** They take a value, and no options. */
const WITHOUT_OPTIONS: ReadonlySet<string> = new Set(['renderNotices'])

describe('options of @toolgate/planner', () => {
  it('are listed here for every exported function', () => {
    const functions = Object.entries(planner).flatMap(([name, value]) => (typeof value === 'function' ? [name] : []))
    assert.deepEqual([...Object.keys(MISSPELLINGS), ...WITHOUT_OPTIONS].toSorted(), functions.toSorted())
  })

  for (const [name, cases] of Object.entries(MISSPELLINGS))
    for (const [where, key, meant, use] of cases)
      it(`of ${name}: ${where} with "${key}" name "${meant}"`, async () => {
        await assert.rejects(
          async () => use(),
          (error: Error) =>
            error instanceof ConfigError &&
            error.message.includes(key) &&
            error.message.includes(`did you mean "${meant}"?`),
        )
      })
})
