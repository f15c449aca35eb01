import { appendFileSync } from 'node:fs'
import { fromAiSdk } from '@toolgate/adapters/ai-sdk'
import { createGate } from '@toolgate/core'
import { tool } from 'ai'
import { z } from 'zod'

/** What the tools really did goes here. */
const ledger = process.env['LEDGER'] ?? '/dev/null'

const make = (name: string, done: string) =>
  tool({
    description: `Does ${name}.`,
    inputSchema: z.object({ what: z.string() }),
    execute: ({ what }) => {
      appendFileSync(ledger, `${name} ${what}\n`)
      return `${what} ${done}`
    },
  })

const tools = { search: make('search', 'found'), pay: make('pay', 'paid'), remove: make('remove', 'removed') }

export const gate = createGate({
  tools: fromAiSdk(tools, { remove: { tags: ['danger'] } }),
  policy: { deny: [{ match: 'tag:danger', unless: "'admin' in caller.roles" }], ask: ['pay'] },
})
