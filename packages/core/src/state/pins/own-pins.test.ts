import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import fc from 'fast-check'
import { createGate } from '../../gate/gate.ts'
import { memoryState } from '../../memory/state.ts'
import type { StateStore } from '../../ports/ports.ts'
import { manualClock } from '../../../../testing/src/manual-clock.ts'
import { runs } from '../../../../testing/src/runs.ts'
import { createCatalog, type Source } from '../../tools/catalog.ts'
import { definitionHash } from '../../tools/definition-hash.ts'
import type { OwnSource } from '../../tools/own-lists.ts'
import { defineTool, type ToolDefinition } from '../../tools/tool.ts'
import { createEmitter, Revision } from '@toolgate/values'
import type { PinEvent } from './notices.ts'
import type { PinMode } from './pin-rules.ts'
import { createPins } from './pins.ts'

const clock = manualClock()
const send = (version: number): ToolDefinition => ({
  namespace: 'mail',
  name: 'send',
  description: `Sends, version ${version}.`,
})
const hashOf = (version: number) => definitionHash(defineTool(send(version)))

/** A server with a list for each user, whose tools several processes may see. */
function mailServer() {
  const lists = new Map<string, OwnSource & { listed: readonly ToolDefinition[] }>()
  const changes = createEmitter<[OwnSource]>()
  const source: Source = {
    name: 'mail',
    namespaces: ['mail'],
    tools: () => [],
    own: { of: ({ user = '' }) => lists.get(user), all: () => lists.values(), subscribe: changes.subscribe },
  }
  return {
    source,
    set(user: string, ...listed: readonly ToolDefinition[]) {
      const list = lists.get(user) ?? {
        owner: { user },
        listed,
        tools() {
          return this.listed
        },
      }
      list.listed = listed
      lists.set(user, list)
      changes.emit(list)
    },
  }
}

function open(mode: PinMode, { mail = mailServer(), state = memoryState({ clock }) as StateStore } = {}) {
  const catalog = createCatalog({ changes: new Revision(), sources: [mail.source] })
  const events: PinEvent[] = []
  const pins = createPins({ catalog, state, clock, mode, refreshMs: 0, onEvent: (event) => events.push(event) })
  const heldFor = (user: string) => {
    const { snapshot } = catalog.of({ user })
    return pins
      .effectsFor(snapshot)
      .flatMap((effect) => snapshot.tools.map((tool) => `${tool.id}: ${effect.reason(tool).text}`))
  }
  const statusOf = (version: number) => pins.list().find(({ hash }) => hash === hashOf(version))?.status
  const close = () => {
    pins.close()
    catalog.close()
  }
  return { mail, state, pins, events, heldFor, statusOf, close }
}

function world(t: TestContext, ...given: Parameters<typeof open>) {
  const opened = open(...given)
  t.after(opened.close)
  return opened
}

