import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { CallOutcome } from './call/outcome.ts'
import { TERMINAL_EVENTS } from './ports/ports.ts'
import {
  answers,
  type Behaviour,
  type BrokenGate,
  type BrokenGateOptions,
  hangs,
  late,
  LATE_MS,
  MAX_USES,
  openBrokenGate,
  type Part,
  rejects,
  rejectsLate,
  succeedsLate,
  thenHangs,
  thenThrows,
  throws,
  tooLate,
} from '../../testing/support/broken-gate.ts'

/** One fault, and what a call makes of it. */
interface Fault {
  readonly what: string
  readonly breaks: BrokenGateOptions['breaks']
  /** Whether a person has to approve, and has approved this call. */
  readonly asks?: boolean
  readonly request?: object
  /** What the caller does with the outcome. */
  readonly use?: (outcome: CallOutcome) => Promise<unknown>
  readonly status: CallOutcome['status']
  readonly text: string | RegExp
  readonly events: string
  readonly ran: boolean
  /** What cannot be given back, as the store that has it fails in just that. */
  readonly keeps?: 'limit' | 'approval' | undefined
}

const CANNOT_DECIDE = 'TOOL_CALL_BLOCKED: the gate cannot decide now'
const CANNOT_RECORD = 'TOOL_CALL_BLOCKED: the call cannot be recorded now'
const CHECK_FAILED = 'TOOL_CALL_BLOCKED: a check failed'

const REFUSED = { status: 'refused', events: 'tool_blocked', ran: false } as const
const STOPPED = { status: 'refused', events: 'tool_abandoned', ran: false } as const
const DONE = { status: 'done', events: 'tool_call tool_result', ran: true } as const
const FAILED = { status: 'failed', events: 'tool_call tool_result', ran: true } as const
const ABANDONED = { status: 'failed', events: 'tool_call tool_abandoned', ran: true } as const

const FAILURES: Readonly<Record<string, Behaviour>> = {
  throws,
  rejects,
  hangs,
  'rejects late': rejectsLate,
  'answers a thenable that throws': thenThrows,
  'answers a thenable that hangs': thenHangs,
}
const NONSENSE: Readonly<Record<string, Behaviour>> = {
  'answers a text': answers('nonsense'),
  'answers a number': answers(1),
  'answers null': answers(null),
  'answers an empty object': answers({}),
  'answers a text later': answers(Promise.resolve('yes')),
}

/** The same of each part and each way in which it may break. */
function each(
  parts: readonly Part[],
  ways: Readonly<Record<string, Behaviour>>,
  rest: Omit<Fault, 'what' | 'breaks'>,
): Fault[] {
  return parts.flatMap((part) =>
    Object.entries(ways).map(([how, behave]) => ({ what: `${part} ${how}`, breaks: { [part]: behave }, ...rest })),
  )
}

const hooks: readonly Fault[] = [
  ...each(
    ['before'],
    { ...FAILURES, ...NONSENSE, 'succeeds late': succeedsLate },
    { ...REFUSED, text: CHECK_FAILED },
  ).filter(
    // No objection at all is what an empty object says.
    ({ what }) => what !== 'before answers an empty object',
  ),
  ...each(['before'], { 'answers a misspelt field': answers({ alow: false }) }, { ...REFUSED, text: CHECK_FAILED }),
  ...each(['before'], { 'throws a Proxy that throws': () => raise(trapped()) }, { ...REFUSED, text: CHECK_FAILED }),
  ...each(['after'], { 'throws a Proxy that throws': () => raise(trapped()) }, { ...DONE, text: 'ok' }),
  ...each(['after'], { ...FAILURES, ...NONSENSE, 'succeeds late': succeedsLate }, { ...DONE, text: 'ok' }),
]

