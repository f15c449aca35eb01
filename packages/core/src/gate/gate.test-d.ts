// Compiled by `npm run typecheck` and never run: each `@ts-expect-error` is an error where there is none to expect.
import { z } from 'zod'
import { createGate, type Gate } from './gate.ts'
import { policyFromEnv } from '../policy/environment.ts'
import { combinePolicies, type Policy } from '../policy/policy.ts'
import type { Source } from '../tools/catalog.ts'
import { defineTool, type Tool } from '../tools/tool.ts'
import type { View } from './view.ts'

const search = defineTool({ name: 'search' })
const read = defineTool({ namespace: 'files', name: 'read' })
const tools = { search, 'files:read': read, remove: { tags: ['danger'], execute: () => 'gone' } }

const gate = createGate({ tools })
gate satisfies Gate<'search' | 'files:read' | 'remove'>
const view = await gate.view({}, { activeTools: ['search', 'files:read'] })
view satisfies View<'search' | 'files:read' | 'remove'>

// A view, a step and a call know the names.
// @ts-expect-error: "serach" is no tool
void gate.view({}, { activeTools: ['serach'] })
// @ts-expect-error: "read" is the name of a tool in a namespace, not its id
view.narrow({ activeTools: ['read'] })
view.narrow({ activeTools: [] }).narrow({ activeTools: ['remove'] })
void view.call({ tool: 'files:read', input: {} })
void view.call({ tool: undefined })
// @ts-expect-error: "files:raed" is no tool
void view.call({ tool: 'files:raed' })
// @ts-expect-error: so does the view of a view
void view.narrow({}).call({ tool: 'serach' })

// So do policies: plain names are checked, and what is no plain name is a selector.
createGate({ tools, policy: { allow: ['search', 'files:read', '*', 'files:*', 'group:web', 'tag:read'] } })
createGate({ tools, policy: [{ deny: [{ match: ['remove', 'hint:destructive'], message: 'No.' }] }] })
// @ts-expect-error: "serach" is no tool
createGate({ tools, policy: { allow: ['serach'] } })
// @ts-expect-error: "files:raed" is no tool
createGate({ tools, policy: { deny: ['search', 'files:raed'] } })
// @ts-expect-error: "remvoe" is no tool
createGate({ tools, policy: [{}, { ask: [{ match: 'remvoe' }] }] })
// @ts-expect-error: "web" is no kind of selector
createGate({ tools, policy: { deny: [{ match: ['web:search'] }] } })
// @ts-expect-error: nor in a step's policy
view.narrow({ policy: { deny: ['serach'] } })
// @ts-expect-error: nor in a fork's
gate.fork({ policy: { deny: ['serach'] } })
// @ts-expect-error: nor in one that replaces the policy
gate.setPolicy({ deny: ['serach'] })
// @ts-expect-error: a fork knows the names too
void gate.fork({ policy: { deny: ['remove'] } }).view({}, { activeTools: ['serach'] })

// Policies that were read from somewhere are met, and checked at run time.
declare const loaded: Policy
createGate({ tools, policy: combinePolicies(loaded, policyFromEnv({}), { deny: ['serach'] }) })
// @ts-expect-error: without that, any text may be in them
createGate({ tools, policy: loaded })
createGate({ tools, policy: { name: 'code', decide: (tool, caller) => (tool.id === caller.user ? 'allow' : 'deny') } })
// @ts-expect-error: a function has three words
createGate({ tools, policy: { decide: () => 'maybe' } })
// @ts-expect-error: and answers at once
createGate({ tools, policy: { decide: async () => 'allow' as const } })

// With a list or with sources, names are texts.
declare const source: Source
declare const list: readonly Tool[]
const listed = createGate({ tools: list, policy: { deny: ['anything'] } })
listed satisfies Gate
void listed.view({}, { activeTools: ['anything'] })
const dynamic = createGate({ tools, sources: [source], policy: { deny: ['anything'] } })
void dynamic.view({}, { activeTools: ['anything'] })

// Who takes any gate takes this one.
const takesAny = (any: Gate): Gate => any
takesAny(gate)

// The input of `execute` is what its schema gives.
defineTool({
  name: 'count',
  inputSchema: z.object({ n: z.coerce.number() }),
  execute: ({ n }) => {
    n satisfies number
    // @ts-expect-error: there is no such field
    return n.m
  },
})
// @ts-expect-error: a tool has no such field
defineTool({ name: 'a', inputSchemas: {} })

// Policies may use the aliases of tools.
createGate({ tools, aliases: { find: 'search' }, policy: { deny: ['find', 'remove'] } })
// @ts-expect-error: "fnd" is neither a tool nor an alias
createGate({ tools, aliases: { find: 'search' }, policy: { deny: ['fnd'] } })
// @ts-expect-error: an alias cannot be called
void createGate({ tools, aliases: { find: 'search' } }).view({}, { activeTools: ['find'] })
