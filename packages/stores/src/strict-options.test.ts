import assert from 'node:assert/strict'
import path from 'node:path'
import { describe, it } from 'node:test'
import { ConfigError } from '@toolgate/core'
import * as jsonl from './jsonl.ts'
import * as postgres from './postgres.ts'
import * as redis from './redis.ts'
import * as sqlite from './sqlite.ts'
import { scratchFolder } from './testing/scratch-folder.ts'
import * as verify from './verify.ts'

/** Takes a value past the compiler, as a variable of a wider type does. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the type is the caller's to say
function loose<T>(value: unknown): T {
  return value as T
}

/** What is misspelt, the key as it is written, the key that was meant, and the use with a file. */
type Misspelling = readonly [where: string, key: string, meant: string, use: (file: string) => unknown]

const MISSPELLINGS: Readonly<Record<string, readonly Misspelling[]>> = {
  openSqliteAudit: [
    ['options', 'redct', 'redact', (file) => sqlite.openSqliteAudit(loose({ path: file, redct: undefined }))],
    [
      'checkpoints',
      'evryRecords',
      'everyRecords',
      (file) => sqlite.openSqliteAudit(loose({ path: file, checkpoints: { evryRecords: 1 } })),
    ],
  ],
  openJsonlAudit: [
    ['options', 'readonly', 'readOnly', (file) => jsonl.openJsonlAudit(loose({ path: file, readonly: true }))],
    ['checkpoints', 'keyy', 'key', (file) => jsonl.openJsonlAudit(loose({ path: file, checkpoints: { keyy: 'x' } }))],
  ],
  openSqliteStores: [
    ['options', 'maxPage', 'maxPages', (file) => sqlite.openSqliteStores(loose({ path: file, maxPage: 1 }))],
    ['approvals', 'ttl', 'ttlMs', (file) => sqlite.openSqliteStores(loose({ path: file, approvals: { ttl: 1 } }))],
    [
      'counters',
      'maxKey',
      'maxKeys',
      (file) => sqlite.openSqliteStores(loose({ path: file, counters: { maxKey: 1 } })),
    ],
    ['lock', 'leasMs', 'leaseMs', (file) => sqlite.openSqliteStores(loose({ path: file, lock: { leasMs: 1 } }))],
  ],
  openPostgresStores: [
    ['options', 'uri', 'url', () => postgres.openPostgresStores(loose({ uri: 'x' }))],
    [
      'counters',
      'survive',
      'survives',
      () => postgres.openPostgresStores(loose({ url: 'x', counters: { survive: 1 } })),
    ],
    ['lock', 'leasMs', 'leaseMs', () => postgres.openPostgresStores(loose({ url: 'x', lock: { leasMs: 1 } }))],
    ['approvals', 'ttl', 'ttlMs', () => postgres.openPostgresStores(loose({ url: 'x', approvals: { ttl: 1 } }))],
  ],
  openRedisCounters: [['options', 'uri', 'url', () => redis.openRedisCounters(loose({ uri: 'x' }))]],
  verifyAudit: [
    ['options', 'checkpoint', 'checkpoints', (file) => verify.verifyAudit(loose({ path: file, checkpoint: 'x' }))],
  ],
  verifySharedAudit: [
    ['options', 'verifyers', 'verifiers', () => verify.verifySharedAudit(loose({}), loose({ verifyers: [] }))],
  ],
  proveRecords: [['options', 'plac', 'place', () => verify.proveRecords(loose({}), loose({ plac: 3 }))]],
  withAuditFile: [
    [
      'options',
      'verifier',
      'verifiers',
      (file) => verify.withAuditFile(loose({ path: file, verifier: [] }), async () => {}),
    ],
  ],
}

/** They take a text, a source, or a part of a configuration of which they read nothing but the places. */
const WITHOUT_OPTIONS: ReadonlySet<string> = new Set([
  'checkpointsPath',
  'exportSharedAudit',
  'findFileProblem',
  'findPlaceProblems',
  'openExportedAudit',
  'proveGrowth',
  'readNotes',
  'statement',
])

describe('options of @toolgate/stores', () => {
  it('are listed here for every exported function', () => {
    const exported = Object.entries({ ...jsonl, ...postgres, ...redis, ...sqlite, ...verify })
    const functions = exported.flatMap(([name, value]) => (typeof value === 'function' ? [name] : []))
    assert.deepEqual([...Object.keys(MISSPELLINGS), ...WITHOUT_OPTIONS].toSorted(), functions.toSorted())
  })

  for (const [name, cases] of Object.entries(MISSPELLINGS))
    for (const [where, key, meant, use] of cases)
      it(`of ${name}: ${where} with "${key}" name "${meant}"`, async (t) => {
        const file = path.join(scratchFolder(t), 'file')
        await assert.rejects(
          async () => use(file),
          (error: Error) =>
            error instanceof ConfigError &&
            error.message.includes(key) &&
            error.message.includes(`did you mean "${meant}"?`),
        )
      })
})