const stores: readonly Fault[] = [
  ...each(['peek', 'request'], FAILURES, { ...REFUSED, asks: true, text: CANNOT_DECIDE }),
  ...each(['take', 'consume'], pick(FAILURES, 'throws', 'rejects', 'hangs', 'rejects late'), {
    ...REFUSED,
    asks: true,
    text: CANNOT_DECIDE,
  }),
  ...each(
    ['peek', 'request', 'take', 'consume'],
    { 'succeeds late': succeedsLate },
    {
      ...REFUSED,
      asks: true,
      text: CANNOT_DECIDE,
    },
  ),
  ...each(['request'], NONSENSE, { ...REFUSED, asks: true, text: CANNOT_DECIDE }),
  ...each(
    ['request'],
    { 'answers another status': answers({ status: 'sure' }) },
    { ...REFUSED, asks: true, text: CANNOT_DECIDE },
  ),
  ...each(['peek', 'take', 'consume'], NONSENSE, { ...REFUSED, asks: true, text: /^TOOL_CALL_BLOCKED: /, events: '*' }),
  ...each(
    ['recordCall'],
    { ...FAILURES, ...pick(NONSENSE, 'answers a text', 'answers null') },
    { ...REFUSED, asks: true, text: CANNOT_RECORD },
  ),
  ...each(
    ['recordCall'],
    { 'succeeds late': succeedsLate },
    {
      ...REFUSED,
      asks: true,
      text: CANNOT_RECORD,
      // The intent comes too late: after the refusal that says so.
      events: 'tool_blocked tool_call',
    },
  ),
  ...each(['recordEnd'], FAILURES, { ...DONE, text: 'ok', events: 'tool_call' }),
  ...each(['recordEnd'], { 'succeeds late': succeedsLate }, { ...DONE, text: 'ok' }),
  ...Object.entries(pick(FAILURES, 'throws', 'rejects', 'hangs')).flatMap(([how, behave]): Fault[] => [
    {
      what: `giveBackLimit ${how} when the call cannot be recorded`,
      breaks: { recordCall: throws, giveBackLimit: behave },
      asks: true,
      ...REFUSED,
      text: CANNOT_RECORD,
      keeps: 'limit',
    },
    {
      what: `giveBackApproval ${how} when the call cannot be recorded`,
      breaks: { recordCall: throws, giveBackApproval: behave },
      asks: true,
      ...REFUSED,
      text: CANNOT_RECORD,
      keeps: 'approval',
    },
  ]),
]

const parts: readonly Fault[] = [
  ...each(
    ['validate'],
    { throws, rejects, hangs, ...NONSENSE, 'answers false': answers(false) },
    { ...REFUSED, text: CANNOT_DECIDE },
  ),
  ...each(['redact'], pick({ ...FAILURES, ...NONSENSE }, 'throws', 'rejects', 'answers a text later'), {
    ...REFUSED,
    asks: true,
    text: CANNOT_DECIDE,
  }),
  ...each(['startCall', 'within', 'end'], { ...FAILURES, ...NONSENSE }, { ...DONE, text: 'ok' }),
  ...each(
    ['within'],
    {
      'runs it twice': (well) => [well(), well()],
      'runs it too late': (well) => Promise.resolve().then(well),
      'runs it and throws': (well) => {
        well()
        throw new Error('broken')
      },
    },
    { ...DONE, text: 'ok' },
  ),
]

const thrown: readonly (readonly [what: string, error: unknown, text: string])[] = [
  ['undefined', undefined, 'job failed: undefined'],
  ['null', null, 'job failed: null'],
  ['a frozen Error', Object.freeze(new Error('cold')), 'job failed: cold'],
  ['an object without a prototype', Object.create(null), 'job failed: an error without a text'],
  ['an Error whose message throws', trap(new Error('x'), 'message'), 'job failed: an error without a text'],
  ['an object whose text throws', trap({}, 'toString'), 'job failed: an error without a text'],
  ['a Proxy that throws', trapped(), 'job failed: an error without a text'],
]

