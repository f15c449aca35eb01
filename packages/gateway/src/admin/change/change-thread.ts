import { Worker } from 'node:worker_threads'
import type { Tool } from '@toolgate/core'
import type { AuditRecord } from '@toolgate/core/audit'
import { type ReadRecords, toSnapshot } from '@toolgate/change'
import { errnoOf } from '@toolgate/values'
import { ApiFault } from '../../model/faults.ts'
import { CHANGE_THREAD } from '../../files.ts'
import type { QuestionAnswers, ThreadQuestion, RecordsQuery, Situation } from './questions.ts'
import type { FromThread, Reads, ReadWhat, RecordsPage, ToThread } from './thread-messages.ts'

/** The parts of the gateway that questions read. */
export interface AskedOf {
  readonly situation: Situation
  /** The items that all callers share. */
  readonly items: readonly Tool[]
  /** Returns the records that the asking person may see. */
  records(query: RecordsQuery): ReadRecords
  /** Absent if the audit stores no hashes. */
  readonly hashOf: ((text: string) => string) | undefined
}

export interface ChangeThreadOptions {
  /** The time limit for a question. Default 90 s, of which reading may take a minute. */
  readonly deadlineMs?: number
  /** The thread ends after this time without a question. Default 60 s. */
  readonly idleMs?: number
  /** The maximum heap size of the thread in MiB. Default 512. */
  readonly maxMb?: number
}

const DEADLINE_MS = 90_000
const IDLE_MS = 60_000
const MAX_MB = 512
/** The number of entries that are read in one turn of the event loop. */
const PAGE = 250

/**
 * Answers questions about changes in a separate thread, one at a time, so that no text and no audit delays calls.
 *
 * The thread starts with the first question. It ends when it is idle, when the asker disconnects, and with a question
 * that takes too much time or memory.
 */
export class ChangeThread {
  readonly #options: ChangeThreadOptions
  #worker: Worker | undefined
  #isBusy = false
  #idle: NodeJS.Timeout | undefined

  constructor(options: ChangeThreadOptions = {}) {
    this.#options = options
  }

  /** @throws {ApiFault} `config_invalid` for a text that cannot be used, `what_if_busy`, `what_if_too_large` */
  async ask<Asked extends ThreadQuestion>(
    question: Asked,
    of: AskedOf,
    signal: AbortSignal,
  ): Promise<QuestionAnswers[Asked['what']]> {
    if (this.#isBusy) throw new ApiFault('what_if_busy', BUSY)
    this.#isBusy = true
    clearTimeout(this.#idle)
    const worker = (this.#worker ??= this.#start())
    worker.ref()
    const reader = new ThreadReader(of)
    try {
      return (await this.#answer(worker, question, { of, reader, signal })) as QuestionAnswers[Asked['what']]
    } catch (error) {
      // A refused text is answered. After any other error, the thread may still be working.
      if (!(error instanceof Refused)) this.#end()
      throw error instanceof Refused ? new ApiFault('config_invalid', error.message) : error
    } finally {
      await reader.close()
      this.#isBusy = false
      this.#worker?.unref()
      this.#idle = setTimeout(() => this.#end(), this.#options.idleMs ?? IDLE_MS).unref()
    }
  }

  close(): void {
    clearTimeout(this.#idle)
    this.#end()
  }

  #start(): Worker {
    const worker = new Worker(CHANGE_THREAD, {
      name: 'changes',
      resourceLimits: { maxOldGenerationSizeMb: this.#options.maxMb ?? MAX_MB },
      ...(CHANGE_THREAD.pathname.endsWith('.ts') && { execArgv: ['--conditions=toolgate-source'] }),
    })
    const forget = () => {
      if (this.#worker === worker) this.#worker = undefined
    }
    worker.on('error', forget)
    worker.on('exit', forget)
    return worker
  }

  #end(): void {
    void this.#worker?.terminate()
    this.#worker = undefined
  }

  async #answer(
    worker: Worker,
    question: ThreadQuestion,
    { of, reader, signal }: { readonly of: AskedOf; readonly reader: ThreadReader; readonly signal: AbortSignal },
  ): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const { deadlineMs = DEADLINE_MS, maxMb = MAX_MB } = this.#options
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    const send = (message: ToThread) => worker.postMessage(message)
    const onMessage = (message: FromThread) => {
      if ('what' in message)
        reader.read(message.what, message.given).then((found) => send({ id: message.id, found }), reject)
      else if ('answer' in message) resolve(message.answer)
      else reject('refused' in message ? new Refused(message.refused) : new Error(message.failed))
    }
    const onError = (error: Error) =>
      reject(errnoOf(error) === 'ERR_WORKER_OUT_OF_MEMORY' ? tooLarge(`more than ${maxMb} MB of memory`) : error)
    const onExit = () => reject(new Error('the thread that answers questions about changes has ended'))
    const onAbort = () => reject(signal.reason)
    const timer = setTimeout(() => reject(tooLarge(`longer than ${deadlineMs / 1000} s`)), deadlineMs)
    worker.on('message', onMessage).on('error', onError).on('exit', onExit)
    signal.addEventListener('abort', onAbort)
    try {
      signal.throwIfAborted()
      send({ question, situation: of.situation, hasHashes: of.hashOf !== undefined })
      return await promise
    } catch (error) {
      if (!(error instanceof DOMException && error.name === 'DataCloneError')) throw error
      throw new ApiFault('reload_refused', 'The configuration in force holds functions, which no file has.')
    } finally {
      clearTimeout(timer)
      worker.off('message', onMessage).off('error', onError).off('exit', onExit)
      signal.removeEventListener('abort', onAbort)
    }
  }
}

class Refused extends Error {}

const BUSY = 'Another what-if, comparison, test or suggestion is running; ask again when it has ended.'

function tooLarge(what: string): ApiFault {
  return new ApiFault('what_if_too_large', `The question takes ${what}, and was ended; the command has no such bound.`)
}

/** Reads the data that the thread requests. */
class ThreadReader {
  readonly #of: AskedOf
  #read: ReadRecords | undefined
  #records: AsyncIterator<AuditRecord> | undefined

  constructor(of: AskedOf) {
    this.#of = of
  }

  async read<What extends ReadWhat>(what: What, given: Reads[What]['given']): Promise<Reads[What]['found']>
  async read(what: ReadWhat, given: Reads[ReadWhat]['given']): Promise<Reads[ReadWhat]['found']> {
    const { items, hashOf } = this.#of
    switch (what) {
      case 'items':
        return toSnapshot(items.slice(given as number, (given as number) + PAGE)).items
      case 'hash':
        return hashOf?.(given as string) ?? ''
      case 'records':
        return this.#nextRecords(given as RecordsQuery | undefined)
    }
  }

  async #nextRecords(query: RecordsQuery | undefined): Promise<RecordsPage> {
    if (query) {
      await this.close()
      this.#read = this.#of.records(query)
      this.#records = this.#read.records[Symbol.asyncIterator]()
    }
    const page: AuditRecord[] = []
    while (this.#records && page.length < PAGE) {
      const { done, value } = await this.#records.next()
      if (done) break
      page.push(value)
    }
    const missing = [...page, undefined].map((record) => this.#read?.missing(record) ?? 0)
    return { records: page, missing }
  }

  async close(): Promise<void> {
    await this.#records?.return?.()
    this.#records = undefined
  }
}
