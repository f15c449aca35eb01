import { parentPort } from 'node:worker_threads'
import { ConfigError } from '@toolgate/core'
import type { AuditRecord } from '@toolgate/core/audit'
import type { CatalogSnapshot, ReadRecords, SnapshotItem } from '@toolgate/change'
import { compareToolIds } from '@toolgate/core/tools'
import { answerQuestion } from './admin/change/answer-question.ts'
import { changeDeps, type ThreadQuestion, type RecordsQuery, type Situation } from './admin/change/questions.ts'
import type { FromThread, Reads, ReadWhat, ToThread } from './admin/change/thread-messages.ts'
import { ConfigFileError } from './config/problems.ts'

// A separate thread, which `change/change-thread.ts` starts. It answers one question at a time, and has only the data
// that it receives.

const waiting = new Map<number, (found: never) => void>()
const hashes = new Map<string, Promise<string>>()
let latest = 0

parentPort?.on('message', (message: ToThread) => {
  if ('question' in message) {
    void answer(message.question, message.situation, message.hasHashes).then(send)
    return
  }
  waiting.get(message.id)?.(message.found as never)
  waiting.delete(message.id)
})

async function answer(question: ThreadQuestion, situation: Situation, hasHashes: boolean): Promise<FromThread> {
  hashes.clear()
  try {
    const hashOf = hasHashes ? hashOnce : undefined
    const deps = changeDeps(situation, { catalog: await readCatalog(), records, hashOf })
    return { answer: await answerQuestion(deps, question) }
  } catch (error) {
    if (error instanceof ConfigFileError || error instanceof ConfigError) return { refused: error.message }
    return { failed: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  }
}

async function readCatalog(): Promise<CatalogSnapshot> {
  const items: SnapshotItem[] = []
  for (;;) {
    const page = await read('items', items.length)
    if (page.length === 0) return { version: 1, items: items.toSorted((a, b) => compareToolIds(a.id, b.id)) }
    items.push(...page)
  }
}

function records(query: RecordsQuery): ReadRecords {
  const before = new WeakMap<AuditRecord, number>()
  let after = 0
  async function* readPages() {
    for (let given: RecordsQuery | undefined = query; ; given = undefined) {
      const page = await read('records', given)
      for (const [i, record] of page.records.entries()) before.set(record, page.missing[i] ?? 0)
      after = page.missing.at(-1) ?? 0
      if (page.records.length === 0) return
      yield* page.records
    }
  }
  return { records: readPages(), missing: (record) => (record ? (before.get(record) ?? 0) : after) }
}

function hashOnce(text: string): Promise<string> {
  let hash = hashes.get(text)
  if (!hash) hashes.set(text, (hash = read('hash', text)))
  return hash
}

function read<What extends ReadWhat>(what: What, given: Reads[What]['given']): Promise<Reads[What]['found']> {
  const id = ++latest
  return new Promise((resolve) => {
    waiting.set(id, resolve)
    send({ id, what, given } as FromThread)
  })
}

function send(message: FromThread): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port, not a window
  parentPort?.postMessage(message)
}