const tools: readonly Fault[] = [
  ...thrown.flatMap(([what, error, text]): Fault[] => [
    { what: `the tool throws ${what}`, breaks: { tool: () => raise(error) }, ...FAILED, text },
    { what: `the tool rejects with ${what}`, breaks: { tool: () => Promise.reject(error as Error) }, ...FAILED, text },
  ]),
  {
    what: 'the tool throws 50 MB',
    breaks: { tool: () => raise(new Error('x'.repeat(50_000_000))) },
    ...FAILED,
    text: /^.{900,1100}$/,
  },
  { what: 'the tool hangs', breaks: { tool: hangs }, ...FAILED, text: 'job failed: no answer in 0.1 s' },
  {
    what: 'the tool rejects after its deadline',
    breaks: { tool: rejectsLate },
    ...FAILED,
    text: 'job failed: no answer in 0.1 s',
  },
  {
    what: 'the tool answers after its deadline',
    breaks: { tool: succeedsLate },
    ...FAILED,
    text: 'job failed: no answer in 0.1 s',
  },
  {
    what: 'the tool answers a thenable that throws',
    breaks: { tool: thenThrows },
    ...FAILED,
    text: 'job failed: broken',
  },
  {
    what: 'the tool answers a thenable that hangs',
    breaks: { tool: thenHangs },
    ...FAILED,
    text: 'job failed: no answer in 0.1 s',
  },
  {
    what: 'the tool answers a promise that throws when it is looked at',
    breaks: { tool: () => trap(Promise.resolve(1), 'constructor') },
    ...FAILED,
    text: 'job failed: a trap',
  },
  {
    what: 'the tool answers a promise whose then throws',
    breaks: { tool: () => trap(Promise.resolve(1), 'then') },
    ...FAILED,
    text: 'job failed: a trap',
  },
  {
    what: 'the tool answers a text of 50 MB',
    breaks: { tool: () => 'x'.repeat(50_000_000) },
    ...DONE,
    text: /^x{900,}… \[cut: 50000000 characters\]$/,
  },
  {
    what: 'the tool answers a list of a million',
    breaks: { tool: () => Array.from({ length: 1_000_000 }, () => 7) },
    ...DONE,
    text: /\[cut: \d+ of 1000000 items\]/,
  },
  { what: 'the tool answers what holds itself', breaks: { tool: circle }, ...DONE, text: /it holds itself/ },
  { what: 'the tool answers a BigInt', breaks: { tool: () => ({ big: 5n }) }, ...DONE, text: '{"big":5}' },
  {
    what: 'the tool answers a BigInt of a million digits',
    breaks: { tool: () => 10n ** 1_000_000n },
    ...DONE,
    text: /too many digits/,
  },
  { what: 'the tool answers a Proxy that throws', breaks: { tool: trapped }, ...FAILED, text: 'job failed: a trap' },
  {
    what: 'the tool answers a Proxy that throws when its fields are read',
    breaks: { tool: () => ({ field: trapped() }) },
    ...DONE,
    text: /cannot be read/,
  },
  { what: 'the tool answers a function', breaks: { tool: () => () => 1 }, ...DONE, text: '' },
  { what: 'the tool answers undefined', breaks: { tool: () => undefined }, ...DONE, text: '' },
]

