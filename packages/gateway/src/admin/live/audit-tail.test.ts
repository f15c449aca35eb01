import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { memoryAudit } from '@toolgate/core'
import type { AuditQuery, AuditReader, AuditRecord } from '@toolgate/core/audit'
import { auditEntry } from '@toolgate/testing'
import { createAuditTail } from './audit-tail.ts'

describe('createAuditTail', () => {
  it('returns every record since the subscription, in order, once, with its seq', async () => {
    const audit = memoryAudit()
    audit.write(auditEntry())
    const heard: AuditRecord[] = []
    const leave = await tailOf(audit).subscribe((records) => void heard.push(...records))
    for (let i = 0; i < 2500; i++) audit.write(auditEntry())
    await until(() => heard.length >= 2500)
    audit.write(auditEntry())
    await until(() => heard.length > 2500)
    assert.deepEqual(
      heard.map(({ seq }) => seq),
      Array.from({ length: 2501 }, (_, i) => i + 2),
    )
    leave()
  })

  it('does not query without listeners, before the first and after the last', async () => {
    const audit = memoryAudit()
    let queries = 0
    const tail = tailOf({ query: (query: AuditQuery) => (queries++, audit.query(query)) })
    await sleep(20)
    assert.equal(queries, 0)
    const leave = [await tail.subscribe(() => {}), await tail.subscribe(() => {})]
    await until(() => queries > 3)
    for (const one of leave) one()
    const asked = queries
    await sleep(30)
    assert.equal(queries, asked)
  })

  it('starts again for a later listener, without the records in between', async () => {
    const audit = memoryAudit()
    const tail = tailOf(audit)
    ;(await tail.subscribe(() => {}))()
    audit.write(auditEntry())
    const heard: number[] = []
    const leave = await tail.subscribe((records) => void heard.push(...records.map(({ seq }) => seq)))
    audit.write(auditEntry())
    await until(() => heard.length > 0)
    assert.deepEqual(heard, [2])
    leave()
  })

  it('goes on after a reader that failed for a while', async () => {
    const audit = memoryAudit()
    let fails = false
    const faults: unknown[] = []
    const reader: AuditReader = {
      query(query) {
        if (fails) throw new Error('disk')
        return audit.query(query)
      },
    }
    const tail = createAuditTail(reader, (error) => faults.push(error), 5)
    const heard: AuditRecord[] = []
    const leave = await tail.subscribe((records) => void heard.push(...records))
    fails = true
    audit.write(auditEntry())
    await until(() => faults.length > 0)
    fails = false
    await until(() => heard.length === 1)
    leave()
  })

  it('rejects if the audit cannot be read, and may be tried again', async () => {
    const audit = memoryAudit()
    let fails = true
    const tail = tailOf({
      query(query: AuditQuery) {
        if (fails) throw new Error('disk')
        return audit.query(query)
      },
    })
    await assert.rejects(
      tail.subscribe(() => {}),
      /disk/,
    )
    fails = false
    ;(await tail.subscribe(() => {}))()
  })
})

function tailOf(audit: AuditReader) {
  return createAuditTail(audit, assert.ifError, 5)
}

async function until(check: () => boolean): Promise<void> {
  for (let i = 0; i < 1000 && !check(); i++) await sleep(5)
  assert.ok(check(), check.toString())
}
