import { existsSync, readFileSync, rmSync } from 'node:fs'
import {
  readRecords,
  type RulesOfChange,
  type WhatIf,
  whatIf,
  type WhatIfProgress,
  type WhatIfState,
  withInputs,
} from '@toolgate/change'
import { errnoOf, messageOf, sha256Hex } from '@toolgate/values'
import {
  ConfigFileError,
  configuredRules,
  type GatewayConfig,
  loadConfig,
  readCatalogFile,
  readConfig,
  rulesOfChange,
} from '@toolgate/gateway'
import type { AuditRecord } from '@toolgate/core/audit'
import type { TargetOptions } from '../target.ts'
import { CliError, type ExitName } from '../exit.ts'
import { INSTALLED_FROM } from '../files.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { parseObject } from '../json.ts'
import { count } from '../render.ts'
import { replaceFile } from '../replace-file.ts'
import { renderTable } from '../table.ts'
import { sealedInputsOf } from '../project/sealed-audit.ts'
import { readInput } from './audit-common.ts'
import { withReader } from './audit.ts'
import { endOf, missingText } from './missing-records.ts'
import { printProblems } from './check.ts'
import type { ServeDeps } from './serve.ts'
import { takeLiveSnapshot } from './snapshot.ts'

export interface WhatIfCommandOptions extends TargetOptions {
  readonly config: string
  /** The path of the other configuration. */
  readonly policy: string
  readonly catalog?: string
  readonly file?: string
  readonly since: Since
  readonly resume?: string
  readonly json?: boolean
}

/** The start of the recorded calls. Resuming requires the same text, such as `7d`. */
export interface Since {
  readonly text: string
  readonly ms: number
}

/** The time before `since` whose records are also read, in milliseconds. Histories of runs last that long. */
const BEFORE_MS = 86_400_000

/**
 * `toolgate what-if`: prints the effect of another configuration's rules on callers and recorded calls. Changes
 * nothing.
 */
export async function whatIfCommand(
  options: WhatIfCommandOptions,
  { io, start, signals }: Pick<ServeDeps, 'io' | 'start' | 'signals'>,
): Promise<ExitName> {
  const configs = await readBoth(options, io)
  if (!configs) return 'usage'
  const { before, after } = await findRules(configs, options, start)
  const counted = [configs.texts, options.since.text, before.catalog, after.catalog]
  const progress = new ShownProgress(options, sha256Hex(JSON.stringify(counted)), io)
  const { stopped, release } = signals.once()
  const stop = new AbortController()
  void stopped.then(() => stop.abort())
  const inputs = await sealedInputsOf(configs.before, options.file, io.env)
  try {
    const found = await withReader(options, io, async (reader) => {
      const { resumed, sinceMs } = progress
      // Reading continues with the last counted record.
      const goesOn = resumed && !resumed.readsPast ? { afterSeq: resumed.lastSeq - 1 } : {}
      const { records, missing } = readRecords(reader, { since: sinceMs - BEFORE_MS, ...goesOn })
      const read = progress.continued(records)
      const known = inputs ? withInputs(read, inputs, inputs.open) : { records: read }
      const onProgress = (state: WhatIfProgress) => progress.show(state)
      return whatIf({
        before,
        after,
        ...known,
        missing,
        since: sinceMs,
        resumed,
        hashOf: reader.hashText,
        onProgress,
        signal: stop.signal,
      })
    })
    progress.finish()
    if (options.json) printJson(io.stdout, found)
    else print(found, needOf(configs.before, options), io)
    return endOf(found)
  } catch (error) {
    if (!stop.signal.aborted) throw error
    throw new CliError('no', 'Stopped before the last record.', { hint: progress.hint() })
  } finally {
    await inputs?.close()
    release()
  }
}

interface Configs {
  readonly before: GatewayConfig
  readonly after: GatewayConfig
  readonly texts: readonly string[]
}

/** Reads both configurations. If one is invalid, prints its problems as `check` does, and returns `undefined`. */
async function readBoth({ config, policy, catalog, json }: WhatIfCommandOptions, io: Io): Promise<Configs | undefined> {
  const how = { env: io.env, packagesFrom: [INSTALLED_FROM] }
  try {
    // Commands of secrets run only if servers are started.
    const read = catalog === undefined ? readConfig : loadConfig
    const [before, after] = [await read(config, how), await read(policy, how)]
    return { before, after, texts: [config, policy].map((file) => readFileSync(file, 'utf8')) }
  } catch (error) {
    if (!(error instanceof ConfigFileError)) throw error
    if (json) printJson(io.stdout, { ok: false, problems: error.problems })
    else printProblems(error, io)
    return undefined
  }
}

