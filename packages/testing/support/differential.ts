import { wordOf } from '../../core/src/call/outcome.ts'
import { unlock } from '@toolgate/change/internal'
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { createSteps, withTools } from '@toolgate/core/steps'
import type { Tool, View } from '@toolgate/core'
import { toPolicy } from './policies.ts'
import { referenceAnswers, referenceLists, referenceListsRequests } from './reference.ts'
import {
  type History,
  historyArbitrary,
  idsIn,
  inputOf,
  type Moment,
  type Opened,
  openGate,
  viewOptionsOf,
  type World,
} from './worlds.ts'

export interface DifferentialOptions {
  /** The minimum number of moments to compare. */
  readonly cases: number
  readonly seed: number
}

/** The moments of a history. Each history is one gate, and creating a gate costs as much as a few questions. */
const MOMENTS_PER_GATE = 200
const HISTORIES_PER_BATCH = 25

/**
 * Compares the gate with the naive evaluator at each moment of random histories: the whole list, and one tool explained
 * and called.
 *
 * A difference is shrunk to the smallest history with it. Returns the number of compared moments.
 */
export async function compareWithReference({ cases, seed }: DifferentialOptions): Promise<number> {
  const compared: number[] = []
  const property = fc.asyncProperty(historyArbitrary(MOMENTS_PER_GATE), async (history) => {
    await compareHistory(history)
    compared.push(history.moments.length)
  })
  let total = 0
  while (total < cases) {
    await fc.assert(property, { numRuns: HISTORIES_PER_BATCH, seed: seed + total })
    total = compared.reduce((sum, count) => sum + count, 0)
  }
  return total
}

async function compareHistory({ moments, ...ground }: History): Promise<void> {
  const opened = openGate(ground)
  for (const moment of moments) {
    const world: World = { ...ground, ...moment }
    const view = await viewAt(opened, world, moment)
    await compareView(view, opened, world, moment)
    if (moment.policiesSince) opened.root.setPolicy(ground.policies.map(toPolicy))
  }
}

/** Returns the view of a moment, and then applies the changes after it. */
async function viewAt(opened: Opened, world: World, moment: Moment): Promise<View> {
  const { gate, root } = opened
  const { caller, visibility, activeTools } = world
  setAvailability(opened, world, world.up)
  const { part, opened: openedByOther } = moment.neighbour
  gate.locks.forget(caller)
  unlock(gate, { ...caller, [part]: 'neighbour' }, openedByOther)
  unlock(gate, caller, world.opened)
  const view = await gate.view(caller, moment.through === 'options' ? viewOptionsOf(world) : { visibility })
  if (moment.upSince) setAvailability(opened, world, moment.upSince)
  if (moment.forgottenSince) gate.locks.forget(caller)
  unlock(gate, caller, moment.openedSince)
  if (moment.policiesSince) root.setPolicy(moment.policiesSince.map(toPolicy))
  switch (moment.through) {
    case 'options':
      return view
    case 'narrow':
      return view.narrow({ activeTools })
    case 'steps':
      return (await createSteps(view, { prepareStep: () => activeTools && withTools(...activeTools) }).next()).view
  }
}

function setAvailability({ availability }: Opened, { groups }: World, up: readonly string[]): void {
  for (const name of Object.keys(groups)) {
    const available = up.includes(name)
    if (availability.get(name)?.available !== available) availability.set(name, { available })
  }
}

async function compareView(view: View, { root, tools, ran }: Opened, world: World, moment: Moment): Promise<void> {
  const listed = tools.filter((tool) => referenceLists(world, moment, tool)).map(({ id }) => id)
  const requestTools = root.catalog.snapshot().get('request_tools')
  if (requestTools && referenceListsRequests(world, moment, requestTools, tools)) listed.push(requestTools.id)
  assert.deepEqual(idsIn(view).toSorted(), listed.toSorted())
  const tool = tools[moment.asked % tools.length] as Tool
  const expected = referenceAnswers(world, moment, tool)
  assert.equal(view.explain(tool.id).outcome, expected.explained, `explain ${tool.id}`)
  const before = ran.get(tool.id) ?? 0
  const outcome = await view.call({ tool: tool.id, input: inputOf(world, tool), callId: 'call-1' })
  assert.equal(wordOf(outcome), expected.called, `call ${tool.id}`)
  assert.equal((ran.get(tool.id) ?? 0) - before, expected.called === 'allow' ? 1 : 0, `runs of ${tool.id}`)
}
