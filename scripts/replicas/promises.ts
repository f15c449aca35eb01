import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { KEYS } from '../../tests/support/keys.ts'
import type { ReplicaSet } from '../../tests/support/replica-set.ts'

/** One row of the table. */
export interface Seen {
  readonly promise: string
  readonly seen: string
  readonly held: boolean
}

/** What the parts of the story have in common. */
export interface Story {
  readonly set: ReplicaSet
  /** Where the load balancer listens. */
  readonly front: string
  /** Clients of MCP that call through the load balancer. */
  readonly callers: readonly ((tool: string, n: number) => Promise<string>)[]
  /** How many times longer than promised something may take, on a machine that is busy. */
  readonly patience: number
  /** A number that no call has had. */
  next(): number
}

type Act = (story: Story) => Promise<readonly Seen[]>

const BOUND_MS = 2000
const SILENCE_MS = 50
const BACK_MS = 1000
/** Beside the bound, for the request and its answer. */
const REQUEST_MS = 500
const LIMIT = 30

/** All that happens, in order. */
export const ACTS: readonly Act[] = [limits, approvals, halts, publication, killed, rolling, redis, paused, postgres]

/** How often the server ran a call. */
function runsOf({ set }: Story, n: number): number {
  return set.witness.calls().filter(({ params }) => (params['arguments'] as { n?: number }).n === n).length
}

function ran(answer: string): boolean {
  return answer.endsWith(' ran')
}

async function timed<T>(work: () => Promise<T>): Promise<{ readonly value: T; readonly ms: number }> {
  const startedMs = performance.now()
  return { value: await work(), ms: Math.round(performance.now() - startedMs) }
}

async function until(check: () => Promise<boolean>): Promise<number> {
  const { ms } = await timed(async () => {
    for (let left = 2000; !(await check()); left--) {
      if (left === 0) throw new Error(`never: ${check.toString()}`)
      await sleep(10)
    }
  })
  return ms
}

async function limits(story: Story): Promise<readonly Seen[]> {
  const answers = await Promise.all(
    story.callers.flatMap((call) => Array.from({ length: LIMIT }, () => call('limited', story.next()))),
  )
  const through = answers.filter(ran).length
  const executed = story.set.witness.calls('limited').length
  return [
    {
      promise: `a limit of ${LIMIT} an hour is one limit for all replicas`,
      seen: `${through} of ${answers.length} calls allowed, ${executed} executed`,
      held: through === LIMIT && executed === LIMIT,
    },
  ]
}

async function approvals(story: Story): Promise<readonly Seen[]> {
  const { set } = story
  const [a, b] = set.replicas as [ReplicaSet['replicas'][0], ReplicaSet['replicas'][0]]
  const n = story.next()
  await set.call(a.url, 'pay', n)
  const { body } = await set.api(b, '/api/approvals?status=pending')
  const [pending] = (body as { approvals: { id: string }[] }).approvals
  const { status } = await set.api(b, `/api/approvals/${pending?.id}`, 'POST', { decision: 'approve' })
  const urls = [...set.replicas, ...set.replicas].map(({ url }) => url)
  const answers = await Promise.all(urls.map((url) => set.call(url, 'pay', n)))
  return [
    {
      promise: 'an approval, asked of one and given at another, is spent once',
      seen: `${answers.filter(ran).length} of ${urls.length} calls at once ran, ${runsOf(story, n)} executed`,
      held: status === 200 && answers.filter(ran).length === 1 && runsOf(story, n) === 1,
    },
  ]
}

async function halts(story: Story): Promise<readonly Seen[]> {
  const { set } = story
  const [first] = set.replicas as [ReplicaSet['replicas'][0]]
  const calling = keepCalling(story)
  const { value, ms } = await timed(() => set.api(first, '/api/halts', 'POST', { user: 'agent', reason: 'a leak' }))
  const before = set.witness.calls().length
  const answers = await Promise.all(set.replicas.map(({ url }) => set.call(url, 'note', story.next())))
  await calling.stop()
  const later = set.witness.calls().length - before
  await set.api(first, `/api/halts/${(value.body as { id: string }).id}`, 'DELETE')
  return [
    {
      promise: `a halt is in force on every replica when it is answered, within ${BOUND_MS} ms`,
      seen: `answered in ${ms} ms; ${answers.filter(ran).length} of ${answers.length} replicas ran a call, ${later} executed later`,
      held:
        value.status === 200 && answers.every((each) => !ran(each)) && later === 0 && ms <= BOUND_MS * story.patience,
    },
  ]
}

