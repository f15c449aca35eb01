import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryAudit } from '@toolgate/core'
import type { AuditReader, AuditRecord } from '@toolgate/core/audit'
import { queryFor } from '../admin/http/callers.ts'
import { findCalls } from '../admin/calls/calls.ts'
import { recordPages, turnEach } from './next-turn.ts'

/** Counts the turns that others have while something is done. */
async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0
  let next = setImmediate(function count() {
    turns++
    next = setImmediate(count)
  })
  await work()
  clearImmediate(next)
  return turns
}

/** An audit that answers at once, and filters nothing. */
function instantAudit(count: number) {
  let asked = 0
  const audit: AuditReader = {
    query: async ({ limit = 100, beforeSeq = count + 1 }) => {
      asked++
      const length = Math.max(0, Math.min(limit, beforeSeq - 1))
      return Array.from({ length }, (_, i) => ({ seq: beforeSeq - 1 - i, tenant: 'other' }) as AuditRecord)
    },
  }
  return { audit, asked: () => asked }
}

describe('recordPages', () => {
  it('yields a turn for each page, even if a store answers at once', async () => {
    const { audit, asked } = instantAudit(20_500)
    const turns = await turnsDuring(async () => {
      let records = 0
      for await (const page of recordPages(audit, {}, 100)) records += page.length
      assert.equal(records, 20_500)
    })
    assert.equal(asked(), 21)
    assert.ok(turns >= 20, `${turns} turns`)
  })
})

describe('queryFor', () => {
  it('leaves turns to others while it looks for the records of a tenant', async () => {
    const { audit } = instantAudit(50_000)
    const turns = await turnsDuring(() => queryFor({ tenant: 'acme' }, audit, { limit: 3 }))
    assert.ok(turns >= 50, `${turns} turns`)
  })

  it('has the store look for them', async () => {
    let tenant: unknown
    await queryFor({ tenant: 'acme' }, { query: async (query) => ((tenant = query.tenant), []) }, {})
    assert.equal(tenant, 'acme')
  })
})

describe('findCalls', () => {
  it('leaves turns to others while it looks calls up', async () => {
    const audit = memoryAudit()
    const about = { tool: 't', policy_revision: 1, catalog_revision: 1 }
    for (let i = 0; i < 400; i++) audit.write({ event: 'tool_result', wallMs: i, tool_call_id: String(i), ...about })
    const turns = await turnsDuring(() => findCalls(audit, { filter: {}, limit: 400 }))
    assert.ok(turns >= 400 / 50, `${turns} turns`)
  })
})

describe('turnEach', () => {
  it('waits once for each so many pieces of work', () => {
    const pace = turnEach(3)
    assert.deepEqual(
      Array.from({ length: 7 }, () => pace() !== undefined),
      [false, false, true, false, false, true, false],
    )
  })
})
