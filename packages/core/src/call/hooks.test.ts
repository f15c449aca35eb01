import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { type Canceller, createCanceller, createDeadlines } from '@toolgate/values'
import { systemClock } from '../memory/clock.ts'
import { defineTool } from '../tools/tool.ts'
import {
  type AfterToolCall,
  askBefore,
  type BeforeAnswer,
  type BeforeResult,
  type BeforeToolCall,
  type HookedEnd,
  type HookedCall,
  type Hooks,
  parseHooks,
  tellAfter,
} from './hooks.ts'

const tool = defineTool({ name: 'send' })
const never = () => new Promise<never>(() => {})
const turn = () => new Promise((resolve) => setImmediate(resolve))
const boom = new Error('boom')
const throwing = () => {
  throw boom
}

const callOf = (more: Partial<HookedCall> = {}): HookedCall => ({
  tool,
  callId: 'call-1',
  input: Object.freeze({ to: 'a' }),
  caller: { user: 'vera' },
  cancelling: undefined,
  visibleIds: () => ['send'],
  ...more,
})

const portsOf = (deadlineMs = 60_000, onFault?: (error: unknown) => void) => ({
  deadlines: createDeadlines(systemClock.monotonicMs),
  clock: systemClock,
  deadlineMs,
  onFault,
})

type Before = (context: BeforeToolCall) => unknown

/** Hooks that answer as a program without types may. */
const before = (...hooks: Before[]): Hooks[] =>
  hooks.map((beforeToolCall) => ({ beforeToolCall: beforeToolCall as (context: BeforeToolCall) => BeforeAnswer }))

const ask = (hooks: readonly Hooks[], more?: Partial<HookedCall>, deadlineMs?: number) =>
  askBefore(hooks, callOf(more), portsOf(deadlineMs))

function codeOf(result: BeforeResult): string {
  if (result.ok) return 'ok'
  const [one] = result.decision.reasons
  return `${result.decision.outcome} ${one?.layer} ${one?.code}: ${one?.text} (${one?.message})`
}

