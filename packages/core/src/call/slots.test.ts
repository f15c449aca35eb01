import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { Caller } from '../ports/caller.ts'
import { type Canceller, createCanceller, createDeadlines, type Deadlines, type Timed } from '@toolgate/values'
import type { Decision } from '../decide/decision.ts'
import { systemClock } from '../memory/clock.ts'
import { parseSelector } from '../tools/selector.ts'
import { defineTool } from '../tools/tool.ts'
import {
  type CapInput,
  CAP_PARTS,
  type ConcurrencyCap,
  createSlots,
  type HeldSlots,
  isHeld,
  parseCaps,
} from './slots.ts'
import { runs } from '../../../testing/src/runs.ts'

const groups = new Map([['web', [parseSelector('web:*')]]])
const click = defineTool({ namespace: 'browser', name: 'click' })
const open = defineTool({ namespace: 'browser', name: 'open' })
const notes = defineTool({ name: 'notes' })

const ports = (cancelling?: Canceller) => ({
  deadlines: createDeadlines(systemClock.monotonicMs),
  clock: systemClock,
  cancelling,
})

/** Slots of these caps, with calls by their tool and caller. */
function world(...caps: (string | ConcurrencyCap)[]) {
  const slots = createSlots(parseCaps(caps, groups))
  const ask = (tool = click, caller: Caller = {}, cancelling?: Canceller) =>
    slots.acquire(slots.capsOf(tool, caller), ports(cancelling))
  const hold = (tool = click, caller: Caller = {}): HeldSlots => {
    const answer = ask(tool, caller)
    assert.ok(!(answer instanceof Promise) && isHeld(answer), 'not free at once')
    return answer
  }
  return { slots, ask, hold }
}

async function refusal(answer: ReturnType<ReturnType<typeof world>['ask']>): Promise<string> {
  const decision = await answer
  assert.ok(!isHeld(decision))
  return told(decision)
}

function told({ outcome, reasons: [one] }: Decision): string {
  return `${outcome} ${one?.layer} ${one?.code}: ${one?.message} (${one?.text})`
}

async function held(answer: ReturnType<ReturnType<typeof world>['ask']>): Promise<HeldSlots> {
  const slots = await answer
  assert.ok(isHeld(slots))
  return slots
}

const isSettled = (answer: unknown) =>
  Promise.race([Promise.resolve(answer).then(() => true), new Promise((resolve) => setImmediate(() => resolve(false)))])

describe('parseCaps', () => {
  it('reads selector:calls, in one text or a list, and objects', () => {
    const read = (caps: CapInput | undefined) =>
      parseCaps(caps, groups).map(({ selector, ...rest }) => ({ match: selector.text, ...rest }))
    const defaults = { per: ['tool'], waitMs: 10_000, maxWaiting: 100 }
    assert.deepEqual(read('browser:*:2, group:web:5,notes:1'), [
      { match: 'browser:*', max: 2, ...defaults },
      { match: 'group:web', max: 5, ...defaults },
      { match: 'notes', max: 1, ...defaults },
    ])
    assert.deepEqual(read([{ match: '*', max: 3, per: ['tenant'], waitMs: 0, maxWaiting: 0 }]), [
      { match: '*', max: 3, per: ['tenant'], waitMs: 0, maxWaiting: 0 },
    ])
    assert.deepEqual(read(undefined), [])
  })

  const refused: readonly (readonly [cap: unknown, path: string, problem: RegExp])[] = [
    ['notes', 'concurrency[1]', /"notes" must read selector:calls, as "browser:\*:2"/],
    ['notes:', 'concurrency[1]', /must read/],
    ['notes:-1', 'concurrency[1]', /must read/],
    ['notes:0', 'concurrency[1].max', /0 is not a whole number of 1 to 1000000/],
    ['group:wbe:1', 'concurrency[1]', /names no group/],
    [7, 'concurrency[1]', /must be a text as/],
    [{ match: 'a', max: 1.5 }, 'concurrency[1].max', /1\.5 is not a whole number/],
    [{ match: 'a', max: 1, waitMs: -1 }, 'concurrency[1].waitMs', /-1 is not a whole number of 0 to 3600000/],
    [{ match: 'a', max: 1, waitMs: Infinity }, 'concurrency[1].waitMs', /Infinity is not/],
    [{ match: 'a', max: 1, maxWaiting: '9' }, 'concurrency[1].maxWaiting', /9 is not a whole number/],
    [{ match: 'a', max: 1, per: ['usr'] }, 'concurrency[1].per', /cannot count per "usr"; the parts are tool, user, /],
    [{ match: 'a', max: 1, per: 'user' }, 'concurrency[1].per', /must be a list of/],
    [{ match: 'a', maximum: 1 }, 'concurrency[1].maximum', /unknown key; the keys are match, max, /],
  ]
  for (const [cap, path, problem] of refused) {
    it(`refuses ${JSON.stringify(cap)} and names its place`, () => {
      assert.throws(() => parseCaps(['notes:1', cap] as CapInput, groups), { path, problem })
    })
  }
})