/** Calls through the load balancer until it is stopped. */
function keepCalling(story: Story) {
  const stopping = new AbortController()
  const done: { readonly n: number; readonly answer: string }[] = []
  const loops = story.callers.map(async (call) => {
    while (!stopping.signal.aborted) {
      const n = story.next()
      done.push({ n, answer: await call('note', n) })
    }
  })
  return {
    done,
    async stop() {
      stopping.abort()
      await Promise.all(loops)
    },
  }
}

async function publication(story: Story): Promise<readonly Seen[]> {
  const { set } = story
  const [first] = set.replicas as [ReplicaSet['replicas'][0]]
  const text = readFileSync(set.file, 'utf8')
  writeFileSync(set.file, text.replace('[{ allow: ["*"]', '[{ deny: ["work:note"] }, { allow: ["*"]'))
  const { value, ms } = await timed(() => set.api(first, '/api/reload', 'POST', { publish: true }))
  const answers = await Promise.all(set.replicas.map(({ url }) => set.call(url, 'note', story.next())))
  writeFileSync(set.file, text)
  await set.api(first, '/api/reload', 'POST', { publish: true })
  const after = await Promise.all(set.replicas.map(({ url }) => set.call(url, 'note', story.next())))
  return [
    {
      promise: 'a published configuration is in force on every replica when it is answered',
      seen: `answered in ${ms} ms; ${answers.filter(ran).length} of ${answers.length} ran what it denies; taken back: ${after.filter(ran).length} ran`,
      held: value.status === 200 && answers.every((each) => !ran(each)) && after.every(ran),
    },
  ]
}

/** Each call that was answered ran once, and one that was not at most once. */
function onceEach(story: Story, done: readonly { readonly n: number; readonly answer: string }[]): boolean {
  return done.every(({ n, answer }) => (ran(answer) ? runsOf(story, n) === 1 : runsOf(story, n) <= 1))
}

async function killed(story: Story): Promise<readonly Seen[]> {
  const { set } = story
  const last = set.replicas.at(-1)
  const calling = keepCalling(story)
  await sleep(500)
  last?.server.child.kill('SIGKILL')
  await sleep(1500)
  const started = await timed(async () => last?.server.restart())
  await calling.stop()
  const { done } = calling
  const lost = done.filter(({ answer }) => !ran(answer))
  return [
    {
      promise: 'a killed replica costs the calls it had, and no call runs twice',
      seen: `${done.length} calls, ${lost.length} without an answer; ran twice: ${onceEach(story, done) ? 'none' : 'some'}`,
      held: lost.length <= story.callers.length && onceEach(story, done),
    },
    {
      promise: 'its id is free once its lease has run out',
      seen: `started again with it, ready in ${started.ms} ms`,
      held: true,
    },
  ]
}

async function rolling(story: Story): Promise<readonly Seen[]> {
  const calling = keepCalling(story)
  for (const { server } of story.set.replicas) {
    await server.restart()
    await sleep(700)
  }
  await calling.stop()
  const { done } = calling
  const failed = done.filter(({ answer }) => !ran(answer))
  return [
    {
      promise: 'a rolling restart fails no call',
      seen: `3 replicas restarted, ${done.length} calls, ${failed.length} failed${failed[0] ? `: ${failed[0].answer.slice(0, 300)}` : ''}`,
      held: failed.length === 0 && onceEach(story, done),
    },
  ]
}