const streams: readonly Fault[] = [
  {
    what: 'a stream that ends',
    breaks: { tool: () => numbers(3) },
    use: (o) => readAll(o, '3 items'),
    ...DONE,
    text: '(a stream)',
  },
  {
    what: 'a stream that throws',
    breaks: { tool: () => numbers(2, new Error('broken')) },
    use: (o) => readAll(o, '2 items, broken'),
    ...DONE,
    text: '(a stream)',
  },
  {
    what: 'a stream without an end',
    breaks: { tool: late(() => numbers(Infinity)) },
    use: (o) => readAll(o, /the stream did not end|no answer in/),
    ...DONE,
    text: '(a stream)',
  },
  {
    what: 'a stream that floods',
    breaks: { tool: () => numbers(Infinity, undefined, 'x'.repeat(600)) },
    use: (o) => readAll(o, /1 items, the stream was cut/),
    ...DONE,
    text: '(a stream)',
  },
  {
    what: 'a stream that its reader leaves',
    breaks: { tool: () => numbers(Infinity) },
    use: leaveAfterFirst,
    ...DONE,
    events: 'tool_call tool_abandoned',
    text: '(a stream)',
  },
  {
    what: 'a stream that nobody reads',
    breaks: { tool: late(() => numbers(Infinity)) },
    use: tooLate,
    ...DONE,
    text: '(a stream)',
  },
  {
    what: 'a stream that hangs',
    breaks: { tool: late(() => ({ [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }) })) },
    use: (o) => readAll(o, /0 items, /),
    ...DONE,
    text: '(a stream)',
  },
  {
    what: 'a stream that cannot be opened',
    breaks: { tool: () => ({ [Symbol.asyncIterator]: throws }) },
    use: (o) => readAll(o, '0 items, broken'),
    ...DONE,
    text: '(a stream)',
  },
  {
    what: 'a stream of nonsense',
    breaks: { tool: () => ({ [Symbol.asyncIterator]: () => ({ next: () => 'nonsense' }) }) },
    use: (o) => readAll(o, /0 items, the stream gave no iterator result/),
    ...DONE,
    text: '(a stream)',
  },
  { what: 'a ReadableStream that is read elsewhere', breaks: { tool: lockedStream }, ...DONE, text: '(a stream)' },
  {
    what: 'a ReadableStream that cannot be read',
    breaks: { tool: () => Object.assign(new ReadableStream(), { getReader: throws }) },
    ...FAILED,
    text: 'job failed: broken',
  },
  {
    what: 'a stream that comes after the deadline',
    breaks: { tool: late(() => tooLate().then(() => numbers(3))) },
    ...FAILED,
    text: 'job failed: no answer in 0.1 s',
  },
]

/** The caller leaves while a part is asked: in the middle of it, and while it is waited for. */
const leaves: Behaviour = (well, { controller }) => {
  controller.abort(new Error('gone'))
  return well()
}
const leavesMeanwhile: Behaviour = (well, { controller }) => {
  setImmediate(() => controller.abort(new Error('gone')))
  return sleep(2).then(well)
}

const aborts: readonly Fault[] = [
  {
    what: 'the caller has left before',
    breaks: {},
    request: { signal: AbortSignal.abort() },
    asks: true,
    ...STOPPED,
    text: /./,
  },
  ...each(
    ['validate', 'before', 'peek', 'redact', 'request', 'take', 'consume'],
    { 'while the caller leaves': leaves },
    { ...STOPPED, asks: true, text: /./ },
  ),
  ...each(
    ['before', 'peek', 'request', 'take', 'consume'],
    { 'and the caller leaves meanwhile': leavesMeanwhile },
    { ...STOPPED, asks: true, text: /./ },
  ),
  ...each(
    ['recordCall'],
    { 'and the caller leaves meanwhile': leavesMeanwhile },
    { ...STOPPED, asks: true, text: /./, events: 'tool_call tool_abandoned' },
  ),
  ...each(
    ['tool'],
    {
      'hangs and the caller leaves': (_, world) => leavesMeanwhile(() => new Promise(() => {}), world),
      'answers after its abort': (well, world) => leavesMeanwhile(() => tooLate().then(well), world),
      'rejects after its abort': (_, world) =>
        leavesMeanwhile(() => tooLate().then(() => raise(new Error('late'))), world),
    },
    { ...ABANDONED, asks: true, text: 'job failed: gone' },
  ),
  ...each(
    ['after', 'recordEnd'],
    { 'while the caller leaves': leaves, 'and the caller leaves meanwhile': leavesMeanwhile },
    { ...DONE, text: 'ok' },
  ),
]

const TABLE: Readonly<Record<string, readonly Fault[]>> = { hooks, stores, parts, tools, streams, aborts }

describe('a fault', () => {
  const unhandled: unknown[] = []
  const hear = (error: unknown) => unhandled.push(error)
  let timers = 0
  before(() => {
    process.on('unhandledRejection', hear)
    timers = countTimers()
  })
  after(() => process.off('unhandledRejection', hear))

  for (const [of, faults] of Object.entries(TABLE)) {
    describe(`of ${of}`, { concurrency: 32 }, () => {
      for (const fault of faults)
        it(`${fault.what}: ${fault.status}${fault.ran ? '' : ', and nothing ran'}`, () => check(fault))
    })
  }

  it('leaves no rejection unhandled and no timer set', async () => {
    await sleep(LATE_MS)
    assert.deepEqual(unhandled, [])
    assert.ok(countTimers() <= timers, `${countTimers()} timers are set, and were ${timers}`)
  })
})