type RulesToCompare = { readonly before: RulesOfChange; readonly after: RulesOfChange }

/** Returns both sets of rules, over the catalog of a snapshot or of the running servers. */
async function findRules(
  { before, after }: Configs,
  { catalog }: WhatIfCommandOptions,
  start: ServeDeps['start'],
): Promise<RulesToCompare> {
  if (catalog !== undefined) {
    const snapshot = readCatalogFile(catalog)
    return { before: configuredRules(snapshot, before), after: configuredRules(snapshot, after) }
  }
  const now = await takeLiveSnapshot(before, start)
  // The servers' entries also contain the tags and labels of tools.
  const isSame = JSON.stringify(before.servers) === JSON.stringify(after.servers)
  const then = isSame ? now : await takeLiveSnapshot(after, start)
  return { before: rulesOfChange(now, before), after: rulesOfChange(then, after) }
}

const SAVE_MS = 2000
const SHOW_MS = 200
const BAR_LENGTH = 24

/** Shows the progress of a what-if on a terminal, and stores its counts, so that it can be resumed. */
class ShownProgress {
  readonly resumed: WhatIfState | undefined
  /** The start time at the first run, before any stop. */
  readonly sinceMs: number
  readonly #file: string | undefined
  readonly #hash: string
  readonly #io: Io
  /** The time of the last counted record. */
  #ts: string
  #state: (() => WhatIfState) | undefined
  #savedMs = performance.now()
  #shownMs = 0

  /** Creates the progress. `hash` covers everything that the counts depend on. */
  constructor({ resume, since }: WhatIfCommandOptions, hash: string, io: Io) {
    this.#file = resume
    this.#hash = hash
    this.#io = io
    const kept = this.#read()
    this.resumed = kept?.state
    this.sinceMs = kept?.sinceMs ?? since.ms
    this.#ts = kept?.ts ?? ''
  }

