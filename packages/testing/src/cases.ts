import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import {
  type Caller,
  type CallOutcome,
  createGate,
  defineTool,
  type Gate,
  type Policy,
  type Tool,
  type ToolDefinition,
  type View,
} from '@toolgate/core'
import { unlock } from '@toolgate/change/internal'
import { wordOf } from '@toolgate/core/call'
import { type Group, type GroupState, memoryAvailability } from '@toolgate/core/groups'
import { createSteps, unchanged, withTools } from '@toolgate/core/steps'
import type { Unlocking } from '@toolgate/change'

/** A decision as data, which people who do not program can read and check. */
export interface DecisionCase {
  /** The statement that this case shows, as a sentence. */
  readonly shows: string
  readonly policy?: Policy | readonly Policy[]
  /** The selectors of a group, or the group. */
  readonly groups?: Readonly<Record<string, readonly string[] | Group>>
  /** Ids, or tools with an id. */
  readonly tools: readonly (string | CaseTool)[]
  readonly caller?: Caller
  /** The states of groups. Default: each is available. */
  readonly availability?: Readonly<Record<string, GroupState>>
  /** The ways in which the caller's session opened groups before the view: `{ "request": "web" }`. */
  readonly unlocked?: readonly Unlocking[]
  /** The ways in which it opened groups between the view and the step. */
  readonly unlockedSince?: readonly Unlocking[]
  /** The policies of forks, each of the previous one. The last fork is tested. */
  readonly forks?: readonly (Policy | readonly Policy[])[]
  /** The active tools of each step of one run. The last step is tested. `null`: no change in that step. */
  readonly steps?: readonly (readonly string[] | null)[]
  readonly visibility?: readonly string[]
  readonly activeTools?: readonly string[]
  /** The input of every call. */
  readonly input?: unknown
  readonly expect: {
    /** Every visible id, in order. */
    readonly visible?: readonly string[]
    /** The expected notices to the model, in order. */
    readonly notices?: readonly string[]
    /** The expected warnings to the developer in the last step. */
    readonly warnings?: readonly string[]
    /** The expected outcome of each call. `allow`: the tool ran. */
    readonly call?: Readonly<Record<string, string>>
    /** The exact text that the model gets about a call. */
    readonly text?: Readonly<Record<string, string>>
    /** The codes of a call's decision. The deciding one comes first. */
    readonly reasons?: Readonly<Record<string, readonly string[]>>
    /** The message of the error, if no gate or view can be created. */
    readonly error?: string
  }
}

type CaseTool = { readonly id: string } & Pick<
  ToolDefinition,
  'tags' | 'category' | 'annotations' | 'requiredScopes' | 'hintsTrusted' | 'inputSchema'
>

/**
 * Defines one test for each JSON file below a folder.
 *
 * @example
 * decisionCases(path.join(import.meta.dirname, '../cases'))
 */
export function decisionCases(folder: string): void {
  describe('decisions as cases', () => {
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.json'))
    for (const file of files.toSorted()) {
      const read = parseCase(JSON.parse(readFileSync(path.join(folder, file), 'utf8')))
      it(`${file.replace(/\.json$/, '')}: ${read.shows}`, () => checkCase(read))
    }
  })
}

const CASE_KEYS = new Map<string, readonly string[]>([
  [
    'a case',
    [
      'shows',
      'policy',
      'forks',
      'groups',
      'tools',
      'caller',
      'availability',
      'unlocked',
      'unlockedSince',
      'visibility',
      'activeTools',
      'steps',
      'input',
      'expect',
    ],
  ],
  ['expect', ['visible', 'notices', 'warnings', 'call', 'text', 'reasons', 'error']],
  ['a tool', ['id', 'tags', 'category', 'annotations', 'requiredScopes', 'hintsTrusted', 'inputSchema']],
])