describe('askBefore', () => {
  it('lets a call go on at once where every hook answers at once', () => {
    const input = Object.freeze({ to: 'a' })
    for (const hooks of [[], [{}], before(() => undefined), before(() => ({})), before(() => ({ allow: true }))])
      assert.deepEqual(ask(hooks, { input }), { ok: true, input, replaced: false })
  })

  it('passes each hook the call and the ids that its caller sees', () => {
    let asked = 0
    const caller = createCanceller()
    const hooks = before((context) => {
      const { callId, input, visibleIds, signal, aborted } = context
      assert.equal(context.tool, tool)
      assert.deepEqual([callId, input, context.caller.user], ['call-1', { to: 'a' }, 'vera'])
      assert.deepEqual([visibleIds, signal.aborted, aborted], [['send'], false, false])
      assert.throws(() => (visibleIds as string[]).push('hidden'), TypeError)
      void context.visibleIds
    })
    const visibleIds = () => {
      asked++
      return ['send']
    }
    assert.equal(codeOf(ask(hooks, { cancelling: caller, visibleIds }) as BeforeResult), 'ok')
    assert.equal(asked, 1)
    void ask(
      before(() => {}),
      { visibleIds },
    )
    assert.equal(asked, 1)
  })

  it('asks in order, and each hook sees the input as those before it left it, frozen', async () => {
    const seen: unknown[] = []
    const given = { to: 'b', cc: ['c'] }
    const hooks = before(
      () => ({ input: given }),
      async ({ input }) => {
        seen.push(input)
        assert.throws(() => ((input as typeof given).cc[0] = 'x'), TypeError)
        given.cc[0] = 'changed later'
        return { allow: true, input: { to: 'c' } }
      },
      ({ input }) => void seen.push(input),
    )
    assert.deepEqual(await ask(hooks), { ok: true, input: { to: 'c' }, replaced: true })
    assert.deepEqual(seen, [{ to: 'b', cc: ['c'] }, { to: 'c' }])
  })

  it('does not let a hook change what the next one sees', () => {
    const liar: Before = (context) => {
      Object.assign(context, { caller: { user: 'admin' }, input: { to: 'z' }, callId: 'other' })
    }
    const hooks = before(liar, ({ caller, input, callId }) => {
      assert.deepEqual([caller.user, input, callId], ['vera', { to: 'a' }, 'call-1'])
    })
    assert.equal(codeOf(ask(hooks) as BeforeResult), 'ok')
  })

  it('refuses with the hook’s reason, and asks no further', async () => {
    const rest = () => assert.fail('asked')
    const says = 'deny hooks hook_denied: hook 1 refuses it: not on Sundays (not on Sundays)'
    const no = { allow: false, reason: 'not on Sundays', input: {} }
    assert.equal(codeOf(ask(before(() => no, rest)) as BeforeResult), says)
    assert.equal(codeOf(await ask(before(async () => no, rest))), says)
    const named = [{ name: 'calendar', beforeToolCall: () => ({ allow: false }) }]
    assert.equal(
      codeOf(ask(named) as BeforeResult),
      'deny hooks hook_denied: the hook "calendar" refuses it (undefined)',
    )
  })

  it('cuts a reason that never ends', () => {
    const result = ask(before(() => ({ allow: false, reason: '😀'.repeat(1_000_000) }))) as BeforeResult
    assert.ok(!result.ok)
    const message = result.decision.reasons[0]?.message ?? ''
    assert.ok(message.length <= 1001 && message.isWellFormed())
  })

  const nonsense: readonly (readonly [what: string, answer: unknown, problem: RegExp])[] = [
    ['null', null, /other than an object/],
    ['true', true, /other than an object/],
    ['false', false, /other than an object/],
    ['a text', 'deny', /other than an object/],
    ['a list', [{ allow: false }], /other than an object/],
    ['a date', new Date(), /other than an object/],
    ['a misspelt field', { alow: false }, /has a field "alow"/],
    ['an allow that is a text', { allow: 'no' }, /"allow" is no boolean/],
    ['an allow that is null', { allow: null }, /"allow" is no boolean/],
    ['an allow that is 0', { allow: 0 }, /"allow" is no boolean/],
    ['a reason that is no text', { allow: true, reason: 7 }, /"reason" is no text/],
    ['an input that is undefined', { input: undefined }, /input it gave at "" is of type undefined/],
    ['an input that is no plain JSON', { input: { at: new Date() } }, /input it gave at "\/at" is not a plain object/],
    ['an input that holds itself', { input: cyclic() }, /nested more than 64 levels/],
    [
      'a field that throws',
      {
        get allow() {
          return throwing()
        },
      },
      /boom/,
    ],
  ]
  for (const [what, answer, problem] of nonsense) {
    it(`fails closed for ${what}, now or later`, async () => {
      for (const result of [ask(before(() => answer)), ask(before(async () => answer))]) {
        const told = codeOf(await result)
        assert.match(told, /^deny hooks hook_error: hook 1 failed: .* \(a check failed\)$/)
        assert.match(told, problem)
      }
    })
  }

  // oxlint-disable-next-line unicorn/no-thenable -- what a hook may answer
  const thrower = Object.defineProperty({}, 'then', { value: throwing })
  // oxlint-disable-next-line unicorn/no-thenable -- what a hook may answer
  const getter = Object.defineProperty({}, 'then', { get: throwing })
  const faults: readonly (readonly [what: string, hook: Before])[] = [
    ['throws', throwing],
    ['rejects', () => Promise.reject(boom)],
    ['answers with a thenable that throws in its then', () => thrower],
    ['answers with a thenable that throws when it is looked at', () => getter],
  ]
  for (const [what, hook] of faults) {
    it(`fails closed for a hook that ${what}, and reports it to the host`, async () => {
      const faultsHeard: unknown[] = []
      const result = await askBefore(
        before(hook, () => assert.fail('asked')),
        callOf(),
        portsOf(60_000, (error) => faultsHeard.push(error)),
      )
      assert.equal(codeOf(result), 'deny hooks hook_error: hook 1 failed: boom (a check failed)')
      assert.deepEqual(
        faultsHeard.map((error) => error instanceof Error && error.cause),
        [boom],
      )
    })
  }

  it('fails closed for a thrown value without a text', () => {
    const result = ask(before(() => Promise.reject(Object.create(null))))
    return Promise.resolve(result).then((told) =>
      assert.match(codeOf(told), /hook_error: hook 1 failed: an error without/),
    )
  })

  it('fails closed at its deadline, whatever the hook says later', async () => {
    for (const end of ['resolve', 'reject'] as const) {
      const late = Promise.withResolvers<unknown>()
      const result = await ask(
        before(() => late.promise),
        {},
        1,
      )
      assert.equal(codeOf(result), 'deny hooks hook_error: hook 1 failed: no answer in 0.001 s (a check failed)')
      late[end](boom)
      await turn()
    }
  })

  it('stops waiting for a hook when the caller goes away', async () => {
    const caller = createCanceller()
    let signal: AbortSignal | undefined
    const asked = ask(
      before((context) => {
        signal = context.signal
        return never()
      }),
      { cancelling: caller },
    )
    caller.abort('gone')
    assert.match(codeOf(await asked), /^deny door caller_gone/)
    assert.deepEqual([signal?.aborted, signal?.reason], [true, 'gone'])
  })

  it('leaves no listener with a caller who stays', async () => {
    const { cancelling, listeners } = listening()
    const looking: Before = ({ signal }) => void signal.aborted
    await ask(
      before(looking, async (context) => looking(context), looking),
      { cancelling },
    )
    await ask(
      before(({ signal }) => (signal.aborted ? never() : never())),
      { cancelling },
      1,
    )
    assert.equal(listeners.size, 0)
  })

  it('goes on only if no hook refuses, whatever the mix of hooks', async () => {
    const kinds = ['nothing', 'allow', 'replace', 'deny', 'throw', 'nonsense'] as const
    const hook =
      (kind: (typeof kinds)[number], later: boolean): Before =>
      () => {
        const answer = {
          nothing: undefined,
          allow: { allow: true },
          replace: { input: { to: kind } },
          deny: { allow: false },
          throw: 0,
          nonsense: 7,
        }[kind]
        const result = kind === 'throw' ? (later ? Promise.reject(boom) : throwing()) : answer
        return later && kind !== 'throw' ? Promise.resolve(result) : result
      }
    const list = fc.array(fc.tuple(fc.constantFrom(...kinds), fc.boolean()), { maxLength: 6 })
    await fc.assert(
      fc.asyncProperty(list, async (some) => {
        const asked = ask(before(...some.map(([kind, later]) => hook(kind, later))))
        const first = some.find(([kind]) => kind === 'deny' || kind === 'throw' || kind === 'nonsense')?.[0]
        if (!some.some(([, later]) => later)) assert.ok(!(asked instanceof Promise))
        const result = await asked
        const code = result.ok ? 'ok' : result.decision.reasons[0]?.code
        assert.equal(code, first === undefined ? 'ok' : first === 'deny' ? 'hook_denied' : 'hook_error')
        if (result.ok)
          assert.equal(
            result.replaced,
            some.some(([kind]) => kind === 'replace'),
          )
      }),
    )
  })
})