describe('createSlots', () => {
  it('gives a slot at once while there is one, and refuses what no cap names nothing', () => {
    const { slots, hold } = world('browser:*:2')
    const first = hold()
    hold()
    assert.deepEqual(slots.capsOf(notes, {}), [])
    for (let i = 0; i < 5; i++) hold(notes).release()
    first.release()
    hold()
  })

  it('works the caps of a tool and a caller out once', () => {
    const { slots } = world('browser:*:2')
    const caller = { user: 'vera' }
    assert.equal(slots.capsOf(click, caller), slots.capsOf(click, caller))
  })

  it('counts apart what a cap says', () => {
    const callers: Caller[] = [
      {},
      { user: 'vera' },
      { user: 'vera', tenant: 'acme' },
      { user: 'vera', session: 's' },
      { user: 'vera', chat: { id: 'c' } },
      { user: '-' },
      { tenant: 'vera' },
    ]
    const apart = (per: ConcurrencyCap['per']) => {
      const { slots } = world({ match: '*', max: 1, per })
      const keys = callers.flatMap((caller) => [click, open].map((tool) => slots.capsOf(tool, caller)[0]?.key))
      return new Set(keys).size
    }
    assert.deepEqual(
      [undefined, [], ['tenant'], ['user'], ['session'], ['chat'], CAP_PARTS].map((per) =>
        apart(per as ConcurrencyCap['per']),
      ),
      [2, 1, 3, 5, 4, 4, 14],
    )
  })

  it('keeps users of one name in two tenants apart', () => {
    const { hold } = world({ match: '*', max: 1, per: ['user'] })
    hold(click, { user: 'vera', tenant: 'acme' })
    hold(click, { user: 'vera', tenant: 'other' })
  })

  it('lets those who wait run in the order in which they came', async () => {
    const { ask, hold } = world('browser:*:1')
    const first = hold()
    const second = ask()
    const third = ask()
    assert.equal(await isSettled(second), false)
    first.release()
    const slots = await held(second)
    assert.equal(await isSettled(third), false)
    slots.release()
    await held(third)
  })

  it('does not let a newcomer pass those who wait', async () => {
    const { ask, hold } = world('browser:*:1')
    const first = hold()
    const second = ask()
    first.release()
    const newcomer = ask()
    const slots = await held(second)
    assert.equal(await isSettled(newcomer), false)
    slots.release()
    await held(newcomer)
  })

  it('keeps no slot of one cap idle for a call that waits for another', async () => {
    const { ask, hold } = world('browser:click:1', { match: 'browser:*', max: 3, per: ['tenant'] })
    const clicking = hold(click)
    const waiting = ask(click)
    const opened = hold(open)
    hold(open)
    const opening = ask(open)
    clicking.release()
    await held(waiting)
    assert.equal(await isSettled(opening), false)
    opened.release()
    await held(opening)
  })

  it('refuses at once where too many wait', async () => {
    const { ask, hold } = world({ match: 'browser:*', max: 2, maxWaiting: 1 })
    const first = hold()
    hold()
    const waiting = ask()
    assert.equal(
      await refusal(ask()),
      'wait limits too_busy: 2 calls are already running (the cap browser:*:2 is full: 2 running, 1 waiting)',
    )
    assert.equal(await isSettled(waiting), false)
    first.release()
    await held(waiting)
  })

  it('refuses at once where nobody may wait', async () => {
    for (const cap of [{ waitMs: 0 }, { maxWaiting: 0 }]) {
      const { ask, hold } = world({ match: '*', max: 1, ...cap })
      hold()
      const answer = ask()
      assert.ok(!(answer instanceof Promise))
      assert.match(await refusal(answer), /^wait limits too_busy: 1 call is already running/)
    }
  })

  it('refuses a call that has waited too long', async () => {
    const { slots, ask, hold } = world({ match: '*', max: 1, waitMs: 1 })
    const first = hold()
    assert.match(await refusal(ask()), /^wait limits too_busy/)
    first.release()
    assert.equal(slots.size, 0)
  })

  it('refuses a caller who has gone away, before or while waiting', async () => {
    const { slots, ask, hold } = world('*:1')
    const gone = createCanceller()
    gone.abort('gone')
    assert.match(await refusal(ask(click, {}, gone)), /^deny door caller_gone/)
    assert.equal(slots.size, 0)
    const first = hold()
    const going = createCanceller()
    const waiting = ask(click, {}, going)
    const next = ask()
    going.abort('gone')
    assert.match(await refusal(waiting), /^deny door caller_gone/)
    first.release()
    await held(next)
  })

  it('takes a release once', async () => {
    const { ask, hold } = world('*:1')
    const first = hold()
    const second = ask()
    const third = ask()
    first.release()
    first.release()
    const slots = await held(second)
    assert.equal(await isSettled(third), false)
    slots.release()
    await held(third)
  })

  it('does not let one who waits for one cap pass one who waits for both', async () => {
    const { ask, hold } = world({ match: 'browser:*', max: 1, per: [] }, 'browser:click:1')
    const first = hold(click)
    const both = ask(click)
    const one = ask(open)
    first.release()
    const slots = await held(both)
    assert.equal(await isSettled(one), false)
    slots.release()
    await held(one)
  })

  it('keeps nothing for idle keys', async () => {
    const { slots, hold, ask } = world({ match: '*', max: 1, per: ['user', 'tool'] })
    for (let i = 0; i < 100; i++) hold(click, { user: `u${i}` }).release()
    assert.equal(slots.size, 0)
    const first = hold()
    const waiting = ask()
    assert.equal(slots.size, 1)
    first.release()
    ;(await held(waiting)).release()
    assert.equal(slots.size, 0)
  })

  it('never lets more run than may, and leaves nobody waiting and no slot taken, whatever comes', async () => {
    const caps = parseCaps([
      { match: 'browser:*', max: 2, maxWaiting: 4, waitMs: 20 },
      { match: '*', max: 3, per: ['user'], maxWaiting: 5, waitMs: 50 },
      { match: 'notes', max: 1, per: [], waitMs: 30 },
    ])
    const tools = [click, open, notes]
    const step = fc.record({
      kind: fc.constantFrom('ask', 'ask', 'ask', 'release', 'abort', 'pass'),
      tool: fc.nat(2),
      user: fc.constantFrom('a', 'b'),
      which: fc.nat(20),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const slots = createSlots(caps)
        const time = manualDeadlines()
        const running = new Map<string, number>()
        const holding: (() => void)[] = []
        const waiting: { canceller: Canceller; answer: Promise<void> }[] = []
        const count = (keys: readonly { key: string; cap: { max: number } }[], by: number) => {
          for (const { key, cap } of keys) {
            running.set(key, (running.get(key) ?? 0) + by)
            assert.ok((running.get(key) ?? 0) <= cap.max, `more than ${cap.max} of ${key}`)
          }
        }
        const take = (answer: HeldSlots | Decision, uses: Parameters<typeof count>[0]) => {
          if (!isHeld(answer)) return
          count(uses, 1)
          holding.push(() => {
            count(uses, -1)
            answer.release()
          })
        }
        for (const { kind, tool, user, which } of steps) {
          if (kind === 'ask') {
            const uses = slots.capsOf(tools[tool] ?? notes, { user })
            const canceller = createCanceller()
            const answer = slots.acquire(uses, { ...time, cancelling: canceller })
            if (answer instanceof Promise)
              waiting.push({ canceller, answer: answer.then((given) => take(given, uses)) })
            else take(answer, uses)
          } else if (kind === 'release') holding.splice(which % (holding.length || 1), 1)[0]?.()
          else if (kind === 'abort') waiting[which % (waiting.length || 1)]?.canceller.abort('gone')
          else time.pass(which)
          await Promise.resolve()
        }
        for (let i = 0; i < steps.length + 1; i++) {
          while (holding.length > 0) holding.pop()?.()
          await new Promise((resolve) => setImmediate(resolve))
          if (slots.size === 0 && holding.length === 0) break
        }
        await Promise.all(waiting.map(({ answer }) => answer))
        assert.equal(slots.size, 0)
        assert.equal(time.watched.size, 0)
      }),
      runs(200, 200),
    )
  })
})

/** Deadlines that the test lets pass. */
function manualDeadlines() {
  let nowMs = 0
  const watched = new Map<object, { timed: Timed; atMs: number }>()
  const deadlines = {
    watch(timed: Timed, startedMs: number, delayMs: number) {
      const one = { timed, atMs: startedMs + delayMs }
      watched.set(one, one)
      return one
    },
    unwatch: (one: object) => void watched.delete(one),
  } as unknown as Deadlines
  return {
    deadlines,
    clock: { monotonicMs: () => nowMs },
    watched,
    pass(ms: number) {
      nowMs += ms
      for (const { timed } of [...watched.values()].filter(({ atMs }) => atMs <= nowMs)) timed.expire()
    },
  }
}
