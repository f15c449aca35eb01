import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { Caller } from '../ports/caller.ts'
import type { Gate } from '../gate/gate.ts'
import { toPolicy, type WrittenPolicy } from '../../../testing/support/policies.ts'
import { type Opened, openWorld, viewOptionsOf, type World, worldWithMore } from '../../../testing/support/worlds.ts'
import type { Group } from '../tools/groups.ts'
import type { View } from '../gate/view.ts'
import { runs } from '../../../testing/src/runs.ts'

/** What may happen between two steps of a run. Numbers name a tool, a group or a policy, counted round and round. */
const CHANGES = [
  'policy',
  "the parent's policy",
  'group up',
  'group down',
  'tool gone',
  'tools back',
  'halt',
  'release',
  'switched off',
  'switched on',
  'opened',
  'opened for another',
  'locked again',
  'nothing',
] as const
type Change = readonly [what: (typeof CHANGES)[number], which: number]

const changesArbitrary = fc.array(fc.tuple(fc.constantFrom(...CHANGES), fc.nat(6)), { minLength: 1, maxLength: 6 })
const throughArbitrary = fc.constantFrom('gate' as const, 'app' as const, 'fork' as const)

/** Within an epoch, only a session's own locks open. */
const LOCKED: Group = { tools: ['*:read', '*:write'], unlock: 'request' }

interface Run {
  readonly world: World
  readonly opened: Opened
  readonly caller: Caller & { user: string; session: string }
  readonly more: readonly WrittenPolicy[]
}

async function happen({ world, opened, caller, more }: Run, [what, which]: Change): Promise<void> {
  const { root, gate, tools, availability, offer } = opened
  const group = Object.keys(world.groups)[which % Math.max(1, Object.keys(world.groups).length)]
  const tool = tools[which % tools.length]?.id as string
  const policy = [toPolicy(more[which % more.length] as WrittenPolicy)]
  const owner = { user: caller.user, tenant: caller.tenant }
  switch (what) {
    case 'policy':
      return gate.setPolicy(which % 2 === 0 ? policy : [])
    case "the parent's policy":
      return root.setPolicy(which % 2 === 0 ? policy : [])
    case 'group up':
    case 'group down':
      if (group !== undefined) availability.set(group, { available: what === 'group up' })
      return
    case 'tool gone':
      return offer(tools.map(({ id }) => id).filter((id) => id !== tool))
    case 'tools back':
      return offer(tools.map(({ id }) => id))
    case 'halt':
      return void (await gate.halt({ ...targetOf(which, caller, tool), reason: 'fire' }))
    case 'release':
      for (const { id } of gate.halts) await gate.release({ id })
      return
    case 'switched off':
    case 'switched on':
      return switchOff(gate, owner, group, what === 'switched off')
    case 'opened':
    case 'opened for another':
      return void gate.locks.request(what === 'opened' ? caller : { ...caller, session: 'another' }, 'locked')
    case 'locked again':
      return gate.locks.forget(caller)
    case 'nothing':
  }
}

function targetOf(which: number, { user, tenant, session }: Run['caller'], tool: string) {
  return (
    ([{ all: true }, { tool }, { user, tenant }, { session, user, tenant }] as const)[which % 4] ?? {
      all: true as const,
    }
  )
}

async function switchOff(
  gate: Gate,
  owner: { user: string },
  group: string | undefined,
  isOff: boolean,
): Promise<void> {
  if (group !== undefined) await gate.preferences.set(owner, { groups: isOff ? [group] : [], tools: [] })
}

/** All that a view says, which does not change with what it is asked. */
function told(view: View, world: Opened): unknown {
  const { ids, fingerprint, notices, failure, foreign, app } = view
  const has = world.tools.map(({ id }) => view.has(id))
  const explained = world.tools.map(({ id }) => view.explain(id))
  return { ids, fingerprint, notices, failure, foreign, app, has, explained }
}

/** The same view, made anew: what narrows by nothing is not known to do so. */
const anew = (view: View): View => view.narrow({ policy: [] })

describe('view.narrow', () => {
  it('gives what a view made anew would say, whatever has changed and however the view came about', async () => {
    let same = 0
    let other = 0
    await fc.assert(
      fc.asyncProperty(
        worldWithMore,
        changesArbitrary,
        throughArbitrary,
        async ({ world: open, more }, changes, through) => {
          const world = { ...open, groups: { ...open.groups, locked: LOCKED } }
          const names = Object.keys(world.groups)
          const apps = { app: { import: names, tools: ['files:*', 'read'] } }
          const opened = openWorld(world, { apps, pins: 'suspend' })
          const caller = { ...world.caller, user: world.caller.user ?? 'u', session: world.caller.session ?? 's' }
          const gate = through === 'fork' ? opened.gate.fork({ policy: [] }) : opened.gate
          const run = { world, opened: { ...opened, gate }, caller, more }
          const options = { ...viewOptionsOf(world), ...(through === 'app' && { app: 'app' }) }
          const ids = opened.tools.map(({ id }) => id)
          const whole = await gate.view(caller, options)
          const step = whole.narrow({ activeTools: ids.slice(0, 3) })
          const views = [whole, step, step.narrow({ policy: more.map(toPolicy) })]
          for (const change of changes) {
            await happen(run, change)
            for (const view of views) {
              const narrowed = view.narrow({})
              assert.deepEqual(told(narrowed, opened), told(anew(view), opened), `after ${change.join(' ')}`)
              assert.deepEqual(told(narrowed.narrow({}), opened), told(narrowed, opened))
              if (narrowed === view) same++
              else other++
            }
          }
          await opened.root.close()
        },
      ),
      runs(100),
    )
    assert.ok(same > 0 && other > 0, 'both have been tried')
  })
})