/** Parses a case. A misspelt key is an error, because the case would check less than it says. */
function parseCase(written: unknown): DecisionCase {
  checkKeys('a case', written)
  const { shows, tools, expect } = written as DecisionCase
  assert.equal(typeof shows, 'string')
  for (const tool of tools) if (typeof tool !== 'string') checkKeys('a tool', tool)
  checkKeys('expect', expect)
  assert.ok(Object.keys(expect).length > 0, 'a case expects something')
  return written as DecisionCase
}

function checkKeys(what: string, value: unknown): void {
  const known = CASE_KEYS.get(what) ?? []
  for (const key of Object.keys(value as object)) assert.ok(known.includes(key), `${key} is not a key of ${what}`)
}

async function checkCase(given: DecisionCase): Promise<void> {
  const { error, visible, notices, warnings } = given.expect
  const expected = (name: 'call' | 'text' | 'reasons') => new Map(Object.entries(given.expect[name] ?? {}))
  if (error !== undefined) {
    await assert.rejects(async () => open(given), { message: error })
    return
  }
  const { view, ran, warned } = await open(given)
  if (visible) assert.deepEqual(view.ids, visible)
  if (notices) assert.deepEqual(view.notices, notices)
  if (warnings) assert.deepEqual(warned, warnings)
  const [words, texts, codes] = [expected('call'), expected('text'), expected('reasons')]
  for (const tool of new Set([...words.keys(), ...texts.keys(), ...codes.keys()])) {
    const outcome = await view.call({ tool, input: given.input })
    if (words.has(tool)) assert.equal(wordOf(outcome), words.get(tool), tool)
    if (texts.has(tool)) assert.equal(outcome.text, texts.get(tool))
    if (codes.has(tool)) assert.deepEqual(codesOf(outcome, view, tool), codes.get(tool), tool)
    assert.equal(ran.has(tool), outcome.status === 'done', `whether ${tool} ran`)
  }
}

interface OpenCase {
  readonly view: View
  readonly ran: ReadonlySet<string>
  readonly warned: readonly string[]
}

async function open(given: DecisionCase): Promise<OpenCase> {
  const { policy, forks = [], groups = {}, tools, caller = {}, availability, visibility, activeTools } = given
  const ran = new Set<string>()
  const root = createGate({
    tools: tools.map((tool) => toTool(typeof tool === 'string' ? { id: tool } : tool, ran)),
    groups: new Map(Object.entries(groups).map(([name, group]) => [name, 'tools' in group ? group : { tools: group }])),
    ...(policy && { policy }),
    ...(availability && { availability: memoryAvailability(availability) }),
  })
  const gate = forks.reduce<Gate>((above, own) => above.fork({ policy: own }), root)
  unlock(gate, caller, given.unlocked ?? [])
  const run = await gate.view(caller, { visibility, activeTools })
  unlock(gate, caller, given.unlockedSince ?? [])
  return { ...(given.steps ? await lastStep(run, given.steps) : { view: run, warned: [] }), ran }
}

async function lastStep(run: View, lists: NonNullable<DecisionCase['steps']>): Promise<Omit<OpenCase, 'ran'>> {
  const steps = createSteps(run, {
    prepareStep({ stepNumber }) {
      const activeTools = lists[stepNumber]
      return activeTools ? withTools(...activeTools) : unchanged()
    },
  })
  for (let step = 1; step < lists.length; step++) await steps.next()
  const { view, warnings } = await steps.next()
  return { view, warned: warnings }
}

function toTool({ id, ...more }: CaseTool, ran: Set<string>): Tool {
  const colon = id.indexOf(':')
  const parts = colon === -1 ? { name: id } : { namespace: id.slice(0, colon), name: id.slice(colon + 1) }
  return defineTool({ ...parts, ...more, execute: () => ran.add(id) })
}

function codesOf(outcome: CallOutcome, view: View, tool: string): readonly string[] {
  const { reasons } = 'decision' in outcome ? outcome.decision : view.explain(tool)
  return reasons.map(({ code }) => code)
}