describe('tellAfter', () => {
  const done: HookedEnd = { ok: true, durationMs: 3, output: { text: 'sent' } }

  it('calls each hook with how the call ended, at once where the hooks are synchronous', () => {
    const heard: unknown[] = []
    const hook: Hooks = {
      afterToolCall: ({ callId, input, durationMs, ok, output, error }: AfterToolCall) =>
        void heard.push([callId, input, durationMs, ok, output, error]),
    }
    assert.equal(tellAfter([hook, {}, hook], callOf(), done, portsOf()), undefined)
    void tellAfter([hook], callOf(), { ok: false, durationMs: 4, error: boom }, portsOf())
    const told = ['call-1', { to: 'a' }, 3, true, { text: 'sent' }, undefined]
    assert.deepEqual(heard, [told, told, ['call-1', { to: 'a' }, 4, false, undefined, boom]])
  })

  it('passes the very output on', () => {
    let heard: unknown
    void tellAfter([{ afterToolCall: ({ output }) => void (heard = output) }], callOf(), done, portsOf())
    assert.equal(heard, done.output)
  })

  it('does not let a hook change what the next one receives', () => {
    const heard: unknown[] = []
    const liar: Hooks = { afterToolCall: (context) => void Object.assign(context, { output: 'nothing', ok: false }) }
    const hook: Hooks = { afterToolCall: ({ ok, output }) => void heard.push(ok, output) }
    void tellAfter([liar, hook], callOf(), done, portsOf())
    assert.deepEqual(heard, [true, done.output])
  })

  it('cannot fail: errors of hooks go to the host, and the other hooks are called', async () => {
    const late = Promise.withResolvers<void>()
    // oxlint-disable-next-line unicorn/no-thenable -- what a hook may answer
    const thrower = Object.defineProperty({}, 'then', { value: throwing }) as Promise<void>
    const faults: unknown[] = []
    let told = 0
    const hooks: Hooks[] = [
      { afterToolCall: throwing },
      { afterToolCall: () => Promise.reject(boom) },
      { afterToolCall: () => thrower },
      { name: 'slow', afterToolCall: () => late.promise },
      { afterToolCall: never },
      { afterToolCall: () => void told++ },
    ]
    await tellAfter(
      hooks,
      callOf(),
      done,
      portsOf(1, (error) => {
        faults.push(error)
        throw new Error('the host')
      }),
    )
    assert.equal(told, 1)
    assert.deepEqual(faults.map((error) => (error as Error).message).toSorted(), [
      'hook 1 failed after a call: boom',
      'hook 2 failed after a call: boom',
      'hook 3 failed after a call: boom',
      'hook 5 failed after a call: no answer in 0.001 s',
      'the hook "slow" failed after a call: no answer in 0.001 s',
    ])
    late.reject(boom)
    await turn()
  })

  it('leaves no listener with a caller who stays', async () => {
    const { cancelling, listeners } = listening()
    const hook: Hooks = { afterToolCall: async ({ signal }) => void signal.aborted }
    await tellAfter(
      [hook, { afterToolCall: ({ signal }) => void signal.aborted }],
      callOf({ cancelling }),
      done,
      portsOf(),
    )
    assert.equal(listeners.size, 0)
  })
})