  #read(): { readonly state: WhatIfState; readonly sinceMs: number; readonly ts: string } | undefined {
    if (this.#file === undefined || !existsSync(this.#file)) return undefined
    const { hash, state, sinceMs, ts } = parseObject(readInput(this.#file, 'file of --resume')) ?? {}
    if (hash === this.#hash && state && typeof sinceMs === 'number' && typeof ts === 'string')
      return { state: state as unknown as WhatIfState, sinceMs, ts }
    throw this.#unusable(typeof hash === 'string' && state ? 'of another what-if' : 'not the state of a what-if')
  }

  #unusable(why: string): CliError {
    return new CliError('usage', `${printable(this.#file ?? '')} is ${why}.`, {
      hint: 'Remove it, or name another file with --resume.',
    })
  }

  /** Yields the records. @throws {CliError} `usage` if the last counted record is not among them */
  async *continued(records: AsyncIterable<AuditRecord>): AsyncGenerator<AuditRecord> {
    const { resumed } = this
    const ts = this.#ts
    let isKnown = resumed === undefined
    for await (const record of records) {
      if (resumed && record.seq === resumed.lastSeq) isKnown = record.ts === ts
      if (!isKnown && record.seq >= (resumed?.lastSeq ?? 0)) break
      yield record
    }
    if (!isKnown) throw this.#unusable('of another audit, or of records that are gone')
  }

  show({ records, ts, state }: WhatIfProgress): undefined {
    this.#state = state
    this.#ts = ts
    const nowMs = performance.now()
    if (nowMs - this.#savedMs >= SAVE_MS) this.#save(nowMs)
    const { stderr } = this.#io
    if (!stderr.isTTY || nowMs - this.#shownMs < SHOW_MS) return
    this.#shownMs = nowMs
    const [from, to] = [this.sinceMs - BEFORE_MS, Date.now()]
    const share = Math.min(1, Math.max(0, (Date.parse(ts) - from) / (to - from)))
    const full = Math.round(share * BAR_LENGTH)
    const bar = `${'█'.repeat(full)}${'░'.repeat(BAR_LENGTH - full)}`
    stderr.write(`\r${bar} ${Math.round(share * 100)} %  ${count(records, 'record')}`)
  }

  #save(nowMs: number): void {
    this.#savedMs = nowMs
    if (this.#file === undefined || !this.#state) return
    try {
      replaceFile(
        this.#file,
        JSON.stringify({ hash: this.#hash, sinceMs: this.sinceMs, ts: this.#ts, state: this.#state() }),
      )
    } catch (cause) {
      const why = errnoOf(cause) ?? messageOf(cause)
      throw new CliError('no', `${printable(this.#file)} of --resume cannot be written (${why}).`, { cause })
    }
  }

  /** Returns a hint about how to resume after a stop. */
  hint(): string {
    if (this.#file === undefined) return 'With --resume <file> it can go on where it stopped.'
    this.#save(performance.now())
    return `The same command goes on where it stopped: ${this.#file}.`
  }

  finish(): void {
    if (this.#shownMs > 0) this.#io.stderr.write(`\r${' '.repeat(BAR_LENGTH + 40)}\r`)
    if (this.#file !== undefined) rmSync(this.#file, { force: true })
  }
}

const MAX_ROWS = 50
const MAX_NAMED = 8

/** Returns the settings that would allow inputs to be judged. */
function needOf({ audit: { inputs } }: GatewayConfig, { file }: WhatIfCommandOptions): string {
  if (inputs === undefined || inputs === 'redacted' || file !== undefined)
    return 'Inputs are kept with audit.inputs: facts, or sealed with a key, which must then be here.'
  return "Texts that rules compare are hashed with the gateway's key: run it there with --file, or keep inputs sealed and have their key here."
}

function print(found: WhatIf, need: string, io: Io): void {
  const { stdout } = io
  const paint = painter(stdout, io.env)
  const { calls, missing, changed, unknown, drifted, firstAt, lastAt, rows, rules, access } = found
  printLine(stdout, paint('bold', 'Who gains and who loses'))
  for (const { caller, gains, loses, unknown: open } of access) {
    const parts = [
      gains.length > 0 && paint('green', `gains ${named(gains)}`),
      loses.length > 0 && paint('red', `loses ${named(loses)}`),
      open.length > 0 && paint('yellow', `unknown ${named(open)}`),
    ]
    printLine(stdout, `  ${printable(caller)}  ${parts.filter(Boolean).join('; ')}`)
  }
  if (access.length === 0) printLine(stdout, '  nobody')
  const period = firstAt === undefined ? '' : `, ${firstAt.slice(0, 16)} to ${lastAt?.slice(0, 16)}`
  printLine(stdout, `\n${paint('bold', `${count(calls, 'recorded call')}${period}`)}`)
  if (missing > 0) printLine(stdout, `  ${paint('yellow', missingText(missing))}`)
  printLine(stdout, `  ${changed} would have ended otherwise, ${unknown} cannot be judged`)
  if (drifted > 0) printLine(stdout, `  ${drifted} ended otherwise than the rules in force say, and not by this change`)
  if (rows.length > 0) {
    const shown = rows
      .slice(0, MAX_ROWS)
      .map(({ count: n, caller, tool, from, to, rule, examples }) => [
        String(n),
        printable(caller),
        printable(tool),
        `${from} → ${to}`,
        printable(rule),
        String(examples[0]?.seq ?? ''),
      ])
    printLine(stdout, `\n${renderTable(['CALLS', 'CALLER', 'TOOL', 'ENDS', 'RULE', 'RECORD'], shown, stdout)}`)
    if (rows.length > MAX_ROWS) printLine(stdout, `and ${rows.length - MAX_ROWS} more; --json has them`)
  }
  const open = rules.filter((rule) => rule.unknown > 0)
  if (open.length === 0) return
  const unjudged = open.map(({ rule, unknown: n }) => [String(n), printable(rule)])
  printLine(stdout, `\n${renderTable(['CANNOT JUDGE', 'RULE'], unjudged, stdout)}`)
  if (found.unknownParts.input > 0) printLine(stdout, paint('dim', need))
}

function named(ids: readonly string[]): string {
  const rest = ids.length > MAX_NAMED ? ` and ${ids.length - MAX_NAMED} more` : ''
  return `${ids.slice(0, MAX_NAMED).map(printable).join(', ')}${rest}`
}