async function check({
  breaks = {},
  asks = false,
  request,
  use,
  status,
  text,
  events,
  ran,
  keeps,
}: Fault): Promise<void> {
  const world = await openBrokenGate({ asks, breaks })
  const outcome = await world.callBroken(request)
  assert.equal(outcome.status, status, outcome.text)
  if (typeof text === 'string') assert.equal(outcome.text, text)
  else assert.match(outcome.text, text)
  await use?.(outcome)
  // What comes too late must have come.
  await tooLate()
  await tooLate()
  assert.equal(world.ran.filter((callId) => callId === 'broken').length, ran ? 1 : 0)
  checkRecords(world, events)
  await checkGivenBack(world, { asks, keeps, ran })
}

function checkRecords({ audit }: BrokenGate, events: string): void {
  const written = audit.records.filter(({ tool_call_id }) => tool_call_id === 'broken').map(({ event }) => event)
  const ends = written.filter((event) => TERMINAL_EVENTS.has(event))
  // One that the audit could not write is missing there and nowhere else.
  if (events !== 'tool_call') assert.equal(ends.length, 1, written.join(' '))
  if (events !== '*') assert.equal(written.join(' '), events)
}

/** A call that did not go ahead has used up nothing; one that did has used one of each. */
async function checkGivenBack(
  world: BrokenGate,
  { asks, keeps, ran }: Pick<Fault, 'asks' | 'keeps' | 'ran'>,
): Promise<void> {
  const next = await world.callWell('next')
  if (asks) return assert.equal(next.status, ran || keeps === 'approval' ? 'waiting' : 'done', next.text)
  assert.equal(next.status, 'done', next.text)
  const last = await world.callWell('last')
  assert.equal(last.status, ran ? 'refused' : 'done', last.text)
  assert.equal((await world.callWell('over')).status, 'refused')
  assert.equal(world.ran.length, MAX_USES)
}

function pick(ways: Readonly<Record<string, Behaviour>>, ...names: readonly string[]): Record<string, Behaviour> {
  return Object.fromEntries(names.map((name) => [name, ways[name] as Behaviour]))
}

function countTimers(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

function raise(error: unknown): never {
  throw error
}

function trap<T extends object>(target: T, field: string): T {
  return Object.defineProperty(target, field, { get: () => raise(new Error('a trap')) })
}

/** Throws at whatever is done with it. */
function trapped(): object {
  const handler = new Proxy({}, { get: () => () => raise(new Error('a trap')) })
  return new Proxy({}, handler)
}

function circle(): object {
  const one: { self?: unknown } = {}
  one.self = one
  return one
}

async function* numbers(count: number, end?: Error, item: unknown = 1): AsyncGenerator {
  for (let i = 0; i < count; i++) {
    yield item
    await sleep(1)
  }
  if (end) throw end
}

function lockedStream(): ReadableStream {
  const stream = new ReadableStream()
  stream.getReader()
  return stream
}

/** Reads a stream to its end, and says what it gave and how it ended. */
async function readAll(outcome: CallOutcome, expected: string | RegExp): Promise<void> {
  assert.ok(outcome.status === 'done')
  let count = 0
  let end = ''
  try {
    for await (const _ of outcome.output as AsyncIterable<unknown>) count++
  } catch (error) {
    end = `, ${(error as Error).message}`
  }
  const said = `${count} items${end}`
  if (typeof expected === 'string') assert.equal(said, expected)
  else assert.match(said, expected)
}

async function leaveAfterFirst(outcome: CallOutcome): Promise<void> {
  assert.ok(outcome.status === 'done')
  for await (const _ of outcome.output as AsyncIterable<unknown>) break
}
