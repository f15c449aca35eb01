import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { createGate } from '../gate/gate.ts'
import { memoryHistories } from '../memory/histories.ts'
import type { HistoryStore } from '../ports/history.ts'
import { defineTool } from '../tools/tool.ts'
import { runs } from '../../../testing/src/runs.ts'

/** One step of one of the calls of a run: it is made, or its tool ends. */
interface Step {
  readonly tool: string
  readonly run: string
  readonly end: boolean
  readonly which: number
}

const TOOLS = ['web:fetch', 'pay:once', 'crm:read', 'mail:send'] as const
const POLICY = {
  deny: [
    { match: 'pay:once', when: "run.began('pay:once')" },
    { match: 'mail:send', when: "'untrusted' in run.labels" },
    { match: 'crm:read', when: "'untrusted' in run.labels || 'private' in run.labels" },
  ],
}
const steps = fc.array(
  fc.record({
    tool: fc.constantFrom(...TOOLS),
    run: fc.constantFrom('root', 'child', 'other'),
    end: fc.boolean(),
    which: fc.nat(10),
  }),
  { maxLength: 25 },
)

/** A store that answers later, as one of several replicas sees it. */
function delayed(store: HistoryStore): HistoryStore {
  const later = async <T>(work: () => T): Promise<T> => {
    await Promise.resolve()
    const answer = work()
    await Promise.resolve()
    return answer
  }
  return {
    read: (...given) => later(() => store.read(...given)) as Promise<never>,
    open: (...given) => later(() => store.open(...given)) as Promise<never>,
    add: (...given) => later(() => store.add(...given)) as Promise<never>,
    end: (...given) => later(() => store.end(...given)) as Promise<void>,
  }
}

describe('labels only rise, and what may begin once begins once', () => {
  for (const [name, replicas, wrap] of [
    ['at once', 1, (store: HistoryStore) => store],
    ['over two replicas, whose store answers later', 2, delayed],
  ] as const)
    it(`${name}, in any order of calls of a run and its sub-agent`, async () => {
      await fc.assert(
        fc.asyncProperty(steps, async (trace) => checkTrace(trace, replicas, wrap)),
        runs(150, 150),
      )
    })
})

async function checkTrace(
  trace: readonly Step[],
  replicas: number,
  wrap: (store: HistoryStore) => HistoryStore,
): Promise<void> {
  const store = memoryHistories()
  const waiting: { tool: string; run: string; end: () => void }[] = []
  const began: { tool: string; run: string; labels: readonly string[] }[] = []
  const histories = Array.from({ length: replicas }, () => wrap(store))
  const gates = histories.map(gateOn)
  const views = await Promise.all(gates.map((gate) => gate.view({ user: 'vera' })))
  const calls: Promise<unknown>[] = []

  function gateOn(one: HistoryStore) {
    const tools = TOOLS.map((id) => {
      const [namespace, toolName = ''] = id.split(':')
      return defineTool({
        namespace,
        name: toolName,
        execute: (_: unknown, call) =>
          new Promise((resolve) => {
            const run = call.context as string
            began.push({ tool: id, run, labels: [] })
            waiting.push({ tool: id, run, end: () => resolve('done') })
          }),
      })
    })
    return createGate({
      tools,
      policy: POLICY,
      labels: { trusted: ['pay:*', 'crm:*', 'mail:*'], private: ['crm:*'] },
      history: { store: one },
    })
  }

  const historyOf = (run: string) => (run === 'child' ? 'root' : run)
  for (const [i, { tool, run, end, which }] of trace.entries()) {
    if (end) waiting.splice(which % Math.max(1, waiting.length), 1)[0]?.end()
    else
      calls.push(
        (views[i % replicas] as (typeof views)[0]).call({
          tool,
          context: historyOf(run),
          run: { id: run, ...(run === 'child' && { history: 'root' }) },
        }),
      )
    if (which % 3 === 0) for (let turn = 0; turn < 30; turn++) await Promise.resolve()
  }
  // Those that wait for the store begin, too.
  await new Promise((resolve) => setImmediate(resolve))
  for (let i = 0; i < waiting.length; i++) waiting[i]?.end()
  await Promise.all(calls)
  for (const run of ['root', 'other']) {
    const inRun = began.filter((one) => one.run === run).map(({ tool }) => tool)
    assert.ok(inRun.filter((tool) => tool === 'pay:once').length <= 1, inRun.join(' '))
    const tainted = inRun.indexOf('web:fetch')
    if (tainted !== -1) assert.ok(!inRun.slice(tainted).includes('mail:send'), `${run}: ${inRun.join(' ')}`)
    const raised = [inRun.includes('crm:read') ? 'private' : '', tainted === -1 ? '' : 'untrusted']
    const read = await Promise.all(gates.map((gate) => gate.histories.read({ user: 'vera' }, { id: run })))
    for (const known of read)
      assert.deepEqual(
        known?.facts?.labels ?? [],
        raised.filter((label) => label !== ''),
        'what was refused raises nothing',
      )
  }
}
