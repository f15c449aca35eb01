import type { Gate } from '@toolgate/core'
import { defineTarget } from '@toolgate/expose'
import { createRun } from './run.ts'
import { VIEWER } from './testing/world.ts'

declare const gate: Gate

// The tools of a step have the type of the target.
const target = defineTarget({ name: 'mine', shape: ({ name }) => ({ called: name }) })
const mine = await (await createRun(gate, VIEWER, { target })).next()
mine.tools.map(({ called }) => called satisfies string)
// @ts-expect-error -- a field that the target does not make
mine.tools.map(({ name }) => name)

// Without one they have a name, a description and a schema.
const run = await createRun(gate, VIEWER)
const plain = await run.next()
plain.tools.map(
  ({ name, description, inputSchema }) => [name, description, inputSchema] satisfies [string, string, object],
)

// @ts-expect-error -- a misspelt option
void createRun(gate, VIEWER, { activTools: [] })
// @ts-expect-error -- a run of one target has one mode
void createRun(gate, VIEWER, { mode: 'mask' })
// @ts-expect-error -- a run has a caller
void createRun(gate)
// @ts-expect-error -- a misspelt field of a call
void run.call({ name: 'search', input: {}, callID: 'c1' })