async function redis(story: Story): Promise<readonly Seen[]> {
  const { set, patience } = story
  const [first] = set.replicas as [ReplicaSet['replicas'][0]]
  set.redis.child.kill('SIGSTOP')
  const limited = await timed(() => set.call(first.url, 'limited', story.next()))
  const free = await set.call(first.url, 'note', story.next())
  set.redis.child.kill('SIGCONT')
  const backMs = await until(async () => (await set.call(first.url, 'limited', story.next())).includes('rate limited'))
  return [
    {
      promise: `Redis silent: a limited call is refused within ${SILENCE_MS} ms, others run`,
      seen: `refused in ${limited.ms} ms with the request; a call without a limit: ${free}`,
      held: /cannot decide now/.test(limited.value) && ran(free) && limited.ms <= (SILENCE_MS + REQUEST_MS) * patience,
    },
    {
      promise: 'its counts are exact when it is back, within a second',
      seen: `back in ${backMs} ms; ${set.witness.calls('limited').length} of ${LIMIT} executed`,
      held: backMs <= BACK_MS * patience && set.witness.calls('limited').length === LIMIT,
    },
  ]
}

async function paused(story: Story): Promise<readonly Seen[]> {
  const { set, patience } = story
  const [first, second] = set.replicas as [ReplicaSet['replicas'][0], ReplicaSet['replicas'][0]]
  second.server.child.kill('SIGSTOP')
  const numbers = Array.from({ length: 5 }, () => story.next())
  const waiting = numbers.map((n) => set.call(second.url, 'note', n))
  const { value, ms } = await timed(() => set.api(first, '/api/halts', 'POST', { user: 'agent', reason: 'a leak' }))
  second.server.child.kill('SIGCONT')
  await Promise.all(waiting)
  const executed = numbers.filter((n) => runsOf(story, n) > 0).length
  await set.api(first, `/api/halts/${(value.body as { id: string }).id}`, 'DELETE')
  await until(async () => ran(await set.call(second.url, 'note', story.next())))
  return [
    {
      promise: `a paused replica delays a halt by ${BOUND_MS} ms at most, and starts nothing when it goes on`,
      seen: `answered in ${ms} ms; ${executed} of ${numbers.length} waiting calls executed`,
      held: value.status === 200 && executed === 0 && ms <= (BOUND_MS + REQUEST_MS) * patience,
    },
  ]
}

async function postgres(story: Story): Promise<readonly Seen[]> {
  const { set, patience } = story
  set.postgres.child.kill('SIGKILL')
  const refusedMs = await until(async () => {
    const answers = await Promise.all(set.replicas.map(({ url }) => set.call(url, 'note', story.next())))
    return answers.every((answer) => /the rules cannot be confirmed/.test(answer))
  })
  await set.postgres.restart()
  const backMs = await until(async () => {
    const answers = await Promise.all(set.replicas.map(({ url }) => set.call(url, 'note', story.next())))
    return answers.every(ran)
  })
  return [
    {
      promise: `Postgres killed: every call is refused within ${BOUND_MS} ms`,
      seen: `all three refuse after ${refusedMs} ms`,
      held: refusedMs <= (BOUND_MS + REQUEST_MS) * patience,
    },
    {
      promise: 'calls run again within a second of its return',
      seen: `all three run calls after ${backMs} ms`,
      held: backMs <= BACK_MS * patience,
    },
  ]
}

/** What the records say in the end. The replicas have stopped. */
export async function checkRecords(story: Story): Promise<readonly Seen[]> {
  const { records, verdict } = await story.set.readAudit()
  const intents = new Set(records.filter(({ event }) => event === 'tool_call').map((record) => record.input_preview))
  const executed = story.set.witness.calls().map(({ params }) => JSON.stringify(params['arguments']))
  const without = executed.filter((input) => !intents.has(input)).length
  return [
    {
      promise: 'nothing is executed without a durable record of it',
      seen: `${executed.length} executed, ${without} of them without a record`,
      held: without === 0 && executed.length > 0,
    },
    {
      promise: 'the records of each replica verify, also of the killed ones',
      seen: `${records.length} records in ${verdict.chains.length} chains: ${verdict.status}`,
      held: verdict.findings.length === 0,
    },
  ]
}

export const AGENT_KEY: string = KEYS.viewer