describe('the pins of tools on the lists of single users', () => {
  it('are a set: each definition is accepted on its own, and another one holds back only those who have it', async (t) => {
    const { mail, pins, heldFor, statusOf } = world(t, 'suspend')
    mail.set('vera', send(0))
    mail.set('otto', send(1))
    await pins.settled()
    assert.deepEqual(heldFor('vera'), [])
    assert.deepEqual(heldFor('otto'), [
      `mail:send: nobody has accepted its definition: it is ${hashOf(1).slice(0, 12)} and ${hashOf(0).slice(0, 12)} is accepted`,
    ])
    const accepted = await pins.accept('mail:send', { hash: hashOf(1), by: 'owner' })
    assert.deepEqual([accepted.status, accepted.by, accepted.users], ['pinned', 'owner', [{ user: 'otto' }]])
    assert.deepEqual([heldFor('vera'), heldFor('otto')], [[], []])
    mail.set('otto', send(2))
    await pins.settled()
    assert.deepEqual([heldFor('vera').length, heldFor('otto').length], [0, 1])
    assert.deepEqual([statusOf(0), statusOf(1), statusOf(2)], ['pinned', undefined, 'suspended'])
    // Back to an accepted one.
    mail.set('otto', send(0))
    await pins.settled()
    assert.deepEqual(heldFor('otto'), [])
  })

  it('tell of a definition that nobody has accepted once, as one that differs, with whom it concerns', async (t) => {
    const { mail, pins, events, statusOf } = world(t, 'warn')
    mail.set('vera', send(0))
    mail.set('otto', send(1))
    mail.set('zoe', send(1))
    await pins.settled()
    assert.deepEqual(
      events.map(({ kind, users, text }) => ({ kind, users, text })),
      [
        {
          kind: 'differs',
          users: [{ user: 'otto' }, { user: 'zoe' }],
          text: 'only for "otto", "zoe": ~ /description: Sends, version [-0-]{+1+}.',
        },
      ],
    )
    assert.deepEqual([statusOf(0), statusOf(1)], ['pinned', 'differs'])
    const rows = pins.list().map(({ status, users, diff }) => [status, users, diff?.changes.length])
    assert.deepEqual(rows.toSorted(), [
      ['differs', [{ user: 'otto' }, { user: 'zoe' }], 1],
      ['pinned', [{ user: 'vera' }], undefined],
    ])
  })

  it('survive a restart, and pins that were stored as one hash are a set of one', async (t) => {
    const state = memoryState({ clock })
    await state.set('pin-definition:x', null)
    await state.set('pin:tool:mail:send', { hash: hashOf(7), since: 1, by: 'owner' })
    const mail = mailServer()
    const first = world(t, 'suspend', { mail, state })
    mail.set('vera', send(7))
    mail.set('otto', send(1))
    await first.pins.settled()
    assert.deepEqual([first.heldFor('vera').length, first.heldFor('otto').length], [0, 1])
    await first.pins.accept('mail:send', { hash: hashOf(1), by: 'owner' })
    const second = world(t, 'suspend', { mail, state })
    await second.pins.settled()
    assert.deepEqual([second.heldFor('vera'), second.heldFor('otto')], [[], []])
    assert.deepEqual(await state.get('pin:tool:mail:send'), { hash: hashOf(7), since: 1, by: 'owner' })
  })

  it('accept nothing by an entry that cannot be read', async (t) => {
    const state = memoryState({ clock })
    await state.set(`pin:more:${hashOf(1)}`, { tool: 'mail:send', hash: hashOf(1) })
    await state.set(`pin:more:${hashOf(2)}`, { tool: 5, hash: hashOf(2), since: 1, by: 'x' })
    const { mail, pins, heldFor } = world(t, 'suspend', { mail: mailServer(), state })
    mail.set('vera', send(0))
    mail.set('otto', send(1))
    mail.set('zoe', send(2))
    await pins.settled()
    assert.deepEqual([heldFor('vera').length, heldFor('otto').length, heldFor('zoe').length], [0, 1, 1])
  })

  it('accept only a definition that somebody has now', async (t) => {
    const { mail, pins } = world(t, 'suspend')
    mail.set('vera', send(0))
    await assert.rejects(pins.accept('mail:send', { hash: hashOf(1), by: 'owner' }), { code: 'pin_unknown' })
    await assert.rejects(pins.accept('mail:none', { hash: hashOf(1), by: 'owner' }), { code: 'pin_unknown' })
  })

  it('hold a call of the one who has another definition, and record for whom it is', async () => {
    const mail = mailServer()
    const gate = createGate({ sources: [mail.source], pins: 'suspend' })
    const notices: string[] = []
    gate.subscribe((notice) => notices.push(notice.event))
    mail.set('vera', { ...send(0), execute: () => 'sent' })
    mail.set('otto', { ...send(1), execute: () => 'sent' })
    const call = async (user: string) =>
      (await (await gate.view({ user })).call({ tool: 'mail:send', input: {} })).status
    assert.deepEqual([await call('vera'), await call('otto')], ['done', 'refused'])
    await gate.pins.accept('mail:send', { hash: hashOf(1), by: 'owner' })
    assert.deepEqual([await call('vera'), await call('otto')], ['done', 'done'])
    assert.ok(notices.includes('tool-accepted'))
    await gate.close()
  })

  const step = fc.record({
    user: fc.constantFrom('vera', 'otto', 'zoe'),
    version: fc.integer({ min: 0, max: 3 }),
    accept: fc.boolean(),
    process: fc.nat(1),
  })

  it('hold exactly what is neither the first seen nor an accepted definition, in two processes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 15 }), async (steps) => {
        const [mail, state] = [mailServer(), memoryState({ clock })]
        const processes = [open('suspend', { mail, state }), open('suspend', { mail, state })]
        const lists = new Map<string, number>()
        const good = new Set<number>()
        for (const { user, version, accept, process } of steps) {
          if (accept) {
            const isThere = [...lists.values()].includes(version)
            if (isThere) good.add(version)
            const accepting = processes[process]!.pins.accept('mail:send', { hash: hashOf(version), by: 'owner' })
            if (isThere) await accepting
            else await assert.rejects(accepting)
          } else {
            if (lists.size === 0) good.add(version)
            lists.set(user, version)
            mail.set(user, send(version))
          }
          for (const { pins } of processes) await pins.settled()
          for (const { heldFor } of processes)
            for (const [name, listed] of lists) assert.equal(heldFor(name).length, good.has(listed) ? 0 : 1)
        }
        for (const { close } of processes) close()
      }),
      runs(60),
    )
  })
})