describe('parseHooks', () => {
  it('takes one, several, none, and instances of classes', () => {
    class Counting {
      calls = 0
      beforeToolCall(): void {
        this.calls++
      }
    }
    const counting = new Counting()
    const one: Hooks = { name: 'one', afterToolCall() {} }
    assert.deepEqual(
      [parseHooks(undefined), parseHooks(one), parseHooks([one, counting])],
      [[], [one], [one, counting]],
    )
    void ask(parseHooks(counting))
    assert.equal(counting.calls, 1)
  })

  it('refuses a class with a misspelt hook, and takes one with methods of its own', () => {
    class Misspelt {
      beforeTolCall(): false {
        return false
      }
      afterToolCall(): void {}
    }
    assert.throws(() => parseHooks(new Misspelt() as Hooks), {
      message: 'hooks.beforeTolCall: unknown method; did you mean "beforeToolCall"?',
    })
    class Own {
      reset(): void {}
      afterToolCall(): void {}
    }
    assert.equal(parseHooks(new Own()).length, 1)
  })

  const refused: readonly (readonly [hooks: unknown, message: string])[] = [
    [{}, 'hooks: has neither beforeToolCall nor afterToolCall'],
    [() => {}, 'hooks: must be an object'],
    [[null], 'hooks[0]: must be an object'],
    [{ beforeToolCall: true }, 'hooks.beforeToolCall: must be a function'],
    [
      [{ beforeToolcall() {} }],
      'hooks[0].beforeToolcall: unknown key; did you mean "beforeToolCall"? The keys are name, beforeToolCall, afterToolCall',
    ],
  ]
  for (const [hooks, message] of refused)
    it(`rejects an invalid value: ${message}`, () => assert.throws(() => parseHooks(hooks as Hooks), { message }))
})

function cyclic(): object {
  const object: Record<string, unknown> = {}
  return Object.assign(object, { self: object })
}

function listening(): { cancelling: Canceller; listeners: Set<() => void> } {
  const listeners = new Set<() => void>()
  const cancelling: Canceller = {
    aborted: false,
    reason: undefined,
    abort() {},
    onAbort(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
  return { cancelling, listeners }
}
